"""Regularised dual averaging (RDA)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from thresher.estimators.classifying import StreamingClassifier
from thresher.estimators.documentation import documented
from thresher.estimators.streaming import StreamingRegressor
from thresher.model.model import Progress


@documented
class DualAveragingClassifier(StreamingClassifier):
    """Classification by regularised dual averaging: weights computed from the mean gradient.

    A weight is nonzero only while the mean of all gradients of its feature exceeds l1. So random
    steps of the last rows leave no nonzero weights, unlike in rules that truncate at every step.

    {parameters}

    {attributes}

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import DualAveragingClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 100))
    >>> y = X[:, 3] - X[:, 7] + 0.5 * rng.normal(size=2000) > 0
    >>> clf = DualAveragingClassifier(l1=0.05, random_state=0).fit(X, y)
    >>> clf.model_.indices.tolist()
    [3, 7]
    """

    rule: ClassVar[str] = "dual-averaging"

    def __init__(
        self,
        *,
        loss: str = "logistic",
        l1: float | str = "auto",
        strength: float | str = "auto",
        boost: float = 0.0,
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


@documented
class DualAveragingRegressor(StreamingRegressor):
    """Regression by regularised dual averaging: weights computed from the mean gradient.

    See `DualAveragingClassifier` for the rule.

    {parameters}

    {attributes}

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import DualAveragingRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 50))
    >>> y = 3.0 * X[:, 3] - 2.0 * X[:, 7] + 0.1 * rng.normal(size=2000)
    >>> reg = DualAveragingRegressor(l1=0.2, random_state=0).fit(X, y)
    >>> reg.model_.indices.tolist()
    [3, 7]
    """

    rule: ClassVar[str] = "dual-averaging"

    def __init__(
        self,
        *,
        loss: str = "squared",
        l1: float | str = "auto",
        strength: float | str = "auto",
        boost: float = 0.0,
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
