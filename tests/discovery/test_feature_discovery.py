"""FeatureDiscovery of rows in memory: forms, tasks, weights, groups, models and the same bits."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import thresher
from support.discovery_cases import discovered, same_results, signal
from thresher import FeatureDiscovery
from thresher.discovery import Check, DiscoveryWarning, Finding

FORMS = ["crossfit", "stream", "joint"]
forms = pytest.mark.parametrize("form", FORMS)
tasks = pytest.mark.parametrize("task", ["classification", "regression"])
pytestmark = pytest.mark.filterwarnings("ignore::thresher.discovery.DiscoveryWarning")


@forms
@tasks
def test_finds_the_features_that_matter(form: str, task: str) -> None:
    X, y = signal(task)
    found = discovered(form=form, task=task).fit(X, y)
    assert {3, 7} <= set(found.selected_.tolist())
    assert len(found.selected_) <= 4
    assert found.selected_.dtype == np.int64
    assert (np.diff(found.selected_) > 0).all()
    for values in (found.z_, found.qvalues_, found.pvalues_):
        assert values.shape == (40,)
        assert np.isfinite(values).all()
    assert found.z_[3] > 4 > -4 > found.z_[7]
    assert found.z_[11] == 0.0  # a column of zeros
    assert found.qvalues_[11] == found.pvalues_[11] == 1.0
    constant = {12} if form != "stream" else set()  # a crossfit centres it
    assert found.features_.tolist() == [j for j in range(40) if j not in {11, *constant}]
    if form != "joint":
        np.testing.assert_array_equal(found.selected_, np.flatnonzero(found.qvalues_ <= 0.1))
    assert 0 < found.expected_false_ <= 0.1 * max(len(found.selected_), 4)
    assert (found.n_rows_, found.n_features_in_) == (len(y), 40)
    assert hasattr(found, "classes_") == (task == "classification")
    assert all(isinstance(check, Check) for check in found.checks_)
    assert len({check.name for check in found.checks_}) == len(found.checks_) == 9


@forms
def test_the_same_bits_for_any_threads_layout_and_store(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = signal("classes")
    X[:, 12] = X[:, 13] > 0  # not constant: a crossfit centres such columns of arrays
    first = discovered(form=form).fit(X, y)
    for n_jobs in (2, 4, -1):
        same_results(discovered(form=form, n_jobs=n_jobs).fit(X, y), first)
    for rows in (sp.csr_matrix(X), sp.csc_matrix(X), sp.csr_array(X), X[:, ::-1][:, ::-1]):
        same_results(discovered(form=form).fit(rows, y), first)
    monkeypatch.setattr("thresher.discovery.inputs._DENSE", 1)  # a hashed store
    same_results(discovered(form=form).fit(X, y), first)
    monkeypatch.setattr("thresher.discovery.readings._CHUNK", 1000)  # many visits
    same_results(discovered(form=form).fit(X, y), first)


@tasks
def test_folds_one_after_the_other_have_the_same_bits(task: str) -> None:
    X, y = signal(task)
    whole, readings = discovered().fit(X, y), []

    class Readings(thresher.Observer):
        def tell(self, event: str, **facts: Any) -> None:
            if event == "reading":
                readings.append((facts["number"], facts["readings"]))

    for limit, number in ((40 * 128 * 2, 4), (1, 6), (40 * 128 * 5, 2)):
        readings.clear()
        few = discovered(memory_limit=limit).fit(X, y, observer=Readings())
        same_results(few, whole)
        assert {total for _, total in readings} == {number}
        assert sorted({at for at, _ in readings}) == list(range(1, number + 1))


@forms
def test_the_seed_decides(form: str) -> None:
    X, y = signal()
    one, again, other = (discovered(form=form, random_state=s).fit(X, y) for s in (1, 1, 2))
    same_results(one, again)
    assert (one.pvalues_ != other.pvalues_).any()
    if form == "stream":  # only the redraws differ
        np.testing.assert_array_equal(one.z_, other.z_)
    state = np.random.RandomState(0)
    first, second = (discovered(form=form, random_state=state).fit(X, y) for _ in range(2))
    assert (first.pvalues_ != second.pvalues_).any()


@tasks
@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_partial_fit_equals_one_call(task: str, size: int) -> None:
    X, y = signal(task, rows=300 if size < 10 else 900)
    whole = discovered(form="stream", task=task).fit(X, y)
    parts = discovered(task=task)
    for start in range(0, len(y), size):
        rows = slice(start, start + size)
        classes = None if start or task == "regression" else np.unique(y)
        parts.partial_fit(X[rows], y[rows], classes=classes)
    same_results(parts, whole)
    more = pickle.loads(pickle.dumps(parts)).partial_fit(X[:50], y[:50])
    whole.partial_fit(X[:50], y[:50])  # a fit of a stream continues
    same_results(more, whole)
    assert more.n_rows_ == len(y) + 50


def test_a_new_fit_forgets_the_stream() -> None:
    X, y = signal()
    found = discovered(form="stream").partial_fit(X, y).fit(X, y)
    same_results(found, discovered(form="stream").fit(X, y))
    with_folds = discovered().fit(X, y).partial_fit(X, y)
    same_results(with_folds, discovered(form="stream").fit(X, y))


@tasks
def test_rows_of_weight_0_are_left_out(task: str) -> None:
    X, y = signal(task)
    weights = np.where(np.arange(len(y)) % 4 == 0, 0.0, 1.0)
    kept = weights > 0
    found = discovered(form="stream", task=task).fit(X, y, weights)
    without = discovered(form="stream", task=task).fit(X[kept], y[kept])
    np.testing.assert_array_equal(found.z_, without.z_)
    for one, other in zip(found.checks_[:-1], without.checks_[:-1], strict=True):
        assert (one.name, one.fine) == (other.name, other.fine)
        assert one.value == pytest.approx(other.value)
    strange = X.copy()
    strange[~kept] = 1e3 * np.arange(40)
    labels = np.where(kept, y, y[kept][0])
    for form in FORMS:
        one = discovered(form=form, task=task).fit(X, labels, weights)
        other = discovered(form=form, task=task).fit(strange, labels, weights)
        np.testing.assert_array_equal(one.z_, other.z_)
        np.testing.assert_array_equal(one.selected_, other.selected_)


def test_common_factors_of_weights_hardly_matter() -> None:
    X, y = signal()
    plain, ones = discovered().fit(X, y), discovered().fit(X, y, np.ones(len(y)))
    same_results(plain, ones)
    doubled = discovered().fit(X, y, np.full(len(y), 2.0))
    assert np.abs(doubled.z_ - plain.z_).max() < 0.5
    assert {3, 7} <= set(doubled.selected_.tolist())


@forms
def test_any_scale_of_a_regression(form: str) -> None:
    X, y = signal("regression")
    plain = discovered(form=form, dtype="float64").fit(X, y)
    for unit, centre in ((1e6, 1e9), (1e-9, 0.0), (-1.0, 1e3)):
        other = discovered(form=form, dtype="float64").fit(X, y * unit + centre)
        np.testing.assert_allclose(np.sign(unit) * other.z_, plain.z_, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(other.selected_, plain.selected_)


@forms
def test_several_classes(form: str) -> None:
    X, y = signal("classes")
    found = discovered(form=form).fit(X, y)
    assert found.classes_.tolist() == ["a", "b", "c"]
    assert {3, 7} <= set(found.selected_.tolist())
    assert {each.label for each in found.findings()} <= {"a", "b", "c"}
    assert all(f"the odds of {each.label}" in found.why(each.number) for each in found.findings())


@tasks
def test_joint_drops_features_that_stand_in(task: str) -> None:
    X, y = signal(task, rows=1500)
    rng = np.random.default_rng(3)
    X[:, 20] = X[:, 3] + 0.1 * rng.normal(size=len(X))  # a near-copy without effect
    joint = discovered(form="joint", task=task).fit(X, y)
    both = discovered(task=task).fit(X, y)
    assert set(joint.selected_.tolist()) <= set(both.selected_.tolist())
    assert {3, 20} & set(joint.selected_.tolist())
    assert 7 in joint.selected_
    np.testing.assert_array_equal(joint.z_, both.z_)
    assert all(abs(each.wald) >= 1.9 for each in joint.findings())


def test_joint_keeps_one_of_each_pair_of_near_copies() -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(3000, 60))
    X[:, 20:28] = X[:, :8] + 0.1 * rng.normal(size=(3000, 8))
    y = X[:, :8].sum(axis=1) + rng.logistic(size=3000) > 0
    plain = discovered().fit(X, y).selected_.tolist()
    assert {*range(8), *range(20, 28)} <= set(plain)
    joint = discovered(form="joint").fit(X, y).selected_.tolist()
    pairs = [column % 20 for column in joint if column < 28 and column % 20 < 8]
    assert set(pairs) == set(range(8))
    assert len(pairs) <= 10


def test_groups_of_rows_stay_together() -> None:
    X, y = signal(rows=400)
    copies = np.repeat(np.arange(400), 3)
    found = discovered().fit(X[copies], y[copies], groups=copies)
    checks = {c.name: c for c in found.checks_}
    assert checks["repeated rows"].fine
    assert "66.7% of the rows repeat an earlier row, 0.0% a row of" in str(checks["repeated rows"])
    assert checks["order of residuals"].result == "not checked"
    divided = discovered().fit(X[copies], y[copies], groups=np.arange(1200) // 2)
    check = {c.name: c for c in divided.checks_}["repeated rows"]
    assert not check.fine
    assert "put all copies into one group" in check.message
    weights = np.arange(1200) < 900  # weights of 0
    few = discovered().fit(X[copies], y[copies], weights, groups=copies)
    assert {c.name: c for c in few.checks_}["repeated rows"].fine
    words = np.array([f"person {i}" for i in copies])
    named = discovered().fit(X[copies], y[copies], groups=words)
    assert (
        named.selected_.tolist()
        == discovered()
        .fit(X[copies], y[copies], groups=np.unique(words, return_inverse=True)[1])
        .selected_.tolist()
    )
    noise = np.random.default_rng(0).permutation(y)
    apart = discovered().fit(X[copies], noise[copies])
    together = discovered().fit(X[copies], noise[copies], groups=copies)
    assert len(together.selected_) < len(apart.selected_)


@pytest.mark.parametrize("words", [False, True])
def test_groups_of_features(words: bool) -> None:
    X, y = signal(rows=800)
    numbers = np.arange(40) // 4
    groups = np.array([f"group {g}" for g in numbers]) if words else numbers
    found = discovered(feature_groups=groups).fit(X, y)
    assert set(found.selected_groups_.tolist()) == set(groups[[3, 7]].tolist())
    assert found.selected_.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    q = found.qvalues_
    assert (q[:4] == q[0]).all()
    assert (q[4:8] == q[4]).all()
    assert discovered(feature_groups=groups.tolist()).fit(X, y).selected_.tolist() == list(range(8))


@pytest.mark.parametrize("kind", ["classification", "regression", "classes"])
def test_refit_gives_a_model(kind: str, tmp_path: Any) -> None:
    X, y = signal(kind, rows=800)
    found = discovered(refit=True).fit(X[:600], y[:600])
    assert set(found.model_.indices.tolist()) <= set(found.selected_.tolist())
    assert (
        found.score(X[600:], y[600:])
        > {"regression": 0.3, "classification": 0.6, "classes": 0.45}[kind]
    )
    found.model_.save(tmp_path / "model.thresher")
    loaded = thresher.load(tmp_path / "model.thresher")
    np.testing.assert_array_equal(loaded.predict(X), found.predict(X))
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.predict(sp.csr_matrix(X)), found.predict(X))
    if kind == "regression":
        with pytest.raises(AttributeError, match="a regression has no predict_proba"):
            found.predict_proba(X)
    else:
        np.testing.assert_allclose(found.predict_proba(X).sum(axis=1), 1.0)
    bare = discovered().fit(X, y)
    for name in ("predict", "score"):
        assert not hasattr(bare, name)
        with pytest.raises(AttributeError, match=f"FeatureDiscovery: {name} needs refit=True"):
            getattr(bare, name)(X)
    with pytest.raises(AttributeError, match="model_ needs refit=True"):
        _ = discovered().fit(X, y).model_


def test_pipelines_frames_and_pickles() -> None:
    X, y = signal()
    frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(40)])
    found = discovered().fit(frame, y)
    same_results(found, discovered().fit(X, y))
    names = found.get_feature_names_out().tolist()
    assert names == [f"column {j}" for j in found.selected_]
    assert found.findings()[0].feature in {"column 3", "column 7"}
    assert found.why("column 3") == found.why(3)
    with pytest.raises(thresher.ParameterError, match="called 'Column 3'; did you mean column 3"):
        found.why("Column 3")
    assert found.set_output(transform="pandas").transform(frame).columns.tolist() == names
    np.testing.assert_array_equal(found.get_support(indices=True), found.selected_)
    np.testing.assert_array_equal(np.flatnonzero(found.get_support()), found.selected_)
    same_results(pickle.loads(pickle.dumps(found)), found)
    pipeline = make_pipeline(discovered(), LogisticRegression()).fit(X, y)
    assert pipeline.score(X, y) > 0.7
    sparse = found.set_output(transform="default").transform(sp.csr_matrix(X))
    assert sp.issparse(sparse)
    np.testing.assert_array_equal(sparse.toarray(), X[:, found.selected_])
    assert not hasattr(clone(found), "n_rows_")
    assert clone(found).get_params() == found.get_params()


def test_findings_and_sentences() -> None:
    X, y = signal()
    found = discovered().fit(X, y)
    best = found.findings()
    assert all(isinstance(each, Finding) and each.selected for each in best)
    assert {each.number for each in best} == set(found.selected_.tolist())
    all_of_them = found.findings(1000)
    assert len(all_of_them) == 38
    assert (np.diff([abs(each.z) for each in all_of_them]) <= 0).all()
    three = {each.number: each for each in all_of_them}[3]
    assert (three.direction, three.label) == ("raises", 1)
    assert three.z == found.z_[3]
    assert three.q == found.qvalues_[3]
    assert found.why(11) == "11: no row has a nonzero value of it. 38 features occur."
    assert "beyond what the other features explain" in found.why(3)


def test_expected_false_and_fdr() -> None:
    X, y = signal()
    one, five = (discovered(expected_false=k).fit(X, y) for k in (1, 5))
    assert set(one.selected_.tolist()) <= set(five.selected_.tolist())
    assert one.expected_false_ <= 1 < five.expected_false_ <= 5
    everything = discovered(fdr=1.0).fit(X, y)
    strong = np.flatnonzero(np.abs(everything.z_) >= 2)  # weaker features are never selected
    np.testing.assert_array_equal(everything.selected_, strong)


def test_a_failed_check_is_a_warning() -> None:
    X, y = signal()
    with pytest.warns(DiscoveryWarning, match="repeated rows: 66.7% of the rows"):
        discovered().fit(np.r_[X, X, X], np.r_[y, y, y])
    told = []

    class Quiet(thresher.Observer):
        def warn(self, message: str, category: type[Warning] = UserWarning) -> None:
            told.append((message, category))

    FeatureDiscovery(random_state=0).fit(X[:60], y[:60], observer=Quiet())
    assert told[0][0].startswith("FeatureDiscovery: number of rows: 60 rows")
    assert all(category is DiscoveryWarning for _, category in told)


@pytest.mark.parametrize("factor", [1e-3, 1e3])
@pytest.mark.parametrize("form", ["crossfit", "stream"])
def test_a_common_factor_of_the_weights_changes_nothing(form: str, factor: float) -> None:
    X, y = signal("classification")
    h = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    found = discovered(form=form).fit(X, y, sample_weight=h)
    other = discovered(form=form).fit(X, y, sample_weight=factor * h)
    np.testing.assert_allclose(other.z_, found.z_, atol=1e-3)
    np.testing.assert_array_equal(other.selected_, found.selected_)


def test_very_different_weights_are_a_warning() -> None:
    X, y = signal("classification")
    h = np.random.default_rng(0).exponential(size=len(y)) ** 3
    checks = {check.name: check for check in discovered().fit(X, y, sample_weight=h).checks_}
    assert not checks["number of rows"].fine
    assert "with such different weights" in checks["number of rows"].message


def test_columns_far_from_0_are_centred() -> None:
    X, y = signal("classification")
    moved = X + 100.0
    found = discovered(refit=True).fit(moved, y)
    assert {3, 7} <= set(found.selected_.tolist())
    assert len(found.selected_) <= 4
    plain = discovered(refit=True).fit(X, y)
    assert abs(found.score(moved, y) - plain.score(X, y)) < 0.02


def test_a_regression_stream_may_begin_with_equal_targets() -> None:
    X, y = signal("regression")
    near = y.copy()
    near[1] = near[0] + 1e-6
    found = discovered(form="stream", task="regression").fit(X, near)
    assert {3, 7} <= set(found.selected_.tolist())


def test_words_of_one_long_row_are_not_selected() -> None:
    """Without a least z, a row that surprises the model would bring all its own words."""
    rng = np.random.default_rng(0)
    rows = sp.lil_matrix((1200, 4000))
    rows[:, :200] = rng.random((1200, 200)) < 0.1
    rows[7, 200:4000] = 1.0  # a long document
    y = np.where(rows[:, :5].toarray().sum(axis=1) > 0.5, 1, 0) ^ (rng.random(1200) < 0.05)
    for seed in range(3):
        found = discovered(random_state=seed).fit(sp.csr_matrix(rows), y)
        assert len(np.flatnonzero(found.selected_ >= 200)) == 0


def test_partial_fit_says_that_there_is_no_model() -> None:
    X, y = signal(rows=400)
    found = discovered(refit=True)
    with pytest.warns(UserWarning, match="partial_fit keeps no rows, so refit=True is ignored"):
        found.partial_fit(X[:200], y[:200], classes=[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.partial_fit(X[200:], y[200:])  # once is enough
        discovered().partial_fit(X, y)
    assert any(not check.fine for check in found.checks_)
    with pytest.raises(AttributeError, match="rows that can be read again"):
        _ = found.model_
