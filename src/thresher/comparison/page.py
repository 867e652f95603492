"""The HTML page of a comparison: a chart of error against nonzeros, tables and the protocol."""

from __future__ import annotations

import math
from typing import Any

from thresher.comparison.candidates import CANDIDATES
from thresher.comparison.measures import MEASURES
from thresher.comparison.result import Comparison, RuleResult, measure_text
from thresher.model.frontier import shown
from thresher.report.charts import ChartPoint, scatter
from thresher.report.page import Section, facts, fragment, note, page
from thresher.report.tables import Cell, TableCell, table

_MEANINGS = (
    "Means over random orders of the training rows, standard deviations in parentheses. "
    "Nonzeros: percent of all columns with a nonzero weight (for several classes, in any of them). "
    "kappa: Cohen's kappa of the columns that two orders use, over all pairs of orders; 1 if they "
    "use the same columns (also if they use all columns), about 0 if the columns are random. "
    "Seconds: time of one fit in one thread."
)
_RING = "\N{LARGE CIRCLE}"
_MARKS = (
    f"{_RING}: no other rule has both a smaller error and fewer nonzeros; these rules have a ring "
    "in the chart. The coloured line has the least error on these test rows."
)
# Names of rules are not wrapped on a narrow screen: the table scrolls.
_STYLE = """<style>.thresher .compared td { overflow-wrap: normal; }
.thresher .compared td:first-child { min-width: 9em; }
.thresher .compared td:last-child:not(.n) { min-width: 16em; }</style>"""
_SCALES = {
    None: "not scaled",
    "unit-norm": "each row divided by its norm",
    "variance": "each column divided by its root mean square over the training rows",
}
_CHOICES = {
    "best": "those with the least mean error over the folds; among equal ones, the sparsest",
    "sparsest": "those of the sparsest models within one standard error of the least mean error",
}


def page_of(comparison: Comparison) -> str:
    """Return a complete page.

    Parameters
    ----------
    comparison : Comparison
    """
    about = comparison.about
    name, remarks = about.get("data", ""), comparison.remarks
    sections = [
        *([Section("Remarks", "".join(map(note, remarks)))] if remarks else []),
        Section("Error against nonzeros", chart_of(comparison)),
        Section("Results", table_of(comparison) + note(f"{_MARKS} {_MEANINGS}")),
        Section("Limits of this comparison", limits_of(comparison)),
        Section("Chosen parameters", chosen_of(comparison)),
        Section("Protocol", protocol_of(comparison)),
        Section("Grids", grids_of(comparison)),
    ]
    lead = (
        f"{sum(row.measured for row in comparison)} sparse learners and controls, "
        f"{about['training rows']:,} training rows, {about['test rows']:,} test rows, "
        f"{about['columns']:,} columns. Parameters were chosen on the training rows only."
        f"{_error_margin(comparison)}"
    )
    return page(f"Comparison: {name}" if name else "Comparison", sections, lead)


def fragment_of(comparison: Comparison) -> str:
    """Return the chart and the table, for a notebook.

    Parameters
    ----------
    comparison : Comparison
    """
    remarks = "".join(map(note, comparison.remarks))
    return fragment(
        "\n".join(
            (remarks, chart_of(comparison), table_of(comparison), note(f"{_MARKS} {_MEANINGS}"))
        )
    )


def chart_of(comparison: Comparison) -> str:
    """Return a chart of error against nonzeros; rules on the frontier have rings.

    Parameters
    ----------
    comparison : Comparison
    """
    first, words = next(iter(MEASURES[comparison.task].items()))
    ringed = comparison.frontier
    points = []
    for row in comparison:
        error, share = getattr(row, first), row.nonzeros
        if not row.measured or error is None or share is None:
            continue
        about = f"{row.title}: {words} {measure_text(error, first)}, nonzeros "
        about += f"{measure_text(share, 'nonzeros')} %"
        kind = ("s1" if row.control else "s0") + (" ring" if row in ringed else "")
        points.append(ChartPoint(share.mean, error.mean, about, kind, error.sd or 0.0, row.title))
    return scatter(
        points,
        x="nonzeros, % of columns",
        y=words,
        log_x=True,
        title="Lower left is better; bars are standard deviations over orders",
        key={
            "s0": "sparse learners",
            "s1": "controls",
            " ring": "no other is better in both error and nonzeros",
        },
    )


