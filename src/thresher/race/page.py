"""The HTML page of a race: what was tried, and why the winner won."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from thresher.model.frontier import shown
from thresher.model.model import Model
from thresher.race.result import Entrant, Race
from thresher.report.charts import ChartPoint, scatter
from thresher.report.features import FeatureNames, features
from thresher.report.page import Section, facts, note, page, tiles
from thresher.report.search_results import error_text
from thresher.report.tables import Cell, TableCell, table

_LARGEST = 20  # weights that the page shows
_MEANINGS = (
    "Losses are means over rows that the candidate did not learn from; +- is a standard error. "
    "Behind: how much larger the loss is than the least one, over the same rows. Nonzeros are "
    "means over the folds. Seconds: time of all fits of the race."
)

# Names and reasons are long: the table scrolls on a narrow screen.
_STYLE = """<style>.thresher .raced td:first-child { min-width: 15em; }
.thresher .raced td:last-child { min-width: 20em; }</style>"""


def page_of(race: Race, budget: Mapping[str, Any], model: Model, title: str | None = None) -> str:
    """Return a complete page.

    Parameters
    ----------
    race : Race
    budget : mapping
        What the race did.
    model : Model
        The model of the winner.
    title : str, optional
    """
    chosen = race.chosen
    sections = [
        Section("", tiles(_numbers(race, model))),
        *([Section("Remarks", "".join(map(note, race.remarks)))] if race.remarks else []),
        Section("Loss against nonzeros", chart_of(race)),
        Section("Candidates", table_of(race) + note(_MEANINGS)),
        Section("How it was done", facts(_how(race, budget))),
        Section("Data", facts(_data(race))),
        Section("Largest weights", features(model, FeatureNames(model, None), _LARGEST)),
    ]
    lead = f"{chosen.name} was chosen: {chosen.why}."
    return page(title or f"Race: {chosen.name}", sections, lead)


def chart_of(race: Race) -> str:
    """Return a chart of loss against nonzeros; the winner has a ring.

    Parameters
    ----------
    race : Race
    """
    points = [
        ChartPoint(
            entrant.nonzeros,
            entrant.loss,
            f"{entrant.name}: {race.measure} {entrant.loss:.4g}, {entrant.nonzeros:,.0f} nonzeros",
            "s0 ring" if entrant.chosen else "s0",
            entrant.standard_error if math.isfinite(entrant.standard_error) else 0.0,
            entrant.name if entrant.chosen else "",
        )
        for entrant in race
        if entrant.measured
    ]
    return scatter(
        points,
        x="nonzeros",
        y=race.measure,
        log_x=True,
        title="Lower left is better; bars are standard errors",
        key={"s0": "candidates", " ring": "chosen"},
    )


def table_of(race: Race) -> str:
    """Return the table of candidates, which can be sorted.

    Parameters
    ----------
    race : Race
    """
    classifies = any(math.isfinite(entrant.error) for entrant in race)
    head = [
        "candidate", race.measure, "+-", "behind", "+-",
        *(["error %"] if classifies else []), "nonzeros", "seconds", "parameters", "why",
    ]  # fmt: skip
    rows: list[list[Cell]] = [_line(entrant, classifies) for entrant in race]
    marked = [n for n, entrant in enumerate(race) if entrant.chosen]
    return f'<div class="raced">{_STYLE}\n{table(head, rows, marked=marked)}</div>'


def _line(entrant: Entrant, classifies: bool) -> list[Cell]:
    losses = (entrant.loss, entrant.standard_error, entrant.behind, entrant.behind_error)
    cells: list[Cell] = [entrant.name, *map(_number, losses)]
    if classifies:
        known = math.isfinite(entrant.error)
        cells.append(TableCell(f"{100 * entrant.error:.2f}", entrant.error) if known else None)
    count = math.isfinite(entrant.nonzeros)
    cells.append(TableCell(f"{entrant.nonzeros:,.0f}", entrant.nonzeros) if count else None)
    cells.append(TableCell(f"{entrant.seconds:.2f}", entrant.seconds))
    params = ", ".join(f"{name}={shown(value)}" for name, value in entrant.params.items())
    return [*cells, params or "defaults", entrant.why]


def _number(value: float) -> Cell:
    return TableCell(error_text(value), value) if math.isfinite(value) else None


def _numbers(race: Race, model: Model) -> dict[str, object]:
    """Return the numbers at the top of the page."""
    found: dict[str, object] = {"nonzero weights": model.nnz, "candidates": len(race)}
    chosen = race.chosen
    if chosen.measured:
        found[race.measure] = float(f"{chosen.loss:.4g}")
    if math.isfinite(chosen.error):
        found["error of rows held out"] = f"{100 * chosen.error:.2f} %"
    return found


def _how(race: Race, budget: Mapping[str, Any]) -> dict[str, object]:
    seconds, speed = budget.get("seconds"), budget.get("speed")
    plural = "" if race.tolerance == 1 else "s"
    time = "no limit of time was given"
    if seconds is not None:
        time = f"{seconds:g} seconds, at {speed or 0:,.0f} values per second"
    return {
        "measured by": race.how,
        "measure": race.measure,
        "choice": f"the fewest nonzeros within {race.tolerance:g} standard error{plural} of the "
        f"least {race.measure}; the standard error is that of the difference over the same rows",
        "budget": time,
        "rows in the race": int(budget["rows"]),
        "folds": int(budget["folds"]),
    }


def _data(race: Race) -> dict[str, object]:
    known = {**race.facts}
    if known.get("total", 0) == known["rows"]:
        del known["total"]
    words = {
        "total": "rows",
        "rows": "rows in memory" if "total" in known else "rows",
        "features": "features",
        "stored": "stored values",
        "outputs": "outputs",
        "rarest": "share of the rarest class",
        "spread": "largest column scale over the smallest",
    }
    return {text: known[name] for name, text in words.items() if known.get(name) is not None}
