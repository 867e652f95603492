"""Searches, paths, stability selection and clusters do not depend on the units of y."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.model_selection import GridSearchCV

import thresher
from support.target_cases import diabetes
from thresher.distributed import fit as cluster_fit
from thresher.search.folds import fold_numbers
from thresher.stability import StreamingStabilitySelection


def test_a_search_equals_single_fits(tmp_path):
    X, y = diabetes()
    path = str(tmp_path / "rows.svm")
    dump_svmlight_file(X, y, path, zero_based=False)
    made = thresher.TruncatedGradientRegressor(shuffle=False, passes=2, dtype="float64")
    grid = {"period": [1, 10], "loss": ["squared", "quantile"], "fit_intercept": [True, False]}
    number = fold_numbers(0, len(y), 4)
    folds = [(np.flatnonzero(number != k), np.flatnonzero(number == k)) for k in range(4)]
    theirs = GridSearchCV(made, grid, cv=folds).fit(X, y)
    ours = thresher.OnePassSearchCV(made, grid, cv=folds).fit(X, y)
    wanted = theirs.cv_results_["mean_test_score"]
    assert np.allclose(ours.cv_results_["mean_test_score"], wanted, rtol=1e-9)
    assert np.array_equal(ours.best_estimator_.coef_, theirs.best_estimator_.coef_)
    other = thresher.OnePassSearchCV(made, grid, cv=folds).fit(X, 1e3 * y + 5e4)
    small = ~np.array([p["fit_intercept"] for p in ours.cv_results_["params"]])
    found = other.cv_results_["mean_test_score"]
    assert np.allclose(found[~small], wanted[~small], rtol=1e-6)
    dump_svmlight_file(X, 1e3 * y, path, zero_based=False)
    streams = [thresher.OnePassSearchCV(made, grid, cv=4, refit=False).fit(thresher.scan(path))]
    dump_svmlight_file(X, y, path, zero_based=False)
    streams.append(thresher.OnePassSearchCV(made, grid, cv=4, refit=False).fit(thresher.scan(path)))
    one, two = (search.cv_results_["mean_test_score"] for search in streams)
    assert np.allclose(one, two, rtol=1e-6)


def test_progressive_scores_do_not_depend_on_units():
    X, y = diabetes()
    found = []
    for targets in (y, 1e3 * y + 1e5):
        search = thresher.OnePassSearchCV(
            thresher.FTRLRegressor(passes=1, dtype="float64"), {"target_nnz": [None]}, refit=False
        )
        rows = iter([(X, targets)])
        found.append(search.fit(thresher.scan(rows)).cv_results_["mean_test_score"])
    assert found[0] > 0.3
    assert np.allclose(*found, rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["TruncatedGradientRegressor", "FTRLRegressor"])
def test_a_path_does_not_depend_on_units(name):
    X, y = diabetes()
    made = getattr(thresher, name)(passes=10, random_state=0, dtype="float64")
    one = thresher.SparsityPath(made, cv=3).fit(X, y)
    two = thresher.SparsityPath(made, cv=3).fit(X, 1e3 * y + 5e4)
    assert np.allclose(two.gravities_, 1e3 * one.gravities_)
    assert two.nonzeros_.tolist() == one.nonzeros_.tolist()
    assert np.allclose(two.errors_, one.errors_, rtol=1e-6)
    best = one.best_estimator_, two.best_estimator_
    assert np.allclose(best[1].coef_, 1e3 * best[0].coef_, rtol=1e-6)
    assert best[1].score(X, 1e3 * y + 5e4) == pytest.approx(best[0].score(X, y))
    assert one.errors_.min() < 0.6  # 1 - R2


@pytest.mark.filterwarnings("ignore")
def test_stability_does_not_depend_on_units():
    X, y = diabetes()
    made = thresher.TruncatedGradientRegressor(passes=2, dtype="float64")
    found = []
    for targets in (y, 1e3 * y + 5e4):
        selection = StreamingStabilitySelection(
            made, param_name="period", param_values=[1, 10], pairs=3, random_state=0
        )
        found.append(selection.fit(X, targets).selection_probabilities_.toarray())
    assert np.array_equal(*found)


def test_a_cluster_agrees_on_mean_and_sd(tmp_path):
    X, y = diabetes()
    models = []
    for number, targets in enumerate((y, 1e3 * y + 5e4)):
        files = []
        for part in range(2):
            files.append(str(tmp_path / f"{number}-{part}.svm"))
            rows = slice(part * 200, part * 200 + 200)
            dump_svmlight_file(X[rows], targets[rows], files[-1], zero_based=False)
        made = thresher.FTRLRegressor(passes=2, dtype="float64", random_state=0)
        models.append(cluster_fit(made, files, workers=0, parts=2))
    one, two = models
    assert np.allclose(two.coef_, 1e3 * one.coef_, rtol=1e-6)
    assert two.history_[-1].loss == pytest.approx(1e6 * one.history_[-1].loss)
    assert one.score(X, y) > 0.3
    more = [pickle.loads(pickle.dumps(m)) for m in models]
    more[0].partial_fit(X[400:], y[400:])
    more[1].partial_fit(X[400:], 1e3 * y[400:] + 5e4)
    assert np.allclose(more[1].coef_, 1e3 * more[0].coef_, rtol=1e-6)
