"""SparsityPath: errors and nonzeros equal those of separate fits of each gravity and fold."""

from __future__ import annotations

import pickle
import sys
import tracemalloc
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

import thresher
from support.files import svmlight, vw
from thresher import DivergenceError, ParameterError, SparsityPath
from thresher.model.frontier import Dot, Frontier
from thresher.scales import counts_of, ticks_of
from thresher.search.folds import fold_numbers
from thresher.search.gravities import default_gravities, gravity_scale_of

RNG = np.random.default_rng(5)
X = RNG.normal(size=(400, 30)) * (RNG.random((400, 30)) < 0.5)
Y = np.where(X[:, 2] - X[:, 5] + 0.3 * RNG.normal(size=400) > 0, "yes", "no")
GRAVITIES = [1e-4, 1e-2, 0.1, 0.3]
NATURAL = {"shuffle": False, "passes": 2, "dtype": "float64"}
TRUNCATED = thresher.TruncatedGradientClassifier(**NATURAL)


@pytest.mark.parametrize(
    ("estimator", "gravities"),
    [
        (TRUNCATED, GRAVITIES),
        (thresher.TruncatedGradientClassifier(average=True, **NATURAL), GRAVITIES),
        (thresher.ForwardBackwardClassifier(store="hashed", **NATURAL), GRAVITIES),
        (thresher.DualAveragingClassifier(**NATURAL), GRAVITIES),
        (thresher.FTRLClassifier(alpha=1.0, **NATURAL), [1.0, 5.0, 50.0]),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else None,
)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.filterwarnings("ignore:.*all weights are zero")
def test_equals_separate_fits(estimator, gravities, classes):
    y = Y if classes == 2 else np.digitize(X[:, 2] - X[:, 5], [-0.5, 0.5])
    path = SparsityPath(estimator, gravities[::-1], cv=4, n_jobs=2).fit(sp.csr_matrix(X), y)
    name = "gravity" if "gravity" in estimator.get_params() else "l1"
    assert path.param_name_ == name
    assert path.gravities_.tolist() == gravities
    for row, gravity in enumerate(gravities):
        alone = clone(estimator).set_params(**{name: gravity})
        scores = cross_val_score(alone, X, y, cv=StratifiedKFold(4))
        np.testing.assert_allclose(path.split_errors_[row], 1 - scores, atol=1e-12)
        np.testing.assert_allclose(path.errors_[row], 1 - scores.mean(), atol=1e-12)
        spread = scores.std(ddof=1) / 2
        np.testing.assert_allclose(path.standard_errors_[row], spread, atol=1e-12)
        alone.fit(X, y)
        assert path.nonzeros_[row] == path.models_[row].nnz == alone.model_.nnz
        np.testing.assert_allclose(path.models_[row].weights, alone.model_.weights, atol=1e-10)
        np.testing.assert_allclose(path.models_[row].intercept, alone.intercept_, atol=1e-10)
    order = sorted(range(len(gravities)), key=lambda i: (path.errors_[i], path.nonzeros_[i]))
    assert path.best_index_ == order[0]
    limit = path.errors_[order[0]] + path.standard_errors_[order[0]]
    within = np.flatnonzero(path.errors_ <= limit)
    assert path.nonzeros_[path.chosen_index_] == path.nonzeros_[within].min()
    assert path.best_gravity_ == gravities[path.best_index_]
    assert path.chosen_gravity_ == gravities[path.chosen_index_]


def test_estimators_predict():
    path = SparsityPath(TRUNCATED, GRAVITIES).fit(X, Y)
    for fitted, gravity in (
        (path.best_estimator_, path.best_gravity_),
        (path.chosen_estimator_, path.chosen_gravity_),
    ):
        alone = clone(TRUNCATED).set_params(gravity=gravity).fit(X, Y)
        np.testing.assert_array_equal(fitted.predict(X), alone.predict(X))
        assert fitted.get_params()["gravity"] == gravity
    copied = pickle.loads(pickle.dumps(path))
    np.testing.assert_array_equal(copied.errors_, path.errors_)
    np.testing.assert_array_equal(
        copied.chosen_estimator_.predict_proba(X), path.chosen_estimator_.predict_proba(X)
    )


def test_estimators_have_their_class_and_cannot_continue():
    path = SparsityPath(TRUNCATED, GRAVITIES).fit(X, Y)
    fitted = path.chosen_estimator_
    assert type(fitted) is thresher.TruncatedGradientClassifier
    assert not hasattr(fitted, "history_")
    with pytest.raises(ParameterError, match="cannot continue, because a search trained"):
        fitted.partial_fit(X, Y)
    copied = pickle.loads(pickle.dumps(fitted)).set_params(warm_start=True)
    with pytest.raises(ParameterError, match="cannot continue, because a search trained"):
        copied.fit(X, Y)
    assert fitted.model_.frontier.at == path.chosen_index_
    assert fitted.score(X, Y) > 0.8
    again = clone(fitted).fit(X, Y)
    assert again.model_.frontier is None
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


@pytest.mark.parametrize("limit", [None, 30 * 8 * 9])
def test_scores_weights_splitters_and_memory(limit):
    weights = RNG.uniform(0.5, 2.0, len(Y))
    reports = []
    path = SparsityPath(
        TRUNCATED,
        GRAVITIES,
        cv=KFold(3),
        scoring="neg_log_loss",
        memory_limit=limit,
        callback=reports.append,
    ).fit(X, Y, weights)
    assert (max(progress.readings for progress in reports) == 1) == (limit is None)
    assert path.frontier_.measure == "log loss"
    scores = cross_val_score(
        clone(TRUNCATED).set_params(gravity=0.01), X, Y, cv=KFold(3), scoring="neg_log_loss",
        params={"sample_weight": weights},
    )  # fmt: skip
    np.testing.assert_allclose(path.split_errors_[1], -scores, atol=1e-10)
    alone = clone(TRUNCATED).set_params(gravity=0.01).fit(X, Y, weights)
    np.testing.assert_allclose(path.models_[1].weights, alone.model_.weights, atol=1e-10)


def test_regression_and_custom_scores():
    y = X[:, 2] - X[:, 5]
    regressor = thresher.ForwardBackwardRegressor(**NATURAL)
    path = SparsityPath(regressor, [1e-4, 1e-2]).fit(X, y)
    assert path.frontier_.measure == "1 - r2"
    scores = cross_val_score(clone(regressor).set_params(l1=1e-2), X, y, cv=KFold(5))
    np.testing.assert_allclose(path.split_errors_[1], 1 - scores, atol=1e-10)
    own = SparsityPath(
        regressor, [1e-4, 1e-2], scoring=lambda e, X, y: -float(np.abs(e.predict(X) - y).mean())
    ).fit(X, y)
    assert own.frontier_.measure == "minus score"
    named = SparsityPath(regressor, [1e-4, 1e-2], scoring="neg_mean_absolute_error").fit(X, y)
    np.testing.assert_allclose(own.errors_, named.errors_, atol=1e-12)
    assert named.frontier_.measure == "mean absolute error"


# ---- gravities by default ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cls",
    [
        thresher.TruncatedGradientClassifier,
        thresher.ForwardBackwardClassifier,
        thresher.DualAveragingClassifier,
        thresher.FTRLClassifier,
        thresher.MarginPerceptronClassifier,
    ],
)
def test_default_gravities_range_from_dense_to_empty(cls):
    path = SparsityPath(cls(passes=2, random_state=0)).fit(X, Y)
    assert len(path.gravities_) == 15
    np.testing.assert_allclose(path.gravities_[-1] / path.gravities_[0], 1e4, rtol=0.01)
    assert path.nonzeros_[0] >= 27
    assert path.nonzeros_[-1] <= 12


