"""A linear model from one pass over the rows, without a rate to choose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from thresher.estimators.classifying import StreamingClassifier
from thresher.estimators.documentation import documented
from thresher.estimators.streaming import StreamingRegressor
from thresher.model.model import Progress


@documented
class OnePassClassifier(StreamingClassifier):
    """Classification from one pass over the rows, with nothing to tune.

    Twelve models learn the same rows with different rates, scalings of the features and
    curvatures. A second, small learner combines their predictions, each made before its row was
    learned. The combination is one sparse linear model. It does not depend on the units of the
    features: columns need no scaling.

    {parameters}

    {attributes}

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import OnePassClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 100))
    >>> y = X[:, 3] - X[:, 7] + 0.3 * rng.normal(size=2000) > 0
    >>> clf = OnePassClassifier(target_nnz=2, random_state=0).fit(X, y)
    >>> sorted(feature.name for feature in clf.model_.top())
    [3, 7]
    """

    rule: ClassVar[str] = "one-pass"

    def __init__(
        self,
        *,
        loss: str = "logistic",
        lanes: int | str = "auto",
        cut: float = 0.001,
        target_nnz: int | None = None,
        refit: bool = True,
        epsilon: float | str = "auto",
        passes: int = 1,
        quantile: float = 0.5,
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
class OnePassRegressor(StreamingRegressor):
    """Regression from one pass over the rows, with nothing to tune.

    See `OnePassClassifier` for the rule. The model does not depend on the units of the features
    or of the targets, except for loss="poisson", whose targets are counts.

    {parameters}

    {attributes}

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import OnePassRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 50))
    >>> y = 1000 * (3.0 * X[:, 3] - 2.0 * X[:, 7] + 0.1 * rng.normal(size=2000))
    >>> reg = OnePassRegressor(random_state=0).fit(X, y)
    >>> round(reg.score(X, y), 2)
    1.0
    """

    rule: ClassVar[str] = "one-pass"

    def __init__(
        self,
        *,
        loss: str = "squared",
        lanes: int | str = "auto",
        cut: float = 0.001,
        target_nnz: int | None = None,
        refit: bool = True,
        epsilon: float | str = "auto",
        passes: int = 1,
        quantile: float = 0.5,
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
