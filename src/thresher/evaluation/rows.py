"""Rows of an evaluation: raw predictions, targets and weights, in parts of limited size."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.data import is_sparse
from thresher.data.labels import (
    LabelColumns,
    Labels,
    LabelSets,
    ManyClasses,
    NumericLabels,
    TwoClasses,
)
from thresher.data.matrix_source import LabelArray
from thresher.data.table_columns import USUAL_LABELS
from thresher.data.table_part import TablePart
from thresher.data.targets import Targets
from thresher.data.unseen_labels import UnseenLabels, class_numbers
from thresher.errors import DataError, DataWarning, ParameterError
from thresher.evaluation.metric import listed
from thresher.losses import LOSSES
from thresher.sparse_checks import refuse_malformed

if TYPE_CHECKING:
    from thresher.model.model import Model

Floats = NDArray[np.float64]

_SLICE = 1 << 16  # rows in memory whose scores are computed at once, at most
_SCORES = 1 << 22  # and their scores: 32 MiB


@dataclass(frozen=True)
class Rows:
    """Some consecutive rows.

    Attributes
    ----------
    raw : array of shape (rows, outputs)
        Raw predictions.
    targets : Targets
    known : array of bool
        Whether the model knows the label of each row or, with sets of labels, all of them.
    weights : array or None
    first : int
        The number of the first row.
    sizes : array of int or None
        With sets of labels: the number of labels of each row, with those that are not known.
    """

    raw: Floats
    targets: Targets
    known: NDArray[np.bool_]
    weights: Floats | None
    first: int
    sizes: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def classes(self) -> NDArray[np.intp]:
        """The number of the class of each row; -1: the model does not know it."""
        return class_numbers(self.targets, self.known)

    def part(self, start: int, end: int) -> Rows:
        """Return some of the rows."""
        return Rows(
            self.raw[start:end],
            self.targets.of_rows(np.arange(start, end)),
            self.known[start:end],
            None if self.weights is None else self.weights[start:end],
            self.first + start,
            None if self.sizes is None else self.sizes[start:end],
        )


class UnknownFeaturesWarning(DataWarning):
    """A model knows no feature of the rows that it is evaluated on."""


class RowReader:
    """Reads the rows of an evaluation, for one model or for two that are compared.

    Parameters
    ----------
    models : list of Model
        Of one task, with the same classes.
    on_progress : callable, optional
        Called with the number of rows and of bytes that were read.

    Attributes
    ----------
    unseen : UnseenLabels
        Counts of labels that the models do not know.
    """

    def __init__(self, models: list[Model], on_progress: Any = None) -> None:
        self.models, self.on_progress = models, on_progress
        self.unseen = UnseenLabels()
        self.labels = _labels_of(models[0])
        self._known = [model.nnz == 0 for model in models]  # whether a row had a known feature

    def of_source(self, source: Any) -> Iterator[list[Rows]]:
        """Yield the rows of a source that all models read in the same way."""
        from thresher.model.predict import predictor_of

        first = 0
        for model in self.models:
            check_columns(model, source)
        for block, raw in self.models[0].raw_blocks(source, labelled=True):
            if block.rows == 0:
                continue
            raws = [raw, *(predictor_of(model).of_block(block) for model in self.models[1:])]
            targets, known = self.unseen.targets(self.labels, block)
            sizes = np.diff(block.label_sets()[0]) if self.models[0].multilabel else None
            for number, (own, model) in enumerate(zip(raws, self.models, strict=True)):
                _check_finite(own, block)
                known_one = self._known[number] or bool((own != model.intercept).any())
                self._known[number] = known_one
            yield [
                Rows(own, _for_loss(targets, model), known, block.weights, first, sizes)
                for own, model in zip(raws, self.models, strict=True)
            ]
            first += block.rows
            if self.on_progress is not None:
                self.on_progress(first, block.raw)

    def warn(self) -> list[str]:
        """Warn of labels and of rows that a model does not know; return the warnings as text.

        Call it after the last row.
        """
        found: list[Warning | None] = [self.unseen.warning()]
        if self.unseen.rows and not all(self._known):
            found.append(
                UnknownFeaturesWarning(
                    "no row has a feature with nonzero weight; was the model trained on other "
                    "data, or in another format?"
                )
            )
        for one in found:
            if one is not None:
                warnings.warn(one, stacklevel=3)
        return [str(one) for one in found if one is not None]

    def of_memory(self, X: Any, y: Any, weights: Any) -> Iterator[list[Rows]]:
        """Yield rows in memory."""
        model = self.models[0]
        refuse_malformed(X)
        X = X.tocsr() if is_sparse(X) else X
        y, sizes = _labels_in_memory(model, y)
        held, labels = LabelArray(y), self.labels
        if model.multilabel:
            assert model.classes is not None
            labels = LabelColumns(model.classes, LOSSES[model.loss].low)
        targets, known = self.unseen.targets(labels, held)
        weights = _weights(weights, held.rows)
        self._known = [True for _ in self.models]  # rows have the columns of training
        sliced = is_sparse(X) or isinstance(X, np.ndarray)
        if not sliced:
            whole = [_raw(one, X) for one in self.models]
        rows = X.shape[0] if sliced else len(whole[0])
        if rows != held.rows:
            raise ParameterError(
                f"y must have {rows:,} labels, one for each row of X; got {held.rows:,}"
            )
        step = max(1, min(_SLICE, _SCORES // len(model.intercept)))
        for start in range(0, rows, step):
            end = min(start + step, rows)
            if sliced:
                raws = [_raw(one, X[start:end]) for one in self.models]
            else:
                raws = [one[start:end] for one in whole]
            for own in raws:
                _check_finite(own, None, start)
            every = Rows(np.zeros((rows, 0)), targets, known, weights, 0, sizes).part(start, end)
            yield [
                replace(every, raw=own, targets=_for_loss(every.targets, one))
                for own, one in zip(raws, self.models, strict=True)
            ]
            if self.on_progress is not None:
                self.on_progress(end, 0)


def aligned(
    first: Iterator[list[Rows]], second: Iterator[list[Rows]], classifies: bool
) -> Iterator[list[Rows]]:
    """Yield pairs of the same rows from two readings of the same data.

    Raises DataError if they have different numbers of rows, different labels or different weights.

    Parameters
    ----------
    first, second : iterators of [Rows]
    classifies : bool
        Whether labels are classes, for which losses have different numbers.
    """
    a: Rows | None = None
    b: Rows | None = None
    while True:
        if a is None:
            a = next(first, [None])[0]
        if b is None:
            b = next(second, [None])[0]
        if a is None or b is None:
            break
        size = min(len(a), len(b))
        one, other = a.part(0, size), b.part(0, size)
        for what, same in (
            ("labels", _same_targets(one.targets, other.targets, classifies)),
            ("weights", _same_weights(one.weights, other.weights)),
        ):
            if not same:
                raise DataError(f"the two models read different {what} in rows {one.first:,} to "
                                f"{one.first + size - 1:,}")  # fmt: skip
        yield [one, other]
        a = a.part(size, len(a)) if len(a) > size else None
        b = b.part(size, len(b)) if len(b) > size else None
    if a is not None or b is not None:
        raise DataError("the two models read different numbers of rows from the same data")


def _same_targets(a: Targets, b: Targets, classifies: bool) -> bool:
    if a.values is not None and b.values is not None:
        one, other = (a.values > 0, b.values > 0) if classifies else (a.values, b.values)
        return np.array_equal(one, other)
    return np.array_equal(a.starts, b.starts) and np.array_equal(a.numbers, b.numbers)


def _same_weights(a: Floats | None, b: Floats | None) -> bool:
    one, other = (1.0 if weights is None else weights for weights in (a, b))
    return bool(np.all(one == other))


def _labels_of(model: Model) -> Labels:
    """Return the labels that a model expects."""
    low = LOSSES[model.loss].low
    if model.classes is None:
        return NumericLabels(model.loss)
    if model.multilabel:
        return LabelSets(model.classes, low)
    if model.classes.tolist() in ([-1, 1], [0, 1]):
        return TwoClasses(low)
    return ManyClasses(model.classes, low)


def _labels_in_memory(model: Model, y: Any) -> tuple[Any, NDArray[np.int64] | None]:
    """Return labels as an array or, for sets of labels, as a CSR matrix, with the sizes of sets."""
    if not model.multilabel:
        if is_sparse(y) or np.ndim(y) != 1:
            raise ParameterError(
                parameter="y", allowed="one label per row: the model is not multilabel"
            )
        y = np.asarray(y)
        if y.dtype.kind == "O" and all(isinstance(one, int | float) for one in y.tolist()):
            y = np.array(y.tolist())
        return y, None
    from scipy.sparse import csr_matrix

    refuse_malformed(y)
    found = csr_matrix(y)
    found.sum_duplicates()
    found.eliminate_zeros()
    assert model.classes is not None
    if found.shape[1] != len(model.classes) or (len(found.data) and (found.data != 1).any()):
        raise ParameterError(
            parameter="y",
            value=f"shape {found.shape}",
            allowed=f"a matrix of 0 and 1 with {len(model.classes)} columns, one per label",
        )
    return found, np.diff(found.indptr).astype(np.int64)


def _weights(weights: Any, rows: int) -> Floats | None:
    if weights is None:
        return None
    found = np.ascontiguousarray(weights, np.float64)
    if found.shape != (rows,) or not np.isfinite(found).all() or (found < 0).any():
        raise ParameterError(
            parameter="sample_weight", allowed=f"{rows:,} finite numbers >= 0, one for each row"
        )
    return found


def _raw(model: Model, X: Any) -> Floats:
    """Return raw predictions of rows in memory, of shape (rows, outputs)."""
    decision = model.decision_function(X)
    found = decision.reshape(len(decision), -1)
    return found + LOSSES[model.loss].decision_at if model.classes is not None else found


def _for_loss(targets: Targets, model: Model) -> Targets:
    """Return the same targets with the number that the model's loss has for other classes."""
    if model.classes is None:
        return targets
    low, values = LOSSES[model.loss].low, targets.values
    if values is not None:
        return Targets.of_values(np.where(values == 1.0, 1.0, low))
    return Targets(targets.outputs, None, targets.starts, targets.numbers, low)