def test_largest_default_gravity_is_that_of_the_optimum():
    """Coordinate descent, which finds the optimum, has weights only below that gravity."""
    largest = SparsityPath(thresher.DualAveragingClassifier(passes=1)).fit(X, Y).gravities_[-1]
    for share, some in ((1.01, False), (0.97, True)):
        optimal = thresher.CoordinateDescentClassifier(l1=share * largest, random_state=0)
        assert bool(optimal.fit(X, Y).model_.nnz) == some


def defaults(estimator, rows, limit):
    return default_gravities(estimator, gravity_scale_of(estimator, rows, limit))


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("limit", [1, 4 * 8 * 400 * 4, 10**9])
def test_default_gravities_do_not_depend_on_memory(tmp_path, sparse, limit):
    y = np.digitize(X[:, 2] - 0.5 * X[:, 3], [-0.7, -0.2, 0.2, 0.7])
    clf = thresher.TruncatedGradientClassifier(loss="logistic")
    slopes = np.where(y[:, None] == np.arange(5), -0.5, 0.5)
    means = X.T @ (slopes - slopes.mean(axis=0)) / len(y)
    rows = clf.source_of(sp.csr_matrix(X) if sparse else X, y)
    found = defaults(clf, rows, limit)
    assert found[-1] == pytest.approx(3 * np.abs(means).max(), rel=5e-3)
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=False)
    source = thresher.scan(tmp_path / "rows.svm")
    of_source = defaults(clf, source, limit)
    assert of_source.tolist() == pytest.approx(found.tolist(), rel=5e-3)


