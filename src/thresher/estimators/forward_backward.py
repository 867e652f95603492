"""Forward-backward splitting (FOBOS)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from thresher.estimators.classifying import StreamingClassifier
from thresher.estimators.documentation import documented
from thresher.estimators.streaming import StreamingRegressor
from thresher.model.model import Progress


@documented
class ForwardBackwardClassifier(StreamingClassifier):
    """Classification by forward-backward splitting (FOBOS): a gradient step, then a soft threshold.

    It is the same as truncated gradient with period 1 and no ceiling; the penalty is called l1, as
    for the lasso.

    {parameters}

    {attributes}

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import ForwardBackwardClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 100))
    >>> y = X[:, 3] - X[:, 7] + rng.normal(size=2000) > 0
    >>> clf = ForwardBackwardClassifier(l1=0.02, schedule="sqrt", random_state=0).fit(X, y)
    >>> sorted(feature.name for feature in clf.model_.top(2))
    [3, 7]
    """

    rule: ClassVar[str] = "forward-backward"

    def __init__(
        self,
        *,
        loss: str = "logistic",
        l1: float | str = "auto",
        l2: float = 0.0,
        eta0: float | str = "auto",
        schedule: str = "constant",
        power: float = 0.5,
        decay: float = 0.8,
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
class ForwardBackwardRegressor(StreamingRegressor):
    """Regression by forward-backward splitting (FOBOS): a gradient step, then a soft threshold.

    See `ForwardBackwardClassifier` for the rule.

    {parameters}

    {attributes}

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import ForwardBackwardRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 50))
    >>> y = 3.0 * X[:, 3] - 2.0 * X[:, 7] + 0.1 * rng.normal(size=2000)
    >>> reg = ForwardBackwardRegressor(l1=0.1, eta0=0.05, schedule="sqrt", random_state=0)
    >>> sorted(feature.name for feature in reg.fit(X, y).model_.top(2))
    [3, 7]
    """

    rule: ClassVar[str] = "forward-backward"

    def __init__(
        self,
        *,
        loss: str = "squared",
        l1: float | str = "auto",
        l2: float = 0.0,
        eta0: float | str = "auto",
        schedule: str = "constant",
        power: float = 0.5,
        decay: float = 0.8,
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
