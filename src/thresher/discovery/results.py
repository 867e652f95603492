"""The results of a `FeatureDiscovery`: its attributes, findings and sentences."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from thresher.atomic import write_whole
from thresher.data import is_sparse
from thresher.discovery.decision import Decision
from thresher.discovery.findings import Finding, csv_of, json_of
from thresher.discovery.joint_fit import MOST
from thresher.discovery.row_checks import Check
from thresher.discovery.summary import facts_of, outcome, shown_findings, table_of
from thresher.errors import ParameterError
from thresher.model.model import Model

if TYPE_CHECKING:
    from thresher.discovery.feature_discovery import FeatureDiscovery


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

    @property
    def decision_(self) -> Decision:
        """What was decided, with all sums and rates."""
        return self._decided()

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
            raise AttributeError(
                f"model_ needs refit=True, rows that can be read again, and at most {MOST:,} "
                f"selected features"
            )
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

    def name_of(self, key: int) -> str:
        """Return the name of a feature, or its number in the files, as text.

        Parameters
        ----------
        key : int
            Its column, or its key if features have names.
        """
        decision, columns = self._decided(), self.__dict__.get("feature_names_in_")
        if columns is not None:
            return str(columns[key])
        return decision.names.get(key, str(key + decision.first))

    # ---- output --------------------------------------------------------------------------------

    def table(self, n: int | None = None) -> str:
        """Return a table of features as text, strongest first.

        Parameters
        ----------
        n : int, optional
            Number of features; by default the selected ones. If none is selected, a sentence says
            so instead.
        """
        classes = self._decided().classes
        several = classes is not None and len(classes) > 2
        own = cast("FeatureDiscovery", self)
        found = shown_findings(own, n)
        return table_of(found, several) if found else outcome(own)

    def to_csv(self, path: str | PathLike[str] | None = None, n: int | None = None) -> str:
        """Return the evidence of features as CSV, and write it to a file.

        Parameters
        ----------
        path : path, optional
            File to write.
        n : int, optional
            Number of features, strongest first; by default the selected ones.
        """
        text = csv_of(shown_findings(cast("FeatureDiscovery", self), n))
        if path is not None:
            write_whole(path, text.encode())
        return text

    def to_json(self, path: str | PathLike[str] | None = None, n: int | None = None) -> str:
        """Return the whole result as JSON, and write it to a file.

        It has the parameters, the random_state, the number of rows, the expected number of false
        features, the checks, and the evidence of features.

        Parameters
        ----------
        path : path, optional
            File to write.
        n : int, optional
            Number of features, strongest first; by default the selected ones.
        """
        own = cast("FeatureDiscovery", self)
        text = json_of(shown_findings(own, n), **facts_of(own)) + "\n"
        if path is not None:
            write_whole(path, text.encode())
        return text

    def report(self, path: str | PathLike[str], title: str | None = None) -> None:
        """Write an HTML page: what was found, how sure it is, and what was checked.

        Parameters
        ----------
        path : path
            File to write; it works offline.
        title : str, optional
        """
        from thresher.discovery.page import page_of

        write_whole(path, page_of(cast("FeatureDiscovery", self), title).encode())
