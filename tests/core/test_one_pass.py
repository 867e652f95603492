"""The rule one-pass: its oracle, orders, stores, vector levels, outputs and units.

R-17.1 to R-17.10 describe the rule.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.one_pass import one_pass
from support.exactness import STORES
from support.lane_cases import batch_of, levels, rows_of
from support.one_pass_cases import LOSSES, bank, dtypes, numbers_of_lanes, parameters, targets_of
from support.streams import Stream, dense_weights, learner, streams
from thresher import _core

WEIGHTS = {
    "none": None,
    "integers": [0.0, 1.0, 2.0, 3.0, 7.0],
    "fractions": [0.0, 0.25, 0.5, 1.0, 2.5],
    "small": [1e-3, 1e-2],
    "large": [1.0, 100.0, 1e4],
}


@settings(max_examples=2 * settings.default.max_examples)
@given(
    data=st.data(),
    loss=st.sampled_from(LOSSES),
    lanes=st.sampled_from([12, 4]),
    fit=st.booleans(),
    store=STORES,
    cut=st.sampled_from([0.0, 0.00101, 0.0517]),
    target=st.sampled_from([0, 0, 3]),
    relative=st.booleans(),
    weights=st.sampled_from(sorted(WEIGHTS)),
)
def test_the_core_equals_the_oracle(
    data: st.DataObject, loss: str, lanes: int, fit: bool, store: str, cut: float, target: int,
    relative: bool, weights: str,
) -> None:  # fmt: skip
    """Weights, intercept, predictions and losses, for one pass and for several."""
    stream = data.draw(streams(loss, weighted=False))
    allowed = WEIGHTS[weights]
    if allowed is not None:
        rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
        stream.weight = rng.choice(allowed, len(stream.y))
    params = parameters(
        loss, lanes=lanes, fit_intercept=fit, cut=cut, target_nnz=target, relative_epsilon=relative
    )
    oracle = one_pass(stream.X, stream.y, stream.passes, sample_weight=stream.weight, **params)
    model = stream.learn(learner("one_pass", stream.width, store=store, **params))
    rough = 1e-6 if weights == "large" else 1e-9
    near = {"rtol": rough, "atol": rough * max(1.0, np.abs(oracle.weights).max(initial=0.0))}
    got = dense_weights(model, stream.width)
    np.testing.assert_allclose(got, oracle.weights, **near)
    np.testing.assert_allclose(model.intercept(), oracle.intercept, **near)
    np.testing.assert_allclose(model.loss_sum, sum(oracle.losses), rtol=rough, atol=rough)
    assert model.steps == oracle.steps
    assert model.nonzeros() == np.count_nonzero(got)
    together = bank(params, stream.width, store=store)
    before = []
    for number, order in enumerate(stream.passes):
        if number:
            together.next_pass()
        before.append(together.learn(stream.batch(), order, before=True)[:, 0])
    np.testing.assert_allclose(np.concatenate(before), oracle.predictions, rtol=rough, atol=rough)


@numbers_of_lanes
@pytest.mark.parametrize("loss", LOSSES)
def test_single_precision_is_near_the_oracle(loss: str, lanes: int) -> None:
    rng = np.random.default_rng(4)
    X = (rng.normal(size=(150, 6)) * (rng.random((150, 6)) < 0.5)).astype(np.float32)
    y = targets_of(rng, X, loss)
    weight = rng.choice([0.5, 1.0, 3.0], 150)
    params = parameters(loss, lanes=lanes)
    oracle = one_pass(X, y, [np.arange(150)], sample_weight=weight, **params)
    stream = Stream(X, y, weight, [np.arange(150)])
    model = stream.learn(learner("one_pass", 6, dtype="float32", **params))
    scale = np.abs(oracle.weights).max()
    np.testing.assert_allclose(dense_weights(model, 6), oracle.weights, atol=2e-4 * scale)
    np.testing.assert_allclose(model.loss_sum, sum(oracle.losses), rtol=1e-4)


@dtypes
@numbers_of_lanes
@pytest.mark.parametrize("loss", LOSSES)
def test_all_instruction_sets_give_the_same_bits(loss: str, lanes: int, dtype: str) -> None:
    rng = np.random.default_rng(lanes)
    X = rows_of(rng, 200, 30, dtype)
    y = targets_of(rng, X.toarray(), loss)
    weight = rng.choice([0.0, 0.5, 1.0, 5.0], 200)
    params, states = parameters(loss, lanes=lanes), []
    for level in levels():
        made = bank(params, 30, dtype=dtype, level=level)
        made.learn(batch_of(X, y, weight))
        assert made.layouts == [f"{level} bank of {lanes}"]
        states.append(made.state())
    assert all(state == states[0] for state in states)


@dtypes
@numbers_of_lanes
@given(
    seed=st.integers(0, 2**20), store=STORES, outputs=st.integers(2, 9), clocks=st.integers(1, 2)
)
@settings(max_examples=settings.default.max_examples)
def test_outputs_that_learn_together_equal_single_ones(
    lanes: int, dtype: str, seed: int, store: str, outputs: int, clocks: int
) -> None:
    """Scales depend on the rows alone, so even the bits are the same."""
    rng = np.random.default_rng(seed)
    X = rows_of(rng, 80, 12, dtype)
    kinds = rng.integers(0, outputs, 80).astype(np.int32)
    seen = (rng.random((80, clocks)) < 0.8).astype(np.uint8)
    weight = rng.choice([0.0, 1.0, 2.5], 80)
    params, own = (
        parameters("logistic", lanes=lanes, cut=0.01),
        [i % clocks for i in range(outputs)],
    )
    together = bank(params, 12, range(outputs), own, store=store, dtype=dtype)
    classes = (np.arange(81), kinds)
    batch = batch_of(X, None, weight)
    found = together.learn(batch, seen=seen, classes=classes, low=-1.0, before=True)
    raw = together.predict(batch, np.arange(outputs))
    for output in range(outputs):
        alone = learner("one_pass", 12, store=store, dtype=dtype, **params)
        labels = batch_of(X, np.where(kinds == output, 1.0, -1.0), weight)
        alone.learn(labels, np.flatnonzero(seen[:, own[output]]))
        for one, other in zip(alone.weights(), together.weights(output), strict=True):
            np.testing.assert_array_equal(one, other)
        assert alone.intercept() == together.intercepts()[output]
        assert alone.loss_sum == together.loss_sums()[output]
        np.testing.assert_array_equal(alone.predict(labels), raw[:, output])
        assert alone.nonzeros() == together.nonzeros()[output]
        assert np.isnan(found[:, output]).tolist() == (seen[:, own[output]] == 0).tolist()


@dtypes
@pytest.mark.parametrize("loss", LOSSES)
def test_a_state_continues_with_the_same_bits(loss: str, dtype: str) -> None:
    """P-20: also between passes."""
    rng = np.random.default_rng(1)
    X = rows_of(rng, 90, 15, dtype)
    batch = batch_of(X, targets_of(rng, X.toarray(), loss), rng.choice([0.0, 0.5, 1.0, 3.0], 90))
    order, params = rng.permutation(90), parameters(loss, lanes=4, cut=0.01)

    def fresh(store: str) -> _core.Learner:
        return learner("one_pass", 15, store=store, dtype=dtype, **params)

    whole, pieces = fresh("dense"), fresh("hashed")
    whole.learn(batch)
    whole.next_pass()
    whole.learn(batch, order)
    for first, last in ((0, 1), (1, 33), (33, 90), (90, 91), (91, 150), (150, 180)):
        visited, begin = (None, 0) if first < 90 else (order, 90)
        if first == 90:
            pieces.next_pass()
        pieces.learn(batch, visited, first - begin, last - begin)
        pieces.nonzeros(), pieces.weights(), pieces.predict(batch)
        state = pieces.state()
        pieces = fresh("hashed")
        pieces.restore(state)
    for one, other in zip(whole.weights(), pieces.weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert whole.intercept() == pieces.intercept()
    assert whole.loss_sum == pieces.loss_sum
    assert whole.facts() == pieces.facts()


def test_a_state_of_another_bank_is_refused() -> None:
    four = learner("one_pass", 3, **parameters("logistic", lanes=4))
    state = four.state()
    for other in (
        learner("one_pass", 3, **parameters("logistic", lanes=12)),
        learner("one_pass", 3, dtype="float32", **parameters("logistic", lanes=4)),
    ):
        with pytest.raises(ValueError, match="state is of lanes of another rule"):
            other.restore(state)
    for bad in (state[:-3], state + b"1234"):
        with pytest.raises(ValueError, match="state"):
            four.restore(bad)


@dtypes
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "poisson"])
def test_units_that_are_powers_of_two_change_no_bit(loss: str, dtype: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 5)).astype(dtype)
    y = targets_of(rng, X, loss)
    unit = 1.0 if loss == "logistic" else 2.0**20
    columns = np.array([1.0, 2.0**10, 2.0**-10, 1.0, 2.0**30])
    found = []
    for scale, times in ((np.ones(5), 1.0), (np.full(5, 2.0**-7), unit), (columns, 1 / unit)):
        model = learner("one_pass", 5, dtype=dtype, **parameters(loss, cut=0.01))
        stream = Stream(X * scale, y * times, None, [np.arange(120)])
        stream.learn(model)
        common = bool((scale == scale[0]).all())
        found.append((dense_weights(model, 5) * scale / times, model.intercept() / times, common))
    for weights, intercept, common in found[1:]:
        if common:
            np.testing.assert_array_equal(weights, found[0][0])
            assert intercept == found[0][1]
    own = found[2][0]
    assert np.isfinite(own).all()  # lanes with a common scale see other columns


@dtypes
@numbers_of_lanes
def test_the_most_useful_features_are_kept(lanes: int, dtype: str) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 30))
    stream = Stream(X, 3 * X[:, 4] - X[:, 9] + 0.1 * rng.normal(size=400), None, [np.arange(400)])
    kept = {}
    for cut, target in ((0.0, 0), (0.01, 0), (0.0, 2), (0.0, 1), (0.9, 0)):
        params = parameters("squared", lanes=lanes, cut=cut, target_nnz=target)
        model = stream.learn(learner("one_pass", 30, dtype=dtype, **params))
        kept[cut, target] = set(np.flatnonzero(dense_weights(model, 30)))
        assert len(kept[cut, target]) == model.nonzeros()
    assert len(kept[0.0, 0]) == 30
    assert kept[0.01, 0] >= {4, 9}
    assert len(kept[0.01, 0]) < 30
    assert kept[0.0, 2] == {4, 9}
    assert kept[0.0, 1] == kept[0.9, 0] == {4}


@pytest.fixture(params=["any address", "limited addresses"])
def addresses(request: pytest.FixtureRequest) -> Iterator[None]:
    """Limit the addresses of the process, or not: memory grows in place if they are not limited."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    if request.param == "limited addresses":
        resource.setrlimit(resource.RLIMIT_AS, (2**46, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.usefixtures("addresses")
def test_a_hashed_store_that_grows_to_many_features_keeps_the_bits() -> None:
    """Its memory moves while rows are learned; a dense store has all of it from the beginning."""
    rng, width, rows = np.random.default_rng(5), 400_000, 16_000
    columns = rng.integers(width, size=(rows, 1)) + 19_997 * np.arange(20)
    X = sp.csr_array(
        (
            rng.normal(size=20 * rows).astype(np.float32),
            (columns % width).ravel(),
            np.arange(0, 20 * rows + 1, 20),
        ),
        shape=(rows, width),
    )
    batch = batch_of(X, rng.choice([-1.0, 1.0], rows))
    dense, hashed = (
        learner("one_pass", width, store=store, dtype="float32", **parameters("logistic", lanes=12))
        for store in ("dense", "hashed")
    )
    for first in range(0, rows, 4000):
        for model in (dense, hashed):
            model.learn(batch, None, first, first + 4000)
        assert dense.nonzeros() == hashed.nonzeros()
    keys, weights = hashed.weights()
    assert len(keys) == hashed.nonzeros() > 150_000
    assert (np.diff(keys.astype(np.int64)) > 0).all()
    for one, other in zip(dense.weights(), (keys, weights), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("wide", [False, True])
def test_rows_learned_together_equal_rows_learned_alone(dtype: str, wide: bool) -> None:
    """While a row of a hashed store is learned, the cells of the next row are found."""
    rng = np.random.default_rng(8)
    sizes = [5, 0, 1, 30, 0, 1500, 1500, 7, 7, 7, 1024, 1025, 3]
    keys = [rng.choice(4000, size, replace=False) for size in sizes]
    keys[7:10] = [keys[7]] * 3  # the same cells in turn
    starts, columns = np.cumsum([0, *sizes]), np.concatenate(keys)
    columns = columns * 2**40 + 7 if wide else columns.astype(np.int32)
    values, labels = rng.normal(size=len(columns)), rng.choice([-1.0, 1.0], len(sizes))
    order = np.concatenate([np.arange(13), [5, 5, 6, 5, 1, 1, 0, 12, 12, 3], rng.permutation(13)])
    params = parameters("logistic")
    together, alone = (
        learner("one_pass", 0, store="hashed", dtype=dtype, **params) for _ in range(2)
    )
    batch = _core.sparse_batch(starts, columns, values.astype(dtype), 0, labels)
    together.learn(batch, order)
    for row in order:
        alone.learn(batch, np.array([row]))
    assert together.state() == alone.state()
