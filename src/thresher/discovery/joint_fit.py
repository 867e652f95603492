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
from thresher.discovery.elimination import Estimate, weakest

if TYPE_CHECKING:
    from thresher.data.labels import Labels
    from thresher.data.source import Source

MOST = 2000  # selected features that are fitted together
_RIDGE = 1.0  # of columns with mean square 1: so that the fit exists; no more than one row counts
_DROPS = 10  # features dropped between two fits; or a quarter of them, if that is more
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
            Importances: only their ratios matter.
        classifies : bool
        """
        with threadpool_limits(1):  # so that the bits do not depend on the number of threads
            return cls._of(_Design.of(X, row_weights), y, classifies)[0]

    @classmethod
    def pruned(
        cls,
        X: Any,
        y: NDArray[np.float64],
        row_weights: NDArray[np.float64] | None,
        *,
        classifies: bool,
        least: float = 2.0,
    ) -> tuple[JointFit, NDArray[np.bool_]]:
        """Drop stand-ins, one feature after the other; return the last fit, and what it keeps.

        The feature whose weight is the fewest standard errors from 0 is dropped first. Then the
        weights and errors of the others change: of two near-copies, one remains.

        Parameters
        ----------
        X : CSR matrix or array of shape (rows, features)
        y : array of shape (outputs, rows)
        row_weights : array of shape (rows,), optional
        classifies : bool
        least : float
            Standard errors between 0 and a weight that remains.
        """
        with threadpool_limits(1):
            design = _Design.of(X, row_weights)
            kept = np.arange(design.D.shape[1] - 1)
            while True:
                fit, outputs = cls._of(design.of_columns(kept), y, classifies)
                weak = np.flatnonzero((np.abs(fit.wald) < least).all(axis=0))
                if not len(weak):
                    break
                most = max(_DROPS, len(kept) // 4)
                blocks = [each.block(weak) for each in outputs]
                kept = np.delete(kept, weak[weakest(blocks, least, most)])
        stays = np.zeros(design.D.shape[1] - 1, bool)
        stays[kept] = True
        return fit, stays

    @classmethod
    def _of(
        cls, design: _Design, y: NDArray[np.float64], classifies: bool
    ) -> tuple[JointFit, list[Estimate]]:
        found = [_newton(design.D, target, design.h, classifies) for target in y]
        whole = np.stack([each.c for each in found])
        wald = np.stack([each.wald for each in found])
        scaled = whole[:, :-1] / design.scale
        return cls(scaled, whole[:, -1].copy(), wald[:, :-1]), found


@dataclass(frozen=True)
class _Design:
    """Columns with mean square 1 and a column of ones, the scale of each, and weights of rows."""

    D: Any
    scale: NDArray[np.float64]
    h: NDArray[np.float64]

    @classmethod
    def of(cls, X: Any, row_weights: NDArray[np.float64] | None) -> _Design:
        X = sp.csr_matrix(X, dtype=np.float64)
        rows = X.shape[0]
        h = np.ones(rows)
        if row_weights is not None and (row_weights > 0).any():
            h = row_weights / row_weights[row_weights > 0].mean()
        squares = X.multiply(X).T @ h / h.sum()
        scale = np.where(squares > 0, np.sqrt(np.maximum(squares, 1e-300)), 1.0)
        D = sp.csr_matrix(sp.hstack([X @ sp.diags(1 / scale), np.ones((rows, 1))]))
        return cls(D, scale, h)

    def of_columns(self, kept: NDArray[np.intp]) -> _Design:
        """Return some of the columns."""
        if len(kept) == len(self.scale):
            return self
        return _Design(self.D[:, np.r_[kept, len(self.scale)]], self.scale[kept], self.h)


def _newton(D: Any, y: NDArray[np.float64], h: NDArray[np.float64], classifies: bool) -> Estimate:
    """Return coefficients, and their covariance."""
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
    inverse = cho_solve(factor, np.eye(len(c)))
    covariance = inverse
    if not (h == 1.0).all():  # a gradient of weight h has the variance h^2 v
        spread = (transposed @ sp.diags(h * v) @ D).toarray() + np.diag(penalty)
        covariance = inverse @ spread @ inverse
    if not classifies:
        freedom = max(1.0, h.sum() - len(c))
        covariance = covariance * ((h * (y - D @ c) ** 2).sum() / freedom)
    return Estimate(c, inverse, covariance)


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
