"""Parameters, outputs and targets for tests of the rule one-pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from thresher import _core

LOSSES = ("logistic", "squared", "huber", "quantile", "poisson")
numbers_of_lanes = pytest.mark.parametrize("lanes", [12, 4])
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


def parameters(loss: str, **changes: Any) -> dict[str, Any]:
    """Return parameters of the core; those given replace the defaults."""
    plain = {"lanes": 12, "cut": 0.0, "epsilon": 1.0, "relative_epsilon": True, "quantile": 0.3}
    return plain | {"loss": loss, "fit_intercept": True} | changes


def bank(
    params: dict[str, Any],
    width: int,
    targets: Any = (-1,),
    clocks: Any = None,
    *,
    store: str = "dense",
    dtype: str = "float64",
    level: str = "auto",
) -> _core.Lanes:
    """Return outputs that learn together."""
    words = {"loss": params["loss"]}
    numbers = {name: float(value) for name, value in params.items() if name != "loss"}
    n = len(targets)
    return _core.make_lanes(
        "one_pass", store, dtype, width, [numbers] * n, [words] * n, list(clocks or [0] * n),
        list(targets), level,
    )  # fmt: skip


def targets_of(rng: np.random.Generator, X: np.ndarray, loss: str) -> np.ndarray:
    """Return targets that depend on the columns."""
    z = np.tanh(X[:, 0] - X[:, 1]) + 0.3 * rng.normal(size=len(X))
    if loss == "logistic":
        return np.where(z > 0, 1.0, -1.0)
    return np.round(np.exp(z)) if loss == "poisson" else 5.0 + 3.0 * z
