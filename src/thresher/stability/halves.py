"""Fits on complementary halves of the rows, and the features that they select."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from thresher.errors import ParameterError
from thresher.model.model import Model
from thresher.model.supports import feature_numbers
from thresher.rules import RULES


class SelectionCounts:
    """Counts how many fits select each feature."""

    def __init__(self) -> None:
        self.features = np.zeros(0, np.int64)
        self.counts = np.zeros(0, np.int64)

    @classmethod
    def of_shares(cls, shares: Any, fits: int) -> SelectionCounts:
        """Return the counts of a sparse row with the share of fits that select each feature."""
        found = cls()
        found.features = shares.indices.astype(np.int64)
        found.counts = np.rint(shares.data * fits).astype(np.int64)
        return found

    def add(self, support: NDArray[np.int64]) -> None:
        """Add 1 to the count of each feature of a support."""
        features = np.union1d(self.features, support)
        counts = np.zeros(len(features), np.int64)
        counts[np.searchsorted(features, self.features)] = self.counts
        counts[np.searchsorted(features, support)] += 1
        self.features, self.counts = features, counts


def count_supports(counts: Sequence[SelectionCounts], supports: Sequence[NDArray[np.int64]]) -> int:
    """Add the supports of a half, one per value; return the number of features in any of them."""
    for each, support in zip(counts, supports, strict=True):
        each.add(support)
    return len(np.unique(np.concatenate(supports)))


def fit_pair(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    strata: NDArray[np.int64],
    settings: Sequence[dict[str, Any]],
    support_of: Callable[[Any], Any] | None,
    seed: int,
) -> list[list[NDArray[np.int64]]]:
    """Fit the estimator on two complementary halves; return supports by half and setting."""
    rng = np.random.default_rng(seed)
    halves = []
    for rows in _halves(strata, rng):
        half_X, half_y, half_seed = X[rows], y[rows], int(rng.integers(2**31 - 1))
        supports = []
        for setting in settings:
            fitted = seeded(without_refit(clone(estimator).set_params(**setting)), half_seed)
            fitted.fit(half_X, half_y)
            supports.append(_support(fitted, X.shape[1], support_of))
        halves.append(supports)
    return halves


def _halves(
    strata: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split rows at random into two halves of equal size.

    The numbers of rows of a stratum differ by at most one. Rows keep their order. If the number of
    rows is odd, one row is left out.
    """
    turns = rng.permutation(int(strata.max()) + 1)  # the last stratum may lose a row
    order = np.lexsort((rng.permutation(len(strata)), turns[strata]))
    order = order[: len(order) // 2 * 2]
    first, second = np.sort(order[::2]), np.sort(order[1::2])
    return (first, second) if rng.integers(2) else (second, first)


def columns_of(X: Any, selected: NDArray[np.int64]) -> Any:
    """Return some columns of an array or CSR matrix, without a copy of the others."""
    if not sp.issparse(X):
        return X[:, selected]
    places = np.minimum(np.searchsorted(selected, X.indices), len(selected) - 1)
    kept = selected[places] == X.indices
    starts = np.concatenate([[0], np.cumsum(kept)])[X.indptr]
    parts = (X.data[kept], places[kept].astype(X.indices.dtype), starts.astype(X.indptr.dtype))
    return type(X)(parts, shape=(X.shape[0], len(selected)))


def without_refit(estimator: Any) -> Any:
    """Make an estimator keep the weights that target_nnz chose: a support needs no refit."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    spec = RULES.get(str(getattr(last, "rule", "")))
    if spec is not None and spec.refit_rule:
        last.set_params(refit=False)
    return estimator


def seeded(estimator: Any, seed: int) -> Any:
    """Set each random_state of the estimator that is None to a seed."""
    random = np.random.default_rng(seed)
    for name, value in sorted(estimator.get_params(deep=True).items(), key=lambda item: item[0]):
        if value is None and (name == "random_state" or name.endswith("__random_state")):
            estimator.set_params(**{name: int(random.integers(2**31 - 1))})
    return estimator


def _support(
    fitted: Any, n_features: int, support_of: Callable[[Any], Any] | None
) -> NDArray[np.int64]:
    """Return the features a fitted estimator selects."""
    if support_of is not None:
        return feature_numbers(
            support_of(fitted), n_features, "StabilitySelection: support_of(estimator)"
        )
    if isinstance(fitted, Pipeline):
        fitted = fitted[-1]
    model = getattr(fitted, "model_", None)
    if isinstance(model, Model):
        width, support = model.n_features, np.unique(model.indices.astype(np.int64))
    else:
        coef = getattr(fitted, "coef_", None)
        if coef is None:
            raise ParameterError(
                f"StabilitySelection: estimator must have coef_ after fit; "
                f"{type(fitted).__name__} has none; give support_of"
            )
        coef = coef.tocoo() if sp.issparse(coef) else np.atleast_2d(coef)
        width = coef.shape[-1]
        support = np.unique(coef.nonzero()[-1]).astype(np.int64)
    if width != n_features:
        raise ParameterError(
            f"StabilitySelection: {type(fitted).__name__} has weights for {width} features, but X "
            f"has {n_features} columns; give support_of"
        )
    return support
