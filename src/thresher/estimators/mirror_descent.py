"""Mirror descent with a p-norm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from thresher.estimators.classifying import StreamingClassifier
from thresher.estimators.documentation import documented
from thresher.estimators.streaming import StreamingRegressor
from thresher.model.model import Progress


@documented
class MirrorDescentClassifier(StreamingClassifier):
    """Classification by mirror descent: l1-penalised steps in the geometry of a p-norm.

    The algorithm SMIDAS. A p-norm maps a dual vector to the weights: the larger p is, the more a
    few large weights exceed the rest. Every step visits all nonzero coordinates, not only those of
    its row, so it suits thousands of features, not millions. Weights are a dense array in double
    precision.

    {parameters}

    {attributes}

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import MirrorDescentClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 100))
    >>> y = X[:, 3] - X[:, 7] + rng.normal(size=2000) > 0
    >>> clf = MirrorDescentClassifier(random_state=0).fit(X, y)
    >>> sorted(feature.name for feature in clf.model_.top(2))
    [3, 7]
    """

    rule: ClassVar[str] = "mirror-descent"

    def __init__(
        self,
        *,
        loss: str = "logistic",
        l1: float | str = "auto",
        threshold: str = "paper",
        p: float | str = "0.5ln",
        eta0: float | str = "auto",
        schedule: str = "constant",
        power: float = 0.5,
        decay: float = 0.8,
        n_jobs: int | None = None,
        epsilon: float | str = "auto",
        quantile: float = 0.5,
        passes: int = 20,
        shuffle: str | bool = "each",
        fit_intercept: bool = True,
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
class MirrorDescentRegressor(StreamingRegressor):
    """Regression by mirror descent: l1-penalised steps in the geometry of a p-norm.

    See `MirrorDescentClassifier` for the rule.

    {parameters}

    {attributes}

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import MirrorDescentRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 50))
    >>> y = 3.0 * X[:, 3] - 2.0 * X[:, 7] + 0.1 * rng.normal(size=2000)
    >>> reg = MirrorDescentRegressor(random_state=0).fit(X, y)
    >>> sorted(feature.name for feature in reg.model_.top(2))
    [3, 7]
    """

    rule: ClassVar[str] = "mirror-descent"

    def __init__(
        self,
        *,
        loss: str = "squared",
        l1: float | str = "auto",
        threshold: str = "paper",
        p: float | str = "0.5ln",
        eta0: float | str = "auto",
        schedule: str = "constant",
        power: float = 0.5,
        decay: float = 0.8,
        epsilon: float | str = "auto",
        quantile: float = 0.5,
        passes: int = 20,
        shuffle: str | bool = "each",
        fit_intercept: bool = True,
        tol: float | None = None,
        patience: int = 5,
        warm_start: bool = False,
        random_state: Any = None,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self._set(locals())
