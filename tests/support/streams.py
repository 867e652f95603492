"""Random streams and core learners for the property tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from oracles import losses
from thresher import _core
from thresher.rules import RULES

LOSSES = losses.NAMES
SCHEDULES = ("constant", "inverse", "sqrt", "power")

DEFAULTS: dict[str, Any] = {
    "loss": "logistic",
    "epsilon": 0.1,
    "quantile": 0.5,
    "fit_intercept": True,
    "schedule": "constant",
    "eta0": 0.1,
    "relative": False,
    "power": 0.5,
    "decay": 1.0,
    "gravity": 0.0,
    "fading": False,
    "period": 1,
    "ceiling": np.inf,
    "shrink": "truncate",
    "l2": 0.0,
    "average": False,
    "certify": False,
    "alpha": 0.1,
    "beta": 1.0,
    "l1": 0.0,
    "center": False,
    "strength": 1.0,
    "boost": 0.0,
    "p": 2.0,
    "threshold": "scaled",
}


def _numbers_of(rule: str) -> dict[str, float]:
    """Defaults of a rule's own parameters that are numbers, where `DEFAULTS` has none."""
    own = (spec.own for spec in RULES.values() if spec.core == rule and spec.streams)
    values = {n: p.default if p.auto is None else p.auto for o in own for n, p in o.items()}
    numbers = {name: value for name, value in values.items() if isinstance(value, float)}
    return {name: value for name, value in numbers.items() if name not in DEFAULTS}


def learner(
    rule: str, width: int, *, store: str = "dense", dtype: str = "float64", **params: Any
) -> _core.Learner:
    """Return a core learner; parameters that are not given have simple defaults."""
    defaults = DEFAULTS | _numbers_of(rule)
    unknown = (
        set(params) - set(defaults) - {"sweep_events", "target_nnz", "lanes", "relative_epsilon"}
    )
    assert not unknown, unknown
    values = defaults | params
    words = {name: value for name, value in values.items() if isinstance(value, str)}
    numbers = {name: float(value) for name, value in values.items() if name not in words}
    return _core.make_learner(rule, store, dtype, width, numbers, words)


@dataclass
class Stream:
    """Rows, labels, weights, and the order of rows in each pass."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    passes: list[np.ndarray]
    csr: sp.csr_matrix = field(init=False)

    def __post_init__(self) -> None:
        self.csr = sp.csr_matrix(self.X)

    @property
    def width(self) -> int:
        return self.X.shape[1]

    def batch(self) -> _core.Batch:
        c = self.csr
        return _core.sparse_batch(c.indptr, c.indices, c.data, self.width, self.y, self.weight)

    def learn(self, model: _core.Learner, batch: _core.Batch | None = None) -> _core.Learner:
        """Let the learner make all passes."""
        batch = batch or self.batch()
        for number, order in enumerate(self.passes):
            if number:
                model.next_pass()
            model.learn(batch, order)
        return model


def dense_weights(model: _core.Learner, width: int, average: bool = False) -> np.ndarray:
    """Return all weights of a learner, including zeros."""
    w = np.zeros(width)
    keys, values = model.weights(average)
    w[keys.astype(np.int64)] = values
    return w


def weights_for(rng: np.random.Generator, loss: str, rows: int) -> np.ndarray:
    """Draw weights of rows: no step, one, several, and (for smooth losses) steps of weight > 1.

    A step of weight > 1 can end exactly at the kink of a loss. There a rounding error would decide
    about the next step, so `tests/core/test_weights.py` tests other losses.
    """
    smooth = loss in losses.CURVATURE
    return rng.choice([0.0, 0.5, 1.0, 2.0, 2.7, 5.0, 40.0 if smooth else 3.0], rows)


@st.composite
def streams(draw: st.DrawFn, loss: str, weighted: bool = True) -> Stream:
    """Draw a short stream for a loss: with rare features, empty rows, and values of both signs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 40)), draw(st.integers(1, 14))
    density = draw(st.sampled_from([0.1, 0.3, 0.8]))
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density * rng.random(d) * 1.5)
    X = X.astype(np.float32).astype(np.float64)
    if loss in losses.MARGIN:
        y = rng.choice([-1.0, 1.0], n)
    elif loss == "clipped_square":
        y = rng.random(n)
    elif loss == "poisson":
        y = rng.poisson(1.0, n).astype(float)
    else:
        y = rng.normal(size=n)
    weight = weights_for(rng, loss, n) if weighted and draw(st.booleans()) else None
    kind = draw(st.sampled_from(["in turn", "shuffled", "with replacement"]))
    passes = []
    for _ in range(draw(st.integers(1, 3))):
        if kind == "in turn":
            passes.append(np.arange(n))
        elif kind == "shuffled":
            passes.append(rng.permutation(n))
        else:
            passes.append(rng.integers(0, n, n))
    return Stream(X, y, weight, passes)
