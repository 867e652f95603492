"""Lists of (class, weight): each class equals a separate model trained on the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

from oracles.truncated_gradient import truncated_gradient
from support.streams import DEFAULTS, SCHEDULES, learner
from thresher import _core

DTYPES = st.sampled_from(["float64", "float64", "float32"])
WIDTH = 14
KEYS = np.array([7, 2**40, -1, 2**63 - 1, *range(100, 110)])  # -1: 2^64 - 1


def core_params(params: dict[str, Any]) -> tuple[dict[str, float], dict[str, str]]:
    """Return the parameters of the core: numbers and words."""
    values = DEFAULTS | params
    words = {name: value for name, value in values.items() if isinstance(value, str)}
    return {name: float(v) for name, v in values.items() if name not in words}, words


@dataclass
class Rows:
    """Rows with any number of classes each, and the order of learning."""

    X: np.ndarray
    has: np.ndarray  # rows x classes
    weight: np.ndarray | None
    order: np.ndarray
    hashed: bool
    intercepts: np.ndarray

    def batch(self, y: np.ndarray | None = None) -> _core.Batch:
        c = sp.csr_matrix(self.X)
        keys = KEYS[c.indices] if self.hashed else c.indices
        return _core.sparse_batch(c.indptr, keys, c.data, 0, y, self.weight)

    @property
    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        c = sp.csr_matrix(self.has)
        return c.indptr.astype(np.int64), c.indices.astype(np.int32)

    def make(self, params: dict[str, Any], dtype: str, count: int | None = None) -> Any:
        width = 0 if self.hashed else WIDTH
        lanes = _core.make_labels(
            "truncated_gradient", dtype, width, *core_params(params), count or self.has.shape[1]
        )
        lanes.plant_intercepts(self.intercepts[: len(lanes)])
        return lanes

    def alone(self, lane: int, params: dict[str, Any], dtype: str, low: float) -> _core.Learner:
        """Return a separate model of one class."""
        store, width = ("hashed", 0) if self.hashed else ("dense", WIDTH)
        model = learner("truncated_gradient", width, store=store, dtype=dtype, **params)
        none = np.zeros(0)
        model.start_from(none.astype(np.uint64), none, self.intercepts[lane])
        model.learn(self.batch(np.where(self.has[:, lane], 1.0, low)), self.order)
        return model


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, classes = draw(st.integers(1, 60)), draw(st.sampled_from([1, 3, 8, 21]))
    density = draw(st.sampled_from([0.1, 0.3, 0.8]))
    X = rng.normal(size=(n, WIDTH)) * (rng.random((n, WIDTH)) < density * rng.random(WIDTH) * 1.5)
    has = rng.random((n, classes)) < rng.random(classes) * 0.5
    weight = rng.choice([0.0, 0.5, 1.0, 2.0, 2.7], n) if draw(st.booleans()) else None
    order = rng.integers(0, n, 2 * n) if draw(st.booleans()) else np.arange(n)
    intercepts = rng.normal(size=classes) - draw(st.sampled_from([0.0, 1.0, 3.0]))
    return Rows(
        X.astype(np.float32).astype(float), has, weight, order, draw(st.booleans()), intercepts
    )


@st.composite
def parameters(draw: st.DrawFn) -> dict[str, Any]:
    shrink = draw(st.sampled_from(["truncate", "truncate", "truncate", "round"]))
    ceilings = [0.0317, 0.213] if shrink == "round" else [np.inf, np.inf, np.inf, 0.0317, 0.213]
    return {
        "loss": draw(st.sampled_from(["hinge", "squared_hinge", "margin", "logistic", "squared"])),
        "schedule": draw(st.sampled_from(SCHEDULES)),
        "eta0": draw(st.sampled_from([0.0503, 0.151])),
        "relative": draw(st.booleans()),
        "fading": draw(st.booleans()),
        "power": draw(st.sampled_from([0.3, 0.75])),
        "gravity": draw(st.sampled_from([0.0, 0.0107, 0.103])),
        "period": draw(st.sampled_from([1, 3, 10])),
        "ceiling": draw(st.sampled_from(ceilings)),
        "shrink": shrink,
        "l2": draw(st.sampled_from([0.0, 0.0, 0.0531])),
        "fit_intercept": draw(st.booleans()),
        "epsilon": 0.317,
        "sweep_events": draw(st.sampled_from([2, 7, 1 << 20])),
    }


def weights_of(model: Any, *lane: int) -> dict[int, float]:
    keys, values = model.weights(*lane)
    return dict(zip(keys.tolist(), values.tolist(), strict=True))


def assert_same_weights(found: dict[int, float], expected: dict[int, float], atol: float) -> None:
    for key in found.keys() | expected.keys():
        assert found.get(key, 0.0) == pytest.approx(expected.get(key, 0.0), rel=0, abs=atol)


def tolerance(dtype: str, predictions: np.ndarray) -> float:
    """Return the tolerance for predictions; rejects cases whose rounding errors are too large."""
    assume(np.abs(predictions).max(initial=0.0) < 50)
    return (1e-10 if dtype == "float64" else 1e-5) * max(1.0, np.abs(predictions).max(initial=0.0))


@given(rows=rows(), params=parameters(), dtype=DTYPES, low=st.sampled_from([-1.0, -1.0, 0.0]))
def test_a_class_equals_a_model_trained_alone(
    rows: Rows, params: dict[str, Any], dtype: str, low: float
) -> None:
    """Weights, intercepts, losses, counts and predictions are equal."""
    lanes = rows.make(params, dtype)
    before = lanes.learn(rows.batch(), rows.order, classes=rows.classes, low=low, before=True)
    atol = tolerance(dtype, before)
    predictions = lanes.predict(rows.batch())
    labels, keys, values = lanes.class_weights()
    assert np.all(np.diff(labels) >= 0)
    for lane in range(len(lanes)):
        model = rows.alone(lane, params, dtype, low)
        own = weights_of(lanes, lane)
        assert_same_weights(own, weights_of(model), atol)
        assert keys[labels == lane].tolist() == list(own)
        assert values[labels == lane].tolist() == list(own.values())
        assert lanes.nonzeros()[lane] == len(own)
        assert lanes.intercepts()[lane] == pytest.approx(model.intercept(), abs=atol)
        assert lanes.steps()[lane] == model.steps == len(rows.order)
        assert lanes.weight_sums()[lane] == pytest.approx(model.weight_sum)
        assert lanes.loss_sums()[lane] == pytest.approx(model.loss_sum, rel=1e-5, abs=100 * atol)
        assert lanes.rates()[lane] == pytest.approx(model.rate)
        alone = model.predict(rows.batch())
        np.testing.assert_allclose(predictions[:, lane], alone, atol=10 * atol)
    assert set(lanes.layouts) == {"list"}
    assert not any(lanes.divergences)


@given(rows=rows(), params=parameters())
def test_a_class_equals_the_oracle(rows: Rows, params: dict[str, Any]) -> None:
    """The oracle truncates all weights of a class at every event."""
    rows.hashed, rows.intercepts = False, np.zeros_like(rows.intercepts)
    params["loss"] = "hinge" if params["loss"] == "margin" else params["loss"]
    lanes = rows.make(params, "float64")
    lanes.learn(rows.batch(), rows.order, classes=rows.classes)
    own = {name: value for name, value in params.items() if name != "sweep_events"}
    for lane in range(len(lanes)):
        y = np.where(rows.has[:, lane], 1.0, -1.0)
        oracle = truncated_gradient(
            rows.X, y, [rows.order], sample_weight=rows.weight, dtype=np.dtype("float64"), **own
        )
        atol = tolerance("float64", np.array(oracle.predictions))
        found = weights_of(lanes, lane)
        expected = {i: w for i, w in enumerate(oracle.weights.tolist()) if abs(w) > atol}
        assert_same_weights(found, expected, 2 * atol)
        assert lanes.intercepts()[lane] == pytest.approx(oracle.intercept, abs=atol)


@given(rows=rows(), params=parameters(), dtype=DTYPES, data=st.data())
def test_batches_and_resuming_change_nothing(
    rows: Rows, params: dict[str, Any], dtype: str, data: st.DataObject
) -> None:
    """Bit-identical, for any division into batches, with a state restored after each batch."""
    whole = rows.make(params, dtype)
    whole.learn(rows.batch(), rows.order, classes=rows.classes)
    tolerance(dtype, whole.predict(rows.batch()))
    part = rows.make(params, dtype)
    n = len(rows.order)
    cuts = sorted(data.draw(st.sets(st.integers(0, n), max_size=3)) | {0, n})
    for first, last in pairwise(cuts):
        part.learn(rows.batch(), rows.order, first, last, classes=rows.classes)
        resumed = rows.make(params, dtype, count=1)
        resumed.restore(part.state())
        part = resumed
    for a, b in zip(whole.class_weights(), part.class_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(whole.intercepts(), part.intercepts())
    np.testing.assert_array_equal(whole.loss_sums(), part.loss_sums())
    np.testing.assert_array_equal(whole.steps(), part.steps())


@given(rows=rows(), dtype=DTYPES)
def test_unseen_rows_are_skipped(rows: Rows, dtype: str) -> None:
    """The result is the same as without these rows; they have no predictions (NaN)."""
    seen = (np.arange(len(rows.X)) % 3 > 0).astype(np.uint8)[:, None]
    lanes, fewer = rows.make({"loss": "hinge"}, dtype), rows.make({"loss": "hinge"}, dtype)
    before = lanes.learn(rows.batch(), rows.order, seen=seen, classes=rows.classes, before=True)
    kept = seen[rows.order, 0] == 1
    fewer.learn(rows.batch(), rows.order[kept], classes=rows.classes)
    np.testing.assert_array_equal(np.isnan(before).all(axis=1), ~kept)
    np.testing.assert_array_equal(lanes.intercepts(), fewer.intercepts())
    np.testing.assert_array_equal(lanes.class_weights()[2], fewer.class_weights()[2])


@given(rows=rows(), dtype=DTYPES)
def test_a_class_that_is_added_later(rows: Rows, dtype: str) -> None:
    """It equals a lane that exists from the beginning and makes no step before."""
    assume(rows.has.shape[1] > 1)
    half, fewer = len(rows.order) // 2, rows.has.shape[1] - 1
    rows.has[rows.order[:half], fewer] = False
    rows.intercepts[fewer] = -1e6  # its margin is always satisfied
    params = {"loss": "hinge", "gravity": 0.0107, "eta0": 0.0503}
    there = rows.make(params, dtype)
    there.learn(rows.batch(), rows.order, classes=rows.classes)
    later = rows.make(params, dtype, count=fewer)
    later.learn(rows.batch(), rows.order, 0, half, classes=rows.classes)
    later.grow(fewer + 1)
    later.plant_intercepts(np.append(later.intercepts()[:fewer], -1e6))
    later.learn(rows.batch(), rows.order, half, classes=rows.classes)
    atol = tolerance(dtype, there.predict(rows.batch())[:, :fewer])
    for lane in range(fewer + 1):
        assert_same_weights(weights_of(later, lane), weights_of(there, lane), atol)
    assert later.steps().tolist() == [len(rows.order)] * fewer + [len(rows.order) - half]
    np.testing.assert_allclose(later.loss_sums(), there.loss_sums(), rtol=1e-5, atol=1e-5)


def stream(n: int, seed: int = 0) -> tuple[_core.Batch, tuple[np.ndarray, np.ndarray]]:
    """Return rows over 2^20 mostly rare features, with one of 50 classes each."""
    rng = np.random.default_rng(seed)
    keys = np.sort(rng.integers(0, 1 << 20, (n, 8)), axis=1)
    starts = np.arange(n + 1, dtype=np.int64)
    batch = _core.sparse_batch(8 * starts, keys.ravel(), np.ones(8 * n), 0, None, None)
    return batch, (starts, rng.integers(0, 50, n).astype(np.int32))


@pytest.mark.parametrize(
    ("width", "batches"),
    [
        (0, 3),
        pytest.param(0, 12, marks=pytest.mark.soak),
        pytest.param(1 << 20, 12, marks=pytest.mark.soak),
    ],
)
def test_memory_depends_on_the_nonzero_weights(width: int, batches: int) -> None:
    """Without gravity the store keeps every (feature, class); with gravity it stays small."""
    sizes = []
    for gravity in (0.0, 0.02):
        numbers, words = core_params({"loss": "hinge", "gravity": gravity})
        lanes = _core.make_labels("truncated_gradient", "float32", width, numbers, words, 50)
        lanes.plant_intercepts(np.full(50, -2.0))
        for seed in range(batches):
            batch, classes = stream(50_000, seed)
            lanes.learn(batch, classes=classes)
        sizes.append((lanes.store_bytes, lanes.nonzeros().sum()))
    (grown, many), (small, few) = sizes
    assert many > 330_000 * batches
    assert few < min(400_000, many // 2)
    assert batches < 12 or small < grown - 16_000_000
    assert grown < 24 * many + (1 << 25) * 2


def test_small_shrink_events_are_not_lost_by_rounding() -> None:
    """This holds in float32, even if another class makes a step at every row."""
    numbers, words = core_params({"loss": "hinge", "gravity": 1e-7, "eta0": 0.1})
    lanes = _core.make_labels("truncated_gradient", "float32", 1, numbers, words, 2)
    n = 100_000
    starts = np.arange(n + 1, dtype=np.int64)
    batch = _core.sparse_batch(starts, np.zeros(n, dtype=np.int64), np.ones(n), 1, None, None)
    has = np.zeros(n, dtype=np.int32)  # class 1 is only in the first 20 rows
    has[:20] = 1
    lanes.plant_intercepts(np.array([0.0, -3.0]))
    lanes.learn(batch, last=20, classes=(starts, has))
    first = lanes.predict(batch)[0, 1] - lanes.intercepts()[1]
    lanes.plant_intercepts(np.array([-1e4, -1e4]))  # class 0 steps at every row, class 1 never
    lanes.learn(batch, first=20, classes=(starts, has))
    assert lanes.weights(1)[1] == pytest.approx(first - (n - 20) * 1e-8, rel=1e-4)


def test_only_the_lane_that_diverges_stops() -> None:
    """The other lanes learn as if it did not exist."""
    rng = np.random.default_rng(3)
    X = np.abs(rng.normal(size=(300, 4)))
    has = np.zeros(300, dtype=np.int32)
    batch = _core.dense_batch(X, None, None)
    numbers, words = core_params({"loss": "squared_hinge", "eta0": 40.0})
    lanes = _core.make_labels("truncated_gradient", "float64", 4, numbers, words, 2)
    lanes.plant_intercepts(np.array([0.0, -1e9]))
    classes = (np.arange(301, dtype=np.int64), has)
    has[100::2] = 5  # not one of the classes
    lanes.learn(batch, classes=classes)
    what, fine = lanes.divergences
    assert "diverged at step" in what
    assert "lower eta0" in what
    assert not fine
    assert lanes.steps()[0] < 300
    assert lanes.steps()[1] == 300
    again = _core.make_labels("truncated_gradient", "float64", 4, numbers, words, 1)
    again.restore(lanes.state())
    assert again.divergences == [what, fine]
    assert np.isnan(again.learn(batch, classes=classes, before=True)[:, 0]).all()


def test_a_bad_row_is_named_and_not_learned() -> None:
    """The rows before it are learned."""
    X = np.ones((5, 2))
    numbers, words = core_params({"loss": "hinge"})
    classes = (np.arange(6, dtype=np.int64), np.zeros(5, dtype=np.int32))
    for value in (np.nan, np.inf, 1e200):
        X[3, 1] = value
        lanes = _core.make_labels("truncated_gradient", "float64", 2, numbers, words, 1)
        with pytest.raises(ValueError, match="row 3: the value of feature 1"):
            lanes.learn(_core.dense_batch(X, None, None), classes=classes)
        assert lanes.steps()[0] == 3
        with pytest.raises(ValueError, match="row 3"):
            lanes.predict(_core.dense_batch(X, None, None))
    weights = np.array([1.0, -1.0, 1, 1, 1])
    lanes = _core.make_labels("truncated_gradient", "float64", 2, numbers, words, 1)
    with pytest.raises(ValueError, match="row 1: the sample weight"):
        lanes.learn(_core.dense_batch(np.ones((5, 2)), None, weights), classes=classes)
    keys = np.array([0, 1, 2], dtype=np.int64)
    batch = _core.sparse_batch(np.arange(4), keys, np.ones(3), 0, None, None)
    with pytest.raises(ValueError, match=r"row 2: feature number 2 is outside 0\.\.1"):
        lanes.learn(batch, classes=(np.arange(4), np.zeros(3, dtype=np.int32)))
    with pytest.raises(ValueError, match="needs the classes"):
        lanes.learn(_core.dense_batch(np.ones((1, 2)), np.ones(1), None))


def test_lanes_are_added_for_the_next_classes() -> None:
    """New lanes must have the parameters and the clock of the others."""
    numbers, words = core_params({"loss": "hinge"})
    lanes = _core.make_labels("truncated_gradient", "float32", 0, numbers, words, 2)
    lanes.add([numbers] * 2, [words] * 2, [0, 0], [2, 3])
    assert len(lanes) == 4
    other = numbers | {"gravity": 0.5}
    for given_numbers, clock, target in [(other, 0, 4), (numbers, 1, 4), (numbers, 0, 5)]:
        with pytest.raises(ValueError, match="same parameters and clock"):
            lanes.add([given_numbers], [words], [clock], [target])
    assert len(lanes) == 4


@pytest.mark.parametrize(
    ("rule", "params", "what"),
    [
        ("ftrl", {}, "not ftrl"),
        ("truncated_gradient", {"shrink": "subgradient"}, "produces no zeros"),
        ("truncated_gradient", {"average": True}, "averages"),
        ("truncated_gradient", {"target_nnz": 3}, "target number"),
        ("truncated_gradient", {"loss": "poisson"}, "poisson"),
    ],
)
def test_rules_and_parameters_without_lists(rule: str, params: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        _core.make_labels(rule, "float32", 0, *core_params(params), 3)


def test_damaged_states_are_refused() -> None:
    """States that are truncated or have another number type do not change the lanes."""
    numbers, words = core_params({"loss": "hinge"})
    lanes = _core.make_labels("truncated_gradient", "float32", 0, numbers, words, 50)
    batch, classes = stream(20)
    lanes.learn(batch, classes=classes)
    state = lanes.state()
    other = _core.make_labels("truncated_gradient", "float64", 0, numbers, words, 50)
    with pytest.raises(ValueError, match="another kind or number type"):
        other.restore(state)
    for size in range(0, len(state) - 1, 97):
        with pytest.raises(ValueError, match=r"state|learner"):
            lanes.restore(state[:size])
    assert lanes.state() == state
    with pytest.raises(ValueError, match="classes cannot be removed"):
        lanes.grow(49)
    with pytest.raises(ValueError, match="at most"):
        lanes.grow(10**6)
