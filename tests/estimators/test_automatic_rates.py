"""Automatic values that depend on the rows (docs/decisions/0018)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import thresher
from thresher import (
    AdaGradRegressor,
    AveragedSGDClassifier,
    CoordinateDescentRegressor,
    FTRLClassifier,
    FTRLRegressor,
    HardThresholdRegressor,
    MarginPerceptronClassifier,
    MirrorDescentClassifier,
)
from thresher.health import ColumnScaleWarning
from thresher.rules import RULES
from thresher.rules.core_args import core_parameters, rate_for

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 8))
Y = X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=300)
NORM = float(f"{np.sqrt(np.median((X[:100] ** 2).sum(1))):.3g}")


def resolved(estimator: Any) -> dict[str, Any]:
    return estimator._fitted.params


def test_rates_follow_the_norm_of_the_first_rows() -> None:
    clf = FTRLClassifier(passes=1).fit(X, Y > 0)
    assert resolved(clf)["alpha"] == pytest.approx(1 / NORM, rel=0.06)
    for cls in (FTRLRegressor, AdaGradRegressor):
        assert resolved(cls(passes=1).fit(X, Y))["alpha"] == pytest.approx(0.3 / NORM, rel=0.06)


def test_alpha_of_averaged_sgd_follows_the_steps() -> None:
    for passes in (1, 20):
        clf = AveragedSGDClassifier(passes=passes).fit(X, Y > 0)
        assert resolved(clf)["alpha"] == pytest.approx(2 * NORM**2 / (300 * passes), rel=0.06)
    online = AveragedSGDClassifier().partial_fit(X, Y > 0, classes=[False, True])
    assert resolved(online)["alpha"] == pytest.approx(2 * NORM**2 / 20_000, rel=0.06)


def test_losses_without_a_bound_get_a_large_alpha() -> None:
    """Otherwise steps of 1 / (alpha t) diverge."""
    assert rate_for("averaged-sgd", "regressor", {"loss": "squared"}, 3.0, 10**6) == 0.9
    assert rate_for("averaged-sgd", "regressor", {"loss": "huber"}, 1.0, 30) == 1.0


def test_empty_rows_and_huge_values_have_a_rate() -> None:
    for rows in (np.zeros((9, 2)), np.full((9, 2), 1e12), np.full((9, 2), 1e-150)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf = AveragedSGDClassifier(dtype="float64").fit(rows, np.arange(9) % 2)
        assert 0 < resolved(clf)["alpha"] < np.inf


@pytest.mark.parametrize("eta0", [1.0, 0.25])
def test_the_margin_follows_the_scale_of_the_rows(eta0: float) -> None:
    """Rows that are 8 times as large give weights that are 8 times as large: exactly, here."""
    given = {"l1": 0.0, "fit_intercept": False, "eta0": eta0, "random_state": 0}
    plain = MarginPerceptronClassifier(**given).fit(X, Y > 0)
    large = MarginPerceptronClassifier(**given).fit(8 * X, Y > 0)
    assert resolved(plain)["margin"] == pytest.approx(3 * eta0 * NORM**2, rel=0.06)
    assert np.mean(large.predict(8 * X) == plain.predict(X)) > 0.98


def test_the_penalty_of_mirror_descent_follows_the_rows() -> None:
    params = {name: p.default for name, p in RULES["mirror-descent"].parameters.items()}
    numbers, words = core_parameters("mirror-descent", params, 1000, 8)
    assert (numbers["l1"], words["threshold"]) == (0.02 / 1000, "scaled")
    assert numbers["eta0"] == 3.0  # p is 2
    numbers, _ = core_parameters("mirror-descent", params, None, 10**4)
    assert numbers["l1"] == 1e-6
    assert numbers["eta0"] == pytest.approx(3 * (0.5 * np.log(10**4) - 1))
    numbers, words = core_parameters("mirror-descent", params | {"l1": 0.1}, 1000, 8)
    assert (numbers["l1"], words["threshold"]) == (0.1, "paper")
    assert MirrorDescentClassifier(random_state=0).fit(X, Y > 0).score(X, Y > 0) > 0.85


@pytest.mark.parametrize(
    ("rows", "width", "kept"), [(300, 8, 8), (300, 64, 30), (40, 64, 10), (40, 400, 40)]
)
def test_hard_thresholding_keeps_a_weight_for_ten_rows(rows: int, width: int, kept: int) -> None:
    rng = np.random.default_rng(1)
    reg = HardThresholdRegressor(passes=3).fit(
        rng.normal(size=(rows, width)), rng.normal(size=rows)
    )
    assert reg.model_.nnz == kept


def test_coordinate_descent_goes_on_while_the_objective_falls() -> None:
    """A large column decides the largest slope; the small columns must be fitted too."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(200, 6)) + 1.0
    target = rows @ [1.0, -2.0, 0.5, 3.0, 0.0, 1.0]
    rows[:, 4] *= 1e4
    params = {"step": "coordinate", "random_state": 0}
    number = CoordinateDescentRegressor(tol=1e-3, **params).fit(rows, target)
    auto = CoordinateDescentRegressor(**params).fit(rows, target)
    assert auto.n_iter_ > number.n_iter_
    assert auto.history_[-1].loss < number.history_[-1].loss
    assert auto.score(rows, target) > 0.999


# ---- columns of different size -------------------------------------------------------------------

CLASSES = sorted(
    name for rule in RULES.values() if not rule.scales_columns for name in rule.estimators.values()
)


@pytest.mark.parametrize("name", CLASSES)
def test_columns_of_different_size_are_warned_of(name: str) -> None:
    cls = getattr(thresher, name)
    y = Y > 0 if name.endswith("Classifier") else Y
    rows = X.copy()
    rows[:, 3] *= 1e5
    for made in (rows, sp.csr_matrix(rows)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", ColumnScaleWarning)
            with pytest.warns(ColumnScaleWarning, match=r"column 3 is 1.*e\+05 times larger"):
                cls(passes=2).fit(made, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnScaleWarning)
        cls(passes=2).fit(X, y)


def test_partial_fit_warns_once() -> None:
    rows = X * [1, 1, 1, 1e-4, 1, 1, 1, 1]
    clf = FTRLClassifier()
    with pytest.warns(ColumnScaleWarning, match="column 3 is .* times smaller"):
        clf.partial_fit(rows, Y > 0, classes=[False, True])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnScaleWarning)
        clf.partial_fit(rows, Y > 0)
