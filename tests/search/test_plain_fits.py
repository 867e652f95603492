"""Points that cannot be lanes are fitted one after the other, with the bits of a fit by hand."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ParameterGrid

import thresher
from thresher import OnePassSearchCV, SparsityPath, scan
from thresher.plots import SparsityPathDisplay
from thresher.search import SearchProgress
from thresher.search.folds import fold_numbers
from thresher.search.grid import points_of

RNG = np.random.default_rng(0)
X = sp.random_array((240, 30), density=0.25, rng=RNG, format="csr")
SIGNAL = X @ RNG.normal(size=30)
TWO = np.where(SIGNAL > 0, "yes", "no")
THREE = np.digitize(SIGNAL, [-0.4, 0.4])
VALUES = SIGNAL + 0.1 * RNG.normal(size=240)
WEIGHTS = RNG.integers(1, 4, size=240).astype(float)
FOLDS = KFold(3)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def by_hand(estimator: Any, grid: Any, y: Any, weights: Any = None) -> tuple[Any, Any]:
    """Return scores and nonzeros of a fit to the training rows of each fold."""
    scores, nonzeros = [], []
    for chosen in ParameterGrid(grid):
        for train, test in FOLDS.split(X):
            model = clone(estimator).set_params(**chosen)
            model.fit(X[train], y[train], None if weights is None else weights[train])
            own = None if weights is None else weights[test]
            scores.append(model.score(X[test], y[test], own))
            nonzeros.append(model.model_.nnz)
    points = len(ParameterGrid(grid))
    return np.reshape(scores, (points, -1)), np.reshape(nonzeros, (points, -1))


CASES: list[tuple[Any, Any, Any]] = [
    (thresher.FTRLClassifier(passes=3, random_state=0), {"target_nnz": [2, 5]}, TWO),
    (thresher.FTRLClassifier(passes=3, random_state=0), {"target_nnz": [4]}, THREE),
    (thresher.TruncatedGradientClassifier(passes=2, random_state=1), {"target_nnz": [3, 9]}, TWO),
    (thresher.FTRLRegressor(passes=2, random_state=0), {"target_nnz": [3, 9]}, VALUES),
    (thresher.OnePassClassifier(random_state=0), {"target_nnz": [3, 9]}, TWO),
    (thresher.StabilizedClassifier(passes=4, random_state=0), {"target_nnz": [3, None]}, TWO),
    (thresher.StabilizedClassifier(passes=2, paths=4, random_state=0), {"keep": [0.3]}, THREE),
    (thresher.CoordinateDescentClassifier(random_state=0), {"l1": [0.001, 0.05]}, TWO),
    (thresher.CoordinateDescentRegressor(random_state=0), {"l1": [0.001, 0.05]}, VALUES),
    (thresher.HardThresholdRegressor(), {"n_nonzero": [2, 10]}, VALUES),
    (thresher.AveragedSGDClassifier(center=True, random_state=0), {"alpha": [0.01, 0.1]}, TWO),
    (thresher.MarginPerceptronClassifier(max_density=0.5, random_state=0), {"l1": [0.01]}, TWO),
    (thresher.TruncatedGradientClassifier(random_state=0), {"tol": [0.01, 0.1]}, TWO),
    (thresher.TruncatedGradientClassifier(random_state=0, store="nonzero"), {"l2": [0.0]}, THREE),
]


@pytest.mark.parametrize(("estimator", "grid", "y"), CASES, ids=lambda case: type(case).__name__)
def test_scores_equal_those_of_fits_by_hand(estimator: Any, grid: Any, y: Any) -> None:
    """They do to the bit, for every `shuffle`: rows are learned in the same order."""
    search = OnePassSearchCV(estimator, grid, cv=FOLDS).fit(X, y)
    scores, nonzeros = by_hand(estimator, grid, y)
    found = [search.cv_results_[f"split{split}_test_score"] for split in range(3)]
    np.testing.assert_array_equal(np.array(found).T, scores)
    np.testing.assert_array_equal(search.nonzeros_, nonzeros)
    assert search.n_readings_ == 3 * len(ParameterGrid(grid))
    assert search.best_model_.nnz == search.best_estimator_.model_.nnz
    assert search.best_model_.frontier is not None
    theirs = clone(estimator).set_params(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.predict(X), theirs.predict(X))


def test_a_race_of_rules() -> None:
    """`SparseClassifier` chooses the rule itself; it is fitted for each point and fold."""
    clf = thresher.SparseClassifier(folds=2, random_state=0)
    search = OnePassSearchCV(clf, {"tolerance": [0.0, 0.5]}, cv=FOLDS).fit(X, TWO)
    assert search.n_readings_ == 6
    assert search.score(X, TWO) > 0.7
    source = scan(lambda: [(X, TWO)])
    search = OnePassSearchCV(clf, {"tolerance": [0.0]}, cv=2, scoring="neg_log_loss").fit(source)
    assert search.best_score_ > -0.69


def test_weights_and_groups() -> None:
    """Weights are passed to the fits and to the scorer, groups to the splitter."""
    clf = thresher.FTRLClassifier(passes=2, random_state=0)
    grid = {"target_nnz": [2, 5]}
    search = OnePassSearchCV(clf, grid, cv=FOLDS).fit(X, TWO, sample_weight=WEIGHTS)
    scores, _ = by_hand(clf, grid, TWO, WEIGHTS)
    found = [search.cv_results_[f"split{split}_test_score"] for split in range(3)]
    np.testing.assert_array_equal(np.array(found).T, scores)
    groups = np.arange(240) // 20
    given = {"sample_weight": WEIGHTS, "groups": groups}
    ours = OnePassSearchCV(clf, grid, cv=GroupKFold(3)).fit(X, TWO, **given)
    theirs = GridSearchCV(clf, grid, cv=GroupKFold(3)).fit(X, TWO, **given)
    for split in range(3):
        name = f"split{split}_test_score"
        np.testing.assert_array_equal(ours.cv_results_[name], theirs.cv_results_[name])


def test_a_grid_of_lanes_and_plain_fits() -> None:
    """Each point is trained as it can be, and the results are those of `GridSearchCV`."""
    clf = thresher.TruncatedGradientClassifier(shuffle=False, passes=2, dtype="float64")
    grid = {"target_nnz": [None, 3, 9], "eta0": [0.1, 0.3]}
    assert [not point.obstacle for point in points_of(clf, grid)] == [True, False, False] * 2
    ours = OnePassSearchCV(clf, grid, cv=FOLDS).fit(X, TWO)
    theirs = GridSearchCV(clf, grid, cv=FOLDS).fit(X, TWO)
    assert ours.n_readings_ == 1 + 4 * 3
    for name in ("mean_test_score", "std_test_score", "rank_test_score"):
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], rtol=1e-10)
    assert ours.best_params_ == theirs.best_params_


def test_lanes_where_target_nnz_is_not_refitted() -> None:
    """Without a refit, truncated gradient and one-pass stay lanes."""
    for clf in (
        thresher.TruncatedGradientClassifier(refit=False, passes=2),
        thresher.OnePassClassifier(refit=False),
    ):
        search = OnePassSearchCV(clf, {"target_nnz": [3, 9, None]}, cv=FOLDS).fit(X, TWO)
        assert search.n_readings_ == 1


def test_progress_of_plain_fits() -> None:
    """Each fit is a reading; stages of the stabilized rule are reported too."""
    seen: list[SearchProgress] = []
    clf = thresher.StabilizedClassifier(passes=4, paths=4, random_state=0)
    search = OnePassSearchCV(clf, {"target_nnz": [2, 4]}, cv=FOLDS, callback=seen.append)
    search.fit(X, TWO)
    assert {p.reading for p in seen} == set(range(1, 7))
    assert {p.readings for p in seen} == {6}
    assert {n for p in seen for n in p.losses} == {0, 1}
    assert "group 6/6, scoring: 160 rows, 1 models" in str(seen[-1])


def test_a_model_that_diverges() -> None:
    """Its score is error_score, as that of a lane."""
    reg = thresher.TruncatedGradientRegressor(
        loss="square", shuffle=False, passes=5, gravity=0.0, dtype="float64", tol=1e-9
    )
    rows = X.toarray() * 10
    search = OnePassSearchCV(reg, {"eta0": [1e-4, 1e6]}, cv=FOLDS, error_score=-7.0)
    with pytest.warns(FitFailedWarning, match="3 of 6 models failed"):
        search.fit(rows, VALUES)
    assert search.cv_results_["mean_test_score"][1] == -7.0


def test_frames_keep_their_names() -> None:
    """Plain fits get the frame itself."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X.toarray(), columns=[f"c{i}" for i in range(30)])
    clf = thresher.FTRLClassifier(passes=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = OnePassSearchCV(clf, {"target_nnz": [2, 5]}, cv=FOLDS).fit(frame, TWO)
        path = SparsityPath(clf, [2, 5], cv=FOLDS, param_name="target_nnz").fit(frame, TWO)
    assert search.feature_names_in_.tolist() == list(frame.columns)
    assert path.models_[0].top(1)[0].name.startswith("c")


# ---- sources -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of the rows."""
    file = tmp_path_factory.mktemp("plain") / "rows.svm"
    dump_svmlight_file(X, THREE, str(file), zero_based=True)
    return file


@pytest.mark.parametrize(
    ("clf", "grid"),
    [
        (thresher.FTRLClassifier(passes=2, shuffle=False), {"target_nnz": [3, 9]}),
        (thresher.StabilizedClassifier(passes=2, paths=4, random_state=0), {"target_nnz": [5]}),
    ],
)
def test_a_source(file: Path, clf: Any, grid: Any) -> None:
    """Fits read the rows outside a fold, in their order."""
    search = OnePassSearchCV(clf, grid, cv=3).fit(scan(file, zero_based=True))
    folds = fold_numbers(0, 240, 3)
    for number, chosen in enumerate(ParameterGrid(grid)):
        for fold in range(3):
            rows = folds != fold
            model = clone(clf).set_params(**chosen).fit(X[rows], THREE[rows])
            assert search.nonzeros_[number, fold] == model.model_.nnz
            score = model.score(X[~rows], THREE[~rows])
            assert search.cv_results_[f"split{fold}_test_score"][number] == pytest.approx(score)


def test_a_source_with_names(tmp_path: Path) -> None:
    """Rules that need all rows take named features, and the final model has names."""
    lines = ["1 |a good fine", "-1 |a bad awful", "1 |a good nice", "-1 |a bad dull"]
    (tmp_path / "rows.vw").write_text("\n".join(lines * 30) + "\n")
    clf = thresher.StabilizedClassifier(passes=2, paths=4, random_state=0)
    search = OnePassSearchCV(clf, {"target_nnz": [1, 2]}, cv=3).fit(scan(tmp_path / "rows.vw"))
    assert {f.name for f in search.best_model_.top()} <= {"a^good", "a^bad", "good", "bad"}
    path = SparsityPath(clf, [1, 2, 4], cv=3).fit(scan(tmp_path / "rows.vw"))
    assert path.param_name_ == "target_nnz"
    assert {f.name for f in path.chosen_estimator_.model_.top()} <= {"a^good", "a^bad"}


# ---- paths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "name", "y"),
    [
        (thresher.FTRLClassifier(passes=2, random_state=0), "target_nnz", TWO),
        (thresher.TruncatedGradientClassifier(refit=False, random_state=0), "target_nnz", TWO),
        (thresher.StabilizedClassifier(passes=2, paths=4, random_state=0), None, TWO),
        (thresher.HardThresholdRegressor(), None, VALUES),
        (thresher.CoordinateDescentRegressor(), None, VALUES),
    ],
    ids=lambda case: type(case).__name__,
)
def test_paths(estimator: Any, name: str | None, y: Any) -> None:
    """Numbers of weights are values of a path, and rules without lanes have paths."""
    path = SparsityPath(estimator, cv=FOLDS, param_name=name).fit(X, y)
    sizes = path.nonzeros_ if path.param_name_ != "l1" else path.nonzeros_[::-1]
    assert (np.diff(sizes) >= 0).all()
    if path.param_name_ != "l1":
        assert path.gravities_[0] == 1
        assert path.gravities_[-1] == 30
        assert (path.nonzeros_ <= path.gravities_).all()
        chosen = {path.param_name_: int(path.chosen_gravity_)}
        if not thresher.rules.RULES[estimator.rule].lanes or estimator.refit:
            model = clone(estimator).set_params(**chosen).fit(X, y).model_
            np.testing.assert_array_equal(path.chosen_estimator_.model_.indices, model.indices)
    assert path.errors_[path.chosen_index_] < path.errors_.max()
    assert path.table().split()[0] == path.param_name_
    assert path.chart()
    assert path._repr_html_()


def test_the_plot_of_a_path_over_numbers_of_weights() -> None:
    """The display draws it as any other path."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    clf = thresher.FTRLClassifier(passes=2, random_state=0)
    path = SparsityPath(clf, [1, 3, 9, 30], cv=FOLDS, param_name="target_nnz").fit(X, TWO)
    assert SparsityPathDisplay.from_estimator(path).ax_ is not None
