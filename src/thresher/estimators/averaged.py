"""SGD, averaged SGD and centred averaged SGD."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

from thresher.errors import ParameterError, setting
from thresher.estimators.classifying import StreamingClassifier
from thresher.estimators.documentation import documented
from thresher.estimators.streaming import StreamingEstimator, StreamingRegressor
from thresher.model.model import Progress


class _Centred(StreamingEstimator):
    """Averaged SGD with optional centring of the rows."""

    center: bool

    def _checked_mean(self, mean: Any) -> dict[str, Any]:
        self._checked_params()
        if self.center and mean is None and self._is_new():
            raise ParameterError(
                ("with ", setting("center", True), " the first partial_fit needs mean=, the mean "
                 "of all rows"),
                owner=type(self).__name__,
                parameter="mean",
            )  # fmt: skip
        return {"mean": mean}


@documented
class AveragedSGDClassifier(_Centred, StreamingClassifier):
    """Classification by averaged SGD: the exact mean of all iterates, as fast as plain SGD.

    Steps are 1/(alpha t). The running mean and the centring update only the features that a row
    has. The intercept is part of the objective.

    {parameters}

    {attributes}

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import AveragedSGDClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 20))
    >>> y = X[:, 0] > X[:, 1]
    >>> AveragedSGDClassifier(alpha=0.01, random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    rule: ClassVar[str] = "averaged-sgd"

    def __init__(
        self,
        *,
        loss: str = "logistic",
        alpha: float | str = "auto",
        average: bool = True,
        center: bool = False,
        n_jobs: int | None = None,
        epsilon: float | str = "auto",
        quantile: float = 0.5,
        passes: int = 20,
        shuffle: str | bool = "each",
        fit_intercept: bool = True,
        store: str = "dense",
        dtype: str = "float32",
        tol: float | None = None,
        patience: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self._set(locals())

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        mean: Any = None,
    ) -> Self:
        """Learn from these rows once, in their order.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
        y : array of shape (rows,)
        classes : array, needed in the first call
            All labels, including those of later calls.
        sample_weight : array of shape (rows,), optional
        mean : array of shape (features,)
            The mean of all rows; needed in the first call with center=True.

        Returns
        -------
        self
        """
        return self._learn_more(X, y, classes, sample_weight, **self._checked_mean(mean))


@documented
class AveragedSGDRegressor(_Centred, StreamingRegressor):
    """Regression by averaged SGD: the exact mean of all iterates, as fast as plain SGD.

    See `AveragedSGDClassifier` for the rule. With the squared losses, steps of 1/(alpha t) diverge
    if the squared norm of a row is much larger than alpha; the error then names a safe alpha.
    Losses with bounded slopes, such as the default huber, are safe.

    {parameters}

    {attributes}

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import AveragedSGDRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 5))
    >>> y = X @ [1.0, 2.0, 0.0, 0.0, -1.0]
    >>> reg = AveragedSGDRegressor(alpha=0.05, epsilon=1.0, random_state=0)
    >>> reg.fit(X, y).score(X, y) > 0.9
    True
    """

    rule: ClassVar[str] = "averaged-sgd"

    def __init__(
        self,
        *,
        loss: str = "huber",
        alpha: float | str = "auto",
        average: bool = True,
        center: bool = False,
        epsilon: float | str = "auto",
        quantile: float = 0.5,
        passes: int = 20,
        shuffle: str | bool = "each",
        fit_intercept: bool = True,
        store: str = "dense",
        dtype: str = "float32",
        tol: float | None = None,
        patience: int = 5,
        warm_start: bool = False,
        random_state: Any = None,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self._set(locals())

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, mean: Any = None
    ) -> Self:
        """Learn from these rows once, in their order.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
        y : array of shape (rows,)
        sample_weight : array of shape (rows,), optional
        mean : array of shape (features,)
            The mean of all rows; needed in the first call with center=True.

        Returns
        -------
        self
        """
        return self._learn_more(X, y, sample_weight, **self._checked_mean(mean))
