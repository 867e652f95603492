"""The robust variant of the stabilized rule: the core equals its oracle."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oracles.robust import RobustResult, robust
from support.streams import Stream, streams
from thresher import StabilizedClassifier, _core
from thresher.data import as_batch

SEED = 77
DEFAULTS: dict[str, Any] = {
    "loss": "logistic", "eta0": 2.0, "rejection": 0.5, "keep": 0.5, "min_updates": 1, "paths": 4,
    "seed": SEED, "target": 3, "epsilon": 0.0, "quantile": 0.5, "stage_steps": 60,
    "refit_steps": 80,
}  # fmt: skip


def learner(width: int, dtype: str = "float64", **params: Any) -> _core.StabilizedLearner:
    values = DEFAULTS | params
    words = {name: value for name, value in values.items() if isinstance(value, str)}
    numbers = {name: float(value) for name, value in values.items() if name not in words}
    return _core.make_stabilized("robust", dtype, width, numbers, words)


def learned(
    stream: Stream, dtype: str = "float64", jobs: int = 1, **params: Any
) -> _core.StabilizedLearner:
    model = learner(stream.width, dtype, **params)
    model.learn(stream.batch(), 3, 0.0, jobs, lambda stage: True)
    return model


def oracle_of(stream: Stream, **params: Any) -> RobustResult:
    values = DEFAULTS | params
    return robust(
        stream.X, stream.y, lambda path, number, rows: _core.path_order(SEED, path, number, rows),
        loss=values["loss"], eta=values["eta0"], paths=values["paths"], keep=values["keep"],
        rejection=values["rejection"], min_updates=values["min_updates"],
        target=values["target"] or None, passes=3, stage_steps=60, refit_steps=80,
        sample_weight=stream.weight,
    )  # fmt: skip


def mean_weights(model: _core.StabilizedLearner, width: int) -> np.ndarray:
    w = np.zeros(width)
    keys, values = model.weights()
    w[keys.astype(int)] = values
    return w


@given(
    data=st.data(),
    loss=st.sampled_from(["logistic", "hinge", "squared_hinge"]),
    rejection=st.sampled_from([0.3, 0.5, 0.9]),
    keep=st.sampled_from([0.0, 0.5, 0.8]),
    min_updates=st.sampled_from([0, 1, 4]),
    paths=st.sampled_from([2, 4]),
    target=st.sampled_from([1, 4]),
    jobs=st.integers(1, 3),
)
def test_core_equals_oracle(
    data: st.DataObject, loss: str, rejection: float, keep: float, min_updates: int, paths: int,
    target: int, jobs: int,
) -> None:  # fmt: skip
    """Weights, intercept, probabilities, updates and purge stages are equal."""
    stream = data.draw(streams("logistic" if loss == "logistic" else "hinge"))
    params = {
        "loss": loss, "eta0": 0.25 if loss == "squared_hinge" else 1.0, "rejection": rejection,
        "keep": keep, "min_updates": min_updates, "paths": paths, "target": target,
    }  # fmt: skip
    expected = oracle_of(stream, **params)
    assume(expected.margin > 1e-9)  # else rounding decides
    model = learned(stream, jobs=jobs, **params)
    np.testing.assert_allclose(
        mean_weights(model, stream.width), expected.weights, rtol=0, atol=1e-8
    )
    assert model.intercept() == pytest.approx(expected.intercept, abs=1e-8)
    keys, probability, updates, purged = model.findings()
    counted = stream.X if stream.weight is None else stream.X[stream.weight > 0]
    seen = np.any(counted != 0, axis=0)
    np.testing.assert_array_equal(keys, np.flatnonzero(seen))
    np.testing.assert_array_equal(probability, expected.probability[seen])
    # Squared hinge approaches its margin slowly; a remaining gap of 1e-16 is a rounding error.
    slack = 0.05 if loss == "squared_hinge" else 0.0
    np.testing.assert_allclose(updates, expected.updates[seen], rtol=slack, atol=20 * slack)
    np.testing.assert_array_equal(purged, expected.purged[seen])


@given(data=st.data(), dtype=st.sampled_from(["float32", "float64"]))
def test_threads_and_saving_do_not_matter(data: st.DataObject, dtype: str) -> None:
    """R-13.16, P-20: results are bit-identical, with a save and a restore between two batches."""
    stream = data.draw(streams("logistic"))
    half = max(1, len(stream.y) // 2)
    parts = [slice(0, half), slice(half, None)] if len(stream.y) > 1 else [slice(None)]
    states = []
    for jobs, saves in ((1, False), (3, True)):
        model = learner(stream.width, dtype)
        for part in parts:
            weight = None if stream.weight is None else stream.weight[part]
            model.learn(
                Stream(stream.X[part], stream.y[part], weight, []).batch(), 1, 0.0, jobs,
                lambda stage: True,
            )  # fmt: skip
            if saves:
                state = model.state()
                model = learner(stream.width, dtype)
                model.restore(state)
        states.append(model.state())
    assert states[0] == states[1]


def problem(rows: int = 400, width: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(rows, width)) * (rng.random((rows, width)) < 0.2)
    return X, np.where(X[:, :5].sum(axis=1) + 0.05 * rng.normal(size=rows) > 0, 1.0, -1.0)


def test_single_precision_is_close_to_double() -> None:
    X, y = problem()
    stream = Stream(X.astype(np.float32).astype(float), y, None, [])
    single, double = (learned(stream, dtype, target=5) for dtype in ("float32", "float64"))
    np.testing.assert_allclose(mean_weights(single, 300), mean_weights(double, 300), atol=1e-3)
    np.testing.assert_array_equal(single.weights()[0], np.arange(5))


def test_a_second_batch_keeps_the_evidence_of_the_first() -> None:
    """Purged features stay purged; features are judged by all rows so far."""
    X, y = problem(800)
    clf = StabilizedClassifier(target_nnz=5, random_state=0)
    clf.partial_fit(X[:400], y[:400], classes=[-1, 1])
    first = clf.model_.evidence
    clf.partial_fit(X[400:], y[400:])
    second = clf.model_.evidence
    assert first is not None
    assert second is not None
    purged = first.features[first.purged >= 0]
    assert set(purged) <= set(second.features[second.purged >= 0])
    np.testing.assert_array_equal(clf.model_.indices, np.arange(5))
    assert clf.model_.why(0).documents == np.count_nonzero(X[:, 0])
    assert clf.score(X, y) > 0.8  # a third of the rows have none of the five features


def test_rare_features_are_not_purged() -> None:
    """A feature below min_updates is not judged: a later batch may have enough rows."""
    X, y = problem(400, 20)
    X[:, 19] = 0.0
    X[:3, 19] = y[:3]
    clf = StabilizedClassifier(target_nnz=6, min_updates=5, random_state=0)
    clf.partial_fit(X, y, classes=[-1, 1])
    why = clf.model_.why(19)
    assert (why.weight, why.purged_at, why.documents, why.updates) == (0.0, None, 3, 0)
    X[:, 19] = y
    clf.partial_fit(X, y)
    assert clf.model_.why(19).weight > 0


def test_a_strong_feature_that_first_occurs_late_is_kept() -> None:
    """Features are judged by mean weight and combined z, not by their number of rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 40))
    X[:600, 39] = 0.0
    strengths = np.zeros(40)
    strengths[:5], strengths[39] = (0.6, 0.7, 0.8, 0.9, 1.0), 2.0
    y = np.where(X @ strengths + 0.1 * rng.normal(size=1200) > 0, 1, -1)
    clf = StabilizedClassifier(target_nnz=5, random_state=0)
    clf.partial_fit(X[:600], y[:600], classes=[-1, 1]).partial_fit(X[600:], y[600:])
    assert clf.model_.why(39).weight > 0
    assert clf.score(X[600:], y[600:]) > 0.85


