"""The page about what changed from one model to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from thresher.atomic import write_whole
from thresher.report.charts import ChartPoint, scatter
from thresher.report.page import Section, note, page, tiles
from thresher.report.summary import ANY, best_loss, label_text, task_of
from thresher.report.tables import Cell, TableCell, table

if TYPE_CHECKING:
    from thresher.model.model import Model
    from thresher.model.model_changes import Change, ModelChanges

_MOST_LINES = 1000  # of a table
_MOST_POINTS = 2000  # of the chart, those with the largest differences
_LABELS = 8  # points of the chart with their names

# Kind of change, title of its section, what it means, and its colour in the chart.
_KINDS = (
    ("turned", "Changed sign", "The weight has another sign now.", "best"),
    ("came", "Came", "These features had no weight before.", "s2"),
    ("went", "Went", "These features have no weight now.", "s3"),
    ("moved", "Changed weight", "The sign is the same.", "s0"),
)


def changes_page(changes: ModelChanges, titles: Sequence[str] = ("before", "after")) -> str:
    """Return the page, as `ModelChanges.report` writes it.

    Parameters
    ----------
    changes : ModelChanges
    titles : pair of str
        Names of the two models.

    Examples
    --------
    >>> from thresher import FTRLClassifier
    >>> from thresher.report.changes_page import changes_page
    >>> before = FTRLClassifier().fit([[0.0, 1.0], [1.0, 0.0]] * 20, [0, 1] * 20).model_
    >>> after = FTRLClassifier().fit([[0.0, 1.0], [1.0, 0.0]] * 20, [1, 0] * 20).model_
    >>> html = changes_page(after.compare_to(before, names=["price", "colour"]))
    >>> "Changed sign" in html, "https://" in html
    (True, False)
    """
    counts: dict[str, object] = {
        title.lower(): len(getattr(changes, kind)) for kind, title, _, _ in _KINDS
    }
    sections = [
        Section("", tiles({**counts, "equal weights": changes.unchanged}) + _classes(changes)),
        Section("Models", _models(changes, titles)),
        Section("Weights", _chart(changes, titles)),
    ]
    for kind, title, meaning, _ in _KINDS:
        found = getattr(changes, kind)
        shown = note("None.") if not found else note(meaning) + _table(found, titles, title)
        sections.append(Section(title, shown, kind))
    lead = f"Features of the two models are matched by {changes.by}."
    return page(f"{titles[0]} \N{RIGHTWARDS ARROW} {titles[1]}", sections, lead)


def write(
    changes: ModelChanges, path: str | PathLike[str], titles: Sequence[str] = ("before", "after")
) -> None:
    """Write the page to a file; the file is replaced in one step.

    Parameters
    ----------
    changes : ModelChanges
    path : path
    titles : pair of str
    """
    write_whole(path, changes_page(changes, titles).encode())


def _classes(changes: ModelChanges) -> str:
    """Return which classes only one model has."""
    parts = []
    for labels, when in ((changes.new_labels, "only now"), (changes.old_labels, "only before")):
        if labels:
            shown = ", ".join(map(label_text, labels))
            parts.append(note(f"Classes {when}, whose weights are not compared: {shown}."))
    return "\n".join(parts)


def _models(changes: ModelChanges, titles: Sequence[str]) -> str:
    """Return a table of facts about both models, with those that differ highlighted."""
    both = [_facts(changes.before), _facts(changes.after)]
    names = list(dict.fromkeys([*both[0], *both[1]]))
    rows: list[list[Cell]] = [[name, *(_text(facts, name) for facts in both)] for name in names]
    marked = {at for at, row in enumerate(rows) if row[1] != row[2]}
    return table(["", *titles], rows, marked=marked, caption="Facts that differ are highlighted")


def _facts(model: Model) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "rule": model.parameters.get("rule", "unknown"),
        "loss": model.loss,
        "task": task_of(model),
        "features": "any (64-bit hashes)" if model.n_features == ANY else model.n_features,
        "nonzero weights": model.nnz,
    }
    if len(model.intercept) == 1:
        facts["intercept"] = float(model.intercept[0])
    if model.history:
        facts["examples"] = model.history[-1].examples
    if loss := best_loss(model):
        facts[loss[0]] = loss[1]
    return facts


def _text(facts: Mapping[str, Any], name: str) -> str:
    value = facts.get(name, "")
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _chart(changes: ModelChanges, titles: Sequence[str]) -> str:
    """Return the weights after against the weights before."""
    found = [(one, colour) for kind, _, _, colour in _KINDS for one in getattr(changes, kind)]
    found.sort(key=lambda pair: -abs(pair[0].difference))
    points = [
        ChartPoint(
            one.before,
            one.after,
            f"{_named(one)}: {one.before:+.4g} to {one.after:+.4g}",
            colour,
            label=str(one.name) if at < _LABELS else "",
        )
        for at, (one, colour) in enumerate(found[:_MOST_POINTS])
    ]
    if not points:
        return note("All weights are equal.")
    key = {colour: title.lower() for kind, title, _, colour in _KINDS if getattr(changes, kind)}
    chart = scatter(
        points[::-1],  # the largest are drawn last
        x=f"weight in {titles[0]}",
        y=f"weight in {titles[1]}",
        title="Weights that differ",
        key=key,
    )
    if len(found) == len(points):
        return chart
    return chart + note(f"The {len(points):,} largest of {len(found):,} differences are shown.")


def _named(one: Change) -> str:
    return str(one.name) if one.label is None else f"{one.name} ({label_text(one.label)})"


def _table(changes: Sequence[Change], titles: Sequence[str], title: str) -> str:
    """Return a table of changes, the largest first."""
    labelled = any(one.label is not None for one in changes)
    largest = max(abs(one.difference) for one in changes)
    rows: list[list[Cell]] = []
    for one in changes[:_MOST_LINES]:
        row: list[Cell] = [str(one.name), *([label_text(one.label)] if labelled else [])]
        for weight in (one.before, one.after):
            row.append(TableCell(f"{weight:+.4g}" if weight else "", weight))
        change = one.difference
        row.append(TableCell(f"{change:+.4g}", change, change / largest))
        rows.append(row)
    head = ["feature", *(["class"] if labelled else []), *titles, "difference"]
    caption = f"{title}: {len(changes):,} features, the largest difference first"
    if len(rows) < len(changes):
        caption += f"; the first {len(rows):,} are shown"
    return table(head, rows, search=len(rows) > 12, caption=caption)
