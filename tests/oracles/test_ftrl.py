"""The oracles of forward-backward splitting (P-08) and FTRL have the properties of the theory.

The core is not used here. If these tests pass, a difference between the core and an oracle is an
error of the core.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from oracles import losses
from oracles.forward_backward import forward_backward
from oracles.ftrl import ftrl
from oracles.truncated_gradient import truncated_gradient
from support.oracle_cases import amounts, assert_same, orders, problem, reals

# Forward-backward splitting (P-08)


@pytest.mark.parametrize("name", losses.NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_forward_backward_equals_truncated_gradient(name: str, dtype: Any) -> None:
    X, y = problem(name, 11)
    order = orders(len(X), 2, 11)
    s = np.random.default_rng(11).random(len(X))
    options: dict[str, Any] = dict(
        loss=name, eta0=0.1, schedule="sqrt", decay=0.8, fit_intercept=True, l2=0.3, dtype=dtype
    )
    one = forward_backward(X, y, order, l1=0.2, sample_weight=s, **options)
    two = truncated_gradient(X, y, order, gravity=0.2, sample_weight=s, **options)
    assert_same(one, two)


@given(v=reals, l1=amounts, l2=amounts, other=reals)
@settings(max_examples=3 * settings.default.max_examples)
def test_backward_step_is_a_minimum(v: float, l1: float, l2: float, other: float) -> None:
    """After a forward step to v, no point has a smaller proximal objective."""
    run = forward_backward(np.ones((1, 1)), np.array([v]), [[0]], loss="squared", l1=l1, l2=l2)

    def objective(u: float) -> float:
        return 0.5 * (u - v) ** 2 + l1 * abs(u) + 0.5 * l2 * u * u

    assert objective(run.weights[0]) <= objective(other) + 1e-12


# FTRL


def test_ftrl_by_hand() -> None:
    """Squared loss, alpha = beta = 1, l1 = 1, l2 = 2, one column of ones."""
    run = ftrl(np.ones((1, 1)), np.array([3.0]), [[0]], loss="squared", alpha=1, l1=1, l2=2)
    # p = 0, g = -3, z = -3, n = 9; w = (3 - 1) / ((1 + 3) / 1 + 2).
    assert run.predictions == [0]
    assert run.losses == [4.5]
    assert run.weights[0] == pytest.approx(2 / 6, rel=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ftrl_returns_to_exact_zero(dtype: Any) -> None:
    X = np.ones((2, 1))
    y = np.array([2.0, -2.0])
    options: dict[str, Any] = dict(loss="absolute", alpha=0.1, l1=1.5, dtype=dtype)
    weights = [
        ftrl(X, y, [([0] * 4 + [1] * 4)[:t]], **options).weights[0] for t in range(9)
    ]  # fmt: skip
    assert weights[1] == 0
    assert weights[4] > 0
    assert 0 in weights[5:]


@pytest.mark.parametrize("name", losses.NAMES)
def test_ftrl_follows_the_regularised_leader(name: str) -> None:
    """The weights minimise G.w + sum_s sigma_s/2 (w-w_s)^2 + l1|w| + (beta/alpha + l2)/2 w^2."""
    X, y = problem(name, 12, n=30, d=6)
    alpha, beta, l1, l2 = 0.1, 1.0, 0.8, 0.5
    options: dict[str, Any] = dict(loss=name, alpha=alpha, beta=beta, l1=l1, l2=l2)
    rows = np.arange(30)
    runs = [ftrl(X, y, [rows[:t]], **options) for t in range(31)]
    final = runs[-1].weights
    slope = (beta / alpha + l2) * final
    n = np.zeros(6)
    for t in range(30):
        scaled = losses.row_scale(name, X[t]) * X[t]
        old = runs[t].weights
        g = losses.derivative(name, float(old @ scaled), y[t]) * scaled
        sigma = (np.sqrt(n + g**2) - np.sqrt(n)) / alpha
        slope += g + sigma * (final - old)
        n += g**2
    zero = final == 0
    assert np.all(np.abs(slope[zero]) <= l1 + 1e-10)
    np.testing.assert_allclose(slope[~zero], -l1 * np.sign(final[~zero]), atol=1e-10)
