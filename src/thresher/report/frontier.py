"""Charts of a frontier: as text, and as SVG."""

from __future__ import annotations

import math

from thresher.model.frontier import Dot, Frontier
from thresher.report.charts import ChartPoint, scatter
from thresher.scales import counts_of, ticks_of


def text_chart(frontier: Frontier, wide: int = 64, high: int = 14) -> str:
    """Return the frontier as lines of text: error upwards, nonzeros to the right.

    Parameters
    ----------
    frontier : Frontier
    wide, high : int
        Characters and lines of the chart.

    Examples
    --------
    >>> from thresher.report.frontier import text_chart
    >>> from thresher.model.frontier import Frontier, Dot
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
        return "no point has a finite error"
    points = frontier.dots
    across, up = [_drawn_nonzeros(points[i]) for i in sound], [points[i].error for i in sound]
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
        cells[line(points[i].error)][column(_drawn_nonzeros(points[i]))] = sign
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


def chart(frontier: Frontier, this: int | None = None) -> str:
    """Return the frontier as a chart for a page.

    Parameters
    ----------
    frontier : Frontier
    this : int, optional
        The point of the model that the page describes. It gets a ring; by default, the chosen
        point gets one.

    Examples
    --------
    >>> from thresher.report.frontier import chart
    >>> from thresher.model.frontier import Frontier, Dot
    >>> chart(Frontier([Dot("l1=1", 10, 0.25)])).count("<title>")
    1
    """
    rings = {frontier.chosen: "chosen: sparsest within one standard error of the best"}
    if frontier.chosen == frontier.best:
        rings = {}
    if this is not None:
        rings = {this: "this model"}
    # Points of the frontier are drawn last, on top of the others.
    order = [i for i in range(len(frontier)) if i not in frontier.efficient]
    order += reversed(frontier.efficient)
    points, key = [], {"best": "best"}
    for i in order:
        dot = frontier.dots[i]
        kind = "best" if i == frontier.best else "on" if i in frontier.efficient else ""
        if i in rings:
            kind = f"{kind or 'off'} ring"
            key[f"{kind.split()[0]} ring"] = rings[i]
        about = f"{dot.name}: {frontier.measure} {dot.error:.5g}, nonzeros {dot.nonzeros:,}"
        points.append(ChartPoint(dot.nonzeros, dot.error, about, kind, dot.spread or 0.0))
    key["on"] = "frontier: no other is better in both error and nonzeros"
    if len(order) > len(frontier.efficient):
        key["off"] = "others"
    return scatter(
        points,
        x="nonzero weights",
        y=frontier.measure,
        log_x=True,
        title=f"{frontier.measure} against nonzeros".capitalize(),
        edge=[order.index(i) for i in frontier.efficient],
        key=key,
    )


def _drawn_nonzeros(dot: Dot) -> float:
    """Return the position on a logarithmic scale that includes zero."""
    return math.log10(dot.nonzeros + 1.0)