def test_gradients_take_no_more_than_the_limit():
    wide = sp.random(200, 5000, 0.01, "csr", random_state=0)
    y = np.arange(200) % 50
    clf = thresher.TruncatedGradientClassifier(loss="logistic")
    rows, limit = clf.source_of(wide, y), 2 * 10**6
    tracemalloc.start()
    defaults(clf, rows, limit)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < limit  # one copy of the gradients of all 50 outputs would be as large


def test_class_weights_change_default_gravities():
    y = np.where(Y == "yes", 1, 0)
    plain = thresher.TruncatedGradientClassifier(loss="logistic")
    heavy = clone(plain).set_params(class_weight={0: 1.0, 1: 50.0})
    ends = [defaults(clf, clf.source_of(X, y), 10**9)[-1] for clf in (plain, heavy)]
    assert ends[1] != pytest.approx(ends[0], rel=0.05)
    rows = plain.source_of(X, y, np.where(y == 1, 50.0, 1.0))
    assert ends[1] == defaults(plain, rows, 10**9)[-1]
    source = thresher.scan(lambda: iter([(X, y)]))
    assert ends[1] == pytest.approx(defaults(heavy, source, 10**9)[-1], rel=5e-3)


def test_labels_without_relation_to_features():
    with pytest.raises(thresher.DataError, match="gravities: no feature is related to"):
        SparsityPath(TRUNCATED).fit(np.zeros((20, 3)), Y[:20])


# ---- sources -------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [(-1, 1), (1, 2, 5)])
def test_source(tmp_path, classes):
    file = svmlight(tmp_path / "rows.svm", rows=500, classes=classes)
    rows, y = load_svmlight_file(str(file))
    estimator = thresher.ForwardBackwardClassifier(**NATURAL)
    path = SparsityPath(estimator, cv=3).fit(thresher.scan(file))
    folds = fold_numbers(0, 500, 3)
    splits = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(3)]
    of_matrix = SparsityPath(estimator, cv=splits).fit(rows, y.astype(int))
    np.testing.assert_array_equal(path.gravities_, of_matrix.gravities_)
    np.testing.assert_allclose(path.split_errors_, of_matrix.split_errors_, atol=1e-12)
    np.testing.assert_array_equal(path.nonzeros_, of_matrix.nonzeros_)
    for one, other in zip(path.models_, of_matrix.models_, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)
    assert path.table() == of_matrix.table()


def test_a_pipe_has_progressive_scores(tmp_path):
    file = svmlight(tmp_path / "rows.svm", rows=500)
    rows, y = load_svmlight_file(str(file))
    estimator = thresher.ForwardBackwardClassifier(passes=1, shuffle=False, dtype="float64")
    pieces = ((rows[i : i + 90], y[i : i + 90]) for i in range(0, 500, 90))
    path = SparsityPath(estimator, [1e-3, 0.1]).fit(thresher.scan(pieces))
    online, wrong = clone(estimator).set_params(l1=0.1), 0
    for row in range(500):
        one = rows[row : row + 1]
        wrong += (online.predict(one)[0] if row else 1.0) != y[row]
        online.partial_fit(one, y[row : row + 1], classes=[-1.0, 1.0])
    np.testing.assert_allclose(path.errors_[1], wrong / 500, atol=1e-12)
    np.testing.assert_allclose(path.models_[1].weights, online.model_.weights, atol=1e-10)
    assert np.isnan(path.standard_errors_).all()
    assert path.best_index_ == path.chosen_index_
    assert path.frontier_.measure == "progressive error rate"


