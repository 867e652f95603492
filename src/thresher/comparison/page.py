"""A comparison as a page: error against nonzeros, the table, what was done, what was chosen."""

from __future__ import annotations

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
    "kappa: Cohen's, of the columns that two orders use, over all pairs; 1 is the same columns "
    "every time (all of them, too), 0 no better than chance. Seconds: of one fit, one at a time, in one thread."
)
_SCALES = {
    None: "as they are",
    "unit-norm": "divided by their norms",
    "variance": "columns divided by their root mean squares over the training rows",
}
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
    """Return error against nonzeros, a point for each rule; the frontier is joined.

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
        dots.append(Dot(row.rule, share.mean, error.mean))
        points.append(Point(share.mean, error.mean, about, "s1" if row.control else "s0",
                            error.sd or 0.0))  # fmt: skip
    edge = Frontier(dots).efficient
    points = [
        point._replace(label=rows[i].title) if i in edge else point
        for i, point in enumerate(points)
    ]
    return scatter(
        points,
        x="nonzeros, % of columns",
        y=words,
        log_x=True,
        title="No other rule is better in both where the line goes; bars are standard deviations",
        edge=edge,
        key={"s0": "sparse learners", "s1": "controls"},
    )


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
    return table(head, rows, marked=best)


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
    return table(["rule", "loss", "chosen", f"{words} over folds (s.e.)", "remarks"], rows)


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
    return table(["rule", "grid", "values"], rows) + words
