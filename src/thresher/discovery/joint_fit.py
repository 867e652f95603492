"""One fit of all selected features together: their weights, and which of them are stand-ins.

A feature that goes along with a feature that has an effect may be selected in its place, or beside
it. In a fit of all selected features, its weight is then not far from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from threadpoolctl import threadpool_limits

from thresher.data.arrays import is_sparse
from thresher.data.matrix_source import MatrixSource

if TYPE_CHECKING:
    from thresher.data.labels import Labels
    from thresher.data.source import Source

MOST = 2000  # selected features that are fitted together
_RIDGE = 1.0  # of columns with mean square 1: so that the fit exists; no more than one row counts
_STEPS, _CLOSE = 30, 1e-6  # Newton steps at most; a step that ends them


@dataclass(frozen=True)
class JointFit:
    """Weights of the selected features in one fit.

    Attributes
    ----------
    weights : array of shape (outputs, features)
    intercepts : array of shape (outputs,)
    wald : array of shape (outputs, features)
        Each weight in units of its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.discovery.joint_fit import JointFit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = (X[:, 0] + rng.logistic(size=2000) > 0).astype(float)
    >>> fit = JointFit.of(X, y[None], None, classifies=True)
    >>> (np.abs(fit.wald) >= 4).tolist()
    [[True, False, False]]
    """

    weights: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    wald: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        X: Any,
        y: NDArray[np.float64],
        row_weights: NDArray[np.float64] | None,
        *,
        classifies: bool,
    ) -> JointFit:
        """Fit by Newton's method, with almost no penalty.

        Parameters
        ----------
        X : CSR matrix or array of shape (rows, features)
            The selected columns.
        y : array of shape (outputs, rows)
            0 and 1 for classes.
        row_weights : array of shape (rows,), optional
        classifies : bool
        """
        X = sp.csr_matrix(X, dtype=np.float64)
        rows = X.shape[0]
        h = np.ones(rows) if row_weights is None else row_weights
        squares = X.multiply(X).T @ h / h.sum()
        scale = np.where(squares > 0, np.sqrt(np.maximum(squares, 1e-300)), 1.0)
        D = sp.csr_matrix(sp.hstack([X @ sp.diags(1 / scale), np.ones((rows, 1))]))
        with threadpool_limits(1):  # so that the bits do not depend on the number of threads
            found = [_newton(D, target, h, classifies) for target in y]
        whole = np.stack([c for c, _ in found])
        errors = np.stack([e for _, e in found])
        return cls(
            whole[:, :-1] / scale,
            whole[:, -1].copy(),
            whole[:, :-1] / np.maximum(errors[:, :-1], 1e-300),
        )

    def stands(self, least: float = 2.0) -> NDArray[np.bool_]:
        """Return for each feature whether a weight is `least` standard errors from 0."""
        return np.asarray((np.abs(self.wald) >= least).any(axis=0))


def _newton(
    D: Any, y: NDArray[np.float64], h: NDArray[np.float64], classifies: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return coefficients and their standard errors."""
    penalty = np.r_[np.full(D.shape[1] - 1, _RIDGE), 1e-9]
    c = np.zeros(D.shape[1])
    transposed = D.T.tocsr()
    factor: Any = None
    for _ in range(_STEPS if classifies else 1):
        f = D @ c
        p = 1 / (1 + np.exp(-np.clip(f, -30, 30))) if classifies else f
        v = h * (p * (1 - p) if classifies else 1.0)
        curvature = (transposed @ sp.diags(v) @ D).toarray() + np.diag(penalty)
        factor = cho_factor(curvature, lower=True)
        step = cho_solve(factor, transposed @ (h * (y - p)) - penalty * c)
        c = c + step
        if np.abs(step).max(initial=0.0) < _CLOSE:
            break
    variance = np.diag(cho_solve(factor, np.eye(len(c))))
    sd = 1.0
    if not classifies:
        freedom = max(1.0, h.sum() - len(c))
        sd = float(np.sqrt((h * (y - D @ c) ** 2).sum() / freedom))
    return c, sd * np.sqrt(np.maximum(variance, 0.0))


def gathered(
    source: Source | MatrixSource, keys: NDArray[np.uint64], labels: Labels
) -> tuple[Any, NDArray[np.float64], NDArray[np.float64] | None]:
    """Read a source; return the columns of some features, the targets and the weights of rows.

    Parameters
    ----------
    source : Source or MatrixSource
        Must be readable again.
    keys : array of uint64
        Features, increasing.
    labels : Labels
    """
    columns, targets, weights = [], [], []
    for block in source.blocks():
        of_block = labels.targets(block)
        targets.append(np.stack([of_block[output] for output in range(labels.outputs)]))
        weights.append(np.ones(block.rows) if block.weights is None else block.weights)
        columns.append(_columns(block, keys))
    h = np.concatenate(weights)
    X = sp.vstack(columns, format="csr") if len(columns) > 1 else columns[0]
    return X, np.concatenate(targets, axis=1), None if (h == 1.0).all() else h


def _columns(block: Any, keys: NDArray[np.uint64]) -> Any:
    if not hasattr(block, "native"):
        X = block.X[:, keys.astype(np.intp)]
        return sp.csr_matrix(X) if not is_sparse(X) else X
    if not len(keys):
        return sp.csr_matrix((block.rows, 0))
    native = block.native
    own = np.asarray(native.keys).astype(np.int64).view(np.uint64)
    at = np.minimum(np.searchsorted(keys, own), len(keys) - 1)
    known = keys[at] == own
    rows = np.repeat(np.arange(block.rows), np.diff(np.asarray(native.starts)))
    values = np.asarray(native.values, np.float64)
    return sp.csr_matrix((values[known], (rows[known], at[known])), (block.rows, len(keys)))
