"""The result of a selection: probabilities, selected features and bounds, from counts of fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from thresher.errors import ParameterError
from thresher.model.supports import is_whole
from thresher.stability.bounds import (
    NOTHING,
    UNIMODAL,
    Bound,
    check_pairs,
    check_threshold,
    false_selections_bound,
    fits_needed,
)
from thresher.stability.halves import SelectionCounts, columns_of
from thresher.stability.no_signal import (
    WithoutSignal,
    check_permutations,
    n_selected,
    warn_of_features,
)


class FeatureProbability(NamedTuple):
    """A feature and the share of fits that select it."""

    name: str | int
    probability: float


class PairSelector(SelectorMixin):
    """Base of the selectors by complementary pairs."""

    # Parameters.
    estimator: Any
    param_name: str | None
    param_values: Sequence[Any] | None
    pairs: int
    threshold: float
    permutations: int = 5  # of selectors that were pickled before there were permutations

    # Set by fit.
    selection_probabilities_: Any
    selected_: NDArray[np.int64]
    n_selected_mean_: float
    n_candidates_: int
    false_selections_bound_: Bound
    unimodal_bound_: Bound
    selected_without_signal_: WithoutSignal
    n_pairs_: int
    n_features_in_: int

    def _settings(self) -> list[dict[str, Any]]:
        """Check the shared parameters; return the parameters of the estimator for each value."""
        owner = type(self).__name__
        check_pairs(self.pairs, f"{owner}: pairs")
        check_threshold(self.threshold, f"{owner}: threshold")
        check_permutations(self.permutations, owner)
        if (self.param_name is None) != (self.param_values is None):
            raise ParameterError(f"{owner}: param_name and param_values must be given together")
        if self.param_name is None or self.param_values is None:
            return [{}]
        names = sorted(self.estimator.get_params(deep=True))
        if self.param_name not in names:
            raise ParameterError(
                f"{owner}: param_name must be a parameter of the estimator, one of "
                f"{', '.join(names)}; got {self.param_name!r}"
            )
        settings = [{self.param_name: value} for value in self.param_values]
        if not settings:
            raise ParameterError(f"{owner}: param_values must hold at least one value")
        return settings

    def _select(self, by_value: Sequence[SelectionCounts], seen: NDArray[np.int64]) -> None:
        """Set probabilities, selected features and bounds, from the counts for each value."""
        fits = 2 * self.n_pairs_
        starts = np.cumsum([0] + [len(each.features) for each in by_value])
        features = np.concatenate([each.features for each in by_value])
        counts = np.concatenate([each.counts for each in by_value])
        self.selection_probabilities_ = sp.csr_matrix(
            (counts / fits, features, starts), shape=(len(by_value), self.n_features_in_)
        )
        needed = fits_needed(self.threshold, self.n_pairs_)
        self.selected_ = np.unique(features[counts >= needed])
        self.n_candidates_ = len(np.union1d(seen, features))
        if not self.n_candidates_:
            reason = "all values of X are zero: there is nothing to select"
            self.false_selections_bound_ = Bound(None, NOTHING, reason)
            self.unimodal_bound_ = Bound(None, UNIMODAL, reason)
            return
        self.false_selections_bound_, self.unimodal_bound_ = (
            false_selections_bound(
                self.n_selected_mean_,
                self.n_candidates_,
                threshold=self.threshold,
                pairs=self.n_pairs_,
                unimodal=unimodal,
            )
            for unimodal in (False, True)
        )

    def _compare(self, found: Sequence[tuple[Sequence[SelectionCounts], Sequence[float]]]) -> None:
        """Set the numbers selected by labels without signal, and warn if the bound is too small.

        Parameters
        ----------
        found : sequence of (counts, sizes)
            For each permutation: the selections of each value, and the number of features that
            each half selects.
        """
        if not found or not self.n_candidates_:
            self.selected_without_signal_ = WithoutSignal()
            return
        mean = float(np.mean([size for _, sizes in found for size in sizes]))
        self.selected_without_signal_ = WithoutSignal(
            tuple(n_selected(counts, self.threshold, self.n_pairs_) for counts, _ in found),
            mean,
            false_selections_bound(
                mean, self.n_candidates_, threshold=self.threshold, pairs=self.n_pairs_
            ),
        )
        warn_of_features(
            type(self).__name__, self.selected_without_signal_, self.false_selections_bound_
        )

    # ---- output --------------------------------------------------------------------------------

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Return the selected features.

        Parameters
        ----------
        indices : bool, default=False
            Whether to return their numbers; by default a mask of all features.
        """
        check_is_fitted(self, "selected_")
        return self.selected_.copy() if indices else self._get_support_mask()

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "selected_")
        mask = np.zeros(self.n_features_in_, bool)
        mask[self.selected_] = True
        return mask

    def _transform(self, X: Any) -> Any:
        if sp.issparse(X) and len(self.selected_):
            return columns_of(X, self.selected_)
        return super()._transform(X)

    def top(self, n: int = 20) -> list[FeatureProbability]:
        """Return the n features that are selected most often, by any value of the parameter.

        Parameters
        ----------
        n : int, default=20

        Returns
        -------
        list of FeatureProbability
            In decreasing order of probability; equal ones by feature number.
        """
        check_is_fitted(self, "selected_")
        if not is_whole(n) or n < 0:
            raise ParameterError(f"n must be a whole number >= 0; got {n!r}")
        best = self.selection_probabilities_.tocoo()
        order = np.lexsort((best.col, -best.data))
        _, first = np.unique(best.col[order], return_index=True)
        return [
            FeatureProbability(self._named(int(best.col[i])), float(best.data[i]))
            for i in order[np.sort(first)[:n]]
        ]

    def summary(self) -> str:
        """Return how many features are selected, the bound, and its check, as text.

        Returns
        -------
        str
            Three lines.
        """
        check_is_fitted(self, "selected_")
        return (
            f"{len(self.selected_):,} of {self.n_candidates_:,} features selected\n"
            f"bound: {self.false_selections_bound_}\n"
            f"{getattr(self, 'selected_without_signal_', WithoutSignal())}"
        )

    def _named(self, feature: int) -> str | int:
        """Return the name of a feature, or its number if it has no name."""
        names = getattr(self, "feature_names_in_", None)
        return feature if names is None else str(names[feature])
