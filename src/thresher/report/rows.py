"""How a model does on rows that are given: errors, AUC, what is taken for what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data import is_source
from thresher.errors import DataError, ParameterError
from thresher.model.links import error_of, scores, values
from thresher.report.page import note, tiles
from thresher.report.summary import label_text
from thresher.report.tables import Cell, Shown, table

if TYPE_CHECKING:
    from thresher.model.model import Model

_MATRIX = 8  # classes up to which all pairs are shown
_PAIRS = 40  # pairs of classes shown, of more


class Answers(NamedTuple):
    """Scores of rows and what would have been right: places of classes, sets of labels, values."""

    decision: NDArray[np.float64]
    truth: NDArray[Any]


def answers(model: Model, X: Any, y: Any) -> Answers:
    """Return the model's scores of rows, and their labels.

    Parameters
    ----------
    model : Model
    X : CSR matrix, array, DataFrame or source
    y : array of labels; None for a source, which has its own
    """
    if is_source(X):
        if y is not None:
            raise ParameterError(
                parameter="y", allowed="None with a source, whose rows have their labels"
            )
        return _of_source(model, X)
    decision, found = model.decision_function(X), np.asarray(y)
    if len(found) != len(decision):
        raise ParameterError(
            f"y must have {len(decision):,} labels, as X has rows; got {len(found):,}"
        )
    if model.classes is None or model.multilabel:
        shape = decision.reshape(len(decision), -1).shape if model.multilabel else decision.shape
        if found.shape != shape:
            raise ParameterError(f"y must be of shape {shape}; got {found.shape}")
        return Answers(decision, found)
    places = {label: place for place, label in enumerate(model.classes.tolist())}
    truth = np.array([places.get(label, -1) for label in found.tolist()], np.intp)
    if len(truth) and (truth < 0).any():
        strange = found[truth < 0].tolist()[0]
        raise DataError(f"the label {strange!r} is not one of the model's classes")
    return Answers(decision, truth)


def _of_source(model: Model, source: Any) -> Answers:
    from thresher.data.labels import Labels, LabelSets, ManyClasses, NumericLabels, TwoClasses

    kind: Labels
    if model.classes is None:
        kind = NumericLabels(model.loss)
    elif model.multilabel:
        kind = LabelSets(model.classes)
    elif model.classes.tolist() in ([-1, 1], [0, 1]):
        kind = TwoClasses()
    else:
        kind = ManyClasses(model.classes)
    raws, truths = list[NDArray[np.float64]](), list[NDArray[Any]]()
    for block, raw in model.raw_blocks(source):
        targets = kind.targets(block)
        raws.append(raw)
        if model.multilabel:
            truths.append(np.column_stack([targets[k] > 0 for k in range(len(targets))]))
        elif model.classes is None:
            truths.append(targets[0])
        else:
            truths.append(
                (targets[0] > 0).astype(np.intp) if len(targets) == 1 else targets.single()
            )
    if not sum(map(len, truths)):
        raise DataError("the rows given are none: there is nothing to say of them")
    decision = scores(np.concatenate(raws), model.loss, model.classes is not None)
    return Answers(decision, np.concatenate(truths))


def results(model: Model, found: Answers) -> str:
    """Return how well the rows were answered.

    Parameters
    ----------
    model : Model
    found : Answers
    """
    rows = len(found.truth)
    said = note(
        "These numbers are of the rows given to the report, and of no others; if the model "
        "learned from them, it does worse on new ones."
    )
    if model.classes is None:
        return _values(model, found) + said
    if model.multilabel:
        return _sets(model, found) + said
    several = found.decision.ndim > 1
    taken = found.decision.argmax(axis=1) if several else (found.decision >= 0).astype(np.intp)
    wrong = error_of(found.decision, found.truth)
    numbers = {"rows": rows, "error rate": f"{wrong:.2f} %", **_auc(found)}
    lucky = round(wrong * rows / 100) - int((taken != found.truth).sum())
    if lucky:
        said += note(
            f"Of {lucky:,} rows the model scores another class as high as their own. They count as "
            f"errors; the table has them as predict answers them."
        )
    return tiles(numbers) + said + _confusion(model, found.truth, taken)


def _auc(found: Answers) -> dict[str, object]:
    from sklearn.metrics import roc_auc_score

    seen = np.unique(found.truth)
    if found.decision.ndim == 1:
        if len(seen) < 2:
            return {"AUC": "not defined: one class"}
        return {"AUC": f"{roc_auc_score(found.truth, found.decision):.4f}"}
    each = [roc_auc_score(found.truth == k, found.decision[:, k]) for k in seen if len(seen) > 1]
    return {"mean AUC, class against rest": f"{np.mean(each):.4f}"} if each else {}


def _values(model: Model, found: Answers) -> str:
    miss = values(found.decision, model.loss) - found.truth.astype(np.float64)
    spread = float(np.var(found.truth.astype(np.float64)))
    numbers: dict[str, object] = {
        "rows": len(miss),
        "root mean squared error": f"{np.sqrt(np.mean(miss**2)):.4g}",
        "mean absolute error": f"{np.mean(np.abs(miss)):.4g}",
    }
    if spread > 0:
        numbers["R2"] = f"{1 - float(np.mean(miss**2)) / spread:.4f}"
    return tiles(numbers)


def _sets(model: Model, found: Answers) -> str:
    truth = found.truth.astype(bool)
    taken = found.decision.reshape(truth.shape) >= 0
    right = float((truth == taken).all(axis=1).mean())
    hits = int((truth & taken).sum())
    named = int(truth.sum()) + int(taken.sum())
    return tiles(
        {
            "rows": len(truth),
            "rows with all labels right": f"{100 * right:.2f} %",
            "F1 over all labels": f"{2 * hits / named:.4f}" if named else "no labels",
        }
    )


def _confusion(model: Model, truth: NDArray[np.intp], taken: NDArray[np.intp]) -> str:
    assert model.classes is not None
    words = [label_text(label) for label in model.classes.tolist()]
    counts = np.zeros((len(words), len(words)), np.int64)
    np.add.at(counts, (truth, taken), 1)
    rows: list[list[Cell]]
    if len(words) <= _MATRIX:
        rows = [
            [word, *map(int, line), _share(line[k], line.sum())]
            for k, (word, line) in enumerate(zip(words, counts, strict=True))
        ]
        head = ["class", *(f"taken for {word}" for word in words), "right"]
        return table(head, rows, caption="Rows of each class, and what they are taken for")
    rows = [
        [word, int(counts[k].sum()), _share(counts[k, k], counts[k].sum()),
         _share(counts[k, k], counts[:, k].sum())]
        for k, word in enumerate(words)
    ]  # fmt: skip
    head = ["class", "rows", "of them right", "right of those taken for it"]
    each = table(head, rows, search=len(rows) > 25, caption="Each class")
    off = counts.copy()
    np.fill_diagonal(off, 0)
    order = np.argsort(-off, axis=None, kind="stable")[:_PAIRS]
    pairs = [np.unravel_index(i, off.shape) for i in order if off.flat[i]]
    rows = [
        [words[a], words[b], int(off[a, b]), _share(off[a, b], counts[a].sum())] for a, b in pairs
    ]
    if not rows:
        return each
    head = ["is", "taken for", "rows", "of its class"]
    pairs_shown = table(head, rows, caption="What is taken for what most often")
    return f'<div class="charts">{each}{pairs_shown}</div>'


def _share(part: Any, whole: Any) -> Cell:
    return Shown(f"{100 * part / whole:.1f} %", float(part / whole)) if whole else None