@pytest.mark.parametrize("rows", [7, 40, 1000])
def test_small_batches_do_not_purge_good_features(rows: int) -> None:
    X, y = problem(2000, 50)
    clf = StabilizedClassifier(target_nnz=5, random_state=0)
    for start in range(0, 2000, rows):
        clf.partial_fit(X[start : start + rows], y[start : start + rows], classes=[-1, 1])
        assert clf.model_.nnz <= 5
    assert len(set(clf.model_.indices.tolist()) & set(range(5))) >= 4
    assert clf.score(X, y) > 0.7  # the best possible is 0.83


def test_interrupted() -> None:
    """Ctrl-C stops training within a stage, and the estimator stays unfitted."""
    X, y = problem(4000, 200)
    clf = StabilizedClassifier(random_state=0, n_jobs=2, passes=1000)
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    timer.cancel()
    assert time.perf_counter() - began < 20
    assert not hasattr(clf, "history_")


def test_damaged_and_unsuitable_states_are_refused() -> None:
    X, y = problem(60, 12)
    batch = as_batch(X)
    batch.set_targets(y.astype(float), None)

    def learns(model: _core.StabilizedLearner, *rest: Any) -> _core.StabilizedLearner:
        model.learn(batch, 3, 0.0, 1, lambda stage: True, *rest)
        return model

    kept: list[Any] = []
    learns(learner(12), kept.append)
    with pytest.raises(ValueError, match="only be called within the callback"):
        kept[0]()
    states: list[bytes] = []
    whole = learns(learner(12), lambda state: states.append(state()))
    with pytest.raises(ValueError, match="has learned nothing"):
        learns(whole, None, states[0])
    with pytest.raises(ValueError, match="cannot be resumed within a batch"):
        learns(learner(12, streams=1), None, states[0])
    for damaged in (states[0][:-8], states[0] + b"12345678", b"12345678" + states[0][8:]):
        model = learner(12)
        with pytest.raises(ValueError, match=r"cut short|left over|another rule"):
            learns(model, None, damaged)
        assert learns(model, None, states[-1]).state() == whole.state()
