"""Tables of a page: they sort by a click on a head and, where wanted, can be searched."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

from thresher.report.page import text


class Shown(NamedTuple):
    """A cell whose text is not what it is sorted by.

    Attributes
    ----------
    text : str
        What is seen.
    value : float, str or None
        What the column sorts by; cells with None come last.
    bar : float or None
        A bar to the right (up to 1) or to the left (down to -1) before the text.

    Examples
    --------
    >>> from thresher.report.tables import Shown
    >>> Shown("12.5 %", 0.125).value
    0.125
    """

    text: str
    value: float | str | None
    bar: float | None = None


Cell: TypeAlias = str | float | Shown | None

_LONG = 25  # lines from which on a table scrolls by itself


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    search: bool = False,
    caption: str = "",
    marked: Collection[int] = (),
) -> str:
    """Return a table that sorts by a click on a head: numbers from the largest, words from A.

    Columns of numbers are set to the right. All that is given is text, and is escaped.

    Parameters
    ----------
    head : sequence of str
        A column without name does not sort.
    rows : sequence of sequence of cell
        A cell is text, a number, `Shown`, or None for nothing.
    search : bool
        Whether there is a field to search, with a count of the lines that have all its words.
    caption : str
    marked : collection of int
        Lines to be set off.

    Examples
    --------
    >>> from thresher.report.tables import Shown, table
    >>> html = table(["word", "weight"], [["a<b", 0.5], ["c", Shown("half", 0.5)]])
    >>> html.count("<tr>"), "a&lt;b" in html
    (3, True)
    """
    if any(len(row) != len(head) for row in rows):
        raise ValueError(f"each row must have {len(head)} cells, as the head has")
    kinds = [_is_number([row[at] for row in rows]) for at in range(len(head))]
    sides = [' class="n"' if kind else "" for kind in kinds]
    heads = "".join(
        f'<th scope="col"{side}>{text(name)}</th>' for side, name in zip(sides, head, strict=True)
    )
    lines = []
    for at, row in enumerate(rows):
        cells = "".join(_cell(cell, side) for side, cell in zip(sides, row, strict=True))
        lines.append(f'<tr class="best">{cells}</tr>' if at in marked else f"<tr>{cells}</tr>")
    named = f"<caption>{text(caption)}</caption>" if caption else ""
    around = "table search" if search else "table"
    label = f' aria-label="{text(caption or "table")}"'
    inside = (
        f'class="scroll{" long" if len(rows) > _LONG else ""}" tabindex="0" role="region"{label}'
    )
    return "\n".join(
        [
            f'<div class="{around}"><div {inside}>',
            f"<table>{named}<thead><tr>{heads}</tr></thead>\n<tbody>",
            *lines,
            "</tbody></table></div></div>",
        ]
    )


def _is_number(cells: Sequence[Cell]) -> bool:
    values = [cell.value if isinstance(cell, Shown) else cell for cell in cells]
    values = [value for value in values if value is not None]
    return bool(values) and all(isinstance(value, numbers.Real) for value in values)


def _cell(cell: Cell, side: str) -> str:
    if isinstance(cell, str):
        return f"<td{side}>{text(cell)}</td>"
    shown = cell if isinstance(cell, Shown) else Shown(_number(cell), cell)
    value = shown.value
    if isinstance(value, str):
        return f'<td{side} data-t="{text(value)}">{text(shown.text)}</td>'
    key = "" if value is None or math.isnan(value) else _key(value)
    seen = text(shown.text) if shown.bar is None else _barred(shown.bar, text(shown.text))
    return f'<td{side} data-v="{key}">{seen}</td>'


def _key(value: float) -> str:
    """Return a number as JavaScript reads it."""
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(float(value))


def _number(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, numbers.Integral):
        return f"{int(value):,}"
    return "-" if math.isnan(value) else f"{value:.4g}"


def _barred(share: float, shown: str) -> str:
    side = "minus" if share < 0 else "plus"
    width = 50 * min(abs(share), 1.0)
    drawn = f'<i class="{side}" style="width: {width:.1f}%"></i>'
    return f'<span class="bar" aria-hidden="true">{drawn}</span><span class="v">{shown}</span>'