def _check_finite(raw: Floats, block: Any, first: int = 0) -> None:
    """Raise DataError for a row whose score is not a finite number."""
    if np.isfinite(raw).all():
        return
    row = int((~np.isfinite(raw)).any(axis=1).argmax())
    place = f"row {first + row}" if block is None else block.place(row)
    raise DataError(f"{place}: the score of the row is not a finite number: {raw[row].max()}")


def check_columns(model: Model, source: Any) -> None:
    """Raise DataError if tables lack a column that the model learned from.

    Parameters
    ----------
    model : Model
    source : Source
    """
    learned = _learned_columns(model)
    for part in source.plain.parts if learned and source.rereadable else ():
        names = part.table.names if isinstance(part, TablePart) else None
        missing = [name for name in learned if name not in names] if names else []
        if missing:
            raise DataError(
                f"{part.name}: there is no column {missing[0]!r}, which the model learned from; "
                f"the columns are {listed(names or [], 20)}"
            )


def _learned_columns(model: Model) -> list[str]:
    """Return the columns of tables that features were made of."""
    known = model.parameters
    words = {name: str(known.get(name) or "") for name in ("kinds", "label", "weight", "ignore")}
    labels = words["label"].split(",") if words["label"] else USUAL_LABELS
    others = {words["weight"], *json.loads(words["ignore"] or "[]")}
    return [
        name
        for name in json.loads(words["kinds"] or "{}")
        if name not in others and not any(fnmatchcase(name.lower(), one.lower()) for one in labels)
    ]


def check_known(unseen: UnseenLabels, model: Model) -> None:
    """Raise DataError if the model knows no label of the rows.

    Parameters
    ----------
    unseen : UnseenLabels
    model : Model
    """
    if unseen.rows and unseen.unseen == unseen.rows and not model.multilabel:
        assert model.classes is not None
        raise DataError(
            f"no row has a label that the model knows; the labels are "
            f"{listed([repr(one) for one in unseen.counts])}; the model knows "
            f"{listed([repr(one) for one in model.classes.tolist()])}"
        )
