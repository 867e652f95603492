"""Lanes: divergence, bad rows, lanes added later, damaged states, and threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.sparse as sp

from support.lane_cases import batch_of, defaults, grid, rows_of, same
from thresher import _core
from thresher.rules import RULES
from thresher.rules.core_args import core_parameters


def test_a_lane_that_diverges_stops_and_the_others_continue() -> None:
    rng = np.random.default_rng(0)
    X = rows_of(rng, 300, 10, "float64") * 100
    y = rng.standard_normal(300)
    arguments = [
        core_parameters(
            "truncated-gradient", defaults("truncated-gradient") | {"loss": "squared", "eta0": e},
            None,
        )
        for e in (1e-6, 10.0, 1e-5)
    ]  # fmt: skip
    made = _core.make_lanes(
        "truncated_gradient", "dense", "float64", 10, [n for n, _ in arguments],
        [w for _, w in arguments], [0] * 3, [-1] * 3,
    )  # fmt: skip
    made.learn(batch_of(X, y))
    assert made.divergences[0] == made.divergences[2] == ""
    assert "diverged at step" in made.divergences[1]
    assert "lower eta0" in made.divergences[1]
    assert np.isfinite(made.loss_sums()).all()
    assert made.steps()[1] < 300
    assert made.steps()[0] == made.steps()[2] == 300
    alone = _core.make_learner("truncated_gradient", "dense", "float64", 10, *arguments[2])
    alone.learn(batch_of(X, y))
    same(made.predict(batch_of(X, y))[:, 2], alone.predict(batch_of(X, y)), "float64")
    again = _core.make_lanes(
        "truncated_gradient", "dense", "float64", 10, [n for n, _ in arguments],
        [w for _, w in arguments], [0] * 3, [-1] * 3,
    )  # fmt: skip
    again.restore(made.state())
    assert again.divergences == made.divergences
    assert again.steps().tolist() == made.steps().tolist()


@pytest.mark.parametrize("rule", ["truncated-gradient", "dual-averaging"])
def test_a_bad_row_is_named_and_the_rows_before_it_are_learned(rule: str) -> None:
    rng = np.random.default_rng(0)
    X = rows_of(rng, 50, 10, "float64")
    X.data[X.indptr[20]] = np.nan
    numbers, words = zip(*[core_parameters(rule, defaults(rule), None)] * 3, strict=True)
    made = _core.make_lanes(
        RULES[rule].core, "dense", "float64", 10, list(numbers), list(words), [0] * 3, [-1] * 3
    )
    with pytest.raises(_core.DataError, match="row 20: the value of feature"):
        made.learn(batch_of(X, np.ones(50)))
    assert made.steps().tolist() == [20] * 3
    with pytest.raises(_core.DataError, match="row 3: the label is NaN"):
        made.learn(batch_of(X, np.r_[np.ones(3), np.nan, np.ones(46)]))
    assert made.steps().tolist() == [23] * 3


@pytest.mark.parametrize("rule", ["truncated-gradient", "dual-averaging"])
def test_a_bad_row_also_stops_lanes_that_do_not_see_it(rule: str) -> None:
    X = rows_of(np.random.default_rng(0), 50, 10, "float64")
    X.data[X.indptr[20]] = np.nan
    seen = np.ones((50, 2), np.uint8)
    seen[20, 0] = 0
    numbers, words = zip(*[core_parameters(rule, defaults(rule), None)] * 2, strict=True)
    made = _core.make_lanes(
        RULES[rule].core, "dense", "float64", 10, list(numbers), list(words), [0, 1], [-1, -1]
    )
    with pytest.raises(_core.DataError, match="row 20"):
        made.learn(batch_of(X, np.ones(50)), seen=seen)
    assert made.steps().tolist() == [20, 20]


def test_the_largest_key_has_its_own_cell_after_sweeps() -> None:
    keys = np.array([-1] + [7] * 12 + [9, 9], np.int64)
    labels = np.array([0.1] + [0.0] * 12 + [50.0, 50.0])
    numbers, words = core_parameters(
        "truncated-gradient",
        defaults("truncated-gradient")
        | {"loss": "squared", "gravity": 0.5, "eta0": 0.1, "period": 1, "fit_intercept": False},
        None,
    )
    numbers["sweep_events"] = 5.0
    batch = _core.sparse_batch(np.arange(16), keys, np.ones(15), 0, labels)
    alone = _core.make_learner("truncated_gradient", "hashed", "float64", 0, numbers, words)
    alone.learn(batch)
    made = _core.make_lanes(
        "truncated_gradient", "hashed", "float64", 0, [numbers] * 2, [words] * 2, [0, 0], [-1, -1]
    )
    made.learn(batch)
    for found in (made.weights(0), made.weights(1)):
        assert found[0].tolist() == alone.weights()[0].tolist() == [9]
        np.testing.assert_allclose(found[1], alone.weights()[1], rtol=1e-12)


def test_a_failed_add_changes_nothing() -> None:
    numbers, words = grid(lanes=2)
    made = _core.make_lanes(
        "truncated_gradient", "dense", "float64", 10, numbers, words, [0, 0], [-1, -1]
    )
    short = {name: value for name, value in numbers[0].items() if name != "gravity"}
    with pytest.raises(ValueError, match="gravity"):
        made.add([short], words[:1], [7], [3])
    assert len(made) == 2
    assert made.intercepts().tolist() == [0.0, 0.0]
    made.learn(batch_of(rows_of(np.random.default_rng(0), 5, 10, "float64"), np.ones(5)))
    assert made.steps().tolist() == [5, 5]


def test_predictions_that_overflow_are_an_error_by_default() -> None:
    rule = "truncated-gradient"
    params = defaults(rule) | {"loss": "squared", "eta0": 1e10}
    numbers, words = core_parameters(rule, params, None)
    made = _core.make_lanes(
        RULES[rule].core, "dense", "float32", 2, [numbers] * 2, [words] * 2, [0, 0], [-1, -1],
    )  # fmt: skip
    made.learn(batch_of(sp.csr_matrix(np.ones((1, 2), np.float32)), np.full(1, 1e19)))
    huge = batch_of(sp.csr_matrix(np.full((3, 2), 1e18, np.float32)), None)
    assert not np.isfinite(made.predict(huge, finite=False)).any()
    with pytest.raises(_core.DataError, match="the prediction overflows"):
        made.predict(huge)


def test_lanes_can_be_added_while_another_thread_learns() -> None:
    numbers, words = grid(lanes=1)
    X = rows_of(np.random.default_rng(0), 4000, 10, "float64")
    batch = batch_of(X, np.ones(4000))
    made = _core.make_lanes("truncated_gradient", "dense", "float64", 10, numbers, words, [0], [-1])
    shapes: list[int] = []

    def learn() -> None:
        for _ in range(10):
            before = made.learn(batch, before=True)
            assert before is not None
            shapes.append(before.shape[1])

    thread = threading.Thread(target=learn)
    thread.start()
    for _ in range(20):
        made.add(numbers * 3, words * 3, [0] * 3, [-1] * 3)
    thread.join()
    assert len(made) == 61
    assert len(shapes) == 10
    assert shapes == sorted(shapes)


def test_a_lane_added_later_equals_a_model_of_the_later_rows() -> None:
    rng = np.random.default_rng(0)
    X = rows_of(rng, 100, 10, "float64")
    kinds = rng.integers(0, 3, 100).astype(np.int32)
    starts = np.arange(101)
    numbers, words = grid(lanes=1)
    made = _core.make_lanes(
        "truncated_gradient", "hashed", "float64", 0, numbers * 2, words * 2, [0] * 2, [0, 1]
    )
    batch = batch_of(X, None)
    made.learn(batch, None, 0, 40, classes=(starts, kinds))
    made.add(numbers, words, [0], [2])
    made.learn(batch, None, 40, 100, classes=(starts, kinds))
    assert made.steps().tolist() == [100, 100, 60]
    alone = _core.make_learner("truncated_gradient", "hashed", "float64", 0, numbers[0], words[0])
    own = batch_of(X, np.where(kinds == 2, 1.0, -1.0))
    alone.learn(own, None, 40, 100)
    same(made.predict(batch)[:, 2], alone.predict(own), "float64")


def test_damaged_states_and_states_of_other_lanes_are_refused() -> None:
    rng = np.random.default_rng(0)
    X, y = rows_of(rng, 30, 10, "float64"), np.ones(30)

    def fresh(lanes: int, rule: str = "truncated_gradient") -> _core.Lanes:
        name = rule.replace("_", "-")
        numbers, words = grid(name, lanes) if name == "truncated-gradient" else zip(
            *[core_parameters(name, defaults(name), None)] * lanes, strict=True
        )  # fmt: skip
        return _core.make_lanes(
            rule, "dense", "float64", 10, list(numbers), list(words), [0] * lanes, [-1] * lanes
        )

    made = fresh(5)
    made.learn(batch_of(X, y))
    state = made.state()
    for other in (fresh(4), fresh(5, "ftrl")):
        with pytest.raises(ValueError, match="state"):
            other.restore(state)
    for damaged in (state[:-1], state + b"\0", state[:10], b""):
        before = made.state()
        with pytest.raises(ValueError, match="state"):
            made.restore(damaged)
        assert made.state() == before


def test_an_unknown_instruction_set_is_refused() -> None:
    numbers, words = grid(lanes=2)
    with pytest.raises(ValueError, match="level must be 'auto', 'portable'"):
        _core.make_lanes(
            "truncated_gradient", "dense", "float32", 10, numbers, words, [0, 0], [-1, -1], "sse9"
        )


def test_missing_arguments_are_refused() -> None:
    numbers, words = grid(lanes=2)
    X = rows_of(np.random.default_rng(0), 10, 10, "float64")

    def made(targets: list[int]) -> _core.Lanes:
        return _core.make_lanes(
            "truncated_gradient", "dense", "float64", 10, numbers, words, [0, 1], targets
        )

    with pytest.raises(ValueError, match="need a column for each clock"):
        made([-1, -1]).learn(batch_of(X, np.ones(10)), seen=np.ones((10, 1), np.uint8))
    with pytest.raises(ValueError, match="learning needs labels, or classes"):
        made([0, 1]).learn(batch_of(X, np.ones(10)))
    classes = (np.arange(11), np.zeros(10, np.int32))
    with pytest.raises(ValueError, match="learning needs labels, or classes"):
        made([-1, 1]).learn(batch_of(X, None), classes=classes)
    with pytest.raises(ValueError, match="a clock must be 0 or more"):
        _core.make_lanes(
            "truncated_gradient", "dense", "float64", 10, numbers, words, [0, -1], [-1, -1]
        )
