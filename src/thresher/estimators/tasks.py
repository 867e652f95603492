"""Base classes of classifiers and regressors: labels to targets, predictions to labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from thresher.atomic import all_or_nothing
from thresher.data import is_source
from thresher.data.label_checks import distinct
from thresher.data.labels import Labels, ManyClasses, NumericLabels
from thresher.data.matrix_source import LabelArray
from thresher.data.unseen_labels import UnseenLabels
from thresher.errors import BalanceError, ParameterError, setting
from thresher.estimators.fit_arguments import check_source_alone
from thresher.estimators.frames import FrameRows, labelled_rows
from thresher.estimators.linear import LinearEstimator
from thresher.losses import LOSSES, PROBABILITY_LOSSES, Task
from thresher.model.links import labels, probabilities, scores, values
from thresher.rules import RULES
from thresher.training.class_weights import class_factors
from thresher.training.observer import Observer


def _score(
    estimator: Any, X: Any, y: Any, sample_weight: Any, of_rows: Callable[..., float]
) -> float:
    """Return the score of a source by sums over its rows, or of rows in memory."""
    if not is_source(X):
        X, y = labelled_rows(estimator, X, y)
        warn_of_unseen(estimator, y)
        return float(of_rows(X, y, sample_weight))
    from thresher.training.scores import score_source, scores_named

    check_source_alone(estimator, y, sample_weight)
    several = estimator.model_.multilabel
    return score_source(estimator.model_, X, scores_named(None, estimator.task, several))["score"]


def warn_of_unseen(estimator: Any, y: Any) -> None:
    """Warn if labels in memory are not among the classes of a classifier."""
    classes = getattr(estimator, "classes_", None)
    if classes is None or np.ndim(y) != 1:
        return
    unseen = UnseenLabels()
    unseen.count(classes, y)
    if (warning := unseen.warning()) is not None:
        Observer().warn(warning)


class LinearClassifier(ClassifierMixin, LinearEstimator):
    """Base of classifiers: one output for two classes, else one output per class."""

    task: ClassVar[Task] = "classifier"

    def _set_classes(self, y: Any, before: NDArray[Any] | None) -> None:
        found = self._classes_in(y)
        if getattr(self, "warm_start", False) and before is not None:
            if not np.isin(found, before).all():
                raise ParameterError(
                    (setting("warm_start", True), " needs the classes of the previous fit, "
                     f"{before.tolist()}"),
                    owner=type(self).__name__,
                    parameter="warm_start",
                    value=True,
                )  # fmt: skip
            found = before
        self.classes_ = self._at_least_two(found)

    def _classes_in(self, y: Any) -> NDArray[Any]:
        return np.arange(y.shape[1]) if self._is_multilabel() else distinct(y)

    def _at_least_two(self, classes: NDArray[Any]) -> NDArray[Any]:
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of at least 2 classes; y has one class, "
                f"{classes.tolist()[0]!r}"
            )
        return classes

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray[Any]]:
        X, y = self._validated(X, y, reset=reset)
        y = column_or_1d(y, warn=True)
        if y.dtype.kind not in "iubUS":  # whole numbers and strings are always labels
            check_classification_targets(y)
        return X, y

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return raw scores: shape (rows,) for two classes, else (rows, classes).

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        """
        return scores(self._raw(X), self._learned_loss())

    def predict(self, X: Any) -> NDArray[Any]:
        """Return labels; a score of exactly 0 counts as the second class.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        """
        return labels(self.decision_function(X), self.classes_)

    def _has_probabilities(self) -> bool:
        if self._learned_loss() in PROBABILITY_LOSSES:
            return True
        raise AttributeError(
            f"probabilities need one of the losses {', '.join(PROBABILITY_LOSSES)}; the loss is "
            f"{self._learned_loss()}"
        )

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return probabilities of the classes, for the losses logistic and clipped_square.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        """
        return probabilities(self.decision_function(X), self._learned_loss(), len(self.classes_))

    @available_if(_has_probabilities)
    def predict_proba_one(self, row: Mapping[Any, Any]) -> dict[Any, float]:
        """Return the probability of each label for one row, as `predict_proba` does.

        Parameters
        ----------
        row : dict
            As for `predict_one`.

        Returns
        -------
        dict
            By label; empty before anything was learned.
        """
        predictor = self._row_predictor()
        return {} if predictor is None else predictor.probabilities(row, self._general_scores)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return logarithms of `predict_proba`.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the weighted share of rows whose label, or set of labels, is predicted.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        y : array of shape (rows,)
            Labels; a source has its own labels and weights.
        sample_weight : array of shape (rows,), optional

        Returns
        -------
        float
        """
        return _score(self, X, y, sample_weight, super().score)

    def _labels(self) -> Labels:
        return ManyClasses(self.classes_, LOSSES[self._loss()].low, tidied=False)

    def _row_weights(
        self, y: Any, sample_weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        if self.class_weight is None:
            return sample_weight
        labels, rows = self._labels(), LabelArray(y)
        labels.count(rows)
        targets = labels.targets(rows)
        factors = class_factors(self.class_weight, labels, type(self).__name__, strict=False)
        assert factors is not None
        weights: NDArray[np.float64] = factors[targets.single()]
        return weights if sample_weight is None else weights * sample_weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags


class PartialClassifier(LinearClassifier):
    """Base of classifiers with partial_fit."""

    _partial_fit: Callable[..., Self]  # learns from checked rows, after those of earlier calls

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from these rows once, in their order; the stabilized rule trains in stages.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        y : array of shape (rows,)
        classes : array, needed in the first call
            The known labels; they need not all occur in the first rows. With more than two
            classes, rules that train all classes together accept new ones in later calls: a new
            class learns from its first row on, and its weights are those of a model that has not
            seen the earlier rows.
        sample_weight : array of shape (rows,), optional

        Returns
        -------
        self
        """
        return self._learn_more(X, y, classes, sample_weight)

    def _learn_more(self, X: Any, y: Any, classes: Any, sample_weight: Any, **prepare: Any) -> Self:
        first = self._is_new()
        with all_or_nothing(self) if first else nullcontext():
            return self._learn_more_checked(X, y, classes, sample_weight, first, **prepare)

    def _learn_more_checked(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, first: bool, **prepare: Any
    ) -> Self:
        if is_source(X):
            raise ParameterError(
                f"partial_fit of the rule {self.rule} needs rows in memory",
                owner=type(self).__name__,
                hint="fit reads a source into memory",
            )
        X, y = self._checked(X, y, reset=first)
        if isinstance(X, FrameRows) and not RULES[self.rule].streams:
            raise ParameterError(
                f"partial_fit of the rule {self.rule} needs a matrix, and the frame has words",
                owner=type(self).__name__,
                hint="fit takes such a frame",
            )
        if self._is_multilabel() and first and classes is None:
            classes = np.arange(y.shape[1])
        if self.class_weight == "balanced":
            raise BalanceError(
                (setting("class_weight", "balanced"), " needs all rows at once"),
                owner=type(self).__name__,
                parameter="class_weight",
                value="balanced",
                hint="give partial_fit a dict of weights",
            )
        if first:
            self._set_given_classes(classes, y)
        elif classes is not None:
            self._check_classes(classes)
        return self._partial_fit(X, y, sample_weight, **prepare)

    def _set_given_classes(self, classes: Any, y: Any = None) -> None:
        """Set the classes that the first call was given."""
        if classes is None:
            raise ValueError("classes must be given in the first call to partial_fit")
        classes = np.unique(classes)
        if len(classes) < 2:
            raise ValueError("classes must have at least 2 labels")
        if self._is_multilabel() and len(classes) != y.shape[1]:
            raise ValueError(f"classes must be {y.shape[1]} labels, one for each column of y")
        self.classes_ = classes

    def _check_classes(self, classes: Any) -> None:
        """Raise ValueError if a later call was given other classes."""
        if not np.array_equal(self.classes_, np.unique(classes)):
            raise ValueError(
                f"classes {np.unique(classes).tolist()} are not those of the first call, "
                f"{self.classes_.tolist()}"
            )


class LinearRegressor(RegressorMixin, LinearEstimator):
    """Base of regressors: one output."""

    task: ClassVar[Task] = "regressor"

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray[np.float64]]:
        X, y = self._validated(X, y, reset)
        return X, np.ascontiguousarray(column_or_1d(y, warn=True), np.float64)

    def _labels(self) -> Labels:
        return NumericLabels(self._loss())

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return predictions of y.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        """
        return values(
            scores(self._raw(X), self._learned_loss(), classifies=False), self._learned_loss()
        )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R2, weighted by the weights of rows.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        y : array of shape (rows,)
            Values; a source has its own labels and weights.
        sample_weight : array of shape (rows,), optional

        Returns
        -------
        float
        """
        return _score(self, X, y, sample_weight, super().score)
