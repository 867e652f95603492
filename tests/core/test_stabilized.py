"""The stabilized rule as published: the core equals its oracle (P-14 to P-17)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

from oracles.stabilized import StabilizedResult, stabilized
from support.slices import sliced
from support.streams import Stream, dense_weights, streams
from support.streams import learner as plain_learner
from thresher import _core
from thresher.data import as_batch

SEED = 12345

DEFAULTS: dict[str, Any] = {
    "loss": "logistic", "eta0": 0.3, "rejection": 0.7, "annealing": -1.0, "keep": 0.5, "burst": 2,
    "bursts": 3, "min_updates": 0, "burst_growth": 0.0, "count": "x", "shuffle": "once",
    "gravity_rule": "update-quantile", "paths": 3, "seed": SEED, "epsilon": 0.1, "quantile": 0.5,
}  # fmt: skip


def learner(width: int, dtype: str = "float64", **params: Any) -> _core.StabilizedLearner:
    """Make a learner of the published variant, with simple defaults."""
    assert set(params) <= set(DEFAULTS)
    values = DEFAULTS | params
    words = {name: value for name, value in values.items() if isinstance(value, str)}
    numbers = {name: float(value) for name, value in values.items() if name not in words}
    return _core.make_stabilized("paper", dtype, width, numbers, words)


def learned(stream: Stream, passes: int, jobs: int = 1, **params: Any) -> _core.StabilizedLearner:
    model = learner(stream.width, **params)
    model.learn(stream.batch(), passes, 0.0, jobs, lambda stage: True)
    return model


def oracle_of(stream: Stream, passes: int, **params: Any) -> StabilizedResult:
    values = DEFAULTS | params
    n = len(stream.y)
    orders = [_core.path_order(SEED, m, 0, n) for m in range(values["paths"])]
    return stabilized(
        stream.X, stream.y, orders, loss=values["loss"], eta=values["eta0"],
        beta0=values["rejection"], gamma=values["annealing"], pi0=values["keep"],
        K=values["burst"], n_K=values["bursts"], passes=passes, delta_K=values["min_updates"],
        alpha=values["burst_growth"] or None, count=values["count"],
        gravity_rule=values["gravity_rule"], sample_weight=stream.weight,
        dtype=np.dtype(values.get("dtype", "float64")),
    )  # fmt: skip


def mean_weights(model: _core.StabilizedLearner, width: int) -> np.ndarray:
    w = np.zeros(width)
    keys, values = model.weights()
    w[keys.astype(int)] = values
    return w


@st.composite
def parameters(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "loss": draw(st.sampled_from(["logistic", "hinge", "squared_hinge"])),
        "eta0": draw(st.sampled_from([0.0503, 0.31])),
        "rejection": draw(st.sampled_from([0.0, 0.3, 0.7, 0.95])),
        "annealing": draw(st.sampled_from([-5.0, -1.0, 0.0, 3.0])),
        "keep": draw(st.sampled_from([0.0, 0.5, 0.6, 0.9])),
        "burst": draw(st.sampled_from([1, 2, 5])),
        "bursts": draw(st.sampled_from([1, 3, 5])),
        "min_updates": draw(st.sampled_from([0, 0, 4])),
        "burst_growth": draw(st.sampled_from([0.0, 0.0, np.exp(-1), 0.5])),
        "count": draw(st.sampled_from(["x", "gradient"])),
        "gravity_rule": draw(st.sampled_from(["update-quantile"] * 3 + ["weight-quantile"])),
        "paths": draw(st.integers(1, 5)),
    }


@given(data=st.data(), params=parameters(), passes=st.integers(1, 4), jobs=st.integers(1, 3))
def test_core_equals_oracle(
    data: st.DataObject, params: dict[str, Any], passes: int, jobs: int
) -> None:
    """R-13: weights, stable set and evidence are equal, for any number of threads."""
    stream = data.draw(streams(params["loss"]))
    expected = oracle_of(stream, passes, **params)
    assume(np.abs(expected.paths).max() < 100)  # near divergence, rounding errors are large
    assume("hinge" not in params["loss"] or expected.least_slope > 1e-9)  # else rounding decides
    model = learned(stream, passes, jobs, **params)
    w = mean_weights(model, stream.width)
    np.testing.assert_allclose(w, expected.weights, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(w != 0, expected.weights != 0)
    keys, probability, updates, purged = model.findings()
    seen = np.any(stream.X != 0, axis=0)
    np.testing.assert_array_equal(keys, np.flatnonzero(seen))
    np.testing.assert_array_equal(probability, expected.probability[seen])
    np.testing.assert_array_equal(updates, expected.updates[seen])
    np.testing.assert_array_equal(purged, expected.purged[seen])
    assert np.all(w[~expected.active] == 0)  # the support is in Omega; purged stays purged


@given(data=st.data(), params=parameters())
def test_stages_equal_those_of_the_oracle(data: st.DataObject, params: dict[str, Any]) -> None:
    """Gravity, rejection, share of stable features and burst size are equal at every stage."""
    stream = data.draw(streams(params["loss"]))
    run = oracle_of(stream, 3, **params)
    assume(np.abs(run.paths).max() < 100)
    assume("hinge" not in params["loss"] or run.least_slope > 1e-9)
    expected = run.trace
    stages: list[_core.Stage] = []
    model = learner(stream.width, **params)
    model.learn(stream.batch(), 3, 0.0, 2, lambda stage: stages.append(stage) is None)
    for stage in stages:
        oracle = expected[stage.number - 1]
        assert (stage.rows, stage.burst) == (oracle.rows, oracle.K)
        assert stage.gravity == pytest.approx(oracle.gravity, rel=1e-9, abs=1e-12)
        assert stage.beta == pytest.approx(oracle.beta, rel=1e-12, abs=1e-15)
        assert stage.d == pytest.approx(oracle.d)


@given(data=st.data(), params=parameters(), dtype=st.sampled_from(["float32", "float64"]))
def test_threads_and_saving_do_not_matter(
    data: st.DataObject, params: dict[str, Any], dtype: str
) -> None:
    """R-13.16, P-20: bit-identical, also over batches with a save and a restore between."""
    stream = data.draw(streams(params["loss"]))
    half = max(1, len(stream.y) // 2)
    parts = [slice(0, half), slice(half, None)] if len(stream.y) > 1 else [slice(None)]
    parts = [
        Stream(stream.X[p], stream.y[p], None if stream.weight is None else stream.weight[p], [])
        for p in parts
    ]
    models = []
    for jobs, saves in ((1, False), (2, True), (7, True)):
        model = learner(stream.width, dtype, **params)
        for part in parts:
            model.learn(part.batch(), 2, 0.0, jobs, lambda stage: True)
            if saves:
                state = model.state()
                model = learner(stream.width, dtype, **params)
                model.restore(state)
        models.append(model)
    for other in models[1:]:
        assert other.state() == models[0].state()
        for one, two in zip(other.weights(), models[0].weights(), strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("keep", "dtype", "burst"),
    sliced(itertools.product([0.0, 0.6], ["float32", "float64"], [2, 40, 300]), 1, 11),
)
def test_rare_and_frequent_features(keep: float, dtype: str, burst: int) -> None:
    """A burst sees few of many features, or most of a few; stored zeros do not count (R-0.7)."""
    rng = np.random.default_rng(burst)
    for width in (30, 700):
        X = rng.normal(size=(300, width)) * (rng.random((300, width)) < 8 / width)
        stream = Stream(X, np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0), None, [])
        params = {"dtype": dtype, "burst": burst, "keep": keep, "eta0": 0.1}
        expected = oracle_of(stream, 3, **params)
        full = sp.csr_matrix(X)
        full.data[::7] = 0.0  # stored
        sparser = full.copy()
        sparser.eliminate_zeros()
        models = []
        for rows, jobs in ((X, 1), (X, 2), (full, 1), (sparser, 2)):
            model = learner(width, **params)
            batch = as_batch(rows)
            batch.set_targets(stream.y)
            model.learn(batch, 3, 0.0, jobs, lambda stage: True)
            models.append(model)
        keys, probability, updates, purged = models[0].findings()
        assert models[0].state() == models[1].state()
        assert models[2].state() == models[3].state()
        if dtype == "float64":
            np.testing.assert_allclose(
                mean_weights(models[0], width), expected.weights, rtol=0, atol=1e-10
            )
            np.testing.assert_array_equal(probability, expected.probability[keys])
            np.testing.assert_array_equal(updates, expected.updates[keys])
            np.testing.assert_array_equal(purged, expected.purged[keys])


def test_float32_is_close_to_float64() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 30)) * (rng.random((60, 30)) < 0.3)
    stream = Stream(X, np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0), None, [])
    params = {"rejection": 0.0, "keep": 0.0}
    single = learner(30, "float32", **params)
    single.learn(stream.batch(), 3, 0.0, 1, lambda stage: True)
    expected = oracle_of(stream, 3, **params).weights
    np.testing.assert_allclose(mean_weights(single, 30), expected, atol=1e-5)


def test_training_ends_when_the_model_no_longer_changes() -> None:
    """R-13.14: with tol, it ends when no more features are purged; without tol, it does not."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 10))
    stream = Stream(X, np.where(X[:, 0] > 0, 1.0, -1.0), None, [])
    rows = []
    for tol in (0.0, 10.0):
        stages: list[_core.Stage] = []
        model = learner(10, rejection=0.0, keep=0.0)
        model.learn(
            stream.batch(), 50, tol, 1, lambda stage, stages=stages: stages.append(stage) is None
        )
        rows.append(stages[-1].rows)
    assert rows[1] < rows[0]


