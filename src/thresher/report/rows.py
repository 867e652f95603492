"""How well a model predicts given rows: errors, AUC and confusion of classes."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data import is_source
from thresher.errors import DataError, ParameterError
from thresher.model.links import error_of, scores, values
from thresher.report.page import note, tiles
from thresher.report.summary import label_text
from thresher.report.tables import Cell, TableCell, table

if TYPE_CHECKING:
    from thresher.data.unseen_labels import UnseenLabels
    from thresher.model.model import Model

_MATRIX = 8  # largest number of classes with a full confusion matrix
_PAIRS = 40  # pairs of classes shown otherwise


class ScoredRows(NamedTuple):
    """Scores of rows, and the truth: numbers of classes, sets of labels, or values."""

    decision: NDArray[np.float64]
    truth: NDArray[Any]  # -1: a class that the model does not have
    remark: str = ""


def scored_rows(model: Model, X: Any, y: Any) -> ScoredRows:
    """Return the scores and the labels of rows.

    Parameters
    ----------
    model : Model
    X : CSR matrix, array, DataFrame or source
    y : array of labels; None for a source, which has labels
    """
    if is_source(X):
        if y is not None:
            raise ParameterError(parameter="y", allowed="None with a source, which has labels")
        return _of_source(model, X)
    decision, found = model.decision_function(X), np.asarray(y)
    if len(found) != len(decision):
        raise ParameterError(
            f"y must have {len(decision):,} labels, one for each row of X; got {len(found):,}"
        )
    if model.classes is None or model.multilabel:
        shape = decision.reshape(len(decision), -1).shape if model.multilabel else decision.shape
        if found.shape != shape:
            raise ParameterError(f"y must be of shape {shape}; got {found.shape}")
        return ScoredRows(decision, found)
    from thresher.data.unseen_labels import UnseenLabels

    unseen = UnseenLabels()
    known = unseen.count(model.classes, found)
    truth = np.where(known, np.searchsorted(model.classes, found) if known.any() else -1, -1)
    return ScoredRows(decision, truth, _told(unseen))


def _told(unseen: UnseenLabels) -> str:
    """Warn if rows have labels that the model does not know; return the warning as text."""
    warning = unseen.warning()
    if warning is None:
        return ""
    if unseen.unseen == unseen.rows:
        names = ", ".join(map(repr, list(unseen.counts)[:5]))
        raise DataError(f"no row has a label that the model knows; the labels are {names}")
    warnings.warn(warning, stacklevel=2)
    return str(warning)


def _of_source(model: Model, source: Any) -> ScoredRows:
    from thresher.data.labels import Labels, LabelSets, ManyClasses, NumericLabels, TwoClasses
    from thresher.data.unseen_labels import UnseenLabels, class_numbers

    kind: Labels
    if model.classes is None:
        kind = NumericLabels(model.loss)
    elif model.multilabel:
        kind = LabelSets(model.classes)
    elif model.classes.tolist() in ([-1, 1], [0, 1]):
        kind = TwoClasses()
    else:
        kind = ManyClasses(model.classes)
    raws, truths, unseen = list[NDArray[np.float64]](), list[NDArray[Any]](), UnseenLabels()
    for block, raw in model.raw_blocks(source, labelled=True):
        targets, known = unseen.targets(kind, block)
        raws.append(raw)
        if model.multilabel:
            truths.append(np.column_stack([targets[k] > 0 for k in range(len(targets))]))
        elif model.classes is None:
            truths.append(targets[0])
        else:
            truths.append(class_numbers(targets, known))
    if not sum(map(len, truths)):
        raise DataError("there are no rows")
    decision = scores(np.concatenate(raws), model.loss, model.classes is not None)
    return ScoredRows(decision, np.concatenate(truths), _told(unseen))


def results(model: Model, found: ScoredRows) -> str:
    """Return how well the rows are predicted.

    Parameters
    ----------
    model : Model
    found : ScoredRows
    """
    rows = len(found.truth)
    remarks = note(
        "These numbers are only for the rows given to the report. If the model learned from these "
        "rows, its error on new rows is larger."
    )
    if found.remark:
        remarks = note(found.remark[:1].upper() + found.remark[1:] + ".") + remarks
    if model.classes is None:
        return _values(model, found) + remarks
    if model.multilabel:
        return _sets(model, found) + remarks
    several = found.decision.ndim > 1
    predicted = found.decision.argmax(axis=1) if several else (found.decision >= 0).astype(np.intp)
    wrong = error_of(found.decision, found.truth)
    numbers = {"rows": rows, "error rate": f"{wrong:.2f} %", **_auc(found)}
    ties = round(wrong * rows / 100) - int((predicted != found.truth).sum())
    if ties:
        remarks += note(
            f"In {ties:,} rows, another class has the same score as the true class, and predict "
            f"returns the true class. The error rate counts these rows as errors; the table does "
            f"not."
        )
    known = found.truth >= 0
    return tiles(numbers) + remarks + _confusion(model, found.truth[known], predicted[known])


def _auc(found: ScoredRows) -> dict[str, object]:
    from sklearn.metrics import roc_auc_score

    known = found.truth >= 0
    found = ScoredRows(found.decision[known], found.truth[known])
    seen = np.unique(found.truth)
    if found.decision.ndim == 1:
        if len(seen) < 2:
            return {"AUC": "not defined: only one class"}
        return {"AUC": f"{roc_auc_score(found.truth, found.decision):.4f}"}
    each = [roc_auc_score(found.truth == k, found.decision[:, k]) for k in seen if len(seen) > 1]
    return {"mean AUC, one-vs-rest": f"{np.mean(each):.4f}"} if each else {}


def _values(model: Model, found: ScoredRows) -> str:
    errors = values(found.decision, model.loss) - found.truth.astype(np.float64)
    spread = float(np.var(found.truth.astype(np.float64)))
    numbers: dict[str, object] = {
        "rows": len(errors),
        "root mean squared error": f"{np.sqrt(np.mean(errors**2)):.4g}",
        "mean absolute error": f"{np.mean(np.abs(errors)):.4g}",
    }
    if spread > 0:
        numbers["R2"] = f"{1 - float(np.mean(errors**2)) / spread:.4f}"
    return tiles(numbers)


def _sets(model: Model, found: ScoredRows) -> str:
    truth = found.truth.astype(bool)
    predicted = found.decision.reshape(truth.shape) >= 0
    right = float((truth == predicted).all(axis=1).mean())
    hits = int((truth & predicted).sum())
    named = int(truth.sum()) + int(predicted.sum())
    return tiles(
        {
            "rows": len(truth),
            "rows with all labels correct": f"{100 * right:.2f} %",
            "F1 over all labels": f"{2 * hits / named:.4f}" if named else "no labels",
        }
    )


def _confusion(model: Model, truth: NDArray[np.intp], predicted: NDArray[np.intp]) -> str:
    assert model.classes is not None
    words = [label_text(label) for label in model.classes.tolist()]
    counts = np.zeros((len(words), len(words)), np.int64)
    np.add.at(counts, (truth, predicted), 1)
    rows: list[list[Cell]]
    if len(words) <= _MATRIX:
        rows = [
            [word, *map(int, line), _share(line[k], line.sum())]
            for k, (word, line) in enumerate(zip(words, counts, strict=True))
        ]
        head = ["class", *(f"predicted {word}" for word in words), "correct"]
        return table(head, rows, caption="Confusion matrix: rows by true class and predicted class")
    rows = [
        [word, int(counts[k].sum()), _share(counts[k, k], counts[k].sum()),
         _share(counts[k, k], counts[:, k].sum())]
        for k, word in enumerate(words)
    ]  # fmt: skip
    head = ["class", "rows", "recall", "precision"]
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
    head = ["true class", "predicted", "rows", "of the true class"]
    pairs_shown = table(head, rows, caption="Most frequent confusions")
    return f'<div class="charts">{each}{pairs_shown}</div>'


def _share(part: Any, whole: Any) -> Cell:
    return TableCell(f"{100 * part / whole:.1f} %", float(part / whole)) if whole else None
