"""Predictions and calls with one row, against scikit-learn."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from numpy.typing import NDArray
from sklearn.linear_model import SGDClassifier

from speed.line import Line, Timed
from thresher import TruncatedGradientClassifier

PEER = f"scikit-learn {sklearn.__version__}"


def sparse_rows(rows: int, width: int, seed: int = 0) -> sp.csr_matrix:
    """Return rows with 60 to 73 nonzeros; some columns are much more frequent than others."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(rng.integers(60, 74, rows))])
    keys = (rng.random(starts[-1]) ** 3 * width).astype(np.int32)
    found = sp.csr_matrix((rng.random(len(keys)), keys, starts), shape=(rows, width))
    found.sum_duplicates()
    return found


def unsorted(X: sp.csr_matrix) -> sp.csr_matrix:
    """Return the same rows, with the columns of each row in random order."""
    rng = np.random.default_rng(1)
    order = np.lexsort((rng.random(X.nnz), np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))))
    return sp.csr_matrix((X.data[order], X.indices[order], X.indptr), shape=X.shape)


def _plain(X: Any, model: Any) -> NDArray[np.float64]:
    found = np.asarray(X @ np.asarray(model.coef_).T + model.intercept_)
    return found[:, 0] if found.shape[1] == 1 else found


def _both_right(X: Any, ours: Any, peer: Any) -> Callable[[Any, Any], str]:
    """Return a check that both decision functions are X @ coef_.T + intercept_."""

    def check(a: Any, b: Any) -> str:
        errors = [float(np.abs(f - _plain(X, m)).max()) for f, m in ((a, ours), (b, peer))]
        assert max(errors) < 1e-4, errors
        return f"largest differences from X @ coef: {errors[0]:.0e}, {errors[1]:.0e}"

    return check


def _decisions(name: str, X: Any, ours: Any, peer: Any, must: float) -> Line:
    return Line(
        name,
        lambda: ours.decision_function(X),
        lambda: peer.decision_function(X),
        PEER,
        must,
        check=_both_right(X, ours, peer),
    )


def _fitted(X: Any, y: Any) -> tuple[Any, Any]:
    ours = TruncatedGradientClassifier(random_state=0).fit(X, y)
    peer = SGDClassifier(loss="log_loss", penalty="l1", max_iter=1, tol=None, random_state=0)
    return ours, peer.fit(X, y)


def lines(full: bool) -> Iterator[Line]:
    """Yield the lines: CSR rows, dense rows, and calls with one row."""
    warnings.simplefilter("ignore")
    for width, shown in ((47_236, "47k"), (1 << 20, "2^20"), (1 << 24, "2^24"))[: 2 + full]:
        X = sparse_rows(20_000, width)
        y = (X @ np.random.default_rng(2).normal(size=width) > 0).astype(int)
        ours, peer = _fitted(X, y)
        name = f"decision_function, 20,000 CSR rows, {shown} columns"
        yield _decisions(name, X, ours, peer, 2.0)
        yield _decisions(f"{name}, unsorted", unsorted(X), ours, peer, 2.0)
        yield _decisions(f"{name}, float32", X.astype(np.float32), ours, peer, 2.0)
        if width < 1 << 20:
            yield from _one_row(X, y, ours, peer)
            classes = np.random.default_rng(3).integers(0, 20, X.shape[0])
            several = _fitted(X, classes)
            yield _decisions(f"{name}, 20 classes", X, *several, must=2.0)
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200_000, 50))
    ours, peer = _fitted(X, (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int))
    for name, rows in (("C order", X), ("Fortran order", np.asfortranarray(X))):
        yield Line(
            f"predict, 200,000 x 50 dense rows, {name}",
            lambda rows=rows: ours.predict(rows),
            lambda rows=rows: peer.predict(rows),
            PEER,
            1.0,
            check=lambda a, b: f"{100 * np.mean(a == b):.1f} % of labels are equal",
        )


def _each(call: Callable[[], Any], calls: int = 200) -> Callable[[], Timed]:
    """Return a call that measures the mean seconds of many calls."""

    def run() -> Timed:
        began = time.perf_counter()
        for _ in range(calls):
            value = call()
        return Timed((time.perf_counter() - began) / calls, value)

    return run


def _one_row(X: sp.csr_matrix, y: NDArray[Any], ours: Any, peer: Any) -> Iterator[Line]:
    """Yield calls with one row; `must` is their ratio with the microseconds to reach."""
    row, model = X[:1], ours.model_
    for name, mine, theirs, must in (
        ("model.predict", model.predict, peer.predict, 168 / 10),
        ("predict", ours.predict, peer.predict, 168 / 10),
        ("predict_proba", ours.predict_proba, peer.predict_proba, 168 / 60),
    ):
        yield Line(
            f"{name} of one CSR row",
            _each(lambda f=mine: f(row)),
            _each(lambda f=theirs: f(row)),
            PEER,
            must,
        )
    rows = [X[i : i + 1] for i in range(500)]
    learning = TruncatedGradientClassifier().partial_fit(rows[0], y[:1], classes=[0, 1])
    other = SGDClassifier(loss="log_loss", penalty="l1").partial_fit(rows[0], y[:1], classes=[0, 1])

    def learn(estimator: Any) -> Callable[[], Timed]:
        at = iter(range(10**9))

        def call() -> None:
            i = next(at) % len(rows)
            estimator.partial_fit(rows[i], y[i : i + 1])

        return _each(call, 20 if estimator is other else 500)

    yield Line("partial_fit of one CSR row", learn(learning), learn(other), PEER, 1620 / 100)
