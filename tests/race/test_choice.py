"""The choice of the winner, its standard errors, folds, samples, scaling and plans."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher import CoordinateDescentClassifier, ParameterError
from thresher.race.candidates import CANDIDATES
from thresher.race.choice import Scored, judged
from thresher.race.facts import Facts, facts_of
from thresher.race.folds import ALWAYS, folds_of, sample_of
from thresher.race.measures import errors, log_losses, mean_and_error, sd_of, slope_of
from thresher.race.plan import RacePlan
from thresher.race.result import Entrant
from thresher.race.scaling import ColumnScale, multiplied

ONES = np.ones(100)


def chosen(losses, nonzeros, tolerance, weights=ONES):
    """Return the numbers of the best and of the winner."""
    entrants = [Entrant(str(n), "ftrl", loss=1.0) for n in range(len(losses))]
    scored = {n: Scored(one, 0.0, nonzeros[n]) for n, one in enumerate(losses)}
    found = judged(entrants, scored, weights, tolerance)
    best = [n for n, one in enumerate(found) if one.behind == 0 and one.behind_error == 0]
    return best[0], next(n for n, one in enumerate(found) if one.chosen)


def test_the_winner_is_the_sparsest_within_the_tolerance():
    rng = np.random.default_rng(0)
    least = rng.random(100)
    shift = rng.normal(size=100)
    shift = 0.1 * (shift - shift.mean()) / shift.std(ddof=1)  # standard error 0.01
    close, far = least + shift + 0.008, least + shift + 0.012
    assert chosen([least, close, far], [30, 20, 10], 1.0) == (0, 1)
    assert chosen([least, close, far], [30, 20, 10], 1.5) == (0, 2)
    assert chosen([least, close, far], [30, 20, 10], 0.5) == (0, 0)
    assert chosen([least, close, far], [30, 40, 50], 2.0) == (0, 0)


def test_equal_losses_are_decided_by_error_then_by_nonzeros():
    losses = np.ones(10)
    entrants = [Entrant(str(n), "ftrl", loss=1.0) for n in range(3)]
    scored = {0: Scored(losses, 0.2, 1), 1: Scored(losses, 0.1, 9), 2: Scored(losses, 0.1, 5)}
    found = judged(entrants, scored, np.ones(10), 0.0)
    assert [one.chosen for one in found] == [True, False, False]  # all are within 0 of the best
    assert found[2].why.startswith("the least loss, but")


def test_a_candidate_that_was_not_measured_is_not_chosen():
    entrants = [Entrant("a", "ftrl", why="failed: no"), Entrant("b", "ftrl", loss=1.0)]
    found = judged(entrants, {1: Scored(np.ones(5), 0.1, 3)}, np.ones(5), 1.0)
    assert found[0] == entrants[0]
    assert found[1].chosen


@settings(max_examples=settings.default.max_examples)
@given(st.integers(2, 40), st.integers(0, 2**32 - 1))
def test_the_mean_and_its_standard_error(rows, seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=rows)
    mean, error = mean_and_error(values, np.ones(rows))
    assert mean == pytest.approx(values.mean())
    assert error == pytest.approx(values.std(ddof=1) / np.sqrt(rows))
    weights = rng.integers(0, 3, rows).astype(float)
    if np.count_nonzero(weights) > 1:  # rows of weight 0 do not count
        kept = weights > 0
        assert mean_and_error(values, weights) == pytest.approx(
            mean_and_error(values[kept], weights[kept])
        )


@settings(max_examples=settings.default.max_examples)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=60), st.integers(2, 5))
def test_folds_are_stratified(classes, count):
    strata = np.unique(classes, return_inverse=True)[1].astype(np.int64)
    folds = folds_of(strata, count, np.random.default_rng(0))
    for number in np.unique(strata):
        own = folds[strata == number]
        if len(own) == 1:
            assert own[0] == ALWAYS
        else:
            sizes = np.bincount(own, minlength=count)
            assert sizes.max() - sizes.min() <= 1
            assert all((own != fold).any() for fold in range(count))


def test_a_sample_keeps_rare_classes():
    strata = np.repeat([0, 1, 2], [1000, 3, 1])
    rows = sample_of(strata, 100, np.random.default_rng(0))
    assert np.bincount(strata[rows]).tolist() == [100, 2, 1]
    assert (np.diff(rows) > 0).all()


def test_log_losses_and_errors_of_classes_and_of_labels():
    decision = np.array([[2.0, 0.0, -1.0], [0.0, 0.0, 0.0]])
    p = 1 / (1 + np.exp(-decision))
    own = p[[0, 1], [0, 2]] / p.sum(axis=1)
    y, classes = np.array(["a", "c"]), np.array(["a", "b", "c"])
    np.testing.assert_allclose(log_losses(decision, y, classes), -np.log(own))
    assert errors(decision, y, classes).tolist() == [0.0, 1.0]
    table = sp.csr_matrix([[1, 0, 0], [0, 0, 1]])
    expected = -np.log(np.where(table.toarray(), p, 1 - p)).mean(axis=1)
    np.testing.assert_allclose(log_losses(decision, table, classes), expected)
    np.testing.assert_allclose(errors(decision, table, classes), [1 / 3, 2 / 3])


def test_the_slope_has_the_least_loss():
    rng = np.random.default_rng(0)
    true = rng.normal(size=20_000)
    y = (rng.random(20_000) < 1 / (1 + np.exp(-true))).astype(int)
    classes, weights = np.array([0, 1]), np.ones(20_000)
    assert slope_of(5.0 * true, y, classes, weights) == pytest.approx(0.2, rel=0.1)
    assert slope_of(0.8 * true, y, classes, weights) == pytest.approx(1.25, rel=0.1)
    assert slope_of(0.1 * true, y, classes, weights) == pytest.approx(2.0, rel=0.01)  # the limit


def test_the_standard_deviation_of_targets():
    y = np.array([1e300, 3e300])
    assert sd_of(y, np.ones(2)) == pytest.approx(1e300)
    assert sd_of(np.full(5, 7.0), np.ones(5)) == 1.0


@pytest.mark.parametrize("density", [1.0, 0.5, 0.05])
def test_weights_are_for_columns_as_given(density):
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 1.0, size=(200, 8)) * 10.0 ** np.arange(-4, 4)
    X *= rng.random(X.shape) < density
    y = X[:, 6] > np.median(X[:, 6])
    X = X if density == 1.0 else sp.csr_matrix(X)
    scale = ColumnScale.of(X)
    fitted = CoordinateDescentClassifier(l1=0.01, random_state=0).fit(scale.applied(X), y)
    expected = fitted.decision_function(scale.applied(X))
    np.testing.assert_allclose(scale.undone(fitted).decision_function(X), expected, atol=1e-9)
    np.testing.assert_allclose(multiplied(fitted, 0.5).decision_function(X), 0.5 * expected)


def test_scales_of_constant_columns_and_of_huge_values():
    X = np.column_stack([np.full(4, 7.1), np.zeros(4), [1.0, -1.0, 1.0, -1.0], [1e308] * 4])
    scale = ColumnScale.of(X)
    assert np.isfinite(scale.applied(X)).all()
    assert scale.scale[1] == 1.0


def test_plans_have_less_work_for_less_time():
    facts = Facts(100_000, 1000, 10_000_000, 1, False, 0.5, 1.0, 100_000)
    plans = [RacePlan.timed("classifier", facts, 5, seconds, 1e7) for seconds in (1e6, 1e3, 100, 1)]
    work = [len(p.candidates) * p.folds * p.rows for p in plans]
    assert work == sorted(work, reverse=True)
    assert len(plans[0].candidates) == len(CANDIDATES)
    assert plans[-1].rows >= 200
    assert all(candidate.streams for candidate in plans[-1].candidates)
    for plan in plans:
        assert RacePlan.recorded(plan.to_dict()) == plan


def test_rows_that_do_not_fit_in_memory_and_labels_exclude_coordinate_descent():
    rows = Facts(100, 10, 1000, 1, False, 0.5, 1.0, 200)
    labels = Facts(100, 10, 1000, 5, True, None, 1.0, 100)
    for facts in (rows, labels):
        assert all(
            candidate.streams for candidate in RacePlan.of("classifier", facts, 5).candidates
        )


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({}, "budget must be"),
        ({"candidates": ["none such"], "folds": 2, "rows": 10}, "no candidate 'none such'"),
        ({"candidates": [], "folds": 2, "rows": 10}, "no candidate"),
        ({"candidates": ["ftrl, 1 pass"], "folds": 1, "rows": 10}, "at least 2 folds"),
        ({"candidates": ["ftrl, 1 pass"], "folds": "many", "rows": 10}, "budget must be"),
    ],
)
def test_bad_recorded_budgets(budget, words):
    with pytest.raises(ParameterError, match=words):
        RacePlan.recorded(budget)


def test_facts():
    X = sp.csr_matrix(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0], [0.0, 0.0]]))
    facts = facts_of(X, np.array([0, 1, 1, 1]), 1)
    assert (facts.rows, facts.features, facts.stored, facts.rarest) == (4, 2, 3, 0.25)
    assert facts.complete
    assert not facts_of(X, np.array([0, 1, 1, 1]), 1, total=9).complete
