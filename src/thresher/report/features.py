"""The weights of a model, as a table that can be searched, and what each class goes by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.model.evidence import KEPT, Evidence
from thresher.model.feature_names import check_names
from thresher.report.page import note
from thresher.report.summary import label_text
from thresher.report.tables import Cell, Shown, table

if TYPE_CHECKING:
    from thresher.model.model import Model

SHOWN = 2000  # weights in the table at most
_CLASSES = 500  # classes in their table at most
_STRONGEST = 8  # features named of a class


class Names:
    """What features are called: by names given, by the model's own, else by number.

    Parameters
    ----------
    model : Model
    names : sequence of str, optional
        Of all features.
    """

    def __init__(self, model: Model, names: Sequence[str] | None) -> None:
        if names is not None:
            check_names(names, model.n_features)
        self._model, self._names = model, names
        first = model.parameters.get("first")  # as a file numbers them
        self._first = first if isinstance(first, int) else 0

    def __call__(self, index: int) -> str:
        """Return what a feature is called."""
        name = self._model.name(index) if self._names is None else str(self._names[index])
        if isinstance(name, int):
            return str(name + self._first)
        return name if name.strip() else repr(name)  # what cannot be seen is quoted


def features(model: Model, names: Names, count: int = SHOWN, search: bool = True) -> str:
    """Return the largest weights, what they speak for and what is known of them.

    Parameters
    ----------
    model : Model
    names : Names
    count : int
        How many at most.
    search : bool
        Whether the table can be searched.
    """
    if model.nnz == 0:
        return note(
            "No weight is nonzero: the answer is the intercept's for every row. A smaller penalty "
            "leaves some; thresher.health.check looks at the rows."
        )
    outputs = np.repeat(np.arange(len(model.intercept)), np.diff(model.indptr))
    order = np.lexsort((model.indices, -np.abs(model.weights)))[:count]
    largest = float(np.abs(model.weights[order[0]]))
    head = ["rank", "feature", "weight", *_speaks(model)]
    if model.evidence is not None:
        head += ["selection probability", "updates", "training rows"]
    labels = [] if model.classes is None else [label_text(one) for one in model.classes.tolist()]
    signed = _is_signed(model)
    rows: list[list[Cell]] = []
    for rank, at in enumerate(order.tolist(), 1):
        weight, index, output = float(model.weights[at]), int(model.indices[at]), int(outputs[at])
        row: list[Cell] = [rank, names(index)]
        row.append(Shown(f"{weight:+.4g}", weight, weight / largest if largest else 0.0))
        if labels:
            row.append(labels[int(weight > 0) if signed else output])
        if model.evidence is not None:
            known = model.evidence.of(output, index)
            probability = known.get("selection_probability")
            row.append(None if probability is None else Shown(f"{probability:.2f}", probability))
            row += [known["updates"], known["documents"]]
        rows.append(row)
    return table(head, rows, search=search, caption=_caption(model, len(rows)))


def _speaks(model: Model) -> list[str]:
    if model.classes is None:
        return []
    return ["speaks for" if _is_signed(model) else "class"]


def _is_signed(model: Model) -> bool:
    """Tell whether the sign of a weight says which class it speaks for."""
    return model.classes is not None and len(model.intercept) == 1 and not model.multilabel


def _caption(model: Model, shown: int) -> str:
    if shown == model.nnz:
        return f"All {model.nnz:,} nonzero weights, largest first" if shown > 1 else "The weight"
    rest = model.nnz - shown
    return f"The {shown:,} largest of {model.nnz:,} nonzero weights; {rest:,} more are not shown"


def meaning(model: Model) -> str:
    """Say what signs of weights, and what selection probabilities mean.

    Parameters
    ----------
    model : Model
    """
    if model.classes is None:
        said = "A positive weight raises the prediction, a negative one lowers it."
    elif not _is_signed(model):
        said = "Each class has weights of its own; a positive one speaks for it, others against."
    else:
        first, second = (label_text(label) for label in model.classes.tolist())
        said = f"Positive weights speak for {second}, negative for {first}."
    if model.evidence is not None:
        said += f" {_selection(model, model.evidence)}"
    return note(said)


def _selection(model: Model, evidence: Evidence) -> str:
    """Say what selection probabilities are of, and what became of all that were seen."""
    published = model.parameters.get("variant") == "paper"
    seen, purged = evidence.features.size, int((evidence.purged != KEPT).sum())
    unjudged = int(((evidence.purged == KEPT) & (evidence.updates == 0)).sum())
    why = "no step counted as evidence" if published else "too few rows have them"
    groups = [f"{model.nnz:,} have a weight", f"{purged:,} were purged"]
    groups.append(f"{unjudged:,} were never judged, as {why}")
    if rest := seen - model.nnz - purged - unjudged:
        groups.append(f"{rest:,} are at zero")
    what = "features" if len(model.intercept) == 1 else "features, of each class anew,"
    return (
        f"The selection probability is the share of {'bursts of ' if published else ''}paths that "
        f"selected the feature when it was last judged. Of {seen:,} {what} that were seen, "
        f"{', '.join(groups[:-1])} and {groups[-1]}; model.why(feature) tells why."
    )


def classes(model: Model, names: Names) -> str:
    """Return what each class goes by, where each has weights of its own.

    Parameters
    ----------
    model : Model
    names : Names
    """
    if len(model.intercept) == 1 or model.classes is None:
        return ""
    counts = np.diff(model.indptr)
    order = np.arange(len(counts))
    if len(counts) > _CLASSES:
        order = np.argsort(-counts, kind="stable")[:_CLASSES]
    rows: list[list[Cell]] = []
    labels: list[Any] = model.classes.tolist()
    for output in order.tolist():
        begin, end = model.indptr[output], model.indptr[output + 1]
        weights, keys = model.weights[begin:end], model.indices[begin:end]
        strongest = np.argsort(-weights, kind="stable")[:_STRONGEST]
        told = [names(int(keys[i])) for i in strongest if weights[i] > 0]
        label = labels[output]
        shown: Cell = label if isinstance(label, str) else Shown(label_text(label), label)
        rows.append([shown, ", ".join(told), int(counts[output]), float(model.intercept[output])])
    caption = "What speaks most for each class"
    if len(rows) < len(counts):
        caption += f", for the {len(rows):,} with most weights of {len(counts):,}"
    head = ["class", "strongest features", "nonzero weights", "intercept"]
    return table(head, rows, search=len(rows) > 12, caption=caption)
