"""FTRL-Proximal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from thresher.estimators.classifying import StreamingClassifier
from thresher.estimators.documentation import documented
from thresher.estimators.streaming import StreamingRegressor
from thresher.model.model import Progress


@documented
class FTRLClassifier(StreamingClassifier):
    """Classification by FTRL-Proximal: a rate for each coordinate, and exactly zero weights.

    It suits click and text data: rare features keep a high rate, the rate of frequent features
    falls, and a weight becomes zero again when |z|, its adjusted sum of gradients, falls below l1.

    {parameters}

    {attributes}

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import FTRLClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 100))
    >>> y = X[:, 3] - X[:, 7] + rng.normal(size=2000) > 0
    >>> clf = FTRLClassifier(l1=30.0, random_state=0).fit(X, y)
    >>> sorted(feature.name for feature in clf.model_.top(2))
    [3, 7]
    """

    rule: ClassVar[str] = "ftrl"

    def __init__(
        self,
        *,
        loss: str = "logistic",
        l1: float | str = "auto",
        l2: float = 0.0,
        alpha: float | str = "auto",
        beta: float | str = "auto",
        target_nnz: int | None = None,
        refit: bool = True,
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


@documented
class FTRLRegressor(StreamingRegressor):
    """Regression by FTRL-Proximal: a rate for each coordinate, and exactly zero weights.

    See `FTRLClassifier` for the rule.

    {parameters}

    {attributes}

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import FTRLRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 50))
    >>> y = 3.0 * X[:, 3] - 2.0 * X[:, 7] + 0.1 * rng.normal(size=2000)
    >>> reg = FTRLRegressor(l1=50.0, random_state=0).fit(X, y)
    >>> sorted(feature.name for feature in reg.model_.top(2))
    [3, 7]
    """

    rule: ClassVar[str] = "ftrl"

    def __init__(
        self,
        *,
        loss: str = "squared",
        l1: float | str = "auto",
        l2: float = 0.0,
        alpha: float | str = "auto",
        beta: float | str = "auto",
        target_nnz: int | None = None,
        refit: bool = True,
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
