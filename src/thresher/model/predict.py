"""Raw predictions of a model for many rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data import as_batch, is_sparse
from thresher.errors import DataError
from thresher.losses import LOSSES
from thresher.sparse_checks import refuse_malformed
from thresher.threads import threads_for

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.model.model import Model

_VALUES = {np.dtype(np.float32), np.dtype(np.float64)}
KEPT = "_raw_predictor"  # where a model keeps its predictor
_ENOUGH = 1 << 19  # values of rows that are worth a thread: about half a millisecond


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

    Values of a row are added in the order given; nothing is sorted, merged or copied. Rows are
    shared among threads if there are many of them; the number of threads changes no bit.

    Parameters
    ----------
    model : Model
    """

    def __init__(self, model: Model) -> None:
        self.model, self.outputs = model, len(model.intercept)
        self._scorer: _core.Scorer | None = None
        if not LOSSES[model.loss].scales_rows:  # learners can scale each row
            self._scorer = _core.Scorer(
                np.ascontiguousarray(model.indptr, np.int64),
                np.ascontiguousarray(model.indices, np.uint64),
                np.ascontiguousarray(model.weights, np.float64),
                np.ascontiguousarray(model.intercept, np.float64),
                0 if model.n_features == 2**64 else model.n_features,
            )
        self._made: dict[int | None, list[_core.Learner]] = {}

    def of_matrix(self, X: Any) -> NDArray[np.float64]:
        """Return the predictions for a CSR matrix or an array."""
        scorer = self._scorer
        if scorer is None:
            return self._by_learners(as_batch(X), None)
        if is_sparse(X):
            refuse_malformed(X, rows_checked=True)
            X = X.tocsr()
            values = X.data if X.data.dtype in _VALUES else X.data.astype(np.float64)
            return scorer.sparse(X.indptr, X.indices, values, self._threads(len(values)))
        X = np.asarray(X)
        if X.ndim != 2 or X.dtype.kind not in "fiub":
            raise DataError(f"the rows must be numbers of shape (rows, features); got {X.dtype} "
                            f"of shape {X.shape}")  # fmt: skip
        if X.dtype not in _VALUES:
            X = X.astype(np.float64)
        if not (X.flags.c_contiguous or X.flags.f_contiguous):
            X = np.ascontiguousarray(X)
        return scorer.dense(X, self._threads(X.size))

    def of_block(self, block: Block) -> NDArray[np.float64]:
        """Return the predictions for a block; features that the model does not have are ignored."""
        model = self.model
        try:
            if self._scorer is not None:
                return self._scorer.batch(block.batch, ignores=True)
            dense = model.nnz * 20 > model.n_features and 0 < block.width <= model.n_features
            return self._by_learners(block.batch, model.n_features if dense else 0)
        except _core.DataError as error:
            raise block.located(error) from None

    def _threads(self, values: int) -> int:
        return 1 if values < _ENOUGH else threads_for(values * ((self.outputs + 7) // 8), _ENOUGH)

    def _by_learners(self, batch: _core.Batch, width: int | None) -> NDArray[np.float64]:
        if width not in self._made:
            self._made[width] = learners_of(self.model, width)
        return np.column_stack([learner.predict(batch) for learner in self._made[width]])


def predictor_of(model: Model) -> RawPredictor:
    """Return the predictor with the weights of a model; it is made once."""
    found: RawPredictor | None = vars(model).get(KEPT)
    if found is None:
        found = vars(model)[KEPT] = RawPredictor(model)
    return found
