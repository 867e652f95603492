"""Regressors with default settings do not depend on the units of y."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import thresher
from support.target_cases import SCALING, SOLVERS, STREAMING, diabetes, fitted, housing_like, units
from thresher.losses import LOSSES
from thresher.rules import RULES, core_args
from thresher.training.observer import Interrupted, Observer


@pytest.mark.parametrize("rows", [diabetes, housing_like])
@pytest.mark.parametrize("name", [*STREAMING, *SOLVERS])
@pytest.mark.filterwarnings("ignore")
def test_r2_does_not_depend_on_units(name, rows):
    X, y = rows()
    plain = fitted(name, X, y)
    for what, other in units(y).items():
        model = fitted(name, X, other)
        assert abs(model.score(X, other) - plain.score(X, y)) < 5e-4, what
        factor = other.std() / y.std()
        assert model.model_.nnz == plain.model_.nnz, what
        assert np.allclose(model.coef_, factor * plain.coef_, rtol=1e-2, atol=1e-3 * factor), what


@pytest.mark.parametrize("loss", SCALING)
def test_all_losses_that_scale(loss):
    X, y = diabetes()
    for name in ("TruncatedGradientRegressor", "FTRLRegressor"):
        plain = fitted(name, X, y, loss=loss, dtype="float64", passes=3)
        other = fitted(name, X, 1e3 * y + 7.0, loss=loss, dtype="float64", passes=3)
        assert np.allclose(other.coef_, 1e3 * plain.coef_, rtol=1e-6, atol=1e-6)
        assert np.allclose(other.intercept_, 1e3 * plain.intercept_ + 7.0, rtol=1e-9)
        unit = 1e3 ** LOSSES[loss].degree
        for a, b in zip(other.history_, plain.history_, strict=True):
            assert a.loss == pytest.approx(unit * b.loss, rel=1e-6)


@pytest.mark.parametrize("name", [*STREAMING, *SOLVERS])
@pytest.mark.filterwarnings("ignore")
def test_without_an_intercept_only_the_scale_counts(name):
    X, y = diabetes()
    plain = fitted(name, X, y - y.mean(), fit_intercept=False)
    other = fitted(name, X, 1e3 * (y - y.mean()), fit_intercept=False)
    assert other.intercept_.tolist() == [0.0]
    assert np.allclose(other.coef_, 1e3 * plain.coef_, rtol=1e-3, atol=1e-2)


# ---- which fits standardise ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "given", "wanted"),
    [
        ("ftrl", {}, True),
        ("ftrl", {"l1": 0.3}, False),
        ("ftrl", {"beta": 1.0}, False),
        ("ftrl", {"l2": 0.0, "target_nnz": 3}, True),
        ("ftrl", {"loss": "poisson"}, False),
        ("ftrl", {"loss": "clipped_square"}, False),
        ("ftrl", {"loss": "huber", "epsilon": 0.1}, False),
        ("truncated-gradient", {"eta0": 0.1}, False),
        ("truncated-gradient", {"gravity": 0.0}, False),
        ("truncated-gradient", {"fit_intercept": False, "period": 3}, True),
        ("truncated-gradient", {"ceiling": 1.0}, False),
        ("hard-threshold", {"n_nonzero": 3}, True),
        ("hard-threshold", {"step": 0.1}, False),
    ],
)
def test_numbers_in_units_of_y_keep_them(rule, given, wanted):
    task = "regressor"
    params = {n: p.default_for(task) for n, p in RULES[rule].parameters.items()}
    assert core_args.standardises(rule, task, params | given) is wanted
    if "logistic" in RULES[rule].losses:
        assert not core_args.standardises(rule, "classifier", params | {"loss": "squared"})


def test_a_given_number_is_in_units_of_y():
    X, y = diabetes()
    plain = fitted("TruncatedGradientRegressor", X, y, gravity=0.5, passes=2)
    auto = fitted("TruncatedGradientRegressor", X, y, passes=2)
    other = fitted("TruncatedGradientRegressor", X, y, gravity=0.5, epsilon=0.1, passes=2)
    assert np.array_equal(plain.coef_, other.coef_)  # epsilon="auto" is then 0.1
    assert not np.array_equal(plain.coef_, auto.coef_)


# ---- streams, partial_fit, checkpoints, pickles --------------------------------------------------


@pytest.mark.parametrize("name", STREAMING)
def test_streams_and_matrices_give_the_same_bits(name):
    X, y = diabetes()
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    made = getattr(thresher, name)(passes=3, shuffle=False)
    found = []
    for size in (100, 157, 10_000):

        def blocks(size=size):
            for at in range(0, len(y), size):
                yield X[at : at + size], y[at : at + size], weights[at : at + size]

        reading = {"bits": 4} if RULES[made.rule].needs_width else {}
        found.append(clone(made).fit(thresher.scan(blocks, **reading)))
    if name in ("FTRLRegressor", "OnePassRegressor"):  # others: rates depend on the number of rows
        found.append(clone(made).fit(X, y, weights))
    for one in found[1:]:
        assert np.array_equal(one.coef_[:, :10], found[0].coef_[:, :10])
        assert one.intercept_ == found[0].intercept_


@pytest.mark.parametrize("name", STREAMING)
def test_partial_fit_goes_on_exactly(name):
    X, y = diabetes()
    X, y = X[:200], y[:200]
    given = {"shuffle": False, "passes": 1}
    whole = getattr(thresher, name)(**given).partial_fit(X, y)
    pieces = getattr(thresher, name)(**given).partial_fit(X[:120], y[:120])
    pieces = pickle.loads(pickle.dumps(pieces)).partial_fit(X[120:], y[120:])
    assert np.array_equal(whole.coef_, pieces.coef_)
    assert whole.intercept_ == pieces.intercept_
    assert np.allclose(whole.predict(X), X @ whole.coef_[0] + whole.intercept_)


class StopsAt(Observer):
    """Stops a run at its n-th visit of rows."""

    def __init__(self, visit):
        self.left = visit

    def progress(self, trainer):
        self.left -= 1

    def stops(self):
        return self.left == 0


def source():
    X, y = diabetes()
    return thresher.scan(
        lambda: ((X[at : at + 100], y[at : at + 100]) for at in range(0, 442, 100))
    )


@pytest.mark.parametrize("name", ["TruncatedGradientRegressor", "FTRLRegressor"])
@pytest.mark.parametrize("visit", [1, 3, 5, 8])
def test_a_resumed_run_goes_on_exactly(name, visit, tmp_path, monkeypatch):
    monkeypatch.setattr("thresher.data.buckets._ROWS", 100)
    made = getattr(thresher, name)(passes=2, random_state=0)
    whole = clone(made).fit(source())
    with pytest.raises(Interrupted):
        clone(made).fit(source(), checkpoint=tmp_path / "run", observer=StopsAt(visit))
    resumed = clone(made).fit(source(), checkpoint=tmp_path / "run", resume=True)
    assert np.array_equal(resumed.coef_, whole.coef_)
    assert resumed.intercept_ == whole.intercept_
    assert [r.loss for r in resumed.history_] == [r.loss for r in whole.history_]


def test_an_old_checkpoint_goes_on_in_the_units_of_y(tmp_path, monkeypatch):
    made = thresher.TruncatedGradientRegressor(passes=2, shuffle="blocks", random_state=0)
    with monkeypatch.context() as old:
        old.setattr(core_args, "standardises", lambda *arguments: False)
        whole = clone(made).set_params(epsilon=0.1).fit(source())
        with pytest.raises(Interrupted):
            clone(made).set_params(epsilon=0.1).fit(
                source(), checkpoint=tmp_path / "run", observer=StopsAt(3)
            )
    resumed = clone(made).fit(source(), checkpoint=tmp_path / "run", resume=True)
    assert np.array_equal(resumed.coef_, whole.coef_)
    assert not np.array_equal(resumed.coef_, clone(made).fit(source()).coef_)
    more = pickle.loads(pickle.dumps(resumed)).partial_fit(*diabetes())
    assert np.isfinite(more.coef_).all()


def test_rows_before_a_bad_row_count():
    X, y = diabetes()
    X, y = X[:50], y[:50].copy()
    good = thresher.FTRLRegressor().partial_fit(X[:20], y[:20])
    bad = thresher.FTRLRegressor().partial_fit(X[:20], y[:20])
    good.partial_fit(X[20:40], y[20:40])
    X = X[20:].copy()
    X[20, 3] = np.nan
    with pytest.raises(ValueError, match="row 20"):
        bad.partial_fit(X, y[20:])
    assert np.array_equal(good.coef_, bad.coef_)
    assert good.intercept_ == bad.intercept_


def test_warm_start_keeps_the_scale():
    X, y = diabetes()
    once = thresher.TruncatedGradientRegressor(passes=4, shuffle=False).fit(X, y)
    twice = thresher.TruncatedGradientRegressor(passes=2, shuffle=False, warm_start=True)
    assert np.array_equal(twice.fit(X, y).fit(X, y).coef_, once.coef_)


@pytest.mark.parametrize("shuffle", ["each", "once", "replace", "blocks", False])
def test_all_orders(shuffle):
    X, y = diabetes()
    model = thresher.TruncatedGradientRegressor(shuffle=shuffle, random_state=0).fit(X, y)
    other = thresher.TruncatedGradientRegressor(shuffle=shuffle, random_state=0).fit(X, 8 * y)
    assert np.allclose(other.coef_, 8 * model.coef_)
    assert model.score(X, y) > 0.45


def test_validation_losses_are_in_units_of_y():
    X, y = diabetes()
    for name in ("TruncatedGradientRegressor", "CoordinateDescentRegressor"):
        model = getattr(thresher, name)(passes=3, random_state=0)
        model.fit(X, y, eval_set=(X, y))
        mean = 0.5 * np.mean((model.predict(X) - y) ** 2)
        assert model.history_[-1].valid_loss == pytest.approx(mean)
    huber = thresher.TruncatedGradientRegressor(loss="huber", passes=3, random_state=0)
    huber.fit(X, y, eval_set=(X, y))
    error, epsilon = np.abs(huber.predict(X) - y), LOSSES["huber"].auto_epsilon * y.std()
    losses = np.where(error <= epsilon, error**2 / 2, epsilon * (error - epsilon / 2))
    assert huber.history_[-1].valid_loss == pytest.approx(losses.mean())


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*STREAMING, *SOLVERS])
@pytest.mark.filterwarnings("ignore:.*all weights are zero")
def test_constant_targets_are_predicted(name):
    X = np.random.default_rng(0).normal(size=(30, 4))
    model = fitted(name, X, np.full(30, 1234.5))
    assert model.predict(X).tolist() == [1234.5] * 30
    assert all(record.loss == 0 for record in model.history_)


@pytest.mark.parametrize("name", [*STREAMING, *SOLVERS])
@pytest.mark.parametrize("size", [1e300, 1e-300])
@pytest.mark.filterwarnings("ignore")
def test_huge_and_tiny_targets(name, size):
    X, y = diabetes()
    y = (y - y.mean()) / y.std()
    if name == "OnePassRegressor":  # its sums of squares are in the units of y
        if size > 1:
            with pytest.raises(thresher.DataError, match="allowed are targets up to 1e\\+150"):
                fitted(name, X, size * y)
        size = 1e149 if size > 1 else 1e-149
    plain, model = fitted(name, X, y), fitted(name, X, size * y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite([record.loss for record in model.history_]).all()
    assert np.allclose(model.coef_ / size, plain.coef_, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", STREAMING)
def test_a_first_row_of_weight_zero(name):
    X, y = diabetes()
    weights = np.ones(len(y))
    weights[0] = 0.0
    X0, y0 = X.copy(), y.copy()
    y0[0] = 1e9
    made = [
        getattr(thresher, name)(shuffle=False, passes=2).fit(X0, targets, weights)
        for targets in (y, y0)
    ]
    assert np.isfinite(made[0].coef_).all()
    assert np.allclose(made[0].coef_, made[1].coef_)


@pytest.mark.parametrize("name", STREAMING)
def test_a_jump_of_the_scale_is_warned_of(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    y = X @ np.arange(5.0)
    y[1500:] *= 1e6
    made = getattr(thresher, name)(shuffle=False, passes=1)
    if RULES[made.rule].standardises_in_core:  # it copes
        assert made.fit(X, y).score(X[1500:], y[1500:]) > 0.99
        return
    with pytest.warns(UserWarning, match="the standard deviation of the targets is"):
        model = made.fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.score(X[1500:], y[1500:]) > 0


@pytest.mark.parametrize("given", [None, 0.2])
@pytest.mark.filterwarnings("ignore")
def test_huber_of_the_rule_one_pass_is_in_units_of_y(given):
    """Its validation loss and its refit follow the units of y, as its training does."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 8))
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_t(2, 500)
    found = []
    for unit in (1.0, 1e3):
        epsilon = "auto" if given is None else given * unit
        made = thresher.OnePassRegressor(loss="huber", epsilon=epsilon, random_state=0)
        last = made.fit(X, unit * y, eval_set=(X, unit * y)).history_[-1]
        refit = made.set_params(target_nnz=2).fit(X, unit * y).refit_
        losses = [last.loss, last.valid_loss, refit.loss_before, *refit.losses]
        found.append(np.array(losses) / unit**2)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4)
