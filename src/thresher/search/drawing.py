"""A frontier drawn: as text, and as an SVG that needs nothing from elsewhere."""

from __future__ import annotations

import math
from html import escape

from thresher.search.frontier import Frontier, counts_of, drawn_nonzeros, range_of, ticks_of

_WIDE, _HIGH = 640, 360  # of the picture
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 16, 52  # margins, for labels

STYLE = """
.frontier { --ink: #1b1f24; --soft: #667080; --line: #d5dae1; --paper: #ffffff; --point: #9aa5b1;
  --edge: #1668b8; --best: #c2410c; font: 14px/1.45 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
@media (prefers-color-scheme: dark) {
  .frontier { --ink: #e6e9ed; --soft: #9aa5b1; --line: #3a424d; --paper: #14171b; --point: #76818e;
    --edge: #5aa9f0; --best: #fb923c; }
}
.frontier svg { display: block; width: 100%; max-width: 720px; height: auto; }
.frontier svg text { fill: var(--soft); font-size: 12px; paint-order: stroke; stroke: var(--paper);
  stroke-width: 4px; }
.frontier .grid { stroke: var(--line); }
.frontier .spread { stroke: var(--soft); }
.frontier .edge { fill: none; stroke: var(--edge); stroke-width: 2; }
.frontier circle { fill: var(--point); stroke: var(--paper); }
.frontier circle.on { fill: var(--edge); }
.frontier circle.best { fill: var(--best); }
.frontier circle.ring { fill: none; stroke: var(--best); stroke-width: 2; }
.frontier table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.frontier th, .frontier td { padding: 3px 12px 3px 0; text-align: right;
  border-bottom: 1px solid var(--line); }
.frontier th { color: var(--soft); font-weight: 600; }
.frontier th:last-child, .frontier td:last-child { text-align: left; padding-right: 0; }
.frontier tr.best td { color: var(--best); font-weight: 600; }
"""


def text_chart(frontier: Frontier, wide: int = 64, high: int = 14) -> str:
    """Return the frontier as lines of text: error upwards, nonzeros to the right.

    Parameters
    ----------
    frontier : Frontier
    wide, high : int
        Columns and lines for the points.

    Examples
    --------
    >>> from thresher.search.drawing import text_chart
    >>> from thresher.search.frontier import Frontier, Dot
    >>> points = [Dot("a", 999, 0.1, 0.1), Dot("b", 99, 0.15), Dot("c", 9, 0.3)]
    >>> print(text_chart(Frontier([*points, Dot("d", 400, 0.3)]), wide=30, high=5))
    error
           0.3 |o                      .
          0.25 |
           0.2 |
          0.15 |              +
           0.1 |                             *
               +------------------------------
                 10            100           1,000  nonzeros
    * best   + chosen: sparsest within one standard error   o frontier   . others
    """
    sound = [i for i, point in enumerate(frontier.dots) if not point.failed]
    if not sound:
        return "no point has an error to draw"
    points = frontier.dots
    across, up = [drawn_nonzeros(points[i]) for i in sound], [points[i].error for i in sound]
    (left, right), (low, top) = (min(across), max(across)), (min(up), max(up))
    cells = [[" "] * (wide + 1) for _ in range(high)]

    def column(at: float) -> int:
        return round((at - left) / (right - left) * (wide - 1)) if right > left else wide // 2

    def line(at: float) -> int:
        return high - 1 - round((at - low) / (top - low) * (high - 1)) if top > low else high // 2

    order = [i for i in sound if i not in frontier.efficient] + list(frontier.efficient)
    for i in [*order, frontier.chosen, frontier.best]:
        assert i is not None
        sign = "o" if i in frontier.efficient else "."
        sign = "*" if i == frontier.best else "+" if i == frontier.chosen else sign
        cells[line(points[i].error)][column(drawn_nonzeros(points[i]))] = sign
    labels = {line(tick): f"{tick:.6g}" for tick in ticks_of(low, top)} if top > low else {}
    labels = labels or {line(low): f"{low:.4g}"}
    lines = [frontier.measure]
    for number, row in enumerate(cells):
        lines.append(f"{labels.get(number, ''):>10} |{''.join(row)}".rstrip())
    lines.append(" " * 11 + "+" + "-" * wide)
    foot = [" "] * (wide + 6)
    for count in counts_of(left, right):
        word = f"{count:,}"
        start = max(0, min(column(math.log10(count + 1.0)), wide + 5 - len(word)))
        if not "".join(foot[max(0, start - 1) : start + len(word)]).strip():
            foot[start : start + len(word)] = word
    lines.append(" " * 12 + "".join(foot).rstrip() + "  nonzeros")
    chosen = (
        ""
        if frontier.chosen == frontier.best
        else "   + chosen: sparsest within one standard error"
    )
    lines.append(f"* best{chosen}   o frontier   . others")
    return "\n".join(lines)


