"""Tables of the weights of a model, and of the strongest features of each class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.model.evidence import KEPT, NO_SIGNAL, Evidence, outputs_without_signal
from thresher.model.feature_names import check_names
from thresher.report.page import note
from thresher.report.summary import label_text
from thresher.report.tables import Cell, TableCell, table

if TYPE_CHECKING:
    from thresher.model.model import Model

MOST_WEIGHTS = 2000  # in the table of weights
_MOST_CLASSES = 500  # in the table of classes
_STRONGEST = 8  # features listed for each class


class FeatureNames:
    """Names of features: those given, else those of the model, else numbers.

    Parameters
    ----------
    model : Model
    names : sequence of str, optional
        Names of all features.
    """

    def __init__(self, model: Model, names: Sequence[str] | None) -> None:
        if names is not None:
            check_names(names, model.n_features)
        self._model, self._names = model, names
        first = model.parameters.get("first")  # number of the first feature in the files
        self._first = first if isinstance(first, int) else 0

    def __call__(self, index: int) -> str:
        """Return the name of a feature."""
        name = self._model.name(index) if self._names is None else str(self._names[index])
        if isinstance(name, int):
            return str(name + self._first)
        return name if name.strip() else repr(name)  # quotes make an empty name visible


def features(
    model: Model, names: FeatureNames, count: int = MOST_WEIGHTS, search: bool = True
) -> str:
    """Return a table of the largest weights, with their classes and evidence.

    Parameters
    ----------
    model : Model
    names : FeatureNames
    count : int
        Largest number of weights.
    search : bool
        Whether the table can be searched.
    """
    if model.nnz == 0 and outputs_without_signal(model):
        return note(
            f"{NO_SIGNAL.capitalize()}. The prediction is the same for all rows, and no feature is "
            "kept; with target_nnz a given number is kept."
        )
    if model.nnz == 0:
        return note(
            "No weight is nonzero: the prediction is the same for all rows. Use a smaller penalty; "
            "thresher.health.check checks the training rows."
        )
    outputs = np.repeat(np.arange(len(model.intercept)), np.diff(model.indptr))
    order = np.lexsort((model.indices, -np.abs(model.weights)))[:count]
    largest = float(np.abs(model.weights[order[0]]))
    head = ["rank", "feature", "weight", *_class_heading(model)]
    related = model.evidence is not None and model.evidence.z is not None
    if related:
        head += ["z", "q", "training rows"]
    elif model.evidence is not None:
        head += ["selection probability", "updates", "training rows"]
    labels = [] if model.classes is None else [label_text(one) for one in model.classes.tolist()]
    signed = _is_signed(model)
    rows: list[list[Cell]] = []
    for rank, at in enumerate(order.tolist(), 1):
        weight, index, output = float(model.weights[at]), int(model.indices[at]), int(outputs[at])
        row: list[Cell] = [rank, names(index)]
        row.append(TableCell(f"{weight:+.4g}", weight, weight / largest if largest else 0.0))
        if labels:
            row.append(labels[int(weight > 0) if signed else output])
        if model.evidence is not None:
            known = model.evidence.of(output, index)
            shown = {"z": ".1f", "q": ".2g"} if related else {"selection_probability": ".2f"}
            for name, form in shown.items():
                value = known.get(name)
                row.append(None if value is None else TableCell(format(value, form), value))
            row += [known["documents"]] if related else [known["updates"], known["documents"]]
        rows.append(row)
    return table(head, rows, search=search, caption=_caption(model, len(rows)))


def _class_heading(model: Model) -> list[str]:
    if model.classes is None:
        return []
    return ["indicates" if _is_signed(model) else "class"]


def _is_signed(model: Model) -> bool:
    """Tell whether the sign of a weight indicates one of two classes."""
    return model.classes is not None and len(model.classes) == 2 and not model.multilabel


def _caption(model: Model, shown: int) -> str:
    if shown == model.nnz:
        return f"All {model.nnz:,} nonzero weights, largest first" if shown > 1 else "The weight"
    rest = model.nnz - shown
    return f"The {shown:,} largest of {model.nnz:,} nonzero weights; {rest:,} more are not shown"


def meaning(model: Model) -> str:
    """Return what the signs of weights, z and selection probabilities mean.

    Parameters
    ----------
    model : Model
    """
    if model.classes is None:
        remark = "A positive weight raises the prediction, a negative one lowers it."
    elif not _is_signed(model):
        remark = "Each class has its own weights; positive weights indicate the class."
    else:
        first, second = (label_text(label) for label in model.classes.tolist())
        remark = f"Positive weights indicate {second}, negative weights {first}."
    if model.evidence is not None:
        remark += f" {_selection(model, model.evidence)}"
    return note(remark)


def _selection(model: Model, evidence: Evidence) -> str:
    """Return what z or selection probabilities are, and counts of all features seen."""
    published = model.parameters.get("variant") == "paper"
    seen, purged = evidence.features.size, int((evidence.purged != KEPT).sum())
    unjudged = int(((evidence.purged == KEPT) & (evidence.updates == 0)).sum())
    why = "no update counted as evidence" if published else "they are in too few rows"
    groups = [f"{model.nnz:,} have a nonzero weight", f"{purged:,} were purged"]
    groups.append(f"{unjudged:,} were never tested, because {why}")
    if rest := seen - model.nnz - purged - unjudged:
        groups.append(f"{rest:,} have weight zero")
    what = "features" if len(model.intercept) == 1 else "features (counted for each class)"
    meaning = (
        f"The selection probability is the share of {'bursts of ' if published else ''}paths that "
        "selected the feature in its last test."
        if evidence.z is None
        else "z is the relation of a feature alone to the label, in standard errors; q is the "
        "expected share of unrelated features among those with evidence at least as strong."
    )
    if without := len(outputs_without_signal(model)):
        meaning += f" {without:,} of {len(model.intercept):,} classes have no signal."
    return (
        f"{meaning} Of {seen:,} {what} seen, "
        f"{', '.join(groups[:-1])} and {groups[-1]}. model.why(feature) gives the reasons."
    )


def classes(model: Model, names: FeatureNames) -> str:
    """Return a table of the strongest features of each class, if there are more than two.

    Parameters
    ----------
    model : Model
    names : FeatureNames
    """
    if len(model.intercept) == 1 or model.classes is None:
        return ""
    counts = np.diff(model.indptr)
    order = np.arange(len(counts))
    if len(counts) > _MOST_CLASSES:
        order = np.argsort(-counts, kind="stable")[:_MOST_CLASSES]
    rows: list[list[Cell]] = []
    labels: list[Any] = model.classes.tolist()
    for output in order.tolist():
        begin, end = model.indptr[output], model.indptr[output + 1]
        weights, keys = model.weights[begin:end], model.indices[begin:end]
        strongest = np.argsort(-weights, kind="stable")[:_STRONGEST]
        strong_names = [names(int(keys[i])) for i in strongest if weights[i] > 0]
        label = labels[output]
        shown: Cell = label if isinstance(label, str) else TableCell(label_text(label), label)
        rows.append(
            [shown, ", ".join(strong_names), int(counts[output]), float(model.intercept[output])]
        )
    caption = "Strongest features of each class"
    if len(rows) < len(counts):
        caption += f"; the {len(rows):,} of {len(counts):,} classes with most weights"
    head = ["class", "strongest features", "nonzero weights", "intercept"]
    return table(head, rows, search=len(rows) > 12, caption=caption)
