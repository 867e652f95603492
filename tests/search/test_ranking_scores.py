"""ROC AUC and average precision in searches of sources, from counts in bins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

import thresher
from support.files import called, svmlight
from thresher import FTRLClassifier, OnePassSearchCV
from thresher.errors import ParameterError
from thresher.training.ranking_scores import bin_terms, of_bins

SEEDS = st.integers(0, 2**20)


@given(SEEDS, st.sampled_from([0.01, 1.0, 100.0, 1e5]))
def test_bins_are_near_to_the_exact_metric(seed, size):
    rng = np.random.default_rng(seed)
    y = (rng.random(4000) < 0.3).astype(int)
    y[:2] = 0, 1
    d = size * (rng.normal(size=4000) + 0.8 * y)
    w = rng.uniform(0.5, 2, 4000)
    sums = bin_terms(d, y, w, 2) + bin_terms(d[:0], y[:0], w[:0], 2)
    for name, metric in (
        ("roc_auc", metrics.roc_auc_score),
        ("average_precision", metrics.average_precision_score),
    ):
        assert of_bins(name)(sums) == pytest.approx(metric(y, d, sample_weight=w), abs=1e-3)


@given(SEEDS)
def test_values_in_different_bins_are_exact(seed):
    rng = np.random.default_rng(seed)
    d = rng.choice(np.arange(-6.0, 7.0), 50)
    y = np.append([0, 1], rng.integers(0, 2, 48))
    sums = bin_terms(d, y, np.ones(50), 2)
    assert of_bins("roc_auc")(sums) == pytest.approx(metrics.roc_auc_score(y, d))
    wanted = metrics.average_precision_score(y, d)
    assert of_bins("average_precision")(sums) == pytest.approx(wanted)


@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision"])
def test_a_search_of_a_source_has_the_scores_of_the_rows_in_memory(tmp_path, scoring):
    rows = svmlight(tmp_path / "rows.svm", rows=1200)
    grid, clf = {"l1": [0.5, 5.0]}, FTRLClassifier(passes=2, random_state=0)
    found = OnePassSearchCV(clf, grid, cv=3, scoring=scoring).fit(thresher.scan(rows))
    for split in range(3):
        for number, l1 in enumerate(grid["l1"]):
            score = found.cv_results_[f"split{split}_test_score"][number]
            assert 0.6 < score < 1.0, l1
    best = found.best_estimator_
    source = thresher.scan(rows)
    exact = thresher.evaluate(best, source, replicates=0)[scoring]
    assert found.score(source) == pytest.approx(exact, abs=1e-3)


def test_the_command(tmp_path):
    rows = svmlight(tmp_path / "rows.svm", rows=600)
    words = ("tune", rows, "--grid", "l1=0.5,5", "--folds", 3, "-m", tmp_path / "m")
    assert "roc_auc" in called(*words, "--scoring", "roc_auc").stdout
    three = svmlight(tmp_path / "three.svm", classes=(1, 2, 3))
    words = ("tune", three, "--multiclass", "--grid", "l1=0.5,5", "-m", tmp_path / "m")
    error = called(*words, "--scoring", "roc_auc", code=2).stderr
    assert "a score of a ranking needs two classes; there are 3" in error


def test_several_classes_are_refused():
    with pytest.raises(ParameterError, match="needs two classes; there are 3"):
        bin_terms(np.zeros((4, 3)), np.zeros(4, int), np.ones(4), 3)
