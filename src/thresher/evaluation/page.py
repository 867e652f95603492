"""The HTML pages of an evaluation and of a comparison of two models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from thresher.evaluation.metric import Metric, about
from thresher.evaluation.text import (
    bootstrap_text,
    counted_rows,
    interval_text,
    number,
    test_lines,
)
from thresher.report.charts import lines
from thresher.report.page import Section, facts, fragment, note, page, tiles
from thresher.report.summary import label_text
from thresher.report.tables import Cell, TableCell, table

if TYPE_CHECKING:
    from thresher.evaluation.result import Evaluation, ModelComparison

_TILES = {
    "binary": ("accuracy", "roc_auc", "average_precision", "f1", "log_loss", "ece"),
    "multiclass": ("accuracy", "balanced_accuracy", "f1_macro", "roc_auc", "log_loss", "ece"),
    "multilabel": ("f1_micro", "f1_macro", "precision_at_1", "ndcg_at_5", "accuracy"),
    "regression": ("r2", "rmse", "mae", "loss"),
}
_MATRIX = 12  # largest number of classes with a full confusion matrix
_PAIRS = 40  # pairs of classes shown otherwise
_DIAGONAL = [(0.0, 0.0), (1.0, 1.0)]

# Reasons and intervals are long: the table scrolls on a narrow screen.
_STYLE = """<style>.thresher .metrics td:first-child { min-width: 11em; }
.thresher .metrics td:last-child { min-width: 15em; }</style>"""


def page_of(found: Evaluation, title: str | None = None) -> str:
    """Return a complete page.

    Parameters
    ----------
    found : Evaluation
    title : str, optional
    """
    sections = [
        Section("", tiles(_tiles(found)) + _STYLE + _remarks(found.remarks)),
        Section("Metrics", _metrics(found) + note(bootstrap_text(found).capitalize() + ".")),
        *_curves([("model", found)]),
        *_details(found),
        Section("How it was done", facts(_facts(found))),
    ]
    model = found.about.get("model")
    name = title or (f"Evaluation of {model}" if model else "Evaluation")
    return page(name, sections, f"{counted_rows(found)}.")


def comparison_page(found: ModelComparison, title: str | None = None) -> str:
    """Return a complete page that compares two models.

    Parameters
    ----------
    found : ModelComparison
    title : str, optional
    """
    first, second = found.first, found.second
    names = _names(found)
    how = {f"{word} model": name for word, name in zip(("first", "second"), names, strict=True)}
    tests = "".join(note(line) for line in test_lines(found.tests))
    remarks = list(dict.fromkeys([*first.remarks, *second.remarks]))
    sections = [
        Section("", tiles(_difference_tiles(found)) + _STYLE + _remarks(remarks)),
        Section(
            "Differences", _differences(found) + note(bootstrap_text(first).capitalize() + ".")
        ),
        *([Section("Tests", tests)] if tests else []),
        *_curves(list(zip(names, (first, second), strict=True))),
        Section("How it was done", facts({**how, **_facts(first)})),
    ]
    return page(title or "Two models on the same rows", sections, f"{counted_rows(first)}.")


def fragment_of(found: Evaluation) -> str:
    """Return a short description for a notebook.

    Parameters
    ----------
    found : Evaluation
    """
    return fragment(f"{_STYLE}{note(counted_rows(found))}{_metrics(found)}")


def comparison_fragment(found: ModelComparison) -> str:
    """Return a short description of a comparison for a notebook.

    Parameters
    ----------
    found : ModelComparison
    """
    return fragment(f"{_STYLE}{note(counted_rows(found.first))}{_differences(found)}")


def _names(found: ModelComparison) -> list[str]:
    """Return different names of the two models."""
    names = [str(one.about.get("model", "")) for one in (found.first, found.second)]
    if names[0] == names[1] or not all(names):
        return ["first", "second"]
    return [f"{word}: {name}" for word, name in zip(("first", "second"), names, strict=True)]


def _tiles(found: Evaluation) -> dict[str, object]:
    shown = {
        about(name).text: number(found.metrics[name].value)
        for name in _TILES[found.task]
        if name in found.metrics and found.metrics[name].value is not None
    }
    return {"rows": found.rows, **shown}


def _difference_tiles(found: ModelComparison) -> dict[str, object]:
    shown = {
        f"{about(name).text}: first minus second": f"{found.differences[name].value:+.4f}"
        for name in _TILES[found.first.task][:4]
        if name in found.differences and found.differences[name].value is not None
    }
    return {"rows": found.first.rows, **shown}


def _remarks(remarks: Sequence[str]) -> str:
    return "".join(note(f"{words[:1].upper()}{words[1:]}.") for words in remarks)


def _cell(value: float | None) -> Cell:
    return None if value is None else TableCell(number(value), value)


def _metrics(found: Evaluation) -> str:
    rows: list[list[Cell]] = []
    for name, one in found.metrics.items():
        words = one.reason
        if one.value is not None:
            better = "larger is better" if about(name).larger else "smaller is better"
            bound = f"; at most {one.bound:.2g} from the exact value" if one.bound else ""
            words = better + bound
        rows.append([about(name).text, _cell(one.value), interval_text(one), words])
    made = table(["metric", "value", f"{100 * found.level:g} % interval", "meaning"], rows)
    return f'<div class="metrics">{made}</div>'


def _differences(found: ModelComparison) -> str:
    rows: list[list[Cell]] = []
    for name, one in found.differences.items():
        mine = (found.first.metrics[name].value, found.second.metrics[name].value)
        rows.append(
            [about(name).text, *map(_cell, mine), _cell(one.value), interval_text(one),
             one.reason if one.value is None else _verdict(name, one)]
        )  # fmt: skip
    head = ["metric", "first", "second", "first minus second",
            f"{100 * found.first.level:g} % interval", "meaning"]  # fmt: skip
    return f'<div class="metrics">{table(head, rows)}</div>'


def _verdict(name: str, one: Metric) -> str:
    """Return which model is better, if the interval does not contain 0."""
    if one.low is None or one.high is None:
        return "no interval"
    if one.low <= 0 <= one.high:
        return "no clear difference"
    first = (one.low > 0) == about(name).larger
    return f"the {'first' if first else 'second'} is better"


def _curves(named: Sequence[tuple[str, Evaluation]]) -> list[Section]:
    """Return the sections with ROC, precision-recall and calibration curves."""
    found = []
    roc = {name: one.tables["roc_curve"] for name, one in named if "roc_curve" in one.tables}
    if roc:
        svg = lines({**roc, "by chance": _DIAGONAL}, x="false positive rate",
                    y="true positive rate", title="ROC: upper left is better")  # fmt: skip
        found.append(Section("ROC", svg))
    key = "precision_recall_curve"
    recall = {name: one.tables[key] for name, one in named if key in one.tables}
    if recall:
        svg = lines({**recall, **_by_chance(named[0][1])}, x="recall", y="precision",
                    title="Precision and recall: upper right is better")  # fmt: skip
        found.append(Section("Precision and recall", svg))
    curves = {
        name: [(bin["predicted"], bin["observed"]) for bin in one.tables["calibration"]]
        for name, one in named
        if one.tables.get("calibration")
    }
    if curves:
        found.append(Section("Calibration", _calibration(named, curves)))
    return found


def _by_chance(found: Evaluation) -> dict[str, list[tuple[float, float]]]:
    """Return the precision of predictions that know nothing: the share of positive rows."""
    weights = [one["weight"] for one in found.tables["per_class"]]
    share = weights[1] / sum(weights)
    return {"by chance": [(0.0, share), (1.0, share)]}


def _calibration(
    named: Sequence[tuple[str, Evaluation]], curves: Mapping[str, Sequence[tuple[float, float]]]
) -> str:
    task, perfect = named[0][1].task, list(_DIAGONAL)
    x, y = "predicted probability", "share of class"
    if task == "binary":
        positive = named[0][1].tables["per_class"][1]["label"]
        y = f"share of rows with the label {label_text(positive)}"
    elif task == "multiclass":
        x, y = "probability of the predicted class", "share of correct predictions"
    else:
        x, y = "mean prediction", "mean label"
        ends = [end for points in curves.values() for point in points for end in point]
        perfect = [(min(ends), min(ends)), (max(ends), max(ends))]
    svg = lines({**curves, "perfect": perfect}, x=x, y=y, title="Calibration: on the line is best")
    if len(named) > 1:
        return svg
    bins = named[0][1].tables["calibration"]
    total = sum(one["weight"] for one in bins)
    rows: list[list[Cell]] = [
        [
            *([f"{one['low']:.1f} to {one['high']:.1f}"] if "low" in one else []),
            TableCell(
                f"{one['weight']:,.6g}",
                one["weight"],
                one["weight"] / total if "low" in one else None,  # others have the same weight
            ),
            _cell(one["predicted"]),
            _cell(one["observed"]),
        ]
        for one in bins
    ]
    head = [*(["bin"] if bins and "low" in bins[0] else []), "rows", "mean prediction", y]
    return svg + table(head, rows, caption="Bins of predictions")


def _details(found: Evaluation) -> list[Section]:
    """Return the sections with the tables that the task has."""
    sections = []
    if found.tables.get("thresholds"):
        sections.append(Section("Thresholds", _thresholds(found)))
    if found.tables.get("confusion_matrix"):
        sections.append(Section("Confusion matrix", _confusion(found)))
    for name, title in (("per_class", "Classes"), ("per_label", "Labels")):
        if found.tables.get(name):
            sections.append(Section(title, _per_class(found.tables[name], title)))
    return sections


def _thresholds(found: Evaluation) -> str:
    rated = found.metrics["log_loss"].value is not None
    head = ["threshold", "share of rows", "precision", "recall", "F1", "false positive rate"]
    keys = ("share", "precision", "recall", "f1", "false_positive_rate")
    lines_of = found.tables["thresholds"]
    best = max(range(len(lines_of)), key=lambda at: lines_of[at]["f1"] or 0.0)
    rows: list[list[Cell]] = [
        [TableCell(f"{one['threshold']:.4g}", one["threshold"]), *(_cell(one[key]) for key in keys)]
        for one in lines_of
    ]
    label = label_text(found.tables["per_class"][1]["label"])
    what = "probability" if rated else "score"
    words = (
        f"Rows whose {what} is at least the threshold are predicted as {label}. Highlighted: the "
        f"line with the largest F1."
    )
    return table(head, rows, marked=[best]) + note(words)


def _confusion(found: Evaluation) -> str:
    matrix = found.tables["confusion_matrix"]
    words = [label_text(label) for label in matrix["labels"]]
    counts = matrix["rows"]
    sums = [sum(line) for line in counts]
    rows: list[list[Cell]]
    if len(words) <= _MATRIX:
        rows = [
            [word, *(TableCell(f"{cell:,.6g}", cell) for cell in line),
             TableCell(f"{100 * line[k] / sums[k]:.1f} %", line[k] / sums[k]) if sums[k] else None]
            for k, (word, line) in enumerate(zip(words, counts, strict=True))
        ]  # fmt: skip
        head = ["true class", *(f"predicted {word}" for word in words), "correct"]
        return table(head, rows, caption="Rows by true class and predicted class")
    pairs = sorted(
        (-cell, a, b) for a, line in enumerate(counts) for b, cell in enumerate(line)
        if a != b and cell
    )  # fmt: skip
    rows = [
        [words[a], words[b], TableCell(f"{-cell:,.6g}", -cell),
         TableCell(f"{-100 * cell / sums[a]:.1f} %", -cell / sums[a])]
        for cell, a, b in pairs[:_PAIRS]
    ]  # fmt: skip
    if not rows:
        return note("All rows are predicted correctly.")
    head = ["true class", "predicted", "rows", "of the true class"]
    return table(head, rows, caption="Most frequent confusions")


def _per_class(classes: Sequence[Mapping[str, Any]], title: str) -> str:
    most = max(one["weight"] for one in classes) or 1
    rows: list[list[Cell]] = [
        [
            label_text(one["label"]),
            TableCell(f"{one['weight']:,.6g}", one["weight"], one["weight"] / most),
            TableCell(f"{one['predicted']:,.6g}", one["predicted"]),
            *(_cell(one[name]) for name in ("precision", "recall", "f1")),
        ]
        for one in classes
    ]
    head = [title.lower().removesuffix("es").removesuffix("s") if title != "Classes" else "class",
            "rows", "predicted", "precision", "recall", "F1"]  # fmt: skip
    return table(
        head, rows, search=len(rows) > 25, caption=f"Metrics of each of the {title.lower()}"
    )


def _facts(found: Evaluation) -> dict[str, object]:
    words = {"model": "model", "data": "data"}
    quantile = found.tables.get("quantile")
    return {
        **{text: found.about[name] for name, text in words.items() if name in found.about},
        "rows": found.rows,
        **({} if found.weight == found.rows else {"weight of the rows": found.weight}),
        "intervals": bootstrap_text(found).removeprefix("intervals: "),
        **({} if quantile is None else {"quantile of the quantile loss": quantile}),
    }
