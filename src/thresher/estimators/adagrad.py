"""AdaGrad with an l1 penalty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from thresher.estimators.classifying import StreamingClassifier
from thresher.estimators.documentation import documented
from thresher.estimators.streaming import StreamingRegressor
from thresher.model.model import Progress


@documented
class AdaGradClassifier(StreamingClassifier):
    """Classification by AdaGrad: a rate for each coordinate, and exactly zero weights.

    The rate of a coordinate falls with the root of its summed squared gradients, so rare features
    keep a high rate. Each step then moves every weight towards zero by l1 times its rate.

    {parameters}

    {attributes}

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import AdaGradClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 100))
    >>> y = X[:, 3] - X[:, 7] + rng.normal(size=2000) > 0
    >>> clf = AdaGradClassifier(l1=0.02, random_state=0).fit(X, y)
    >>> sorted(feature.name for feature in clf.model_.top(2))
    [3, 7]
    """

    rule: ClassVar[str] = "adagrad"

    def __init__(
        self,
        *,
        loss: str = "logistic",
        l1: float | str = "auto",
        alpha: float | str = "auto",
        delta: float | str = "auto",
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
class AdaGradRegressor(StreamingRegressor):
    """Regression by AdaGrad: a rate for each coordinate, and exactly zero weights.

    See `AdaGradClassifier` for the rule.

    {parameters}

    {attributes}

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import AdaGradRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 50))
    >>> y = 3.0 * X[:, 3] - 2.0 * X[:, 7] + 0.1 * rng.normal(size=2000)
    >>> reg = AdaGradRegressor(l1=0.05, random_state=0).fit(X, y)
    >>> sorted(feature.name for feature in reg.model_.top(2))
    [3, 7]
    """

    rule: ClassVar[str] = "adagrad"

    def __init__(
        self,
        *,
        loss: str = "squared",
        l1: float | str = "auto",
        alpha: float | str = "auto",
        delta: float | str = "auto",
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
