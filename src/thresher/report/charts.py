"""Charts as SVG; the style of the page sets their colours, light or dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from thresher.model.history import runs_of
from thresher.report.labels import ANCHORS, placed
from thresher.report.page import text
from thresher.scales import counts_of, range_of, ticks_of

_WIDE, _HIGH = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 30, 32, 54  # margins, for labels
_DASHES = ("", "7 4", "2 4", "9 3 2 3", "4 2", "1 3", "12 4")  # tell lines apart without colours
_MOST_MARKERS = 60  # on a line
_LETTER = 10.5  # width of a letter on a narrow screen
_LARGEST = 1e150  # larger values are not drawn


class ChartPoint(NamedTuple):
    """A point of `scatter`.

    Attributes
    ----------
    x, y : float
    name : str
        Tooltip.
    kind : str
        Colour: "" or "off" (grey), "on", "best" or "s0" to "s6". If " ring" is appended, the point
        has a ring.
    spread : float
        Half the length of the error bar.
    label : str
        Text beside the point, if there is room; points with rings always have it.

    Examples
    --------
    >>> from thresher.report.charts import ChartPoint
    >>> ChartPoint(10, 0.25, "l1=1").kind
    ''
    """

    x: float
    y: float
    name: str = ""
    kind: str = ""
    spread: float = 0.0
    label: str = ""


def lines(
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x: str,
    y: str,
    log_x: bool = False,
    title: str,
) -> str:
    """Return lines in one chart, each with its own colour and dashes.

    Parameters
    ----------
    series : mapping from str to sequence of (x, y)
        Points that are not finite are not drawn. Where x decreases, a new line begins.
    x, y : str
        Names of the axes.
    log_x : bool
        Whether the x-axis is logarithmic.
    title : str

    Examples
    --------
    >>> from thresher.report.charts import lines
    >>> svg = lines({"loss": [(1, 0.5), (2, 0.25)]}, x="rows", y="loss", title="Learning")
    >>> svg.count("<polyline"), svg.count("<title>")
    (1, 2)
    """
    drawn = {n: [(a, b) for a, b in pairs if _is_drawn(a, b)] for n, pairs in series.items()}
    kept = {name: points for name, points in drawn.items() if points}
    if not kept:
        return _empty(title)
    every = [point for points in kept.values() for point in points]
    frame = _Frame([p[0] for p in every], [p[1] for p in every], log_x, tight=True)
    parts = [*frame.open(title, x, y, all(point[1] == round(point[1]) for point in every))]
    for number, (name, points) in enumerate(kept.items()):
        kind = number % len(_DASHES)
        for run in runs_of([a for a, _ in points]):
            path = " ".join(f"{frame.x(a)},{frame.y(b)}" for a, b in points[run])
            parts.append(f'<polyline class="s{kind}"{_dashes(kind)} points="{path}"/>')
        every_nth = math.ceil(len(points) / _MOST_MARKERS)
        for a, b in points[(len(points) - 1) % every_nth :: every_nth]:
            about = f"{name}: {_short(b)} at {_short(a)}"
            parts.append(_circle(frame, ChartPoint(a, b, about, f"s{kind}"), 3))
    key = []
    if len(kept) > 1:
        for number, name in enumerate(kept):
            kind = number % len(_DASHES)
            sign = f'<line class="s{kind}"{_dashes(kind)} stroke-width="2.5" x1="0" x2="26" '
            key.append((sign + 'y1="6" y2="6"/>', name))
    return _figure(title, parts, key)


def scatter(
    points: Sequence[ChartPoint],
    *,
    x: str,
    y: str,
    log_x: bool = False,
    title: str,
    edge: Sequence[int] = (),
    key: Mapping[str, str] | None = None,
) -> str:
    """Return a chart of points; those of one kind have the same colour.

    Parameters
    ----------
    points : sequence of ChartPoint
        Later points are drawn on top. Points that are not finite are not drawn.
    x, y : str
        Names of the axes.
    log_x : bool
        Whether the x-axis is logarithmic.
    title : str
    edge : sequence of int
        Numbers of points that are joined by a line.
    key : mapping from str to str, optional
        Meanings of kinds, for the legend.

    Examples
    --------
    >>> from thresher.report.charts import ChartPoint, scatter
    >>> svg = scatter([ChartPoint(10, 0.25, "l1=1")], x="nonzeros", y="error", title="Frontier")
    >>> svg.count("<title>")
    1
    """
    points = [point if isinstance(point, ChartPoint) else ChartPoint(*point) for point in points]
    sound = [p for p in points if _is_drawn(p.x, p.y, p.spread)]
    if not sound:
        return _empty(title)
    reach = [p.y + sign * p.spread for p in sound for sign in (-1, 1)]
    frame = _Frame([p.x for p in sound], reach, log_x)
    parts = [*frame.open(title, x, y)]
    if len(edge) > 1:
        joined = [points[i] for i in edge if points[i] in sound]
        path = " ".join(f"{frame.x(p.x)},{frame.y(p.y)}" for p in joined)
        parts.append(f'<polyline class="edge" points="{path}"/>')
    for p in sound:
        if p.spread:
            ends = f'y1="{frame.y(p.y - p.spread)}" y2="{frame.y(p.y + p.spread)}"'
            parts.append(f'<line class="spread" x1="{frame.x(p.x)}" x2="{frame.x(p.x)}" {ends}/>')
    parts += [_circle(frame, p, 5 if p.kind else 4) for p in sound]
    spots = [(float(frame.x(p.x)), float(frame.y(p.y)), p.label, "ring" in p.kind) for p in sound]
    parts += [
        f'<text x="{x:.1f}" y="{y:.1f}"{ANCHORS[side]}>{text(label)}</text>'
        for x, y, label, side in placed(spots, (_LEFT - 4, _TOP, _WIDE - 4, _HIGH - _BOTTOM))
    ]
    return _figure(
        title,
        parts,
        [(_sign(kind), meaning) for kind, meaning in (key or {}).items()],
    )


def histogram(counts: Mapping[int, int], *, x: str, y: str, title: str) -> str:
    """Return a bar chart of counts of whole numbers.

    Parameters
    ----------
    counts : mapping from int to int
    x, y : str
        Names of the axes.
    title : str

    Examples
    --------
    >>> from thresher.report.charts import histogram
    >>> histogram({-3: 10, -1: 4}, x="exponent", y="weights", title="Exponents").count("<rect")
    2
    """
    if not counts:
        return _empty(title)
    frame = _Frame(
        [min(counts) - 0.6, max(counts) + 0.6], [0, max(counts.values())], False, tight=True
    )
    parts = [*frame.open(title, x, y, True)]
    wide = 0.8 * (float(frame.x(1)) - float(frame.x(0)))
    for at, count in sorted(counts.items()):
        high = max(float(frame.y(0)) - float(frame.y(count)), 1.0 if count else 0.0)
        parts.append(
            f'<rect x="{float(frame.x(at)) - wide / 2:.1f}" y="{float(frame.y(0)) - high:.1f}" '
            f'width="{wide:.1f}" height="{high:.1f}"><title>{_short(at)}: {count:,}</title></rect>'
        )
    return _figure(title, parts, [])


class _Frame:
    """Axes and grid of a chart; maps values to coordinates."""

    def __init__(
        self, across: Sequence[float], up: Sequence[float], log_x: bool, tight: bool = False
    ) -> None:
        least = min((value for value in across if value > 0), default=1.0)
        # A logarithmic axis of counts shows log(1 + x), so it includes 0. An axis with values
        # below 1 shows log(x), and 0 is drawn left of the smallest value.
        self._counts, self._log, self._least = log_x and least >= 1, log_x, least
        places = [self._place(value) for value in across]
        margin = 0.02 if tight else 0.06
        self.left, self.right = range_of(places, margin)
        self.low, self.top = range_of(up, 0.06)
        if min(up) >= 0 > self.low:
            self.low = 0.0

    def _place(self, value: float) -> float:
        if self._counts:
            return math.log10(max(value, 0.0) + 1.0)
        return math.log10(max(value, self._least / 3)) if self._log else value

    def x(self, value: float) -> str:
        share = (self._place(value) - self.left) / (self.right - self.left)
        return f"{_LEFT + share * (_WIDE - _LEFT - _RIGHT):.1f}"

    def y(self, value: float) -> str:
        share = (self.top - value) / (self.top - self.low)
        return f"{_TOP + share * (_HIGH - _TOP - _BOTTOM):.1f}"

    def _ticks(self) -> list[float]:
        if self._counts:
            return [float(count) for count in counts_of(self.left, self.right)]
        if self._log:
            powers = range(math.ceil(self.left), math.floor(self.right) + 1)
            few = (1, 2, 5) if len(powers) < 3 else (1,)
            wide = range(math.floor(self.left), math.ceil(self.right) + 1)
            ticks = [k * 10.0**i for i in wide for k in few]
            return [tick for tick in ticks if self.left <= math.log10(tick) <= self.right]
        return ticks_of(self.left, self.right)

    def open(self, title: str, x: str, y: str, whole: bool = False) -> list[str]:
        """Return the grid, its numbers (only whole ones if `whole`) and the names of the axes."""
        parts = [f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="{text(title)}">']
        for tick in ticks_of(self.low, self.top):
            at = self.y(tick)
            if self.low <= tick <= self.top and (not whole or tick == round(tick)):
                parts.append(
                    f'<line class="grid" x1="{_LEFT}" x2="{_WIDE - _RIGHT}" y1="{at}" y2="{at}"/>'
                    f'<text x="{_LEFT - 8}" y="{at}" dy="4" text-anchor="end">{_short(tick)}</text>'
                )
        ticks = self._ticks()
        rounded = [tick for tick in ticks if tick == round(tick)]
        ticks = rounded if whole and len(rounded) > 1 else ticks
        free = math.inf
        for tick in reversed(ticks):
            at, half = self.x(tick), _LETTER * len(_short(tick)) / 2
            # Narrow screens hide numbers that would overlap.
            thin = ' class="thin"' if float(at) + half > free else ""
            free = free if thin else float(at) - half - _LETTER
            parts.append(
                f'<line class="grid" x1="{at}" x2="{at}" y1="{_TOP}" y2="{_HIGH - _BOTTOM}"/>'
                f'<text{thin} x="{at}" y="{_HIGH - _BOTTOM + 19}" text-anchor="middle">'
                f"{_short(tick)}</text>"
            )
        parts.append(
            f'<text x="{(_LEFT + _WIDE - _RIGHT) // 2}" y="{_HIGH - 8}" text-anchor="middle">'
            f'{text(x)}</text><text x="2" y="18">{text(y)}</text>'
        )
        return parts


def _is_drawn(*numbers: float) -> bool:
    return all(abs(number) < _LARGEST for number in numbers)  # False for NaN


def _dashes(kind: int) -> str:
    return f' stroke-dasharray="{_DASHES[kind]}"' if _DASHES[kind] else ""


def _circle(frame: _Frame, point: ChartPoint, radius: int) -> str:
    kind, _, ring = point.kind.partition(" ")
    place = f'cx="{frame.x(point.x)}" cy="{frame.y(point.y)}"'
    about = f"<title>{text(point.name)}</title>" if point.name else ""
    around = f'<circle class="ring" {place} r="9"/>' if ring else ""
    return f'<circle class="{kind}" {place} r="{radius}">{about}</circle>{around}'


def _sign(kind: str) -> str:
    inner, _, ring = kind.partition(" ")
    around = '<circle class="ring" cx="13" cy="6" r="5"/>' if ring else ""
    dot = f'<circle class="{inner}" cx="13" cy="6" r="{3 if ring else 5}"/>'
    return around + dot if inner or not ring else around


def _figure(title: str, parts: Sequence[str], key: Sequence[tuple[str, str]]) -> str:
    entries = "".join(
        f'<span><svg viewBox="0 0 26 12" aria-hidden="true">{sign}</svg>{text(meaning)}</span>'
        for sign, meaning in key
    )
    below = f'<span class="key">{entries}</span>' if key else ""
    head = f"<figcaption>{text(title)}{below}</figcaption>"
    return "\n".join([f"<figure>{head}", *parts, "</svg></figure>"])


def _empty(title: str) -> str:
    return f'<p class="note">{text(title)}: no data to draw.</p>'


def _short(value: float) -> str:
    """Return a short text of a number."""
    if value == round(value) and abs(value) < 1e5:
        return f"{round(value):,}"
    for size, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size <= abs(value) < 1e15:
            return f"{value / size:.4g}{name}"
    return f"{value:.4g}"