def test_named_features(tmp_path):
    file = vw(tmp_path / "rows.vw")
    estimator = thresher.FTRLClassifier(store="hashed", passes=1, shuffle=False)
    path = SparsityPath(estimator, [0.1, 5.0]).fit(thresher.scan(file))
    assert path.nonzeros_[0] > path.nonzeros_[1] > 0
    for model in (*path.models_, path.chosen_estimator_.model_):
        assert set(model.names) == set(model.indices.tolist())
        assert all(name.startswith(("word^w", "age^")) for name in model.names.values())


# ---- output --------------------------------------------------------------------------------------


def test_table_chart_page_and_plot():
    path = SparsityPath(TRUNCATED, GRAVITIES).fit(X, Y)
    lines = path.table().splitlines()
    assert lines[0].split() == ["gravity", "error", "rate", "+-", "nonzeros"]
    assert len(lines) == 5
    assert sum("best" in line for line in lines) == sum("chosen" in line for line in lines) == 1
    assert "nonzeros" in path.chart()
    html = path._repr_html_()
    root = ET.fromstring(html)
    assert len(root.findall(".//tr")) == 5
    assert len(root.findall(".//circle[title]")) == 4
    assert "prefers-color-scheme: dark" in html
    assert path._repr_mimebundle_()["text/plain"] == path.table()
    assert "text/html" in clone(path)._repr_mimebundle_()
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = path.plot()
    assert ax.get_ylabel() == "error rate"
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "best + one s.e." in legend  # the dotted line
    assert path.plot(ax) is ax
    matplotlib.pyplot.close(ax.figure)


def test_plot_needs_matplotlib(monkeypatch):
    path = SparsityPath(TRUNCATED, GRAVITIES).fit(X, Y)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'thresher\[plot\]'"):
        path.plot()


def test_frontier_of_equals_and_failures():
    dots = [Dot("a", 5, 0.1, 0.02), Dot("b", 3, 0.1), Dot("c", 3, float("nan")), Dot("d", 1, 0.2)]
    frontier = Frontier(dots)
    assert (frontier.best, frontier.chosen, frontier.efficient) == (1, 1, (3, 1))
    assert [frontier.mark(i) for i in range(4)] == ["", "best and chosen", "failed", "frontier"]
    none = Frontier([Dot("a", 1, float("inf"))])
    assert (none.best, none.chosen, none.efficient) == (None, None, ())
    assert ticks_of(0.0, 1.0) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert counts_of(0.0, 3.01) == [0, 1, 10, 100, 1000]
    assert counts_of(np.log10(40), np.log10(300)) == [50, 100, 200]


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (thresher.AveragedSGDClassifier(), {}, "must have a penalty or .*none of them"),
        (thresher.SparseClassifier(), {}, "must have a penalty or .*none of them"),
        (SGDClassifier(), {}, "estimator must be one of Thresher's, or a Pipeline"),
        (TRUNCATED, {"param_name": "period"}, "param_name must be one of gravity, target_nnz"),
        (TRUNCATED, {"param_name": "target_nnz", "gravities": [1.5, 3]}, "target_nnz must be"),
        (TRUNCATED, {"gravities": [0.1]}, "gravities must be at least 2 different numbers"),
        (TRUNCATED, {"gravities": [0.1, 0.1]}, "gravities must be at least 2 different numbers"),
        (TRUNCATED, {"gravities": ["few", "many"]}, "gravities must be at least 2"),
        (TRUNCATED, {"gravities": [-1.0, 0.1]}, "gravity must be a number >= 0.*got -1.0"),
        (TRUNCATED, {"cv": "progressive"}, "cv"),
        (TRUNCATED, {"memory_limit": 0}, "memory_limit must be a number of bytes"),
        (TRUNCATED, {"memory_limit": 10}, "memory_limit is 10"),
        (clone(TRUNCATED).set_params(tol=-0.1), {}, "tol must be"),
        (TRUNCATED, {"scoring": "no such"}, "no such"),
        (TRUNCATED, {"scoring": ["accuracy", "f1"]}, "scoring must be a single score.*'f1'"),
        (TRUNCATED, {"scoring": {"score": "accuracy"}}, "scoring must be a single score"),
        (TRUNCATED, {"scoring": lambda *_: {"a": 1.0, "b": 2.0}}, "must be a single.*returns a, b"),
        (thresher.MirrorDescentClassifier(), {}, "threshold='paper' each step subtracts l1"),
    ],
)
def test_errors(estimator, options, message):
    path = SparsityPath(estimator, **options)
    with pytest.raises((ParameterError, ValueError, MemoryError), match=message):
        path.fit(X, Y)
    assert not hasattr(path, "errors_")


