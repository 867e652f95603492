"""Results of a search as a text table, an HTML fragment or an HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from thresher.model.frontier import Frontier, shown
from thresher.printable import printable
from thresher.report.frontier import chart
from thresher.report.page import Section, fragment, note, page
from thresher.report.page import facts as facts_list
from thresher.report.tables import Cell, TableCell, table


def cells_of(
    frontier: Frontier, settings: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[list[str]]]:
    """Return the headings and lines of a table with a line for each point.

    Parameters
    ----------
    frontier : Frontier
    settings : sequence of mapping
        The parameters of each point.
    """
    names = list(dict.fromkeys(name for setting in settings for name in setting))
    spread = any(point.spread is not None for point in frontier.dots)
    head = [*names, frontier.measure, *(["+-"] if spread else []), "nonzeros", ""]
    lines = []
    for i, (point, setting) in enumerate(zip(frontier.dots, settings, strict=True)):
        line = [shown(setting[name]) if name in setting else "" for name in names]
        line.append("-" if point.failed else error_text(point.error))
        if spread:
            line.append("" if point.spread is None or point.failed else error_text(point.spread))
        line += ["-" if point.failed else f"{round(point.nonzeros):,}", frontier.mark(i)]
        lines.append(line)
    return head, lines


def error_text(error: float) -> str:
    """Return an error with five decimals, unless it is very small or large.

    Parameters
    ----------
    error : float

    Examples
    --------
    >>> error_text(0.25), error_text(1.234e-9)
    ('0.25000', '1.23e-09')
    """
    return f"{error:.5f}" if error == 0 or 1e-5 <= abs(error) < 1e4 else f"{error:.3g}"


def text_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table as text; all columns but the last are aligned to the right.

    Parameters
    ----------
    head : sequence of str
    lines : sequence of sequence of str

    Examples
    --------
    >>> from thresher.report.search_results import text_table
    >>> print(text_table(["l1", "error", ""], [["0.5", "0.25", "best"], ["10", "0.5", ""]]))
     l1  error
    0.5   0.25  best
     10    0.5
    """
    head, *lines = ([printable(cell) for cell in line] for line in (head, *lines))
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    return "\n".join(
        "  ".join(
            [f"{cell:>{width}}" for cell, width in zip(line[:-1], widths, strict=False)]
            + [line[-1]]
        ).rstrip()
        for line in (head, *lines)
    )


def html_fragment(frontier: Frontier, settings: Sequence[Mapping[str, Any]]) -> str:
    """Return the chart and the table with their style, for a notebook.

    Parameters
    ----------
    frontier : Frontier
    settings : sequence of mapping
    """
    return fragment(_parts(frontier, settings))


def _parts(frontier: Frontier, settings: Sequence[Mapping[str, Any]]) -> str:
    head, lines = cells_of(frontier, settings)
    best = () if frontier.best is None else (frontier.best,)
    found = table(
        [*head[:-1], "mark"], [[_keyed(cell) for cell in line] for line in lines], marked=best
    )
    return "\n".join([chart(frontier), found, note(" ".join(meanings_of(frontier)))])


def _keyed(cell: str) -> Cell:
    """Return a cell that is sorted as a number if it is one."""
    try:
        return TableCell(cell, float(cell.replace(",", "")))
    except ValueError:
        return cell or None


def meanings_of(frontier: Frontier) -> list[str]:
    """Return sentences that explain the columns and marks of the table.

    Parameters
    ----------
    frontier : Frontier

    Examples
    --------
    >>> from thresher.model.frontier import Frontier, Dot
    >>> from thresher.report.search_results import meanings_of
    >>> meanings_of(Frontier([Dot("l1=1", 10, 0.25)], "error rate"))[0]
    'The error rate is progressive: each row was predicted before it was learned. Nonzeros are ...'
    """
    if all(point.spread is None for point in frontier.dots):
        return [
            f"The {frontier.measure} is progressive: each row was predicted before it was learned. "
            f"Nonzeros are counted at the end.",
            "best: the least error; frontier: no other is better in both error and nonzeros.",
        ]
    return [
        f"The {frontier.measure} is the mean over folds; models that did not learn from a fold "
        f"score it. +- is its standard error. Nonzeros are of the model trained on all rows.",
        "best: the least error; chosen: the sparsest within one standard error of the best; "
        "frontier: no other is better in both error and nonzeros.",
    ]


def html_page(
    title: str,
    frontier: Frontier,
    settings: Sequence[Mapping[str, Any]],
    facts: Mapping[str, str],
) -> str:
    """Return a complete HTML page.

    Parameters
    ----------
    title : str
    frontier : Frontier
    settings : sequence of mapping
    facts : mapping
        Names and values for the top of the page.

    Examples
    --------
    >>> from thresher.model.frontier import Frontier, Dot
    >>> from thresher.report.search_results import html_page
    >>> frontier = Frontier([Dot("l1=1", 10, 0.25)])
    >>> html_page("Search", frontier, [{"l1": 1.0}], {"rows": "100"}).splitlines()[0]
    '<!DOCTYPE html>'
    """
    return page(title, [Section("", facts_list(facts)), Section("", _parts(frontier, settings))])
