"""The rule one-pass at its limits: extreme values, targets and weights, and jumps of the scale."""

from __future__ import annotations

import numpy as np
import pytest

from support.one_pass_cases import LOSSES, dtypes, parameters, targets_of
from support.streams import Stream, dense_weights, learner
from thresher import OnePassClassifier, OnePassRegressor, _core


def finite(model: _core.Learner) -> bool:
    values = [*model.weights()[1], model.intercept(), model.loss_sum]
    return bool(np.isfinite(values).all())


EXTREME = {
    "float32": (1e30, 1e-30, 1e-40, 1e15),
    "float64": (1e300, 1e-300, 1e-307, 1e150),
}


@dtypes
@pytest.mark.parametrize("place", ["matrix", "column", "value"])
@pytest.mark.parametrize("loss", LOSSES)
def test_extreme_values_give_finite_models(loss: str, place: str, dtype: str) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 5))
    y = targets_of(rng, X, loss)
    for size in EXTREME[dtype]:
        Z = X.copy()
        if place == "matrix":
            Z *= size
        elif place == "column":
            Z[:, 0] *= size
        else:
            Z[100, 0] = size
        for lanes in (4, 12):
            model = learner("one_pass", 5, dtype=dtype, **parameters(loss, lanes=lanes))
            Stream(Z, y, None, [np.arange(200)]).learn(model)
            assert finite(model), (size, lanes)
            if place != "value" and size > 1e-39:  # only few bits are left of 1e-40 and 1e-307
                plain = Stream(X, y, None, [np.arange(200)]).learn(
                    learner("one_pass", 5, dtype=dtype, **parameters(loss, lanes=lanes))
                )
                assert model.loss_sum < 1.3 * abs(plain.loss_sum) + 10


@dtypes
@pytest.mark.parametrize("loss", ["squared", "huber", "quantile"])
def test_targets_of_any_size(loss: str, dtype: str) -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(150, 4))
    y = targets_of(rng, X, loss)
    for size in (1e140, 1e-140):
        models = [
            Stream(X, y * times, None, [np.arange(150)]).learn(
                learner("one_pass", 4, dtype=dtype, **parameters(loss))
            )
            for times in (1.0, size)
        ]
        assert finite(models[1])
        one, other = (dense_weights(model, 4) for model in models)
        np.testing.assert_allclose(other / size, one, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("loss", "target", "weight", "message"),
    [
        ("squared", 1e300, 1.0, r"row 2: the target 1e\+300 is too large.*1e\+150"),
        ("huber", -1e200, 1.0, r"row 2: the target -1e\+200 is too large"),
        ("quantile", 1e151, 0.0, r"row 2: the target 1e\+151 is too large"),
        ("poisson", 1e13, 1.0, r"row 2: the target 1e\+13 is too large.*1e\+12"),
        ("squared", 1e149, 1e12, r"row 2: the weight 1e\+12 is too large for the target 1e\+149"),
        ("logistic", 1.0, 1e31, r"row 2: the weight 1e\+31 is too large"),
    ],
)
def test_targets_and_weights_whose_sums_overflow_are_refused(
    loss: str, target: float, weight: float, message: str
) -> None:
    X, y, weights = np.eye(4), np.ones(4), np.ones(4)
    y[2], weights[2] = target, weight
    model = learner("one_pass", 4, **parameters(loss))
    with pytest.raises(_core.DataError, match=message):
        Stream(X, y, weights, [np.arange(4)]).learn(model)
    assert model.steps == 2
    assert finite(model)


