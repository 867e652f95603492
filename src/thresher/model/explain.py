"""Explains predictions: `Model.explain` and `Model.compare_to`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.data import is_source, is_sparse
from thresher.data.frames import is_frame
from thresher.errors import DataError
from thresher.losses import LOSSES
from thresher.model.contributions import Entries, contributions, entries_of_block
from thresher.model.explanation import Contribution, Explanation
from thresher.model.frames import rows_of_frame
from thresher.model.links import labels, scores, values
from thresher.model.model_changes import ModelChanges
from thresher.model.one_row import rows_for
from thresher.sparse_checks import refuse_malformed

if TYPE_CHECKING:
    from thresher.model.model import Model


class Explanations:
    """Mixin of `Model`: explanations of predictions, and what changed since another model."""

    def explain(
        self: Any, row: Any, *, label: Any = None, names: Sequence[str] | None = None
    ) -> Explanation:
        """Return what each feature of a row adds to the score of the row.

        Parameters
        ----------
        row : CSR matrix, array, dict, row of a DataFrame, or source
            One row, in any form that `predict` takes. A row of a pandas DataFrame, such as
            ``frame.iloc[0]``, is allowed too.
        label : object, optional
            The class whose score is explained. Default: with two classes the second, whose score
            `decision_function` is; with more, or with any number of labels per row, the one with
            the highest score.
        names : sequence of str, optional
            Names of all features, for example ``vectorizer.get_feature_names_out()``.

        Returns
        -------
        Explanation
            The contributions, largest first, the intercept, and the score that they add up to.

        Examples
        --------
        >>> from thresher import FTRLClassifier
        >>> rows = [{"age": 3.0, "colour": "red"}, {"age": 1.0, "colour": "blue"}] * 50
        >>> y = ["yes", "no"] * 50
        >>> model = FTRLClassifier(l1=0.0).partial_fit(rows, y, classes=["no", "yes"]).model_
        >>> why = model.explain({"age": 2.0, "colour": "red", "size": 4.0})
        >>> why.prediction, [one.name for one in why.contributions]
        ('yes', ['colour^red', 'age'])
        >>> why.without_weight
        1
        >>> total = why.intercept + sum(one.contribution for one in why.contributions)
        >>> abs(total - why.score) < 1e-12
        True
        """
        named = self if names is None else self.named(names)
        return _explained(self, named, row, label)

    def compare_to(self: Any, other: Model, *, names: Sequence[str] | None = None) -> ModelChanges:
        """Return the features that came, went, changed sign or weight since another model.

        Parameters
        ----------
        other : Model
            The model before: it must be for the same task and, if it has two classes, for the same
            classes.
        names : sequence of str, optional
            Names of all features of both models.

        Returns
        -------
        ModelChanges
            Features are found by their names if both models have names, else by their numbers.

        Examples
        --------
        >>> from thresher import FTRLRegressor
        >>> rows = [{"age": 1.0}, {"size": 1.0}] * 50
        >>> before = FTRLRegressor(l1=0.0).partial_fit(rows, [1.0, 0.0] * 50).model_
        >>> rows = [{"age": 1.0}, {"price": 1.0}] * 50
        >>> after = FTRLRegressor(l1=0.0).partial_fit(rows, [-1.0, 3.0] * 50).model_
        >>> changes = after.compare_to(before)
        >>> [change.name for change in changes.came], [change.name for change in changes.turned]
        (['price'], ['age'])
        """
        if names is None:
            return ModelChanges.between(other, self)
        return ModelChanges.between(other.named(names), self.named(names))


def _explained(model: Model, named: Model, row: Any, label: Any) -> Explanation:
    entries, raw = _one_row(model, row)
    output, shown, sign = _output(model, raw, label)
    found = contributions(model, entries, np.array([output]))
    decision = scores(raw, model.loss, model.classes is not None).reshape(-1)
    shift = LOSSES[model.loss].decision_at if model.classes is not None else 0.0
    columns = (found.keys, found.weights * sign, found.values, found.amounts * sign)
    parts = tuple(
        Contribution(named.name(key), weight, value, amount)
        for key, weight, value, amount in zip(*map(np.ndarray.tolist, columns), strict=True)
    )
    present = entries.keys[entries.values != 0]
    begin, end = model.indptr[output], model.indptr[output + 1]
    return Explanation(
        _prediction(model, decision),
        shown,
        float(sign * decision[output]),
        float(sign * (model.intercept[output] - shift)),
        parts,
        int((~np.isin(present, model.indices[begin:end])).sum()),
    )


def _output(model: Model, raw: NDArray[np.float64], label: Any) -> tuple[int, Any, float]:
    """Return the output to explain, its label, and the sign of the scores."""
    if model.classes is None:
        if label is not None:
            raise ValueError(f"label={label!r}: the model has no classes, it predicts numbers")
        return 0, None, 1.0
    known = model.classes.tolist()
    if label is not None and label not in known:
        raise ValueError(f"label must be one of {known}; got {label!r}")
    if len(model.intercept) == 1 and not model.multilabel:
        first = label is not None and len(known) > 1 and label == known[0]
        return 0, known[0] if first else known[-1], -1.0 if first else 1.0
    output = int(raw[0].argmax()) if label is None else known.index(label)
    return output, known[output], 1.0


def _prediction(model: Model, decision: NDArray[np.float64]) -> Any:
    """Return what `predict_one` returns for these decision values of a row."""
    if model.classes is None:
        return float(values(decision, model.loss)[0])
    if model.multilabel:
        return [
            label
            for label, score in zip(model.classes.tolist(), decision, strict=True)
            if score >= 0
        ]
    row = decision if len(decision) == 1 else decision[None, :]
    return labels(row, model.classes).tolist()[0]


# ---- rows ----------------------------------------------------------------------------------------


def _one_row(model: Model, row: Any) -> tuple[Entries, NDArray[np.float64]]:
    """Return the values of a row, and its raw predictions of shape (1, outputs)."""
    rows = _table_of(row)
    if isinstance(rows, Mapping):
        rows = rows_for(model, [rows])
    elif not is_source(rows) and is_frame(rows):
        rows = rows_of_frame(model, rows)
    if not is_source(rows):
        refuse_malformed(rows)
        X = rows.tocsr() if is_sparse(rows) else np.atleast_2d(np.asarray(rows))
        _check_count(X.shape[0] if X.ndim == 2 else X.shape)
        model.decision_function(X)  # checks the width and the values
        return _entries_of_matrix(X), model.raw(X)
    blocks = [(block, raw) for block, raw in model.raw_blocks(rows) if block.rows]
    _check_count(sum(block.rows for block, _ in blocks))
    return entries_of_block(blocks[0][0]), blocks[0][1]


def _table_of(row: Any) -> Any:
    """Return a row of a pandas DataFrame as a DataFrame; any other row as it is."""
    if type(row).__module__.partition(".")[0] == "pandas" and getattr(row, "ndim", 2) == 1:
        return row.to_frame().T.infer_objects()
    if isinstance(row, list | tuple) and len(row) == 1 and isinstance(row[0], Mapping):
        return row[0]
    return row


def _check_count(found: Any) -> None:
    if found != 1:
        raise DataError(f"explain takes one row; got {found}")


def _entries_of_matrix(X: Any) -> Entries:
    if is_sparse(X):
        found, cells = X.indices, np.asarray(X.data, np.float64)
    else:
        cells = np.asarray(X[0], np.float64)
        found = np.flatnonzero(cells)
        cells = cells[found]
    return Entries(np.array([0, len(found)]), np.asarray(found).astype(np.uint64), cells)
