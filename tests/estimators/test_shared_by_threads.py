"""Threads that share an estimator: each call of partial_fit continues from the one before."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import thresher
from thresher.estimators import streaming


@pytest.mark.parametrize(
    "kind", [thresher.MirrorDescentRegressor, thresher.TruncatedGradientRegressor]
)
def test_no_record_is_lost(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    y = X[:, 0]
    estimator = kind().partial_fit(X[:100], y[:100])
    second, learn_once = threading.Event(), streaming.learn_once
    begun: list[int] = []

    def slow(spec: Any, source: Any, before: Any, *more: Any, **given: Any) -> Any:
        """Learn, after the other call has begun, if it can begin."""
        begun.append(before.outputs.steps)
        if len(begun) == 2:
            second.set()
        second.wait(0.3)
        return learn_once(spec, source, before, *more, **given)

    monkeypatch.setattr(streaming, "learn_once", slow)
    threads = [
        threading.Thread(target=estimator.partial_fit, args=(X[a:b], y[a:b]))
        for a, b in ((100, 300), (300, 600))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert begun in ([100, 300], [100, 400])
    monkeypatch.undo()
    alone = kind().partial_fit(X, y)
    marks = [record.examples for record in estimator.history_]
    assert marks == [record.examples for record in alone.history_] == [128, 256, 512]
