"""The oracle of averaged SGD has the properties of the theory (R-14.*, P-18).

The core is not used here. If these tests pass, a difference between the core and an oracle is an
error of the core.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracles import losses
from oracles.averaged import averaged
from oracles.result import Matrix, Vector
from support.oracle_cases import (
    orders,
    problem,
)

AVERAGED = [name for name in losses.NAMES if name not in ("clipped_square", "poisson")]


def algorithm_3(
    X: Matrix, y: Vector, rows: Vector, name: str, lam: float
) -> tuple[Vector, float, Vector, float]:
    """CASGD with implicit centring (R-14.6); returns wbar, bbar', w_T and b'_T (R-14.7)."""
    xbar = X.mean(axis=0)
    theta = 1 + xbar @ xbar
    v, u = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    a = c = h = z = r = s = 0.0
    for t, row in enumerate(rows, start=1):
        x = X[row]
        q = xbar @ x
        p = 0.0 if t == 1 else -(v @ x + r - a * q) / (lam * (t - 1))
        g = losses.derivative(name, float(p), y[row])
        v = v + g * x
        u = u + h * g * x
        a += g
        c += a / t
        h += 1 / t
        z += g * q
        r = a * theta - z
        s += r / t
    T = len(rows)
    return (
        -(h * v - u - c * xbar) / (lam * T),
        -s / (lam * T),
        -(v - a * xbar) / (lam * T),
        (-r / (lam * T)),
    )


@pytest.mark.parametrize("name", AVERAGED)
@pytest.mark.parametrize("lam", [1.0, 20.0])
def test_explicit_centring_equals_implicit_centring(name: str, lam: float) -> None:
    if name in ("square", "squared", "squared_hinge"):
        lam *= 10  # with an unbounded derivative, a small lambda diverges
    X, y = problem(name, 13)
    X = X + np.linspace(-1, 1, X.shape[1])
    rows = np.random.default_rng(13).integers(len(X), size=300)
    run = averaged(X, y, [rows], loss=name, alpha=lam, center=True)
    wbar, bbar, w, b = algorithm_3(X, y, rows, name, lam)
    assert run.average_weights is not None
    np.testing.assert_allclose(run.average_weights, wbar, rtol=1e-10, atol=1e-11)
    assert run.average_intercept == pytest.approx(bbar, rel=1e-10, abs=1e-11)
    np.testing.assert_allclose(run.weights, w, rtol=1e-10, atol=1e-11)
    assert run.intercept == pytest.approx(b, rel=1e-10, abs=1e-11)


@pytest.mark.parametrize("name", [*AVERAGED, "clipped_square", "poisson"])
def test_closed_form_equals_the_recursion(name: str) -> None:
    """R-14.3: w_t = -v_t/(lambda t), b_t = -a_t/(lambda t), and the averages of both."""
    X, y = problem(name, 14)
    order = orders(len(X), 3, 14)
    lam = 20.0
    run = averaged(X, y, order, loss=name, alpha=lam)
    v, a = np.zeros(X.shape[1]), 0.0
    w_all, b_all = [], []
    for t, row in enumerate(np.concatenate(order), start=1):
        scaled = losses.row_scale(name, X[row]) * X[row]
        p = -(v @ scaled + a) / (lam * (t - 1)) if t > 1 else 0.0
        g = losses.derivative(name, float(p), y[row])
        v, a = v + g * scaled, a + g
        w_all.append(-v / (lam * t))
        b_all.append(-a / (lam * t))
        assert run.predictions[t - 1] == pytest.approx(p, rel=1e-10, abs=1e-12)
    assert run.average_weights is not None
    np.testing.assert_allclose(run.weights, w_all[-1], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(run.average_weights, np.mean(w_all, axis=0), rtol=1e-10, atol=1e-13)
    assert run.intercept == pytest.approx(b_all[-1], rel=1e-10, abs=1e-13)
    assert run.average_intercept == pytest.approx(np.mean(b_all), rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("name", ["absolute", "hinge", "logistic"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_centred_runs_do_not_depend_on_a_translation(name: str, fit_intercept: bool) -> None:
    """R-14.8: a vector added to all rows changes only the bias of CASGD; it changes ASGD."""
    X, y = problem(name, 15)
    shift = np.linspace(-2, 3, X.shape[1])
    order = orders(len(X), 5, 15)
    options: dict[str, Any] = dict(loss=name, alpha=1.0, fit_intercept=fit_intercept)
    here = averaged(X, y, order, center=True, **options)
    there = averaged(X + shift, y, order, center=True, **options)
    for one, two in (
        (here.weights, there.weights),
        (here.average_weights, there.average_weights),
        (here.predictions, there.predictions),
    ):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-10)  # type: ignore[arg-type]
    moved = here.intercept - float(here.weights @ shift)
    assert there.intercept == pytest.approx(moved, abs=1e-10)
    plain = averaged(X, y, order, **options)
    plain_there = averaged(X + shift, y, order, **options)
    assert np.max(np.abs(plain.weights - plain_there.weights)) > 1e-3
    assert here.average_weights is not None
    if not fit_intercept:
        assert plain.intercept == 0
        xbar = X.mean(axis=0)
        assert here.intercept == pytest.approx(-float(here.weights @ xbar), abs=1e-12)
        assert here.average_intercept == pytest.approx(
            -float(here.average_weights @ xbar), abs=1e-12
        )


def test_centring_needs_an_unscaled_loss() -> None:
    X, y = problem("clipped_square", 16)
    with pytest.raises(ValueError, match="center"):
        averaged(X, y, [[0]], loss="clipped_square", alpha=1.0, center=True)