def table_of(comparison: Comparison) -> str:
    """Return the table of results, which can be sorted.

    Parameters
    ----------
    comparison : Comparison
    """
    columns, ringed = comparison.columns(), comparison.frontier
    rows: list[list[Cell]] = []
    for row in comparison:
        cells: list[Cell] = [f"{row.title} {_RING}" if row in ringed else row.title]
        for name in columns:
            measure = getattr(row, name)
            value = None if measure is None else measure.mean
            cells.append(TableCell(measure_text(measure, name), value))
        rows.append([*cells, row.reason])
    head = ["rule", *columns.values(), "remarks"]
    if all(row.measured for row in comparison):
        head, rows = head[:-1], [line[:-1] for line in rows]
    best = [at for at, row in enumerate(comparison) if row.measured][:1]
    return _compared(table(head, rows, marked=best))


def _error_margin(comparison: Comparison) -> str:
    """Return a sentence on the standard error of the least error; "" for a regression."""
    least = next((row.error for row in comparison if row.error is not None), None)
    if least is None:
        return ""
    share, rows = least.mean / 100, comparison.about["test rows"]
    return (
        f" An error of {least.mean:.1f} % on {rows:,} test rows has a standard error of about "
        f"{100 * math.sqrt(share * (1 - share) / rows):.1f} points."
    )


def limits_of(comparison: Comparison) -> str:
    """Return what the numbers do not show.

    Parameters
    ----------
    comparison : Comparison
    """
    return "".join(
        note(words)
        for words in (
            "Standard deviations are over orders of the same training rows, and all models predict "
            "the same test rows: they do not show how results would change with other rows."
            + _error_margin(comparison)
            + (
                " The test rows cannot separate two rules that differ by less."
                if _error_margin(comparison)
                else ""
            ),
            "The first line is the best of several rules on these test rows, so its error is not "
            "an estimate for new rows. For such an estimate, use rows that were in no comparison.",
            "The stabilized rule has no grid: its settings were fixed beforehand. The settings of "
            "the other rules were chosen here.",
        )
    )


def chosen_of(comparison: Comparison) -> str:
    """Return the chosen parameters of each rule and their error in cross-validation.

    Parameters
    ----------
    comparison : Comparison
    """
    words = next(iter(MEASURES[comparison.task].values()))
    rows: list[list[Cell]] = [
        [
            row.title,
            row.loss,
            row.parameters or "set by the rule",
            _folds(row),
            "; ".join(row.notes),
        ]
        for row in comparison
        if row.measured
    ]
    head = ["rule", "loss", "chosen", f"{words} over folds (s.e.)", "remarks"]
    return _compared(table(head, rows))


def _compared(drawn: str) -> str:
    return f'<div class="compared">{_STYLE}\n{drawn}</div>'


def _folds(row: RuleResult) -> TableCell:
    if row.cv_error is None or row.cv_standard_error is None:
        return TableCell("-", None)
    return TableCell(f"{row.cv_error:.4g} ({row.cv_standard_error:.2g})", row.cv_error)


def protocol_of(comparison: Comparison) -> str:
    """Return the facts about the protocol of this comparison.

    Parameters
    ----------
    comparison : Comparison
    """
    about = comparison.about
    share = about["test_share"]
    digests = about["digests"]
    table_of_facts: dict[str, Any] = {
        **({"data": about["data"]} if "data" in about else {}),
        "training rows": f"{about['training rows']:,} (SHA-256 {digests['training rows'][:16]}...)",
        "test rows": f"{about['test rows']:,} "
        + ("given" if share is None else f"drawn at random, a share of {share:g}")
        + f" (SHA-256 {digests['test rows'][:16]}...)",
        "columns": about["columns"],
        **({"classes": ", ".join(about["classes"])} if about["classes"] else {}),
        "scaling": _SCALES[about["scale"]],
        "loss": about["loss"] or "the default of each rule",
        "parameters": f"{_CHOICES[about['choose']]}; {about['folds']} folds of the training rows, "
        f"the same for all rules",
        "orders": f"{about['orders']} of the training rows, the same for all rules; each model "
        f"predicts the test rows once",
        "seed": about["seed"],
        **({"command": about["command"]} if "command" in about else {}),
        "version": about["version"],
    }
    return facts(table_of_facts)


def grids_of(comparison: Comparison) -> str:
    """Return the grids in words and numbers.

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
        known = CANDIDATES.get(row.rule)  # another version may have had other rules
        rows.append([row.title, known.tried if known else "", grid])
    words = note(
        "lambda_max is the smallest penalty at which all weights are zero: the largest mean "
        "gradient of any column at zero weights."
    )
    return _compared(table(["rule", "grid", "values"], rows)) + words
