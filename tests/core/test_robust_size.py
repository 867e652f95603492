"""The robust variant without a target: the number of features is chosen by the labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.robust import robust
from support.streams import Stream, streams
from thresher import _core

SEED = 77
DEFAULTS: dict[str, Any] = {
    "loss": "logistic", "eta0": 1.0, "rejection": 0.5, "keep": 0.5, "min_updates": 1, "paths": 4,
    "seed": SEED, "target": 0, "epsilon": 0.0, "quantile": 0.5, "stage_steps": 40,
    "refit_steps": 80, "size_pairs": 1,
}  # fmt: skip


def learned(
    stream: Stream, dtype: str = "float64", jobs: int = 1, **params: Any
) -> _core.StabilizedLearner:
    values = DEFAULTS | params
    words = {name: value for name, value in values.items() if isinstance(value, str)}
    numbers = {name: float(value) for name, value in values.items() if name not in words}
    model = _core.make_stabilized("robust", dtype, stream.width, numbers, words)
    model.learn(stream.batch(), 3, 0.0, jobs, lambda stage: True)
    return model


def check(stream: Stream, jobs: int = 1, **params: Any) -> int:
    """Compare the core with the oracle; return the number of weights."""
    values = DEFAULTS | params
    expected = robust(
        stream.X, stream.y, lambda path, number, rows: _core.path_order(SEED, path, number, rows),
        loss=values["loss"], eta=values["eta0"], paths=values["paths"], keep=values["keep"],
        rejection=values["rejection"], min_updates=values["min_updates"], target=None, passes=3,
        stage_steps=values["stage_steps"], refit_steps=80, sample_weight=stream.weight,
        pairs=values["size_pairs"] or None,
    )  # fmt: skip
    if expected.margin < 1e-7:  # rounding decides
        return -1
    model = learned(stream, jobs=jobs, **params)
    weights = np.zeros(stream.width)
    keys, found = model.weights()
    weights[keys.astype(int)] = found
    np.testing.assert_allclose(weights, expected.weights, rtol=0, atol=1e-8)
    assert model.intercept() == pytest.approx(expected.intercept, abs=1e-8)
    keys, _, _, purged = model.findings()
    np.testing.assert_array_equal(purged, expected.purged[keys.astype(int)])
    return len(found)


def problem(rows: int, width: int, informative: int, share: float = 0.5, seed: int = 0) -> Stream:
    """Return rows whose first columns decide the label; `share` of them are positive."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, width)) * (rng.random((rows, width)) < 0.7)
    scores = X[:, :informative].sum(axis=1) + 0.1 * rng.normal(size=rows)
    return Stream(X, np.where(scores > np.quantile(scores, 1 - share), 1.0, -1.0), None, [])


@settings(max_examples=settings.default.max_examples)
@given(data=st.data(), loss=st.sampled_from(["logistic", "hinge"]), jobs=st.integers(1, 3))
def test_core_equals_oracle_for_any_rows(data: st.DataObject, loss: str, jobs: int) -> None:
    """Also for one class, one row, empty rows and columns, and weights."""
    check(data.draw(streams("logistic" if loss == "logistic" else "hinge")), jobs, loss=loss)


@pytest.mark.parametrize(
    ("given", "share"),
    [
        ({}, 0.5),
        ({}, 0.1),
        ({"loss": "hinge", "rejection": 0.3, "size_pairs": 2}, 0.5),
        ({"loss": "squared_hinge", "eta0": 0.25, "keep": 0.8}, 0.3),
        ({"size_pairs": 0, "stage_steps": 10}, 0.5),
    ],
)
def test_core_equals_oracle_with_a_signal(given: dict[str, Any], share: float) -> None:
    stream = problem(120, 16, 2, share)
    assert check(stream, 2, **given) > 0
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.5], len(stream.y))
    check(Stream(stream.X, stream.y, weight, []), 2, **given)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_threads_do_not_matter(dtype: str) -> None:
    stream = problem(150, 40, 3)
    states = [learned(stream, dtype, jobs, size_pairs=0).state() for jobs in (1, 2, 3, 7)]
    assert len(set(states)) == 1


def test_random_labels_keep_nothing() -> None:
    """The model is the intercept: the log-odds of the rows."""
    stream = problem(200, 60, 3, 0.3)
    kept = []
    for seed in range(20):
        y = np.random.default_rng(seed).permutation(stream.y)
        model = learned(Stream(stream.X, y, None, []), size_pairs=0, stage_steps=200, seed=seed)
        kept.append(len(model.weights()[0]))
        if kept[-1] == 0:
            assert not model.has_signal()
            assert model.intercept() == pytest.approx(np.log(0.3 / 0.7))
    assert sum(count > 0 for count in kept) <= 1


@pytest.mark.parametrize("share", [0.5, 0.05])
def test_the_informative_features_are_found(share: float) -> None:
    stream = problem(1200, 80, 3, share)
    model = learned(stream, size_pairs=0, stage_steps=500)
    assert model.has_signal()
    keys = model.weights()[0].tolist()
    assert {0, 1, 2} <= set(keys)
    assert len(keys) <= 20


def test_constant_and_empty_columns_carry_no_signal() -> None:
    rng = np.random.default_rng(0)
    y = np.where(rng.random(80) < 0.5, 1.0, -1.0)
    for X in (np.ones((80, 3)), np.zeros((80, 3)), np.ones((80, 1)) * [[1.0, 0.0, 3.0]]):
        assert not learned(Stream(X, y, None, []), size_pairs=0).has_signal()
    model = learned(Stream(rng.normal(size=(80, 3)), np.ones(80), None, []), size_pairs=0)
    assert not model.has_signal()  # one class
    assert model.intercept() == pytest.approx(np.log(80))


def test_resumed_after_the_choice() -> None:
    """A state between two stages has the number of features: a resumed run has the same bytes."""
    stream = problem(120, 60, 3)
    values = {name: v for name, v in (DEFAULTS | {"rejection": 0.2}).items()}
    words = {name: value for name, value in values.items() if isinstance(value, str)}
    numbers = {name: float(value) for name, value in values.items() if name not in words}

    def run(between: Any, resume: bytes | None = None) -> bytes:
        model = _core.make_stabilized("robust", "float32", stream.width, numbers, words)
        model.learn(stream.batch(), 3, 0.0, 1, lambda stage: True, between, resume)
        return model.state()

    states: list[bytes] = []
    whole = run(lambda state: states.append(state()))
    assert len(states) > 1
    for state in states:
        assert run(lambda state: None, state) == whole
