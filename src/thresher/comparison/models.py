"""Models of a comparison: fits of its rules, with the chosen parameters, on all rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

from thresher.comparison.candidates import CANDIDATES, configured, fit_weighted
from thresher.comparison.result import RuleResult
from thresher.comparison.rows import ComparisonRows
from thresher.data import is_source
from thresher.errors import ParameterError, setting
from thresher.preprocessing import UnitVarianceScaler


@dataclass(frozen=True)
class ComparedModels:
    """Fits rules of a comparison on all rows that were given as X.

    Attributes
    ----------
    X, y, weights : arguments of `compare`
    rows : ComparisonRows
        The same rows, split but not scaled.
    settings : mapping
        The settings of the comparison.
    """

    X: Any
    y: Any
    weights: Any
    rows: ComparisonRows
    settings: Mapping[str, Any]

    def fit(self, result: RuleResult) -> Any:
        """Return an estimator of a rule, fitted; it takes rows and gives labels as in X and y.

        Parameters
        ----------
        result : RuleResult
        """
        candidate, scale = CANDIDATES[result.rule], self.settings["scale"]
        scaled = self.rows.scaled_by(scale)
        made = candidate.make(scaled.sizes(result.loss), self.settings["seed"])
        plain = candidate.foreign is None and candidate.wrap is None
        configured(made, result.chosen)
        if self.rows.unit != 1:
            made = TransformedTargetRegressor(
                made,
                func=partial(_divided, unit=self.rows.unit),
                inverse_func=partial(np.multiply, self.rows.unit),
            )
        if scale is not None:
            scaler = Normalizer() if scale == "unit-norm" else UnitVarianceScaler()
            made = Pipeline([("scale", scaler), ("model", made)])
        if not is_source(self.X):
            return fit_weighted(made, self.X, self.y, self.weights)
        if plain and scale is None and self.rows.unit == 1 and self.X.rereadable:
            return made.fit(self.X)
        if self.X.named:
            raise ParameterError(
                (f"{result.title} cannot be fitted on a source with named features that is read "
                 "once, scaled, or has labels in another unit; convert it to a matrix first, or "
                 "use ", setting("scale", None)),
                owner="compare",
            )  # fmt: skip
        return fit_weighted(made, *self._all_rows())

    def _all_rows(self) -> tuple[Any, NDArray[Any], NDArray[np.float64] | None]:
        """Return the rows of a source: the training rows, and test rows that were split off."""
        rows = self.rows
        X, y, weights = rows.X, rows.y, rows.weights
        if self.settings["test_share"] is not None:
            X, y = sp.vstack([X, rows.X_test], "csr"), np.concatenate([y, rows.y_test])
            parts = (weights, rows.y), (rows.weights_test, rows.y_test)
            if any(own is not None for own, _ in parts):
                weights = np.concatenate([np.ones(len(k)) if w is None else w for w, k in parts])
        return X, np.array(rows.classes)[y] if rows.classes else y * rows.unit, weights


def _divided(y: Any, unit: float) -> Any:
    return np.asarray(y) / unit
