"""The rates, losses and operators of the oracles have the properties of the theory (P-01, P-02).

The core is not used here. If these tests pass, a difference between the core and an oracle is an
error of the core.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import losses
from oracles.operators import T0, T1, soft
from oracles.rates import rate
from oracles.result import Vector
from support.oracle_cases import (
    BOUNDED,
    INF,
    SMOOTH,
    amounts,
    fractions,
    label,
    reals,
)

# Rates


def test_rates() -> None:
    assert rate("constant", 9, 0, 0.5) == 0.5
    assert rate("inverse", 4, 0, 2.0) == 0.5
    assert rate("sqrt", 4, 0, 3.0) == 1.5
    assert rate("power", 16, 0, 1.0, power=0.25) == 0.5
    assert rate("constant", 7, 3, 1.0, decay=0.5) == 0.125
    assert rate("inverse", 2, 1, 1.0, decay=0.5) == 0.25
    with pytest.raises(ValueError, match="schedule"):
        rate("none", 1, 0, 1.0)


# Losses (P-02)


@pytest.mark.parametrize("name", losses.NAMES)
@given(p=reals, q=reals, v=reals, epsilon=fractions, tau=fractions)
@settings(max_examples=3 * settings.default.max_examples)
def test_derivative_supports_the_loss(
    name: str, p: float, q: float, v: float, epsilon: float, tau: float
) -> None:
    """L(q) >= L(p) + L'(p) (q - p): convexity, and a sub-gradient at every kink."""
    y = label(name, v)
    at_p = losses.value(name, p, y, epsilon, tau)
    at_q = losses.value(name, q, y, epsilon, tau)
    slope = losses.derivative(name, p, y, epsilon, tau)
    assert at_q >= at_p + slope * (q - p) - 1e-12 * (1 + abs(at_p) + abs(slope))


@pytest.mark.parametrize("name", losses.NAMES)
@given(p=reals, v=reals)
@settings(max_examples=3 * settings.default.max_examples)
def test_derivative_equals_a_central_difference(name: str, p: float, v: float) -> None:
    """They are equal up to the error of the difference; at a kink, it is between both slopes."""
    y, h = label(name, v), 1e-5
    low, mid, high = (losses.value(name, p + e, y, 0.3, 0.7) for e in (-h, 0.0, h))
    slope = losses.derivative(name, p, y, 0.3, 0.7)
    if name in SMOOTH:
        assert slope == pytest.approx((high - low) / (2 * h), rel=1e-5, abs=3e-5)
    else:
        assert (mid - low) / h - 1e-6 <= slope <= (high - mid) / h + 1e-6


@pytest.mark.parametrize("name", BOUNDED)
@given(p=st.floats(-50, 50), v=reals, C=st.floats(0.1, 3), epsilon=fractions, tau=fractions)
@settings(max_examples=3 * settings.default.max_examples)
def test_constants_bound_the_gradient(
    name: str, p: float, v: float, C: float, epsilon: float, tau: float
) -> None:
    """||L' x||^2 <= A L + B with ||x|| = C (for clipped_square ||x|| c_x = C)."""
    A, B = losses.CONSTANTS[name](C)
    y = label(name, v)
    left = (losses.derivative(name, p, y, epsilon, tau) * C) ** 2
    right = A * losses.value(name, p, y, epsilon, tau) + B
    assert left <= right + 1e-9 * (1 + right)


def test_kinks_and_extremes() -> None:
    assert losses.derivative("absolute", 1.0, 1.0) == -1
    assert losses.derivative("hinge", 1.0, 1.0) == -1
    assert losses.derivative("hinge", -1.0, -1.0) == 1
    assert losses.derivative("epsilon_insensitive", 1.5, 1.0, epsilon=0.5) == 0
    assert losses.derivative("quantile", 1.0, 1.0, quantile=0.25) == 0.75
    assert losses.value("logistic", 1e4, -1.0) == 1e4
    assert losses.value("logistic", 1e4, 1.0) == 0
    assert losses.derivative("logistic", 1e4, -1.0) == 1
    assert losses.derivative("logistic", -1e4, -1.0) == 0
    assert losses.derivative("logistic", 0.0, 1.0) == -0.5
    assert losses.derivative("poisson", 1e4, 0.0) == math.exp(30)
    assert losses.value("clipped_square", 2.0, 0.5) == 0.25 + 1.0
    assert losses.value("clipped_square", -2.0, 0.5) == 0.25 + 2.0
    assert losses.row_scale("clipped_square", np.array([3.0, 0, 0, 1, 1, 1])) == 0.5
    assert losses.row_scale("clipped_square", np.zeros(2)) == 1
    assert losses.row_scale("square", np.ones(4)) == 1
    for function in (losses.value, losses.derivative):
        with pytest.raises(ValueError, match="loss"):
            function("none", 0.0, 0.0)


# Operators (P-01)

vectors = st.lists(reals, min_size=1, max_size=6).map(np.array)
ceilings = st.one_of(st.just(INF), amounts)


def test_operators_by_hand() -> None:
    v = np.array([-3.0, -2.0, -0.5, 0.0, 0.5, 2.0, 3.0])
    np.testing.assert_array_equal(T0(v, 2.0), [-3, -2, 0, 0, 0, 2, 3])
    np.testing.assert_array_equal(T1(v, 1.0, 2.0), [-3, -1, 0, 0, 0, 1, 3])
    np.testing.assert_array_equal(soft(v, 1.0), [-2, -1, 0, 0, 0, 1, 2])
    for result in (T0(v.astype("f4"), 2.0), T1(v.astype("f4"), 1.0, INF), soft(v.astype("f4"), 1)):
        assert result.dtype == np.float32


@given(v=vectors, a=amounts, theta=ceilings, n=st.integers(1, 5))
@settings(max_examples=3 * settings.default.max_examples)
def test_operator_properties(v: Vector, a: float, theta: float, n: int) -> None:
    shrunk = T1(v, a, theta)
    np.testing.assert_array_equal(T1(-v, a, theta), -shrunk)
    assert np.all(np.abs(shrunk) <= np.abs(v))
    assert np.all(shrunk * v >= 0)
    np.testing.assert_array_equal(T1(v, a, INF), soft(v, a))
    repeated = v
    for _ in range(n):
        repeated = T1(repeated, a, theta)
    np.testing.assert_allclose(repeated, T1(v, n * a, theta), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(T0(T0(v, theta), theta), T0(v, theta))


@given(v=vectors, a=amounts, theta=amounts)
@settings(max_examples=3 * settings.default.max_examples)
def test_a_large_shrink_equals_rounding(v: Vector, a: float, theta: float) -> None:
    """R-2.5: a >= theta gives T1 = T0 except at |v| = theta."""
    a = max(a, theta)
    inside = np.abs(v) != theta
    np.testing.assert_array_equal(T1(v, a, theta)[inside], T0(v, theta)[inside])


@given(pair=st.lists(st.tuples(reals, reals), min_size=1, max_size=6), a=amounts)
@settings(max_examples=3 * settings.default.max_examples)
def test_soft_is_lipschitz(pair: list[tuple[float, float]], a: float) -> None:
    u, v = np.array(pair).T
    assert np.all(np.abs(T1(u, a, INF) - T1(v, a, INF)) <= np.abs(u - v) + 1e-14)
