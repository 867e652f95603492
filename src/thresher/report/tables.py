"""HTML tables that can be sorted by a click on a heading, and searched."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

from thresher.report.page import text


class TableCell(NamedTuple):
    """A cell with a text and a separate value to sort by.

    Attributes
    ----------
    text : str
        The text shown.
    value : float, str or None
        The value to sort by; None: last.
    bar : float or None
        Length of a bar before the text: to the right (up to 1) or to the left (down to -1).

    Examples
    --------
    >>> from thresher.report.tables import TableCell
    >>> TableCell("12.5 %", 0.125).value
    0.125
    """

    text: str
    value: float | str | None
    bar: float | None = None


Cell: TypeAlias = str | float | TableCell | None

_LONG = 25  # a table with more lines scrolls


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    search: bool = False,
    caption: str = "",
    marked: Collection[int] = (),
) -> str:
    """Return a table that can be sorted: numbers from the largest, words from A.

    Columns of numbers are aligned to the right. All texts are escaped.

    Parameters
    ----------
    head : sequence of str
        Headings. A column without heading cannot be sorted.
    rows : sequence of sequence of cell
        A cell is text, a number, `TableCell`, or None (empty).
    search : bool
        Whether the table has a search field, which also counts the lines found.
    caption : str
    marked : collection of int
        Lines to highlight.

    Examples
    --------
    >>> from thresher.report.tables import TableCell, table
    >>> html = table(["word", "weight"], [["a<b", 0.5], ["c", TableCell("half", 0.5)]])
    >>> html.count("<tr>"), "a&lt;b" in html
    (3, True)
    """
    if any(len(row) != len(head) for row in rows):
        raise ValueError(f"each row must have {len(head)} cells, one for each heading")
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
    values = [cell.value if isinstance(cell, TableCell) else cell for cell in cells]
    values = [value for value in values if value is not None]
    return bool(values) and all(isinstance(value, numbers.Real) for value in values)


def _cell(cell: Cell, side: str) -> str:
    if isinstance(cell, str):
        return f"<td{side}>{text(cell)}</td>"
    shown = cell if isinstance(cell, TableCell) else TableCell(_number(cell), cell)
    value = shown.value
    if isinstance(value, str):
        return f'<td{side} data-t="{text(value)}">{text(shown.text)}</td>'
    key = "" if value is None or math.isnan(value) else _key(value)
    seen = text(shown.text) if shown.bar is None else _barred(shown.bar, text(shown.text))
    return f'<td{side} data-v="{key}">{seen}</td>'


def _key(value: float) -> str:
    """Return a number in the syntax of JavaScript."""
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
