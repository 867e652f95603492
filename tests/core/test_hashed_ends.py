"""A hashed store finds keys whose search goes over the end of its table to the first slots."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from thresher import TruncatedGradientClassifier, _core
from thresher.data import as_batch
from thresher.rules.core_args import core_parameters

WIDTH = 200_000
SLOTS = 1024  # of a new table


def home(keys: np.ndarray) -> np.ndarray:
    """Return the first slot in which a new table looks for a key (stores/hashed.hpp)."""
    mixed = ~keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(64 - 10)) + np.uint64(1)


def learned(store: str, X: sp.csr_matrix, y: np.ndarray) -> tuple[list[int], list[float]]:
    """Learn the rows; return the weights."""
    params = TruncatedGradientClassifier(gravity=1e-4, eta0=0.5).get_params()
    numbers, words = core_parameters("truncated-gradient", params, X.shape[0])
    learner = _core.make_learner("truncated_gradient", store, "float32", WIDTH, numbers, words)
    learner.learn(as_batch(X, y))
    keys, values = learner.weights(False)
    return list(keys), list(values)


@pytest.mark.parametrize("seed", range(20))
def test_keys_at_the_end_of_the_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = np.arange(WIDTH)
    last = keys[home(keys) >= SLOTS - 1]  # many keys for the last two slots
    assert len(last) > 300
    chosen = rng.choice(last, 24, replace=False)
    rows = [np.sort(rng.choice(chosen[: 3 + i // 3], 3, replace=False)) for i in range(60)]
    starts = np.arange(0, 3 * len(rows) + 1, 3)
    values = rng.normal(size=starts[-1]).astype(np.float32)
    X = sp.csr_matrix((values, np.concatenate(rows), starts), shape=(len(rows), WIDTH))
    y = rng.choice([-1.0, 1.0], len(rows))
    assert learned("hashed", X, y) == learned("dense", X, y)
