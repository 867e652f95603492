"""The weights of a fitted estimator in scikit-learn's form: `coef_` and `intercept_`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from thresher.model.model import Model


class Coefficients:
    """Mixin for estimators with a `model_`: its weights as an array or a CSR matrix."""

    _cached: dict[str, Any]  # model and coef_, if computed; cleared by further training
    _sparse_coef: bool  # whether coef_ is a CSR matrix

    if TYPE_CHECKING:

        @property
        def model_(self) -> Model:
            """The current model."""

    @property
    def coef_(self) -> Any:
        """Weights of shape (outputs, features): an array; CSR after sparsify() or when hashed."""
        if "coef" not in self._cached:
            self._cached["coef"] = self._coef_of(self.model_)
        return self._cached["coef"]

    def _coef_of(self, model: Model) -> Any:
        shape = (len(model.intercept), model.n_features)
        if self._sparse_coef:
            parts = (model.weights.copy(), model.indices.astype(np.int64), model.indptr)
            return sp.csr_matrix(parts, shape=shape)
        coef = np.zeros(shape)
        rows = np.repeat(np.arange(shape[0]), np.diff(model.indptr))
        coef[rows, model.indices.astype(np.intp)] = model.weights
        coef.setflags(write=False)
        return coef

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Intercepts of shape (outputs,)."""
        return self.model_.intercept

    def sparsify(self) -> Self:
        """Make coef_ a CSR matrix from now on. It does not affect training."""
        check_is_fitted(self, "_fitted")
        self._set_sparse(True)
        return self

    def densify(self) -> Self:
        """Make coef_ an array from now on. It does not affect training."""
        check_is_fitted(self, "_fitted")
        self._set_sparse(False)
        return self

    def _set_sparse(self, sparse: bool) -> None:
        self._sparse_coef = sparse
        self._cached.pop("coef", None)
