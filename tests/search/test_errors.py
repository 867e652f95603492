"""Errors of a search before training, and models that fail during training."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler

import thresher
from support.files import pipe
from thresher import DivergenceError, OnePassSearchCV, ParameterError
from thresher.health.watch import DivergenceWarning
from thresher.search.grid import lanes_of, points_of
from thresher.search.model_groups import GroupStore, ModelJob
from thresher.training.lanes import LaneTeam

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 6))
Y = X[:, 0] > 0
CLF = thresher.TruncatedGradientClassifier(passes=2, shuffle=False)
PIPELINE = Pipeline([("scale", MaxAbsScaler()), ("clf", CLF)])


def refused(
    message: str, estimator: Any, grid: Any, kind: Any = ParameterError, **more: Any
) -> None:
    """Assert that the search raises an error with this message."""
    fit = more.pop("fit", {})
    y = more.pop("y", Y)
    search = OnePassSearchCV(estimator, grid, **{"cv": 3, **more})
    with pytest.raises(kind, match=re.escape(message)):
        search.fit(X, y, **fit)
    assert not hasattr(search, "cv_results_")


GRIDS: list[tuple[Any, Any, str]] = [
    (CLF, {"gravty": [0.1]}, "TruncatedGradientClassifier has no parameter 'gravty'; it has loss"),
    (CLF, {"gravity": [0.1, -1.0]}, "gravity must be a number >= 0"),
    (CLF, {"gravity": [0.1, -1.0]}, "got -1.0"),
    (CLF, {"period": [10, 2.5]}, "period must be a whole number >= 1"),
    (CLF, {"loss": ["logistic", "poisson"]}, "loss 'poisson' is not allowed for a classifier"),
    (CLF, {"shrink": ["round"]}, "shrink='round' needs a finite ceiling"),
    (CLF, {"gravity": []}, "param_grid"),
    (CLF, {"gravity": 0.1}, "param_grid"),
    (CLF, {"gravity": "0.1"}, "param_grid"),
    (CLF, [], "param_grid has no points"),
    (CLF, 3, "param_grid"),
    (CLF, {"class_weight": [{True: -1.0}]}, "class_weight must have finite numbers >= 0"),
    (thresher.StabilizedClassifier(), {"keep": [2.0]}, "keep must be a number"),
    (thresher.SparseClassifier(), {"rule": ["ftrl"]}, "SparseClassifier has no parameter 'rule'"),
    (SGDClassifier(), {"alpha": [0.1]}, "estimator must be one of Thresher's, or a Pipeline"),
    (PIPELINE, {"gravity": [0.1]}, "a parameter of the last step is written clf__NAME"),
    (PIPELINE, {"clf__gravty": [0.1]}, "TruncatedGradientClassifier has no parameter 'gravty'"),
    (PIPELINE, {"scale__nothing": [1]}, "Invalid parameter 'nothing'"),
    (PIPELINE, {"clf": [SGDClassifier()]}, "estimator must be one of Thresher's, or a Pipeline"),
]


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(("estimator", "grid", "message"), GRIDS)
def test_grids(estimator: Any, grid: Any, message: str) -> None:
    """Errors name the parameter, its value, and what is allowed."""
    refused(message, estimator, grid)


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": 0}, "cv"),
        ({"cv": "progressive"}, "cv='progressive' is only for sources"),
        ({"cv": []}, "cv"),
        ({"cv": [([], [1])]}, "no rows to learn from"),
        ({"cv": [([0, 1], [60])]}, "rows that do not exist; there are 60"),
        ({"scoring": "accurate"}, "scoring"),
        ({"scoring": ["accuracy"], "refit": True}, "refit must be set to a scorer key"),
        ({"memory_limit": 0}, "memory_limit must be a number of bytes >= 1"),
        ({"memory_limit": "1G"}, "memory_limit must be a number of bytes >= 1"),
        ({"n_jobs": 0}, "n_jobs must be None, at least 1, or -1"),
        ({"callback": 3}, "callback"),
        ({"error_score": "warn"}, "error_score"),
        ({"fit": {"eval_set": (X, Y)}}, "takes only X, y, sample_weight and groups"),
        ({"fit": {"classes": [0, 1]}}, "classes= is only for sources"),
        ({"fit": {"sample_weight": -np.ones(60)}}, "sample_weight"),
        ({"y": np.ones(60)}, "at least 2 classes"),
    ],
)
def test_options(options: dict[str, Any], message: str) -> None:
    """Options of the search, and arguments of fit."""
    refused(message, CLF, {"gravity": [0.1]}, kind=ValueError, **options)


@pytest.mark.usefixtures("untrained")
def test_a_fold_without_a_class() -> None:
    """The error names the fold and the class: a fold with one class cannot be learned."""
    y = np.repeat(["a", "b"], 30)
    refused(
        "the training part of split 1 has no row of class 'b'",
        CLF,
        {"gravity": [0.1]},
        y=y,
        cv=[(np.r_[0:50], np.r_[50:60]), (np.r_[0:30], np.r_[30:60])],
    )


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(
    "scoring",
    [
        "neg_log_loss",
        ["accuracy", "neg_brier_score"],
        lambda clf, X, y: clf.predict_proba(X)[0, 0],
    ],
)
def test_a_scorer_that_needs_probabilities(scoring: Any) -> None:
    """Models with hinge loss have no probabilities: the error names the point."""
    refused(
        "with {'loss': 'hinge'}: ",
        CLF,
        {"loss": ["logistic", "hinge"]},
        scoring=scoring,
        refit=False,
    )


@pytest.mark.usefixtures("untrained")
def test_a_scorer_that_needs_the_history() -> None:
    """Models in lanes have no history."""
    refused(
        "TruncatedGradientClassifier has no 'history_' in a search in one pass",
        CLF,
        {"gravity": [0.1]},
        scoring=lambda clf, X, y: clf.history_[-1].loss,
    )


@pytest.mark.usefixtures("untrained")
def test_labels_that_a_loss_does_not_allow() -> None:
    """They are found before training."""
    reg = thresher.FTRLRegressor()
    refused(
        "loss 'poisson' needs y >= 0", reg, {"loss": ["squared", "poisson"]}, ValueError, y=X[:, 0]
    )
    refused("needs y in [0, 1]", reg, {"loss": ["clipped_square"]}, ValueError, y=X[:, 0])


@pytest.mark.usefixtures("untrained")
def test_a_model_that_does_not_fit_in_memory() -> None:
    """The error says how much is needed."""
    refused(
        "but a single model of this grid needs",
        CLF,
        {"gravity": [0.1]},
        MemoryError,
        memory_limit=20,
    )


def test_a_grid_that_does_not_fit_in_memory() -> None:
    """It trains in several groups, with the same result."""
    grid = {"gravity": [0.0, 0.01, 0.1], "period": [1, 10]}
    all_at_once = OnePassSearchCV(CLF, grid, cv=3).fit(X, Y)
    found = set()
    for limit in (64 * 6, 3 * 64 * 6, 9 * 64 * 6):
        few = OnePassSearchCV(CLF, grid, cv=3, memory_limit=limit).fit(X, Y)
        found.add(few.n_readings_)
        for name in ("mean_test_score", "std_test_score", "rank_test_score"):
            np.testing.assert_array_equal(few.cv_results_[name], all_at_once.cv_results_[name])
    assert max(found) > 1


def test_a_failed_search_changes_nothing() -> None:
    """The results of the search before it stay."""
    search = OnePassSearchCV(CLF, {"gravity": [0.1]}, cv=3).fit(X, Y)
    before = search.cv_results_
    with pytest.raises(ValueError, match="classes"):
        search.fit(X, np.ones(60))
    assert search.cv_results_ is before
    bad = X.copy()
    bad[17, 2] = np.nan
    with pytest.raises(ValueError, match="row 17"):
        search.fit(bad, Y)
    assert search.cv_results_ is before


# ---- models that diverge ---------------------------------------------------------------------

WILD = thresher.TruncatedGradientRegressor(
    loss="square", shuffle=False, passes=5, gravity=0.0, dtype="float64"
)
RATES = {"eta0": [1e-3, 1e6]}
VALUES = X[:, 0]


def test_a_model_that_diverges() -> None:
    """Its score is error_score, other models do not change, and one warning names it."""
    with pytest.warns(FitFailedWarning, match=re.escape("{'eta0': 1000000.0}")) as caught:
        ours = OnePassSearchCV(WILD, RATES, cv=3, error_score=-7.0).fit(X, VALUES)
    assert sum(w.category is FitFailedWarning for w in caught) == 1
    with pytest.warns(FitFailedWarning):
        theirs = GridSearchCV(WILD, RATES, cv=3, error_score=-7.0).fit(X, VALUES)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-10
    )
    assert ours.cv_results_["mean_test_score"][1] == -7.0
    assert ours.best_params_ == {"eta0": 1e-3}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores")
def test_a_model_that_diverges_with_several_scores() -> None:
    """All its scores are error_score."""
    scoring = ["r2", "neg_mean_absolute_error"]
    search = OnePassSearchCV(WILD, RATES, cv=3, scoring=scoring, refit="r2").fit(X, VALUES)
    for name in scoring:
        assert np.isnan(search.cv_results_[f"mean_test_{name}"][1])
        assert np.isfinite(search.cv_results_[f"mean_test_{name}"][0])


def test_divergence_as_an_error() -> None:
    """It is an error with error_score="raise", and if all models diverge."""
    with pytest.raises(DivergenceError, match=re.escape("{'eta0': 1000000.0} on split 0")):
        OnePassSearchCV(WILD, RATES, cv=3, error_score="raise").fit(X, VALUES)
    with pytest.raises(DivergenceError, match="all models of the grid failed"):
        OnePassSearchCV(WILD, {"eta0": [1e6]}, cv=3).fit(X, VALUES)


def test_a_scorer_that_fails() -> None:
    """Its score is error_score; with error_score="raise" it is an error."""

    def broken(clf: Any, X: Any, y: Any) -> float:
        raise ZeroDivisionError("no such score")

    search = OnePassSearchCV(CLF, {"gravity": [0.1]}, cv=3, scoring=broken, error_score=0.5)
    with pytest.warns(UserWarning, match="no such score"):
        search.fit(X, Y)
    assert search.best_score_ == 0.5
    with pytest.raises(ZeroDivisionError):
        search.set_params(error_score="raise").fit(X, Y)


def test_a_prediction_that_overflows_fails_only_its_model() -> None:
    """Other models have their scores, as in `GridSearchCV`."""
    rows = np.random.default_rng(0).normal(size=(100, 5)) * 1e10
    y = rows[:, 0] * 1e-10
    reg = thresher.TruncatedGradientRegressor(shuffle=False, dtype="float32", passes=3)
    grid = {"eta0": [1e-23, 1e-10]}
    with pytest.warns(FitFailedWarning, match=r"1e-10.*(overflow|diverge)"):
        ours = OnePassSearchCV(reg, grid, cv=3).fit(rows, y).cv_results_["mean_test_score"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = GridSearchCV(reg, grid, cv=3).fit(rows, y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)
    assert np.isnan(ours).tolist() == [False, True]


def overflowing(monkeypatch: pytest.MonkeyPatch, lane: int) -> None:
    """Make the predictions of a lane overflow."""
    predict = LaneTeam.predict

    def spoiled(team: LaneTeam, batch: Any, lanes: Any, *rest: Any, **more: Any) -> Any:
        assert more == {"finite": False}
        raw = predict(team, batch, lanes, *rest, **more)
        raw[-1, lanes == lane] = np.nan
        return raw

    scores = LaneTeam.scores

    def spoiled_scores(team: LaneTeam, asked: Any) -> Any:
        found = scores(team, asked)
        for call, sums in zip(asked, found, strict=True):
            sums[call[1] == lane] = np.nan
        return found

    monkeypatch.setattr(LaneTeam, "predict", spoiled)
    monkeypatch.setattr(LaneTeam, "scores", spoiled_scores)


@pytest.mark.parametrize("held", [True, False], ids=["rows", "source"])
def test_predictions_that_overflow_have_no_score(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, held: bool
) -> None:
    """The point has no score, and other points keep theirs."""
    dump_svmlight_file(X, Y, str(tmp_path / "rows.svm"), zero_based=False)
    given = (X, Y) if held else (thresher.scan(tmp_path / "rows.svm"),)
    grid = {"gravity": [0.001, 0.01]}
    sound = OnePassSearchCV(CLF, grid, cv=3).fit(*given).cv_results_["mean_test_score"]
    overflowing(monkeypatch, 1)  # lane of the second point and the first split
    with pytest.warns(FitFailedWarning, match=r"1 of 6 models failed.*a prediction overflows"):
        found = OnePassSearchCV(CLF, grid, cv=3).fit(*given).cv_results_["mean_test_score"]
    assert found[0] == sound[0]
    assert np.isnan(found[1])
    with pytest.raises(DivergenceError, match="a prediction overflows"):
        OnePassSearchCV(CLF, grid, cv=3, error_score="raise").fit(*given)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_memory_of_stores_of_all_threads(n_jobs: int) -> None:
    """The estimate before training equals the real size."""
    width = 20_000
    clf = thresher.TruncatedGradientClassifier(dtype="float32")
    jobs = [
        ModelJob(point, split, lanes_of("truncated-gradient", point.params, 60, width, split, 2))
        for split in range(2)
        for point in points_of(clf, {"gravity": [1e-4, 1e-3, 1e-2]})
    ]
    store = GroupStore("truncated-gradient", "dense", "float32", width, width, n_jobs)
    with store.team(jobs) as team:
        assert store.bytes_of(jobs) == pytest.approx(team.store_bytes, rel=0.05)


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize("on", ["rows", "pipe"])
def test_the_error_names_the_scorer(on: str) -> None:
    """It has the scorer's name, not the repr of an object."""
    clf = thresher.TruncatedGradientClassifier(passes=1, loss="hinge")
    search = OnePassSearchCV(clf, {"gravity": [0.1]}, scoring="neg_log_loss")
    rows = (X, Y) if on == "rows" else (pipe(X, Y.astype(int)),)
    with pytest.raises(ParameterError, match=r"scoring(: |=')neg_log_loss'? (cannot|needs)"):
        search.fit(*rows)


@pytest.mark.parametrize("on", ["rows", "pipe"])
def test_the_best_point_has_diverged(on: str) -> None:
    """The accuracy does not reveal that it diverged, so a warning names the point."""
    clf = thresher.TruncatedGradientClassifier(passes=1, shuffle=False)
    many, y = np.tile(X, (3, 1)), np.tile(Y, 3)
    rows: tuple[Any, ...] = (many, y) if on == "rows" else (pipe(many, y.astype(int)),)
    search = OnePassSearchCV(clf, {"eta0": [1e20]}, refit=False)
    with pytest.warns(DivergenceWarning, match=re.escape("{'eta0': 1e+20} scores best, but")):
        search.fit(*rows)
    rows = (many, y) if on == "rows" else (pipe(many, y.astype(int)),)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.set_params(param_grid={"eta0": [0.1, 1.0]}).fit(*rows)
    assert search.best_score_ > 0.8
