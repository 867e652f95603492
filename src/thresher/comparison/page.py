"""A comparison as a page: error against nonzeros, the table, what was done, what was chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from thresher.comparison.candidates import CANDIDATES
from thresher.comparison.measures import MEASURES, Measure
from thresher.comparison.result import Comparison, RuleResult, measure_text
from thresher.report.charts import Point, scatter
from thresher.report.page import Section, facts, fragment, note, page
from thresher.report.tables import Cell, Shown, table
from thresher.search.frontier import Dot, Frontier
from thresher.search.tables import shown

_MEANINGS = (
    "Means over random orders of the training rows, standard deviations in parentheses. "
    "Nonzeros: percent of all columns that have a weight (of several classes, in any of them). "
    "kappa: Cohen's, of the columns that two orders use, over all pairs; 1 where they are the same "
    "columns, be it all of them, and about 0 where they are random. Seconds: of one fit, one at a "
    "time, in one thread."
)
# Names of rules stay whole on a phone, where the table scrolls.
_STYLE = """<style>.thresher .compared td { overflow-wrap: normal; }
.thresher .compared td:first-child { min-width: 9em; }
.thresher .compared td:last-child:not(.n) { min-width: 16em; }</style>"""
_SCALES = {
    None: "as they are",
    "unit-norm": "divided by their norms",
    "variance": "columns divided by their root mean squares over the training rows",
}
_LETTER, _LINE, _RIGHT = 0.019, 0.085, 0.66  # of the picture's width and height, on a phone
_CHOICES = {
    "best": "of the least mean error over folds; of equals, the sparsest",
    "sparsest": "of the sparsest models within one standard error of the least mean error",
}


def page_of(comparison: Comparison) -> str:
    """Return a complete page.

    Parameters
    ----------
    comparison : Comparison
    """
    about = comparison.about
    name = about.get("data", "")
    sections = [
        Section("Error against nonzeros", chart_of(comparison)),
        Section("Results", table_of(comparison) + note(_MEANINGS)),
        Section("Chosen parameters", chosen_of(comparison)),
        Section("What was done", done_of(comparison)),
        Section("What was tried", tried_of(comparison)),
    ]
    lead = (
        f"{sum(row.measured for row in comparison)} sparse learners and controls, "
        f"{about['training rows']:,} training rows, {about['test rows']:,} test rows, "
        f"{about['columns']:,} columns. Parameters were chosen on training rows alone."
    )
    return page(f"Comparison: {name}" if name else "Comparison", sections, lead)


def fragment_of(comparison: Comparison) -> str:
    """Return picture and table, for a notebook.

    Parameters
    ----------
    comparison : Comparison
    """
    return fragment("\n".join((chart_of(comparison), table_of(comparison), note(_MEANINGS))))


def chart_of(comparison: Comparison) -> str:
    """Return error against nonzeros, a point for each rule; those of the frontier have rings.

    Parameters
    ----------
    comparison : Comparison
    """
    first, words = next(iter(MEASURES[comparison.task].items()))
    rows = [row for row in comparison if row.measured]
    points, dots = [], []
    for row in rows:
        error: Measure = getattr(row, first)
        share: Measure = row.nonzeros  # type: ignore[assignment]
        about = f"{row.title}: {words} {measure_text(error, first)}, nonzeros "
        about += f"{measure_text(share, 'nonzeros')} %"
        kind = "s1" if row.control else "s0"
        dots.append(Dot(row.title, share.mean, error.mean))
        points.append(Point(share.mean, error.mean, about, kind, error.sd or 0.0))
    edge = Frontier(dots).efficient
    named = labelled(dots, edge)
    labels = [named.get(at, "") for at in range(len(dots))]
    return scatter(
        [
            point._replace(
                label=f"\N{NO-BREAK SPACE}{label}\N{NO-BREAK SPACE}" if label else "",
                kind=f"{point.kind} ring" if at in edge else point.kind,
            )
            for at, (point, label) in enumerate(zip(points, labels, strict=True))
        ],
        x="nonzeros, % of columns",
        y=words,
        log_x=True,
        title="Down and to the left is better; bars are standard deviations",
        key={"s0": "sparse learners", "s1": "controls", " ring": "no other is better in both"},
    )


def labelled(dots: Sequence[Dot], first: Sequence[int]) -> dict[int, str]:
    """Return the labels that have room, by the number of their point.

    Parameters
    ----------
    dots : sequence of Dot
        All points.
    first : sequence of int
        Those whose labels come before the others'.
    """
    across = [math.log10(max(dot.nonzeros, 1e-3)) for dot in dots]
    up = [dot.error for dot in dots]
    wide, high = (max(values) - min(values) or 1.0 for values in (across, up))
    spots = [
        ((x - min(across)) / wide, (y - min(up)) / high) for x, y in zip(across, up, strict=True)
    ]
    boxes: list[tuple[float, float, float]] = []  # left, right, middle
    found: dict[int, str] = {}
    for at in dict.fromkeys((*first, *range(len(dots)))):
        (x, y), length = spots[at], _LETTER * len(dots[at].name)
        left, right = (
            (x - 0.02 - length, x - 0.015) if x > _RIGHT else (x + 0.015, x + 0.02 + length)
        )
        taken = any(left < b and a < right and abs(y - c) < _LINE for a, b, c in boxes)
        over = any(
            left < x1 < right and abs(y - y1) < 0.6 * _LINE
            for other, (x1, y1) in enumerate(spots)
            if other != at
        )
        if not (taken or over):
            boxes.append((left, right, y))
            found[at] = dots[at].name
    return found


def table_of(comparison: Comparison) -> str:
    """Return the table of results; it sorts.

    Parameters
    ----------
    comparison : Comparison
    """
    columns = comparison.columns()
    rows: list[list[Cell]] = []
    for row in comparison:
        cells: list[Cell] = [row.title]
        for name in columns:
            measure = getattr(row, name)
            value = None if measure is None else measure.mean
            cells.append(Shown(measure_text(measure, name), value))
        rows.append([*cells, row.reason])
    head = ["rule", *columns.values(), "remarks"]
    if all(row.measured for row in comparison):
        head, rows = head[:-1], [line[:-1] for line in rows]
    best = [at for at, row in enumerate(comparison) if row.measured][:1]
    return _compared(table(head, rows, marked=best))


def chosen_of(comparison: Comparison) -> str:
    """Return the parameters of each rule, and how it did in cross-validation.

    Parameters
    ----------
    comparison : Comparison
    """
    words = next(iter(MEASURES[comparison.task].values()))
    rows: list[list[Cell]] = [
        [row.title, row.loss, row.parameters or "its own", _folds(row), "; ".join(row.notes)]
        for row in comparison
        if row.measured
    ]
    head = ["rule", "loss", "chosen", f"{words} over folds (s.e.)", "remarks"]
    return _compared(table(head, rows))


def _compared(drawn: str) -> str:
    return f'<div class="compared">{_STYLE}\n{drawn}</div>'


def _folds(row: RuleResult) -> Shown:
    if row.cv_error is None or row.cv_standard_error is None:
        return Shown("-", None)
    return Shown(f"{row.cv_error:.4g} ({row.cv_standard_error:.2g})", row.cv_error)


def done_of(comparison: Comparison) -> str:
    """Return the protocol of this comparison.

    Parameters
    ----------
    comparison : Comparison
    """
    about = comparison.about
    share = about["test_share"]
    digests = about["digests"]
    said: dict[str, Any] = {
        **({"data": about["data"]} if "data" in about else {}),
        "training rows": f"{about['training rows']:,} (SHA-256 {digests['training rows'][:16]}...)",
        "test rows": f"{about['test rows']:,} "
        + ("given" if share is None else f"drawn, a share of {share:g}")
        + f" (SHA-256 {digests['test rows'][:16]}...)",
        "columns": about["columns"],
        **({"classes": ", ".join(about["classes"])} if about["classes"] else {}),
        "rows were": _SCALES[about["scale"]],
        "loss": about["loss"] or "that of each rule",
        "parameters": f"{_CHOICES[about['choose']]}; {about['folds']} folds of the training rows, "
        f"the same for all rules",
        "orders": f"{about['orders']} of the training rows, the same for all rules; each model "
        f"predicts the test rows once",
        "seed": about["seed"],
        **({"command": about["command"]} if "command" in about else {}),
        "version": about["version"],
    }
    return facts(said)


def tried_of(comparison: Comparison) -> str:
    """Return the grids, in words and numbers.

    Parameters
    ----------
    comparison : Comparison
    """
    rows: list[list[Cell]] = []
    for row in comparison:
        grid = "; ".join(
            f"{name}: {', '.join(map(shown, values))}"
            for name, values in row.grid.items()
            if values != [None]
        )
        rows.append([row.title, CANDIDATES[row.rule].tried, grid])
    words = note(
        "A pull is the gravity that leaves no weight at all: the largest mean gradient of any "
        "column at zero weights."
    )
    return _compared(table(["rule", "grid", "values"], rows)) + words