def svg(frontier: Frontier) -> str:
    """Return the frontier as SVG; its colours come from `STYLE`.

    Parameters
    ----------
    frontier : Frontier

    Examples
    --------
    >>> from thresher.search.drawing import svg
    >>> from thresher.search.frontier import Frontier, Dot
    >>> svg(Frontier([Dot("l1=1", 10, 0.25)])).count("<title>")
    1
    """
    points = frontier.dots
    sound = [i for i, point in enumerate(points) if not point.failed]
    if not sound:
        return "<p>No point has an error to draw.</p>"
    reach = [points[i].error + s * (points[i].spread or 0.0) for i in sound for s in (-1, 1)]
    low, top = range_of(reach)
    left, right = range_of([drawn_nonzeros(points[i]) for i in sound])

    def x(nonzeros: float) -> str:
        share = (math.log10(nonzeros + 1.0) - left) / (right - left)
        return f"{_LEFT + share * (_WIDE - _LEFT - _RIGHT):.1f}"

    def y(error: float) -> str:
        return f"{_TOP + (top - error) / (top - low) * (_HIGH - _TOP - _BOTTOM):.1f}"

    title = escape(f"{frontier.measure} against nonzeros of {len(sound)} models")
    parts = [f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="{title}">']
    for tick in ticks_of(low, top):
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDE - _RIGHT}" y1="{y(tick)}" '
            f'y2="{y(tick)}"/><text x="{_LEFT - 8}" y="{y(tick)}" dy="4" '
            f'text-anchor="end">{tick:.6g}</text>'
        )
    for count in counts_of(left, right):
        parts.append(
            f'<line class="grid" x1="{x(count)}" x2="{x(count)}" y1="{_TOP}" '
            f'y2="{_HIGH - _BOTTOM}"/><text x="{x(count)}" y="{_HIGH - _BOTTOM + 18}" '
            f'text-anchor="middle">{count:,}</text>'
        )
    middle = (_TOP + _HIGH - _BOTTOM) // 2
    parts.append(
        f'<text x="{(_LEFT + _WIDE - _RIGHT) // 2}" y="{_HIGH - 8}" text-anchor="middle">nonzero '
        f'weights</text><text transform="translate(14 {middle}) rotate(-90)" '
        f'text-anchor="middle">{escape(frontier.measure)}</text>'
    )
    edge = " ".join(f"{x(points[i].nonzeros)},{y(points[i].error)}" for i in frontier.efficient)
    parts.append(f'<polyline class="edge" points="{edge}"/>')
    for i in sound:
        point = points[i]
        if point.spread:
            ends = y(point.error - point.spread), y(point.error + point.spread)
            across = x(point.nonzeros)
            parts.append(
                f'<line class="spread" x1="{across}" x2="{across}" y1="{ends[0]}" y2="{ends[1]}"/>'
            )
    others = [i for i in sound if i not in frontier.efficient]
    for i in [*others, *reversed(frontier.efficient)]:  # what matters lies on top
        point, kind = points[i], "on" if i in frontier.efficient else "off"
        kind = "best" if i == frontier.best else kind
        place = f'cx="{x(point.nonzeros)}" cy="{y(point.error)}"'
        about = f"{point.name}: {frontier.measure} {point.error:.5g}, nonzeros {point.nonzeros:,}"
        radius = 4 if kind == "off" else 5
        parts.append(
            f'<circle class="{kind}" {place} r="{radius}"><title>{escape(about)}</title></circle>'
        )
        if i == frontier.chosen and i != frontier.best:
            parts.append(f'<circle class="ring" {place} r="9"/>')
    return "\n".join([*parts, *_key(frontier), "</svg>"])


def _key(frontier: Frontier) -> list[str]:
    """Return what the signs mean, in the corner of dense models that err, where there are few."""
    entries = [("best", 5, "best"), ("on", 5, "frontier")]
    if frontier.chosen != frontier.best:
        entries.insert(1, ("ring", 7, "chosen: sparsest within one standard error of the best"))
    lines = []
    for number, (kind, radius, text) in enumerate(entries):
        down = _TOP + 14 + 20 * number
        lines.append(
            f'<circle class="{kind}" cx="{_WIDE - _RIGHT - 14}" cy="{down}" r="{radius}"/>'
            f'<text x="{_WIDE - _RIGHT - 28}" y="{down}" dy="4" text-anchor="end">{text}</text>'
        )
    return lines
