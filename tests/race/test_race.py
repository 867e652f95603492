"""`SparseClassifier` and `SparseRegressor` on rows in memory."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import thresher
from support.pages import HOSTILE, parsed, section
from thresher import Observer, ParameterError, SparseClassifier, SparseRegressor
from thresher.race import Race
from thresher.race.contest import Contest

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 25))
Y = np.where(X[:, 3] - X[:, 7] + 0.5 * RNG.normal(size=300) > 0, "yes", "no")
VALUES = 3.0 * X[:, 3] - 2.0 * X[:, 7] + RNG.normal(size=300)
FEW = {
    "candidates": [
        "ftrl, 1 pass",
        "ftrl, 5 passes",
        "coordinate-descent, 0.1 of the largest l1",
        "coordinate-descent, 0.01 of the largest l1",
        "coordinate-descent, 0.1 of the largest l1, scaled columns",
    ],
    "folds": 3,
    "rows": 10_000,
}


def same(one, other):
    """Tell whether two estimators have the same model, bit by bit."""
    a, b = one.model_, other.model_
    return all(
        np.array_equal(getattr(a, part), getattr(b, part))
        for part in ("indptr", "indices", "weights", "intercept")
    )


@pytest.fixture(scope="module")
def raced():
    return SparseClassifier(random_state=0).fit(X, Y)


def test_the_race_is_a_table_of_all_candidates(raced):
    race = raced.race_
    assert isinstance(race, Race)
    assert [entrant.name for entrant in race] == raced.budget_["candidates"]
    assert sum(entrant.chosen for entrant in race) == 1
    assert all(entrant.why for entrant in race)
    least = min(entrant.loss for entrant in race if entrant.measured)
    chosen = race.chosen
    assert chosen.behind == pytest.approx(chosen.loss - least)
    assert chosen.behind <= chosen.behind_error * race.tolerance
    sparser = [e for e in race if e.measured and e.nonzeros < chosen.nonzeros]
    assert all(e.behind > e.behind_error for e in sparser)
    assert chosen.name + " (chosen)" in race.table()
    assert json.loads(json.dumps(race.to_dict()))["measure"] == "log loss"
    assert json.loads(json.dumps(raced.budget_)) == raced.budget_
    assert repr(race) == f"<Race: {len(race)} candidates; {chosen.name} was chosen>"


def test_the_model_is_that_of_the_winner(raced):
    best = raced.best_estimator_
    assert best.rule == raced.race_.chosen.rule == raced.model_.parameters["rule"]
    assert same(raced, best)
    assert sorted(feature.name for feature in raced.model_.top(2)) == [3, 7]
    assert raced.model_.nnz < 25
    np.testing.assert_array_equal(raced.predict(X), best.predict(X))
    np.testing.assert_allclose(raced.predict_proba(X), best.predict_proba(X))
    np.testing.assert_allclose(raced.decision_function(X), X @ raced.coef_[0] + raced.intercept_)
    assert raced.score(X, Y) == np.mean(raced.predict(X) == Y) > 0.85
    assert raced.classes_.tolist() == ["no", "yes"]
    place = raced.model_.frontier
    assert place.dots[place.at].name == raced.race_.chosen.name
    assert sp.issparse(clone(raced).fit(X, Y).sparsify().coef_)
    assert not hasattr(raced, "partial_fit")


def test_a_race_can_be_repeated(raced):
    again = SparseClassifier(random_state=0, n_jobs=2).fit(X, Y)
    assert same(again, raced)
    assert [e.loss for e in again.race_ if e.measured] == [
        e.loss for e in raced.race_ if e.measured
    ]
    recorded = SparseClassifier(random_state=0, budget=raced.budget_).fit(X, Y)
    assert same(recorded, raced)
    assert recorded.budget_ == raced.budget_


@pytest.mark.parametrize("seconds", [1e-6, 1e4])
def test_a_time_is_turned_once_into_a_plan(seconds):
    timed = SparseClassifier(random_state=1, budget=seconds).fit(X, Y)
    assert timed.budget_["seconds"] == seconds
    assert timed.budget_["speed"] > 0
    again = SparseClassifier(random_state=1, budget=timed.budget_).fit(X, Y)
    assert same(again, timed)
    assert again.budget_ == timed.budget_
    assert (len(timed.race_) < 8) == (seconds < 1)


def test_a_time_for_rows_sorted_by_class(monkeypatch):
    monkeypatch.setattr("thresher.race.plan._PROBED", 100)  # four rows, all of the first class
    order = np.argsort(Y, kind="stable")
    timed = SparseClassifier(random_state=1, budget=1e-6).fit(X[order], Y[order])
    assert timed.score(X, Y) > 0.7


def test_no_time_is_measured_without_a_budget(raced):
    assert raced.budget_["seconds"] is None
    assert raced.budget_["speed"] is None


def test_many_rows_are_sampled_for_the_race_and_all_are_fitted():
    clf = SparseClassifier(budget={**FEW, "rows": 100}, random_state=0).fit(X, Y)
    assert "100 of 300 rows" in clf.race_.remarks[0]
    assert clf.history_[-1].examples % 300 == 0


def test_the_tolerance_trades_error_for_nonzeros():
    found = [
        SparseClassifier(budget=FEW, tolerance=tolerance, random_state=0).fit(X, Y).race_.chosen
        for tolerance in (0, 1, 100)
    ]
    assert [e.nonzeros for e in found] == sorted((e.nonzeros for e in found), reverse=True)
    assert found[0].behind == 0


def test_pickles_clones_and_pipelines(raced):
    again = pickle.loads(pickle.dumps(raced))
    assert same(again, raced)
    assert again.race_ == raced.race_ or str(again.race_) == str(raced.race_)
    assert clone(raced).get_params() == raced.get_params()
    pipeline = make_pipeline(StandardScaler(), SparseClassifier(budget=FEW, random_state=0))
    assert pipeline.fit(X, Y).score(X, Y) > 0.85


def test_names_of_columns_are_in_the_model():
    frame = pd.DataFrame(X, columns=[f"column {n}" for n in range(25)])
    clf = SparseClassifier(budget=FEW, random_state=0).fit(frame, Y)
    assert {feature.name for feature in clf.model_.top(2)} == {"column 3", "column 7"}
    assert clf.feature_names_in_.tolist() == frame.columns.tolist()
    assert (clf.predict(frame) == Y).mean() > 0.85


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix, sp.csc_matrix, sp.csr_array])
def test_formats_of_rows(layout):
    clf = SparseClassifier(budget=FEW, random_state=0).fit(layout(X), Y)
    assert clf.score(layout(X), Y) > 0.85


def test_many_classes_on_raw_columns():
    data = load_wine()
    clf = SparseClassifier(random_state=0).fit(data.data, data.target)
    assert clf.coef_.shape == (3, 13)
    assert clf.score(data.data, data.target) > 0.97
    np.testing.assert_allclose(clf.predict_proba(data.data).sum(axis=1), 1.0)
    assert "columns differ in scale" in " ".join(clf.race_.remarks)


@pytest.mark.parametrize("sparse", [False, True])
def test_several_labels(sparse):
    table = (X[:, :3] + 0.3 * RNG.normal(size=(300, 3)) > 0.5).astype(int)
    labels = sp.csr_matrix(table) if sparse else table
    clf = SparseClassifier(random_state=0).fit(X, labels)
    found = clf.predict(X)
    assert sp.issparse(found) == sparse
    assert np.mean((found.toarray() if sparse else found) == table) > 0.85
    assert clf.predict_proba(X).shape == (300, 3)
    assert all(entrant.rule != "coordinate-descent" for entrant in clf.race_)


def test_probabilities_are_neither_too_sure_nor_too_careful():
    true = X @ RNG.normal(size=25)
    y = RNG.random(300) < 1 / (1 + np.exp(-true))
    held = SparseClassifier(random_state=0).fit(X[:200], y[:200])
    found = held.decision_function(X[200:])
    losses = [
        log_loss(y[200:], 1 / (1 + np.exp(-slope * found)), labels=[False, True])
        for slope in (0.25, 1.0, 4.0)
    ]
    assert losses[1] == min(losses)


def test_weights_of_rows_and_classes():
    noise = np.where(RNG.random(300) < 0.5, "yes", "no")
    rows, labels = np.vstack([X, X]), np.concatenate([Y, noise])
    weights = np.repeat([1.0, 0.0], 300)
    weighted = SparseClassifier(budget=FEW, random_state=0).fit(rows, labels, weights)
    assert weighted.score(X, Y) > 0.85
    equal = SparseClassifier(budget=FEW, random_state=0).fit(X, Y, np.full(300, 1.0))
    assert same(equal, SparseClassifier(budget=FEW, random_state=0).fit(X, Y))
    positive = SparseClassifier(budget=FEW, class_weight={"no": 1, "yes": 20}, random_state=0)
    plain = SparseClassifier(budget=FEW, random_state=0).fit(X, Y)
    assert np.mean(positive.fit(X, Y).predict(X) == "yes") > np.mean(plain.predict(X) == "yes")


def test_regression_does_not_depend_on_the_unit_of_the_targets():
    data = load_diabetes(scaled=False)
    one = SparseRegressor(random_state=0).fit(data.data, data.target)
    score = one.score(data.data, data.target)
    assert score > 0.48
    for factor, shift in ((1e3, 0.0), (1e-3, 0.0), (1.0, 1e4)):
        y = factor * data.target + shift
        found = SparseRegressor(random_state=0).fit(data.data, y)
        assert found.race_.chosen.name == one.race_.chosen.name
        assert found.score(data.data, y) == pytest.approx(score, abs=1e-5)


def test_regression():
    reg = SparseRegressor(random_state=0).fit(X, VALUES)
    assert reg.race_.measure == "squared error"
    assert reg.race_.chosen.loss == pytest.approx(1 / 14, rel=0.3)  # noise over all variance
    assert {feature.name for feature in reg.model_.top(2)} == {3, 7}
    np.testing.assert_allclose(reg.predict(X), X @ reg.coef_[0] + reg.intercept_)


# ---- progress and the page -----------------------------------------------------------------------


class Events(Observer):
    """Keeps events; stops after some of them."""

    def __init__(self, most=1000):
        self.events, self.most = [], most

    def tell(self, event, **facts):
        self.events.append((event, facts))

    def stops(self):
        return len(self.events) >= self.most


def test_a_candidate_without_memory_is_named(monkeypatch):
    """The others decide; without a warning, nobody would know that another machine chooses more."""
    score, without = Contest.score, set(FEW["candidates"][1:])

    def failing(contest, candidate, folds):
        if candidate.name in without:
            raise MemoryError
        return score(contest, candidate, folds)

    monkeypatch.setattr(Contest, "score", failing)
    with pytest.warns(UserWarning, match="not enough memory to try") as caught:
        found = SparseClassifier(random_state=0, budget=FEW).fit(X, Y)
    assert found.race_.chosen.name == "ftrl, 1 pass"
    texts = [str(warning.message) for warning in caught]
    assert all(
        any(f"to try {name}: the others decided" in text for text in texts) for name in without
    )
    assert {entrant.why for entrant in found.race_ if not entrant.chosen} == {"failed: MemoryError"}
    without.add("ftrl, 1 pass")
    with pytest.raises(MemoryError):
        SparseClassifier(random_state=0, budget=FEW).fit(X, Y)


def test_an_observer_receives_candidates_and_the_final_fit():
    observer = Events()
    SparseClassifier(budget=FEW, random_state=0).fit(X, Y, observer=observer)
    names = [facts["name"] for event, facts in observer.events if event == "candidate"]
    assert names == FEW["candidates"]
    assert {event for event, _ in observer.events} > {"candidate"}
    assert "1/5 ftrl, 1 pass: log loss 0." in observer.events[0][1]["message"]


def test_an_observer_may_stop_the_race():
    clf = SparseClassifier(budget=FEW, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, Y, observer=Events(most=2))
    assert not hasattr(clf, "race_")


def test_the_page_says_what_was_tried(raced, tmp_path):
    raced.report(tmp_path / "race.html")
    html = (tmp_path / "race.html").read_text()
    assert parsed(html) is not None
    shown = section(html, "candidates")
    for entrant in raced.race_:
        assert entrant.name in shown
        assert entrant.why in shown
    assert "5 folds of 300 rows" in section(html, "how-it-was-done")
    assert raced.race_.chosen.why in html
    raced.report(tmp_path / "titled.html", title=HOSTILE)
    assert HOSTILE not in (tmp_path / "titled.html").read_text()


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"tolerance": -1}, "tolerance must be a number >= 0"),
        ({"tolerance": "one"}, "tolerance must be"),
        ({"tolerance": float("nan")}, "tolerance must be"),
        ({"folds": 1}, "folds must be a whole number >= 2"),
        ({"folds": 2.5}, "folds must be"),
        ({"budget": 0}, "budget must be"),
        ({"budget": True}, "budget must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"random_state": "seed"}, "random_state"),
    ],
)
def test_bad_parameters(params, words):
    with pytest.raises(ParameterError, match=words):
        SparseClassifier(**params).fit(X, Y)


def test_bad_rows():
    with pytest.raises(ValueError, match="at least 2 classes"):
        SparseClassifier().fit(X, np.zeros(300))
    with pytest.raises(ValueError, match=r"[Nn]a[Nn]|finite"):
        SparseClassifier(budget=FEW).fit(np.full((10, 2), np.nan), [0, 1] * 5)
    with pytest.raises(ValueError, match="weights"):
        SparseClassifier().fit(X, Y, np.zeros(300))
    with pytest.raises(ParameterError, match="classes= is for classifiers on sources"):
        SparseClassifier().fit(X, Y, classes=["no", "yes"])
    with pytest.raises(ParameterError, match="none of its candidates can learn these rows"):
        SparseClassifier(budget={**FEW, "candidates": FEW["candidates"][2:3]}).fit(X, X[:, :2] > 0)


def test_few_rows():
    two = SparseClassifier(random_state=0).fit([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"])
    assert two.race_.chosen.why == "there are too few rows for a race"
    assert two.predict([[1.0, 0.0]]).tolist() == ["yes"]
    late = np.array([0] * 50 + [1] * 49 + [2])  # a class with one row
    clf = SparseClassifier(budget=FEW, random_state=0).fit(X[:100], late)
    assert clf.coef_.shape[0] == 3


def test_odd_values():
    with pytest.warns(UserWarning, match="no candidate predicts better than a constant") as caught:
        constant = SparseRegressor(random_state=0).fit(X, np.full(300, 5.0))
    assert len(caught) == 1
    np.testing.assert_allclose(constant.predict(X), 5.0, rtol=1e-3)
    with pytest.warns(UserWarning, match="no candidate predicts better than a constant"):
        zeros = SparseClassifier(budget=FEW, random_state=0).fit(np.zeros((40, 3)), [0, 1] * 20)
    assert zeros.model_.nnz == 0
    huge = X.copy()
    huge[:, 0] *= 1e300
    huge[:, 1] *= 1e-300
    clf = SparseClassifier(random_state=0).fit(huge, Y)
    assert clf.score(huge, Y) > 0.85
    first = np.ones(300)
    first[0] = 0.0
    assert SparseClassifier(budget=FEW, random_state=0).fit(X, Y, first).score(X, Y) > 0.85


def test_a_model_file_has_the_race(raced, tmp_path):
    raced.model_.save(tmp_path / "m.thresher")
    loaded = thresher.load(tmp_path / "m.thresher")
    np.testing.assert_array_equal(loaded.predict(X), raced.predict(X))
    assert len(loaded.frontier.dots) == sum(entrant.measured for entrant in raced.race_)
