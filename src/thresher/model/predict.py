"""Raw predictions of a model: by learners, or, for many outputs, by a matrix product."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data import as_batch, is_sparse
from thresher.losses import LOSSES

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.model.model import Model

MANY = 64  # with at least this number of outputs, one sparse matrix product is used


def learners_of(model: Model, width: int | None = None) -> list[_core.Learner]:
    """Make a learner with the weights of each output; width 0 accepts any feature."""
    numbers = {
        "epsilon": 0.0, "quantile": 0.5, "eta0": 1.0, "power": 0.0, "decay": 1.0,
        "gravity": 0.0, "period": 1.0, "ceiling": math.inf, "l2": 0.0, "fit_intercept": 1.0,
        "average": 0.0, "relative": 0.0, "fading": 0.0,
    }  # fmt: skip
    words = {"loss": model.loss, "schedule": "constant", "shrink": "truncate"}
    store = "dense" if model.nnz * 20 > model.n_features and width != 0 else "hashed"
    width = model.n_features if width is None else width
    width = 0 if width == 2**64 else width
    learners = []
    for k, b in enumerate(model.intercept):
        entries = slice(model.indptr[k], model.indptr[k + 1])
        learner = _core.make_learner("truncated_gradient", store, "float64", width, numbers, words)
        learner.start_from(model.indices[entries], model.weights[entries], float(b))
        learners.append(learner)
    return learners


class RawPredictor:
    """Computes raw predictions of rows, one column for each output.

    Parameters
    ----------
    model : Model
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        # Learners can scale each row; a matrix product cannot.
        self.many = len(model.intercept) >= MANY and not LOSSES[model.loss].scales_rows
        if self.many:
            from scipy.sparse import csc_matrix

            self._features, places = np.unique(model.indices, return_inverse=True)
            shape = (len(self._features), len(model.intercept))
            self._table = csc_matrix((model.weights, places, model.indptr), shape=shape).tocsr()
        self._made: dict[int | None, list[_core.Learner]] = {}

    def of_matrix(self, X: Any) -> NDArray[np.float64]:
        """Return the predictions for a CSR matrix or an array."""
        if not self.many:
            return self._by_learners(as_batch(X), None)
        if is_sparse(X):
            X = X.tocsr()
            return self._by_product(X.indptr, X.indices.astype(np.uint64), X.data)
        X = np.asarray(X)
        rows, columns = np.nonzero(X)
        starts = np.searchsorted(rows, np.arange(len(X) + 1))
        return self._by_product(starts, columns.astype(np.uint64), X[rows, columns])

    def of_block(self, block: Block) -> NDArray[np.float64]:
        """Return the predictions for a block; features that the model does not have are ignored."""
        model, native = self.model, block.native
        try:
            if self.many:
                keys = np.asarray(native.keys).astype(np.int64).view(np.uint64)
                return self._by_product(np.asarray(native.starts), keys, np.asarray(native.values))
            dense = model.nnz * 20 > model.n_features and 0 < block.width <= model.n_features
            return self._by_learners(block.batch, model.n_features if dense else 0)
        except _core.DataError as error:
            raise block.located(error) from None

    def _by_learners(self, batch: _core.Batch, width: int | None) -> NDArray[np.float64]:
        if width not in self._made:
            self._made[width] = learners_of(self.model, width)
        return np.column_stack([learner.predict(batch) for learner in self._made[width]])

    def _by_product(
        self, starts: NDArray[Any], keys: NDArray[np.uint64], values: NDArray[Any]
    ) -> NDArray[np.float64]:
        from scipy.sparse import csr_matrix

        rows, values = len(starts) - 1, np.asarray(values, np.float64)
        with np.errstate(over="ignore"):
            finite = np.isfinite(values * values)
        for bad in np.flatnonzero(~finite)[:1]:
            row = int(np.searchsorted(starts, bad, side="right")) - 1
            what = "NaN" if np.isnan(values[bad]) else f"{values[bad]:g}"
            raise _core.DataError(
                f"row {row}: the value of feature {keys[bad]} is {what}; values must be finite, "
                f"with finite squares"
            )
        places = np.searchsorted(self._features, keys)
        known = np.append(self._features, np.uint64(0))[places] == keys
        known &= places < len(self._features)
        at = np.concatenate([[0], np.cumsum(known)])[starts]
        table = csr_matrix((values[known], places[known], at), shape=(rows, len(self._features)))
        with np.errstate(over="ignore", invalid="ignore"):
            raw = np.asarray((table @ self._table).toarray() + self.model.intercept)
        for row in np.flatnonzero(~np.isfinite(raw).all(axis=1))[:1]:
            raise _core.DataError(f"row {row}: the prediction overflows")
        return raw
