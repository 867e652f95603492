"""Weights of a fitted estimator as scikit-learn has them: `coef_` and `intercept_`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from thresher.model.model import Model


class Coefficients:
    """Mixed into estimators that have a `model_`: its weights as an array or a CSR matrix."""

    _answers: dict[str, Any]  # model and weights made so far, forgotten when learning goes on
    _sparse_coef: bool  # coef_ is asked for as CSR

    if TYPE_CHECKING:

        @property
        def model_(self) -> Model:
            """The model as it stands now."""

    @property
    def coef_(self) -> Any:
        """Weights of shape (outputs, features): an array; CSR after sparsify() or when hashed."""
        if "coef" not in self._answers:
            self._answers["coef"] = self._coef_of(self.model_)
        return self._answers["coef"]

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
        """Make coef_ a CSR matrix from now on. Learning goes on as before."""
        check_is_fitted(self, "_fitted")
        self._set_sparse(True)
        return self

    def densify(self) -> Self:
        """Make coef_ an array from now on. Learning goes on as before."""
        check_is_fitted(self, "_fitted")
        self._set_sparse(False)
        return self

    def _set_sparse(self, sparse: bool) -> None:
        self._sparse_coef = sparse
        self._answers.pop("coef", None)
