"""Places of the labels of points in a chart, so that they cover no points and no labels."""

from __future__ import annotations

from collections.abc import Sequence

ANCHORS = {"right": "", "left": ' text-anchor="end"', "middle": ' text-anchor="middle"'}
_LETTER, _HIGH = 9.6, 21.0  # width and height of a letter on a narrow screen, where it is largest
_MIDDLE = 4.0  # from the baseline of a text to its middle
_APART = 12.0  # least distance between a label above or below its point and other points
_DOT, _RING = 8.0, 12.0  # from the middle of a point to its label, without and with a ring
_INK = 6.0  # half the width of a point

Spot = tuple[float, float, str, bool]
_Box = tuple[float, float, float, float]


def placed(spots: Sequence[Spot], room: _Box) -> list[tuple[float, float, str, str]]:
    """Return the labels that fit: x, y, the label and its anchor.

    Points with rings get their labels first, and always; if no place is free, in the place with the
    least overlap. Labels of other points are dropped if no place is free.

    Parameters
    ----------
    spots : sequence of (x, y, label, ring)
    room : tuple of float
        Left, top, right and bottom of the area for labels.

    Examples
    --------
    >>> placed([(50.0, 50.0, "a", False), (300.0, 50.0, "b", True)], (0, 0, 340, 100))
    [(312.0, 54.0, 'b', 'right'), (58.0, 54.0, 'a', 'right')]
    """
    dots = [_around(x, y, _RING if ring else _INK) for x, y, _, ring in spots]
    taken: list[_Box] = []
    found = []
    for number in sorted(range(len(spots)), key=lambda at: not spots[at][3]):
        x, y, label, ring = spots[number]
        if not label:
            continue
        others = [dot for at, dot in enumerate(dots) if at != number]
        best = None
        for at_x, at_y, side in _places(x, y, _RING if ring else _DOT, ring):
            box = _box(at_x, at_y, side, label)
            outside = max(room[0] - box[0], box[2] - room[2], room[1] - box[1], box[3] - room[3])
            cost = 1e6 * max(outside, 0.0)
            cost += 1e3 * sum(_overlap(box, other) for other in (*taken, *others))
            if at_y != y + _MIDDLE:  # above or below: keep away from other points
                wide = box[0] - _APART, box[1] - _APART, box[2] + _APART, box[3] + _APART
                cost += sum(_overlap(wide, other) for other in others)
            if best is None or cost < best[0]:
                best = cost, at_x, at_y, side, box
        assert best is not None
        if best[0] == 0 or ring:
            taken.append(best[4])
            found.append((best[1], best[2], label, best[3]))
    return found


def _around(x: float, y: float, half: float) -> _Box:
    return x - half, y - half, x + half, y + half


def _places(x: float, y: float, half: float, ring: bool) -> list[tuple[float, float, str]]:
    """Return possible places of a label, the preferred ones first: x, baseline and anchor."""
    above, below = y - half - 4, y + half + 15
    places = [(x + half, y + _MIDDLE, "right"), (x - half, y + _MIDDLE, "left")]
    for line in (above, below, above - _HIGH, below + _HIGH) if ring else (above, below):
        places += [(x, line, side) for side in ("middle", "right", "left")]
    return places


def _box(x: float, y: float, side: str, label: str) -> _Box:
    wide = _LETTER * len(label)
    left = {"right": x, "left": x - wide, "middle": x - wide / 2}[side]
    return left, y - 0.75 * _HIGH, left + wide, y + 0.25 * _HIGH


def _overlap(one: _Box, other: _Box) -> float:
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    return max(across, 0.0) * max(down, 0.0)
