"""Certificates equal brute force, the core and the reference (R-7.7, R-9.7 to R-9.12, P-10)."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from oracles import losses
from support.reference import load_reference
from support.streams import dense_weights, learner
from thresher import DataError, ParameterError, _core
from thresher.certificates import (
    Assumption,
    Certificate,
    generalisation_certificate,
    loss_constants,
    mistake_certificate,
    mistakes_at,
    norm_certificate,
    regret_certificate,
)

# ---- the object ----------------------------------------------------------------------------------


def test_certificates_survive_json() -> None:
    for certificate in (
        generalisation_certificate(100, 5, consistent=True, same_order=None),
        generalisation_certificate(100, 5, consistent=False, same_order=True),
    ):
        text = json.dumps(certificate.to_dict(), allow_nan=False)
        assert Certificate.from_dict(json.loads(text)) == certificate


def test_certificates_name_unchecked_assumptions_and_reasons() -> None:
    unknown = generalisation_certificate(100, 5, consistent=True, same_order=None)
    assert unknown.available
    assert "not checked: the rows came in the same order" in str(unknown)
    missing = generalisation_certificate(100, 5, consistent=False, same_order=False)
    assert not missing.available
    assert missing.value is None
    assert "not available, because it does not hold that the model classifies" in str(missing)
    assert "same order" in missing.reason


def test_import_needs_neither_scipy_nor_sklearn() -> None:
    code = "import sys, thresher.certificates; print({'scipy', 'sklearn'} & set(sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "set()"


# ---- truncated gradient --------------------------------------------------------------------------


@pytest.mark.parametrize("loss", losses.NAMES)
def test_loss_constants(loss: str) -> None:
    """P-02: slope^2 <= A loss + B on a grid for ||x|| = C = 1; A and B grow with C^2."""
    if loss == "poisson":
        assert loss_constants(loss, 1.0) is None
        return
    found = [loss_constants(loss, 1.0)]
    if loss == "huber":
        found.append(loss_constants(loss, 1.0, epsilon=0.3))
    labels = {"clipped_square": (0.0, 0.3, 1.0)}.get(loss, (-1.0, 1.0))
    for pair in found:
        assert pair is not None
        for p in np.linspace(-5, 5, 401):
            for y in labels:
                slope = losses.derivative(loss, p, y, epsilon=0.3, quantile=0.8)
                value = losses.value(loss, p, y, epsilon=0.3, quantile=0.8)
                assert slope**2 <= pair[0] * value + pair[1] + 1e-12
    assert loss_constants(loss, 1.0) == losses.CONSTANTS[loss](1.0)
    assert loss_constants(loss, 3.0) == losses.CONSTANTS[loss](3.0)


def test_loss_constants_names_the_losses() -> None:
    with pytest.raises(ParameterError, match="loss must be one of logistic"):
        loss_constants("cubic", 1.0)
    with pytest.raises(ParameterError, match="largest_row"):
        loss_constants("hinge", -1.0)


def _trained(loss: str, eta: float, seed: int, intercept: bool) -> tuple[dict[str, Any], float]:
    """Train; return the sums, and right minus left side of Theorem 1.1 for a random comparator."""
    rng = np.random.default_rng(seed)
    gravity, period, T, d = 0.02, 3, 90, 6
    X = rng.normal(size=(T, d)) * (rng.random((T, d)) < 0.5)
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    y = rng.choice([-1.0, 1.0], T)
    model = learner(
        "truncated_gradient", d, loss=loss, eta0=eta, gravity=gravity, period=period,
        fit_intercept=intercept,
    )  # fmt: skip
    wbar, bbar = rng.normal(size=d), float(intercept) * 0.3
    pull, gravities, other, left, right = 0.0, 0.0, 0.0, 0.0, 0.0
    C2 = 1.0 + intercept
    A, B = losses.CONSTANTS[loss](math.sqrt(C2))
    for i in range(T):
        x = sp.csr_matrix(X[[i]])
        before = model.loss_sum
        model.learn(_core.sparse_batch(x.indptr, x.indices, x.data, d, y[[i]]))
        g = period * gravity if (i + 1) % period == 0 else 0.0
        l1 = float(np.abs(dense_weights(model, d)).sum())
        loss_bar = losses.value(loss, float(wbar @ X[i]) + bbar, y[i])
        pull, gravities, other = pull + g * l1, gravities + g, other + loss_bar
        left += (1 - 0.5 * A * eta) * (model.loss_sum - before) + g * l1
        right += loss_bar + g * float(np.abs(wbar).sum()) + eta * B / 2
    right += (wbar @ wbar + bbar**2) / (2 * eta)
    sums = {
        "loss": loss, "steps": T, "eta": eta, "largest_row": 1.0, "loss_sum": model.loss_sum,
        "pull_sum": pull, "gravity_sum": gravities, "comparator_loss_sum": other,
        "comparator_norm2": float(wbar @ wbar) + bbar**2, "fit_intercept": intercept,
        "comparator_l1": float(np.abs(wbar).sum()),
    }  # fmt: skip
    return sums, right - left


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "square", "squared_hinge", "huber"])
def test_regret_certificate_is_right_minus_left(loss: str, intercept: bool) -> None:
    """R-7.2, R-7.7 for the core; the slack is never negative, also with an intercept."""
    for seed in range(5):
        sums, slack = _trained(loss, 0.1, seed, intercept)
        certificate = regret_certificate(**sums)
        assert certificate.value == pytest.approx(slack, rel=1e-9)
        assert slack >= 0
        assert all(assumption.holds for assumption in certificate.assumptions)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"eta": 0.6}, "eta = 0.6 is below 2 / A = 0.5"),
        ({"loss": "poisson"}, "the gradient of poisson"),
        ({"ceiling": 0.5}, "the ceiling is infinite"),
        ({"l2": 0.1}, "no l2"),
        ({"constant_rate": False}, "the rate is constant"),
        ({"truncates": False}, "shrinkage is truncation"),
        ({"starts_at_zero": False}, "the first weights are zero"),
        ({"unit_weights": False}, "all rows have weight 1"),
        ({"loss_sum": 1e9}, "contradict the theorem"),
        ({"comparator_loss_sum": math.inf}, "not finite"),
    ],
)
def test_regret_certificate_needs_its_assumptions(change: dict[str, Any], reason: str) -> None:
    sums, _ = _trained("square", 0.1, 0, False)
    certificate = regret_certificate(**(sums | change))
    assert not certificate.available
    assert reason in certificate.reason


def test_regret_of_huber_at_a_large_rate_needs_epsilon() -> None:
    sums, _ = _trained("huber", 1.5, 0, False)
    assert not regret_certificate(**sums).available
    value = regret_certificate(**sums, epsilon=0.1).value
    assert value is not None
    assert value >= 0


# ---- margin perceptron ---------------------------------------------------------------------------


def _perceptron(
    X: np.ndarray, y: np.ndarray, tau: float, eta: float, lam: float, passes: int = 10
) -> dict[str, Any]:
    """Run R-9.1 in plain NumPy; return its weights and the sums of R-9.7 and R-9.8."""
    w, bound, least, updates, used = np.zeros(X.shape[1]), 0.0, math.inf, 0, set()
    for _ in range(passes):
        for i, x in enumerate(X):
            z = y[i] * (w @ x)
            if z > tau:
                continue
            on = x != 0
            moved = w[on] + eta * y[i] * x[on]
            size = np.abs(moved)
            eps = float(np.where(size >= lam, lam * size, size**2).sum())
            w[on] = np.sign(moved) * np.maximum(size - lam, 0.0)
            bound += eta**2 * float(x @ x) + 2 * eta * z - eps
            least, updates = min(least, eps), updates + 1
            used.add(i)
    return {"w": w, "bound": bound, "least": least, "updates": updates, "used": used}


def _separable(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    u = rng.normal(size=8)
    u /= np.linalg.norm(u)
    X = rng.normal(size=(400, 8)) * (rng.random((400, 8)) < 0.6)
    X = X[np.abs(X @ u) > 0.6]
    return X, np.where(X @ u > 0, 1.0, -1.0), u


@pytest.mark.parametrize("tau", [0.0, 0.001, 0.1, 1.0])
@pytest.mark.parametrize("eta", [0.3, 1.0])
@pytest.mark.parametrize("lam", [0.0, 1e-3, 0.05])
def test_perceptron_certificates_hold(tau: float, eta: float, lam: float) -> None:
    """P-10: norm invariant and mistake bound on separable data."""
    for seed in range(3):
        X, y, u = _separable(seed)
        run = _perceptron(X, y, tau, eta, lam)
        radius = float(np.linalg.norm(X, axis=1).max())
        norm = norm_certificate(
            run["updates"], run["bound"], eta=eta, margin=tau, radius=radius,
            weights_norm2=float(run["w"] @ run["w"]), least_eps=run["least"],
        )  # fmt: skip
        assert norm.available, norm
        most = run["updates"] * (eta**2 * radius**2 + 2 * eta * tau)
        assert float(run["w"] @ run["w"]) <= norm.value + 1e-9 <= most + 2e-9
        given = {"eta": eta, "margin": tau, "l1": lam, "updates": run["updates"]}
        mistakes = mistake_certificate(sp.csr_matrix(X), y, 7.0 * u, **given)
        gap = min(eta * y[i] * (x @ u) - lam * np.abs(u[x != 0]).sum() for i, x in enumerate(X))
        assert mistakes.available == (gap > 0)
        if gap > 0:
            assert mistakes.value == pytest.approx((eta**2 * radius**2 + 2 * eta * tau) / gap**2)
            assert run["updates"] <= mistakes.value
        assert mistakes == mistake_certificate(X, y, u, **given) or mistakes.value == pytest.approx(
            mistake_certificate(X, y, u, **given).value
        )


def test_norm_certificate_refuses_a_norm_above_the_bound() -> None:
    far = norm_certificate(3, 2.0, eta=1.0, margin=0.0, radius=1.0, weights_norm2=2.5)
    assert not far.available
    assert "above its bound" in far.reason


def test_norm_certificate_lemma_and_rounding() -> None:
    """Enough shrinkage compensates for the margin (R-9.8, Lemma 2), despite rounding (R-9.9)."""
    given = {"eta": 1.0, "margin": 0.1, "radius": 2.0, "weights_norm2": 1.0}
    assert norm_certificate(10, 99.0, **given, least_eps=0.1).value == pytest.approx(42.0)
    lemma = norm_certificate(10, 99.0, **given, least_eps=0.3)
    assert lemma.value == pytest.approx(40.0)
    last = (0.3 - 0.2) / (2 * 2.0**-53 * 4) - 0.2 / 4
    assert f"up to update {last:.3g}" in lemma.statement
    scaled = {"eta": 0.5, "margin": 0.05, "radius": 2.0, "weights_norm2": 0.25}
    assert (
        f"up to update {last:.3g}"
        in norm_certificate(10, 99.0, **scaled, least_eps=0.075).statement
    )


def test_mistake_certificate_needs_separation() -> None:
    X, y, u = _separable(0)
    for weights, lam in ((-u, 0.0), (np.zeros(8), 0.0), (u, 10.0)):
        found = mistake_certificate(X, y, weights, eta=1.0, margin=0.0, l1=lam)
        assert not found.available
        assert "u separates the rows with this shrinkage" in found.reason
    many = mistake_certificate(X, y, u, eta=1.0, margin=0.0, l1=0.0, updates=10**9)
    assert "updates are those of this rule" in many.reason


@pytest.mark.parametrize("gap", [1e-155, 1e-170, 1e-200, 5e-324])
def test_mistake_certificate_of_a_tiny_margin(gap: float) -> None:
    found = mistakes_at(gap, 1.0, 2, eta=1.0, margin=0.0, updates=3)
    assert not found.available
    assert str(found) == (
        "mistakes: not available, because the margin is too small to be distinguished from 0"
    )
    for margin in (0.0, 1.0):
        whole = mistake_certificate([[gap]], [1], [1.0], eta=1.0, margin=margin, l1=0.0, updates=1)
        assert whole.reason == found.reason


def test_mistake_certificate_does_not_depend_on_the_unit() -> None:
    """Only the ratios of rate, margin and gap matter."""
    plain = mistakes_at(0.3, 2.0, 2, eta=1.0, margin=0.5)
    for exponent in (-1000, -700, 300, 1000):
        unit = 2.0**exponent
        scaled = mistakes_at(0.3 * unit, 2.0, 2, eta=unit, margin=0.5 * unit)
        assert scaled.value == plain.value == (2.0 + 1.0) / 0.3**2
    assert mistakes_at(1e-100, 1.0, 2, eta=1.0, margin=0.0).value == pytest.approx(1e200)
    assert not mistakes_at(0.0, 1.0, 2, eta=1.0, margin=0.0).available
    assert "its number is not finite" in str(mistakes_at(1.0, math.inf, 2, eta=1.0, margin=0.0))


def test_an_intercept_is_a_constant_column_that_does_not_shrink() -> None:
    X, y = np.array([[3.0, 0.0], [2.5, 0.0], [0.5, 0.2]]), np.array([1.0, 1.0, -1.0])
    found = mistake_certificate(X, y, [1.0, 0.0], eta=1.0, margin=0.1, l1=0.05, intercept=-1.5)
    size = math.hypot(1.0, 1.5)
    gap = min(1.5, 1.0, 1.0) / size - 0.05 * 1.0 / size
    assert found.value == pytest.approx((9.0 + 1.0 + 0.2) / gap**2)


def test_mistake_certificate_checks_its_input() -> None:
    given = {"eta": 1.0, "margin": 0.0, "l1": 0.0}
    with pytest.raises(ParameterError, match="y must be -1 and 1"):
        mistake_certificate(np.eye(2), [0, 1], [1, 1], **given)
    with pytest.raises(ParameterError, match=r"its shape is \(2, 2\)"):
        mistake_certificate(np.eye(2), [1, 1], [1, 1, 1], **given)
    with pytest.raises(ParameterError, match="eta must be a finite number > 0"):
        mistake_certificate(np.eye(2), [1, 1], [1, 1], **(given | {"eta": 0.0}))
    with pytest.raises(DataError, match="row 0, column 1"):
        mistake_certificate([[1.0, math.nan]], [1], [1, 1], **given)


def test_generalisation_certificate_values() -> None:
    """R-9.12, P-10: the examples agree; the bound rises with k; with k >= m there is none."""
    yes = {"consistent": True, "same_order": True}
    assert generalisation_certificate(4278, 400, **yes).value == pytest.approx(0.345, abs=5e-4)
    assert generalisation_certificate(4278, 1000, **yes).value == pytest.approx(0.712, abs=5e-4)
    for m in (5, 50, 400):
        values = [generalisation_certificate(m, k, **yes).value for k in range(m)]
        assert all(a < b for a, b in itertools.pairwise(values))
        for k in range(m):
            exact = math.log(math.comb(m, k)) + math.log(m) + math.log(1 / 0.05)
            assert values[k] == pytest.approx(exact / (m - k))
    assert "caused no update" in generalisation_certificate(9, 9, **yes).reason
    assert not generalisation_certificate(9, 12, **yes).available
    assert "no information" in str(generalisation_certificate(9, 8, **yes))
    assert Assumption("the rows came in the same order in every pass", True) in (
        generalisation_certificate(9, 8, **yes).assumptions
    )


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan])
def test_generalisation_certificate_checks_delta(delta: float) -> None:
    with pytest.raises(ParameterError, match="delta"):
        generalisation_certificate(10, 1, delta, consistent=True, same_order=True)
    with pytest.raises(ParameterError, match="k must be a whole number >= 0"):
        generalisation_certificate(10, -1, consistent=True, same_order=True)


def test_generalisation_certificate_equals_the_reference() -> None:
    reference = load_reference()
    for m, k, delta in ((100, 3, 0.05), (4278, 400, 0.01), (50, 49, 0.2)):
        ours = generalisation_certificate(m, k, delta, consistent=True, same_order=True)
        assert ours.value == pytest.approx(reference.compression_certificate(m, k, delta))


def test_norm_certificate_of_the_reference_perceptron() -> None:
    reference = load_reference()
    X, y, _ = _separable(1)
    c = sp.csr_matrix(X)
    order = np.tile(np.arange(len(y)), 3)
    w, updates, _, bound, *_ = reference.margin_perceptron(
        c.indptr, c.indices, c.data, y, 8, order, 0.01, 0.5, 1e-3, 2.0, len(y),
        np.empty(0), np.empty((0, 8)),
    )  # fmt: skip
    radius = float(np.linalg.norm(X, axis=1).max())
    given = {"eta": 0.5, "margin": 0.01, "radius": radius, "weights_norm2": float(w @ w)}
    assert norm_certificate(int(updates), bound, **given).value == pytest.approx(bound)