@dtypes
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weight", [1e-12, 1e4, 1e6, 1e12, 1e25])
def test_large_and_small_weights(weight: float, loss: str, dtype: str) -> None:
    """If all weights are large, the model is similar to that with weights of 1."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(300, 5))
    y, order = targets_of(rng, X, loss), [np.arange(300)]
    params = parameters(loss)
    plain, heavy = (
        Stream(X, y, weights, order).learn(learner("one_pass", 5, dtype=dtype, **params))
        for weights in (None, np.full(300, weight))
    )
    assert finite(heavy)
    if weight > 1:
        test = Stream(rng.normal(size=(300, 5)), y, None, order)
        one, other = plain.predict(test.batch()), heavy.predict(test.batch())
        assert np.corrcoef(one, other)[0, 1] > 0.8
        assert other.std() < 5 * one.std()


@dtypes
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_that_say_little(loss: str, dtype: str) -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(100, 4))
    X[:, 2] = 0.0
    y, weight = targets_of(rng, X, loss), np.ones(100)
    weight[:3] = 0.0
    same = np.full(100, 1.0)
    for stream in (
        Stream(X, y, weight, [np.arange(100)]),  # the first rows have weight 0
        Stream(X, y, np.zeros(100), [np.arange(100)]),
        Stream(X, same, None, [np.arange(100)]),
        Stream(np.zeros((100, 4)), y, None, [np.arange(100)]),
        Stream(X, y, None, [np.zeros(200, int)]),  # a row again and again
    ):
        model = stream.learn(learner("one_pass", 4, dtype=dtype, **parameters(loss)))
        assert finite(model)
        assert dense_weights(model, 4)[2] == 0.0
    constant = Stream(X, same, None, [np.arange(100)]).learn(
        learner("one_pass", 4, dtype=dtype, **parameters(loss))
    )
    if loss not in ("logistic", "poisson"):
        assert constant.intercept() == 1.0
        assert constant.nonzeros() == 0
        assert constant.loss_sum == 0.0


@dtypes
def test_a_row_of_weight_zero_changes_nothing(dtype: str) -> None:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(60, 4))
    y, weight = targets_of(rng, X, "squared"), rng.choice([0.0, 1.0], 60)
    kept = np.flatnonzero(weight)
    models = [
        Stream(X, y, weight, [order]).learn(
            learner("one_pass", 4, dtype=dtype, **parameters("squared"))
        )
        for order in (np.arange(60), kept)
    ]
    np.testing.assert_array_equal(*(dense_weights(model, 4) for model in models))
    assert models[0].loss_sum == models[1].loss_sum


@dtypes
@pytest.mark.parametrize("what", ["rows", "targets", "both"])
@pytest.mark.parametrize("factor", [1e6, 1e-6])
def test_a_stream_whose_scale_jumps(what: str, factor: float, dtype: str) -> None:
    """After the jump the model learns the new scale."""
    rng = np.random.default_rng(10)
    X = rng.normal(size=(3000, 5))
    y = 3 * X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=3000)
    late = np.arange(3000) >= 300
    if what != "targets":
        X[late] *= factor
    if what != "rows":
        y[late] *= factor
    model = learner("one_pass", 5, dtype=dtype, **parameters("squared"))
    Stream(X, y, None, [np.arange(3000)]).learn(model)
    assert finite(model)
    rest = Stream(X[late], y[late], None, []).batch()
    error = np.mean((model.predict(rest) - y[late]) ** 2) / y[late].var()
    if factor > 1:
        assert error < 0.1
    else:  # small numbers after large ones hardly count in the sums
        assert error < 1e13


@pytest.mark.parametrize("lanes", [4, 12])
def test_two_rows_of_tiny_probability_leave_a_finite_model(lanes: int) -> None:
    """Their product would underflow to 0 in the stack."""
    rng = np.random.default_rng(0)
    X, y = np.zeros((3002, 2)), np.empty(3002)
    at = rng.integers(0, 2, 3002)
    X[np.arange(3002), at] = rng.choice([-1.0, 1.0], 3002)
    y[:] = np.sign(X[np.arange(3002), at])
    for scale in (20.0, 40.0, 100.0, 400.0):
        X[2000], y[2000] = (scale, 0.0), -1.0
        X[2001], y[2001] = (0.0, 1e6), -1.0
        model = OnePassClassifier(lanes=lanes, shuffle=False, dtype="float64").fit(X, y)
        assert np.isfinite(model.history_[-1].loss)
        assert (model.coef_ != 0).any()


@pytest.mark.parametrize("weight", [0.09, 0.17, 0.75])
def test_fractional_weights_of_constant_targets(weight: float) -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    for value in (0.7, 5.5, 1e-3):
        model = OnePassRegressor().fit(X, np.full(50, value), sample_weight=np.full(50, weight))
        np.testing.assert_allclose(model.predict(X), value, rtol=1e-6)
