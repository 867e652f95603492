"""Training of one model in memory: `fit` as users write it, and what it costs around the loop.

The rows are those of `benchmarks/core.py`: 73 nonzeros a row, the r-th feature has frequency 1/r.
Every call is one epoch in the given order at the same constant rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.linear_model import SGDClassifier

from core import ETA, GRAVITY, PER_ROW, WIDTHS, core_alone, loss, stream
from speed.line import Line
from thresher import ForwardBackwardClassifier, TruncatedGradientClassifier

OURS = {"eta0": ETA, "passes": 1, "shuffle": False, "fit_intercept": False}
THEIRS = {
    "loss": "log_loss", "penalty": "l1", "alpha": GRAVITY, "learning_rate": "constant",
    "eta0": ETA, "max_iter": 1, "tol": None, "shuffle": False, "fit_intercept": False,
}  # fmt: skip
MUST = {"47k": 4.5, "2^20": 5.0, "2^24": 4.5}
NAME = "TruncatedGradientClassifier.fit"


def unsorted(X: sp.csr_matrix) -> sp.csr_matrix:
    """Return the same rows with their columns in random order."""
    order = np.argsort(np.random.default_rng(1).random((X.shape[0], PER_ROW)), axis=1)
    keys = np.take_along_axis(X.indices.reshape(-1, PER_ROW), order, axis=1).ravel()
    return sp.csr_matrix((X.data, keys, X.indptr), shape=X.shape)


def same_loss(X: sp.csr_matrix, y: np.ndarray, ours: Any, peer: Any) -> str:
    """Return the training losses of two models; they must be close."""
    a, b = loss(ours, X, y), loss(peer, X, y)
    assert abs(a - b) < 0.02, f"losses {a:.4f} and {b:.4f}"
    return f"loss {a:.4f}, peer {b:.4f}"


def same_rows(X: sp.csr_matrix, y: np.ndarray, ours: Any, peer: None) -> str:
    """Return the loss of the model; the peer is the loop alone, which returns nothing."""
    return f"loss {loss(ours, X, y):.4f}"


def faster_dtype(X: sp.csr_matrix, y: np.ndarray) -> tuple[sp.csr_matrix, str]:
    """Return the rows in the dtype in which scikit-learn is faster, and its name."""
    from speed.line import timed

    tables = {"float32": X, "float64": X.astype(np.float64)}
    seconds = {
        name: min(timed(lambda t=table: SGDClassifier(**THEIRS).fit(t, y)).seconds for _ in "12")
        for name, table in tables.items()
    }
    best = min(seconds, key=lambda name: seconds[name])
    return tables[best], best


def lines(full: bool) -> Iterator[Line]:
    """Yield a line for each comparison, at three numbers of features."""
    rows = 500_000 if full else 100_000
    for label, width in WIDTHS.items():
        X, y = stream(rows, width)
        size = f"{rows:,} x {label}"
        check = partial(same_loss, X, y)

        def fit(model: Any, X: sp.csr_matrix = X, y: np.ndarray = y) -> Callable[[], Any]:
            return lambda: model.fit(X, y)

        ours = fit(TruncatedGradientClassifier(gravity=GRAVITY, **OURS))
        table, dtype = faster_dtype(X, y)
        peer = f"scikit-learn {sklearn.__version__} SGD l1, {dtype}"
        yield Line(
            f"{NAME}, {size}", ours, fit(SGDClassifier(**THEIRS), table), peer, MUST[label],
            check=check,
        )  # fmt: skip
        yield Line(
            f"{NAME}, {size}", ours, core_alone(X, y), "the core loop alone", 1.15, True,
            partial(same_rows, X, y),
        )  # fmt: skip
        forward = ForwardBackwardClassifier(l1=GRAVITY, **OURS)
        unit = "truncated gradient, K = 10"
        yield Line(f"forward-backward (K = 1), {size}", fit(forward), ours, unit, 1.1, True, check)
        order = fit(TruncatedGradientClassifier(gravity=GRAVITY, **OURS), unsorted(X))
        yield Line(f"{NAME}, unsorted columns, {size}", order, ours, "sorted", 1.25, True, check)
        hashed = fit(TruncatedGradientClassifier(gravity=GRAVITY, store="hashed", **OURS))
        yield Line(f"{NAME}, hashed store, {size}", hashed, ours, "dense store", 2.0, True, check)
