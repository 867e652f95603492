"""Fits on complementary halves of the rows, and the features they select."""

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


class SelectionCounts:
    """Counts of the features ever selected."""

    def __init__(self) -> None:
        self.features = np.zeros(0, np.int64)
        self.counts = np.zeros(0, np.int64)

    def add(self, support: NDArray[np.int64]) -> None:
        """Count one for each feature of a support."""
        features = np.union1d(self.features, support)
        counts = np.zeros(len(features), np.int64)
        counts[np.searchsorted(features, self.features)] = self.counts
        counts[np.searchsorted(features, support)] += 1
        self.features, self.counts = features, counts


def count_supports(
    tallies: Sequence[SelectionCounts], supports: Sequence[NDArray[np.int64]]
) -> int:
    """Count what a half selects, by value; return how many features it selects by any."""
    for tally, support in zip(tallies, supports, strict=True):
        tally.add(support)
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
    """Fit the estimator on two complementary halves; return the supports by half and setting."""
    rng = np.random.default_rng(seed)
    halves = []
    for rows in _halves(strata, rng):
        half_X, half_y, half_seed = X[rows], y[rows], int(rng.integers(2**31 - 1))
        supports = []
        for setting in settings:
            fitted = seeded(clone(estimator).set_params(**setting), half_seed)
            fitted.fit(half_X, half_y)
            supports.append(_support(fitted, X.shape[1], support_of))
        halves.append(supports)
    return halves


def _halves(
    strata: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split rows at random into two halves of equal size, those of each stratum to within one.

    Rows keep their order. Of an odd number of rows, one is left out.
    """
    turns = rng.permutation(int(strata.max()) + 1)  # the stratum that comes last may lose a row
    order = np.lexsort((rng.permutation(len(strata)), turns[strata]))
    order = order[: len(order) // 2 * 2]
    first, second = np.sort(order[::2]), np.sort(order[1::2])
    return (first, second) if rng.integers(2) else (second, first)


def columns_of(X: Any, selected: NDArray[np.int64]) -> Any:
    """Return some columns of an array or CSR matrix, without looking at the others."""
    if not sp.issparse(X):
        return X[:, selected]
    places = np.minimum(np.searchsorted(selected, X.indices), len(selected) - 1)
    kept = selected[places] == X.indices
    starts = np.concatenate([[0], np.cumsum(kept)])[X.indptr]
    parts = (X.data[kept], places[kept].astype(X.indices.dtype), starts.astype(X.indptr.dtype))
    return type(X)(parts, shape=(X.shape[0], len(selected)))


def seeded(estimator: Any, seed: int) -> Any:
    """Give the estimator a seed wherever its random_state is None."""
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
                f"StabilitySelection: estimator must have coef_ once it is fitted, and "
                f"{type(fitted).__name__} has none; support_of can tell its support"
            )
        coef = coef.tocoo() if sp.issparse(coef) else np.atleast_2d(coef)
        width = coef.shape[-1]
        support = np.unique(coef.nonzero()[-1]).astype(np.int64)
    if width != n_features:
        raise ParameterError(
            f"StabilitySelection: {type(fitted).__name__} has weights for {width} features, and X "
            f"has {n_features} columns; support_of can tell which columns they mean"
        )
    return support
