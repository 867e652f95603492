"""Truncated gradient, and its variants: rounding and the l1 subgradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from thresher.estimators.classifying import StreamingClassifier
from thresher.estimators.documentation import documented
from thresher.estimators.streaming import StreamingEstimator, StreamingRegressor
from thresher.model.model import Progress
from thresher.training.hooks import Hooks
from thresher.training.regret import RegretCertificates


class Certified(StreamingEstimator):
    """Truncated gradient with an optional regret certificate."""

    @staticmethod
    def hooks_of_pickle(state: dict[str, Any]) -> Hooks:
        """Return the hooks of an estimator that version 0.1.0 pickled."""
        hooks = RegretCertificates()
        hooks.found = state.pop("_regret", [])
        return hooks


@documented
class TruncatedGradientClassifier(Certified, StreamingClassifier):
    """Classification by truncated gradient: SGD that shrinks weights to exact zeros.

    After every `period` steps each weight is shrunk by eta * period * gravity, and stops at zero. A
    step reads and writes only the features of its row: pending shrink events of other weights are
    applied when the weights are next used. The result is exact for every learning rate.

    With `certify`, `model_.certificates` compares the progressive loss of a fit with the bound of
    the paper's Theorem 1.1, against the final weights and against zero. The theorem holds for any
    rows, at a constant rate below 2 / A (see `thresher.certificates`).

    {parameters}

    {attributes}

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import TruncatedGradientClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 100))
    >>> y = X[:, 3] - X[:, 7] + rng.normal(size=2000) > 0
    >>> clf = TruncatedGradientClassifier(gravity=0.05, period=100, random_state=0).fit(X, y)
    >>> sorted(feature.name for feature in clf.model_.top(2))
    [3, 7]
    >>> clf.model_.nnz < 30 and clf.score(X, y) > 0.8
    True
    """

    rule: ClassVar[str] = "truncated-gradient"

    def __init__(
        self,
        *,
        loss: str = "logistic",
        gravity: float | str = "auto",
        period: int = 10,
        ceiling: float = math.inf,
        shrink: str = "truncate",
        target_nnz: int | None = None,
        refit: bool = True,
        average: bool = False,
        l2: float = 0.0,
        eta0: float | str = "auto",
        schedule: str = "constant",
        power: float = 0.5,
        decay: float = 0.8,
        certify: bool = False,
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
class TruncatedGradientRegressor(Certified, StreamingRegressor):
    """Regression by truncated gradient: SGD that shrinks weights to exact zeros.

    See `TruncatedGradientClassifier` for the rule.

    {parameters}

    {attributes}

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import TruncatedGradientRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 50))
    >>> y = 3.0 * X[:, 3] - 2.0 * X[:, 7] + 0.1 * rng.normal(size=2000)
    >>> reg = TruncatedGradientRegressor(gravity=0.1, eta0=0.003, random_state=0).fit(X, y)
    >>> reg.model_.indices.tolist()
    [3, 7]
    >>> params = {"gravity": 0.1, "eta0": 0.003, "decay": 1.0, "certify": True, "random_state": 0}
    >>> print(TruncatedGradientRegressor(**params).fit(X, y).model_.certificates[0])
    regret against the final weights: 40,000 steps lost ... in total, ... is guaranteed ...
    """

    rule: ClassVar[str] = "truncated-gradient"

    def __init__(
        self,
        *,
        loss: str = "squared",
        gravity: float | str = "auto",
        period: int = 10,
        ceiling: float = math.inf,
        shrink: str = "truncate",
        target_nnz: int | None = None,
        refit: bool = True,
        average: bool = False,
        l2: float = 0.0,
        eta0: float | str = "auto",
        schedule: str = "constant",
        power: float = 0.5,
        decay: float = 0.8,
        certify: bool = False,
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