def test_errors_of_sources(tmp_path):
    path = SparsityPath(clone(TRUNCATED).set_params(passes=1), GRAVITIES)
    source = thresher.scan(svmlight(tmp_path / "rows.svm", rows=40))
    with pytest.raises(ParameterError, match="a source has its own labels and weights"):
        path.fit(source, Y)
    with pytest.raises(ParameterError, match="classes= is only for sources"):
        path.fit(X, Y, classes=["no", "yes"])
    with pytest.raises(ParameterError, match=r"can be read only once, .* give gravities"):
        SparsityPath(TRUNCATED).fit(thresher.scan(iter([(X, Y)])))
    with pytest.raises(ParameterError, match="cv must be a number of folds"):
        SparsityPath(TRUNCATED, cv=KFold(3)).fit(source)
    with pytest.raises(ParameterError, match="scoring"):
        SparsityPath(TRUNCATED, scoring="f1").fit(source)
    with pytest.raises(ParameterError, match="scoring must be a single score"):
        SparsityPath(TRUNCATED, scoring=["accuracy"]).fit(source)


def test_all_diverge():
    wild = thresher.TruncatedGradientRegressor(eta0=1e9, **NATURAL)
    with pytest.raises(DivergenceError, match="no gravity has an error"):
        SparsityPath(wild, [0.0, 1e-9]).fit(100 * X, X[:, 0])


@pytest.mark.parametrize("held", [True, False], ids=["rows", "source"])
def test_a_model_of_all_rows_that_diverges_is_not_chosen(tmp_path, held):
    rows, labels = X.copy(), np.where(Y == "yes", 1, -1)
    fold = fold_numbers(0, 400, 2)
    far = [fold.argmax(), fold.argmin()]  # the model of a fold learns only one of them
    rows[far], labels[far] = 0.0, [1, -1]
    rows[far, 9] = 1e13
    wild = thresher.TruncatedGradientClassifier(
        loss="squared_hinge", eta0=0.1, period=1, passes=1, shuffle=False, dtype="float64"
    )
    given = (rows, labels)
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(2)]
    if not held:
        dump_svmlight_file(rows, labels, str(tmp_path / "rows.svm"), zero_based=False)
        given, splits = (thresher.scan(tmp_path / "rows.svm"),), 2
    with pytest.raises(DivergenceError, match=r"no gravity has an error.*all rows: "):
        SparsityPath(wild, [1e-6, 1e-5], cv=splits).fit(*given)
    # A gravity that makes all weights zero removes these weights before their next row.
    path = SparsityPath(wild, [1e-6, 1e30], cv=splits).fit(*given)
    assert path.failures_[0].startswith("all rows: ")
    assert path.failures_[1] == ""
    assert path.models_[0] is None
    assert np.isnan(path.errors_[0])
    assert np.isfinite(path.errors_[1])
    assert path.best_index_ == path.chosen_index_ == 1
    assert "failed: all rows: " in path.table()
    assert "failed: all rows: " in path._repr_html_()
