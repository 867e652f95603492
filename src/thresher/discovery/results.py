"""The results of a `FeatureDiscovery`: its attributes, findings and sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from thresher.data import is_sparse
from thresher.discovery.decision import Decision
from thresher.discovery.findings import Finding
from thresher.discovery.row_checks import Check
from thresher.errors import ParameterError
from thresher.model.model import Model


class DiscoveryWarning(UserWarning):
    """A check of a discovery failed: the stated error may not be the actual one.

    Examples
    --------
    >>> import warnings
    >>> from thresher import FeatureDiscovery
    >>> from thresher.discovery import DiscoveryWarning
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = FeatureDiscovery(random_state=0).fit([[0.0], [1.0]] * 10, [0, 1] * 10)
    >>> any(issubclass(warning.category, DiscoveryWarning) for warning in caught)
    True
    """


class DiscoveryResults:
    """What `FeatureDiscovery` has after fitting."""

    n_features_in_: int
    n_rows_: int
    classes_: NDArray[Any]
    feature_names_in_: NDArray[Any]
    _decision: Decision | None

    def _decided(self) -> Decision:
        check_is_fitted(self)
        assert self._decision is not None
        return self._decision

    def __sklearn_is_fitted__(self) -> bool:
        return self.__dict__.get("_decision") is not None

    def _get_support_mask(self) -> NDArray[np.bool_]:
        if not self._decided().numbered:
            raise ParameterError(
                "features have 64-bit keys, so there is no mask of all features: "
                "get_support(indices=True) and selected_ are the keys of the selected ones",
                owner=type(self).__name__,
            )
        mask = np.zeros(self.n_features_in_, bool)
        mask[self._decided().selected_keys.astype(np.intp)] = True
        return mask

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Return the selected features.

        Parameters
        ----------
        indices : bool, default=False
            Whether to return their numbers; by default a mask of all features.
        """
        return self.selected_.copy() if indices else self._get_support_mask()

    def _transform(self, X: Any) -> Any:
        if is_sparse(X):
            return X[:, self.selected_]
        return super()._transform(X)  # type: ignore[misc]

    @property
    def selected_(self) -> NDArray[Any]:
        """Selected columns, increasing."""
        return self._decided().selected

    @property
    def z_(self) -> NDArray[np.float64]:
        """Evidence of each feature."""
        return self._decided().whole("z", 0.0)

    @property
    def qvalues_(self) -> NDArray[np.float64]:
        """Expected share of false features among those at least as strong."""
        return self._decided().whole("qvalues", 1.0)

    @property
    def pvalues_(self) -> NDArray[np.float64]:
        """p-values against redraws of features that are about as frequent."""
        return self._decided().whole("pvalues", 1.0)

    @property
    def features_(self) -> NDArray[np.uint64]:
        """The features that occurred."""
        return self._decided().keys

    @property
    def expected_false_(self) -> float:
        """Expected number of false features among those selected."""
        return self._decided().expected_false

    @property
    def selected_groups_(self) -> NDArray[Any]:
        """Selected groups of features."""
        return self._decided().selected_groups

    @property
    def checks_(self) -> list[Check]:
        """What was checked, with numbers."""
        return self._decided().checks

    @property
    def model_(self) -> Model:
        """Model of the selected features."""
        model = self._decided().model
        if model is None:
            raise AttributeError("model_ needs refit=True, and rows that can be read again")
        return model

    def findings(self, n: int | None = None) -> list[Finding]:
        """Return the evidence of features, strongest first.

        Parameters
        ----------
        n : int, optional
            Number of features; by default the selected ones.

        Returns
        -------
        list of thresher.discovery.Finding
        """
        return self._decided().findings(n, self.__dict__.get("feature_names_in_"))

    def why(self, feature: str | int) -> str:
        """Return the evidence of a feature in words.

        Parameters
        ----------
        feature : str or int
            Name or number of a feature.
        """
        return self._decided().why(feature, self.__dict__.get("feature_names_in_"))
