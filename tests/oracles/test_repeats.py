"""Long steps of the oracles (R-3.7) are the limit of many short ones."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oracles import losses
from oracles.repeats import repeats, slope
from support.oracle_cases import label, reals


def test_steps_of_a_row() -> None:
    assert list(repeats(0.0)) == [(0.0, 0.0)]
    assert list(repeats(0.25)) == [(0.25, 0.25)]
    assert list(repeats(3.0)) == [(1.0, 3.0), (1.0, None), (1.0, None)]
    assert list(repeats(1.5)) == [(0.75, 1.5), (0.75, None)]
    assert list(repeats(64.0)) == [(2.0, 64.0)] + 31 * [(2.0, None)]


@pytest.mark.parametrize("name", losses.NAMES)
@given(p=reals, v=reals, weight=st.floats(1.01, 50), reach=st.floats(1e-3, 2))
@settings(max_examples=12, deadline=None)
def test_a_long_step_is_many_short_ones(
    name: str, p: float, v: float, weight: float, reach: float
) -> None:
    """Euler's method with steps so short that no one overshoots by much."""
    y, end, total = label(name, v), p, 0.0
    assume(abs(p - y) > 1e-3)  # at a kink, a long step does not move
    count = math.ceil(400 * max(1.0, weight * reach))
    for _ in range(count):
        g = weight / count * losses.derivative(name, end, y)
        end, total = end - reach * g, total + g
    long = slope(name, p, y, weight, reach)
    scale = 1 + abs(losses.derivative(name, p, y))
    assert reach * long == pytest.approx(reach * total, abs=0.02 * scale * max(1.0, math.exp(p)))
    small = slope(name, p, y, weight, 1e-12)  # it does not move the prediction
    assert small == pytest.approx(weight * losses.derivative(name, p, y), rel=1e-3, abs=1e-3)
    assert slope(name, p, y, weight, 0.0) == weight * losses.derivative(name, p, y)
