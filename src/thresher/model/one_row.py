"""Predictions for one row, given as a dict, in a few microseconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.dict_rows import DictReading, DictRows, plain
from thresher.errors import ParameterError
from thresher.losses import LOSSES, PROBABILITY_LOSSES
from thresher.model.links import label_probabilities, probabilities, values
from thresher.model.predict import KEPT

if TYPE_CHECKING:
    from thresher.model.model import Model

_FEW = 64  # dicts that are read one by one; for more of them a source is faster
_EXPONENT = 700.0  # exponentials of numbers up to here are finite


General = Callable[[Mapping[Any, Any]], list[float]]
"""Type of a function that returns the decision values of a row that the core does not read."""


class RowPredictor:
    """Turns the decision values of one row into a label, probabilities or a value.

    Parameters
    ----------
    scores : _core.RowScores
        Computes decision values in the core; None for rows that it does not read.
    outputs : int
    classes : list or None
        Labels of a classifier.
    loss : str
    multilabel : bool
        Whether rows have any number of labels.
    reading : DictReading
    """

    def __init__(
        self,
        scores: _core.RowScores,
        outputs: int,
        classes: list[Any] | None,
        loss: str,
        multilabel: bool,
        reading: DictReading,
    ) -> None:
        self.scores, self.classes, self.loss = scores, classes, loss
        self.multilabel, self.link = multilabel, LOSSES[loss].link
        self.convert = reading.converted if reading.converts else None
        self.two = outputs == 1 and len(classes or ()) == 2 and not multilabel

    def _found(self, score: Callable[[Any], Any], row: Mapping[Any, Any], general: General) -> Any:
        """Return the result of a function of the core, or the decision values of all outputs."""
        given = row if self.convert is None else self.convert(checked(row))
        found = score(given)
        if found is None:
            usual = plain(given)
            found = None if usual is None else score(usual)
        return general(checked(row)) if found is None else found

    def few(self, rows: Any) -> NDArray[np.float64] | None:
        """Return the decision values of a few dicts, a row each; None: use the general way."""
        rows = [rows] if isinstance(rows, Mapping) else rows
        if len(rows) > _FEW:
            return None
        found = []
        for row in rows:
            if not isinstance(row, Mapping):
                return None
            values = self.scores.all(row if self.convert is None else self.convert(row))
            if values is None:
                return None
            found.append(values)
        return np.array(found)

    def _one(self, row: Mapping[Any, Any], general: General) -> float:
        """Return the decision value of the first output."""
        found: Any = self._found(self.scores.one, row, general)
        return found if isinstance(found, float) else float(found[0])

    def predict(self, row: Mapping[Any, Any], general: General) -> Any:
        """Return the label or the value; a list of labels, if rows have any number of them."""
        classes = self.classes
        if self.two:
            assert classes is not None
            return classes[1] if self._one(row, general) >= 0 else classes[0]
        if classes is None:
            raw = self._one(row, general)
            return raw if self.link == "identity" else float(values(np.array([raw]), self.loss)[0])
        if self.multilabel:
            found = self._found(self.scores.all, row, general)
            return [label for label, score in zip(classes, found, strict=True) if score >= 0]
        best = self._found(self.scores.best, row, general)
        return classes[best if isinstance(best, int) else int(np.argmax(best))]

    def probabilities(self, row: Mapping[Any, Any], general: General) -> dict[Any, float]:
        """Return the probability of each label."""
        assert self.classes is not None
        if self.two and self.link == "sigmoid":
            score = self._one(row, general)
            if score > -_EXPONENT:
                p = float(1.0 / (1.0 + np.exp(-score)))
                return {self.classes[0]: 1.0 - p, self.classes[1]: p}
        scores = np.array([self._found(self.scores.all, row, general)])
        if self.multilabel:
            found = label_probabilities(scores, self.loss)[0]
        else:
            scores = scores[:, 0] if self.two else scores
            found = probabilities(scores, self.loss, len(self.classes))[0]
        return dict(zip(self.classes, found.tolist(), strict=True))


def checked(row: Any) -> Mapping[Any, Any]:
    """Raise ParameterError if a row is not a dict."""
    if not isinstance(row, Mapping):
        raise ParameterError(f"a row must be a dict; got {type(row).__name__}")
    return row


class OneRowPredictions:
    """Mixin of `Model`: predictions for one row."""

    def predict_one(self: Any, row: Mapping[Any, Any]) -> Any:
        """Return the label of one row, or its value in a regression.

        Parameters
        ----------
        row : dict
            Values by name of the feature: numbers, booleans, strings (``{"colour": "red"}`` is the
            feature "colour^red"), lists of words, or None, which means what a missing cell meant
            in training. Features that the model does not have are ignored.

        Returns
        -------
        object
            If rows have any number of labels, a list of labels.
        """
        return predictor_of(self).predict(row, lambda row: _general(self, row))

    def predict_proba_one(self: Any, row: Mapping[Any, Any]) -> dict[Any, float]:
        """Return the probability of each label, for the losses logistic and clipped_square.

        Parameters
        ----------
        row : dict
            As for `predict_one`.
        """
        if self.classes is None or self.loss not in PROBABILITY_LOSSES:
            raise ValueError(
                f"probabilities need a classifier with one of {', '.join(PROBABILITY_LOSSES)}"
            )
        return predictor_of(self).probabilities(row, lambda row: _general(self, row))

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, without the learner's state and what is computed again when used."""
        left_out = ("_one_row", KEPT, "learner")
        return {name: value for name, value in vars(self).items() if name not in left_out}


def reading_of(model: Model) -> DictReading:
    """Return how dicts become rows of a model."""
    return DictReading.of(model.parameters, model.names)


def rows_for(model: Model, rows: Any) -> DictRows:
    """Return dicts as a source of rows for a model."""
    return DictRows(rows, reading=reading_of(model))


def predictor_of(model: Model) -> RowPredictor:
    """Return the predictor with the weights of a model; it is made once."""
    found: RowPredictor | None = vars(model).get("_one_row")
    if found is None:
        found = vars(model)["_one_row"] = _predictor(model)
    return found


def _predictor(model: Model) -> RowPredictor:
    reading, loss = reading_of(model), LOSSES[model.loss]
    classes = None if model.classes is None else model.classes.tolist()
    scores = _core.ModelRow(
        np.ascontiguousarray(model.indptr, np.int64),
        np.ascontiguousarray(model.indices, np.uint64),
        np.ascontiguousarray(model.weights, np.float64),
        np.ascontiguousarray(model.intercept, np.float64),
        loss.scales_rows,
        0.0 if classes is None else loss.decision_at,
        reading.bits,
        dict(reading.numbered),
    )
    outputs = len(model.intercept)
    return RowPredictor(scores, outputs, classes, model.loss, model.multilabel, reading)


def _general(model: Model, row: Mapping[Any, Any]) -> list[float]:
    found: list[float] = np.ravel(model.decision_function([row])).tolist()
    return found