def test_bad_rows_do_not_change_the_learner() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 10))
    stream = Stream(X, np.where(X[:, 0] > 0, 1.0, -1.0), None, [])
    model = learned(stream, 1)
    before = model.state()
    bad = Stream(X.copy(), stream.y, None, [])
    bad.csr.data[57] = np.nan
    with pytest.raises(_core.DataError, match="row 5: the value of feature 7 is NaN"):
        model.learn(bad.batch(), 1, 0.0, 2, lambda stage: True)

    def fail(stage: _core.Stage) -> bool:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        model.learn(stream.batch(), 4, 0.0, 2, fail)
    assert model.state() == before
    with pytest.raises(ValueError, match="cut short"):
        model.restore(before[:-3])
    with pytest.raises(ValueError, match="another rule"):
        learner(10, "float32").restore(before)


@given(data=st.data(), loss=st.sampled_from(["logistic", "hinge"]), passes=st.integers(1, 3))
def test_without_rejection_it_is_the_mean_of_plain_sgd(
    data: st.DataObject, loss: str, passes: int
) -> None:
    """P-16, with beta_0 = 0 and pi_0 = 0. Each path repeats its own order, for whole stages."""
    stream = data.draw(streams(loss))
    params = {"loss": loss, "rejection": 0.0, "keep": 0.0, "paths": 3}
    taken = oracle_of(stream, passes, **params).trace[-1].rows
    batch, expected = stream.batch(), np.zeros(stream.width)
    for path in range(3):
        order = _core.path_order(SEED, path, 0, len(stream.y))
        order = np.concatenate([order] * (taken // len(order) + 1))[:taken]
        plain = plain_learner(
            "truncated_gradient", stream.width, loss=loss, eta0=0.3, fit_intercept=False
        )
        plain.learn(batch, order)
        expected += dense_weights(plain, stream.width) / 3
    model = learned(stream, passes, **params)
    np.testing.assert_allclose(mean_weights(model, stream.width), expected, rtol=0, atol=1e-11)
