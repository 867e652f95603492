"""Predictions for one row, given as a dict: `predict_one` and `predict_proba_one`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from thresher.errors import ParameterError
from thresher.model.links import scores
from thresher.model.one_row import RowPredictor, predictor_of, rows_for
from thresher.rules import RULES

PREDICT = "predict_one"  # its key among what is cached


class OneRowPrediction:
    """Mixin of all estimators: predictions for one row."""

    def predict_one(self: Any, row: Mapping[Any, Any]) -> Any:
        """Return the label of one row, or its value in a regression.

        Parameters
        ----------
        row : dict
            Values by name of the feature: numbers, booleans, strings (``{"colour": "red"}`` is the
            feature "colour^red"), lists of words, or None, which is left out. Features that were
            not seen in training are ignored.

        Returns
        -------
        object
            Before anything was learned None, or 0.0 in a regression. If rows have any number of
            labels, a list of labels.
        """
        predictor = self._row_predictor()
        if predictor is None:
            return None if self.task == "classifier" else 0.0
        return predictor.predict(row, self._general_scores)

    def learn_one(
        self: Any, row: Mapping[Any, Any], y: Any, w: float = 1.0, *, classes: Any = None
    ) -> Any:
        """Raise an error: the rule does not learn row by row.

        Parameters
        ----------
        row : dict
        y : object
        w : float
        classes : array, optional
        """
        able = ", ".join(name for name, rule in RULES.items() if rule.streams)
        ways = "fit and partial_fit" if hasattr(self, "partial_fit") else "fit"
        raise ParameterError(
            f"the rule {self.rule} does not learn row by row; it learns with {ways}",
            owner=type(self).__name__,
            hint=f"these rules have learn_one: {able}",
        )

    def _row_predictor(self: Any) -> RowPredictor | None:
        """Return the predictor of one row; None if nothing was learned."""
        cached = vars(self).get("_cached")
        if cached is None:
            cached = {}
        found: RowPredictor | None = cached.get(PREDICT)
        if found is None:
            try:
                found = cached[PREDICT] = self._make_row_predictor()
            except NotFittedError:
                return None
        return found

    def _make_row_predictor(self: Any) -> RowPredictor:
        return predictor_of(self.model_)

    def _general_scores(self: Any, row: Mapping[Any, Any]) -> list[float]:
        """Return the decision values of a row that the core does not read."""
        loss, classifies = self._learned_loss(), self.task == "classifier"
        found: list[float] = np.ravel(scores(self._raw([row]), loss, classifies)).tolist()
        return found

    def _raw_of_dicts(self: Any, rows: Any) -> NDArray[np.float64]:
        """Return raw predictions of rows given as dicts, one column for each output."""
        return np.asarray(self.model_.raw(rows_for(self.model_, rows)))
