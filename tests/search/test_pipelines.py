"""Pipelines in searches: transformers are fitted once per fold, on its training rows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    Normalizer,
    StandardScaler,
)

import thresher
from thresher import OnePassSearchCV, SparsityPath
from thresher.plots import SparsityPathDisplay
from thresher.search import SearchProgress
from thresher.search.pipelines import PipelineRows

RNG = np.random.default_rng(0)
X = sp.random_array((240, 30), density=0.25, rng=RNG, format="csr")
SIGNAL = X @ RNG.normal(size=30)
TWO = np.where(SIGNAL > 0, "yes", "no")
THREE = np.digitize(SIGNAL, [-0.4, 0.4])
VALUES = SIGNAL + 0.1 * RNG.normal(size=240)
WEIGHTS = RNG.integers(1, 4, size=240).astype(float)
CLF = thresher.TruncatedGradientClassifier(passes=2, shuffle=False, dtype="float64")
SHUFFLED = thresher.TruncatedGradientClassifier(passes=3, random_state=7, dtype="float64")
FOLDS = StratifiedKFold(3)

GOOD = ["good film", "a fine and good story", "nice actors", "good good fun", "a nice evening"]
BAD = ["bad film", "an awful bad story", "dull actors", "bad bad bore", "a dull evening"]
TEXTS = [f"{text} {i % 7}" for i in range(24) for text in (*GOOD, *BAD)]
OPINIONS = np.array((["+"] * 5 + ["-"] * 5) * 24)

pytestmark = pytest.mark.filterwarnings("ignore:.*all weights are zero")


class Counted(TransformerMixin, BaseEstimator):
    """Does not change rows; counts calls."""

    calls: list[tuple[str, int]] = []  # noqa: RUF012

    def fit(self, X: Any, y: Any = None) -> Counted:
        """Count a fit."""
        self.calls.append(("fit", len(X)))
        self.fitted_ = True
        return self

    def transform(self, X: Any) -> Any:
        """Count a transform."""
        self.calls.append(("transform", len(X)))
        return X


def agree(pipeline: Any, grid: Any, rows: Any, y: Any, fit: Any = None, **options: Any) -> Any:
    """Search with OnePassSearchCV and GridSearchCV; the results must be equal."""
    given = {"cv": FOLDS, **options}
    ours = OnePassSearchCV(pipeline, grid, **given).fit(rows, y, **(fit or {}))
    theirs = GridSearchCV(pipeline, grid, **given).fit(rows, y, **(fit or {}))
    assert set(ours.cv_results_) == set(theirs.cv_results_)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    for name, expected in theirs.cv_results_.items():
        if name.startswith(("split", "mean_test", "std_test")):
            found = ours.cv_results_[name]
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10, err_msg=name)
    assert ours.best_params_ == theirs.best_params_
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))
    return ours


GRID = {"clf__gravity": [1e-4, 1e-2, 1.0], "clf__eta0": [0.1, 0.5]}


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("clf", [CLF, SHUFFLED], ids=["in order", "shuffled"])
def test_scores_equal_those_of_grid_search(clf: Any, y: Any) -> None:
    """They do for every `shuffle`, because a fold's matrix has only its training rows."""
    pipeline = Pipeline([("scale", MaxAbsScaler()), ("clf", clf)])
    found = agree(pipeline, GRID, X, y)
    assert found.n_readings_ == 3
    assert isinstance(found.best_estimator_, Pipeline)
    assert found.best_model_ is found.best_estimator_["clf"].model_
    assert found.best_model_.frontier is not None
    assert found.classes_.tolist() == np.unique(y).tolist()


def test_fold_by_fold_by_hand() -> None:
    """A fold is the search of its transformed training rows."""
    pipeline = Pipeline([("scale", StandardScaler()), ("clf", SHUFFLED)])
    grid = {"clf__gravity": [1e-4, 1e-2]}
    rows = X.toarray()
    search = OnePassSearchCV(pipeline, grid, cv=FOLDS).fit(rows, TWO)
    for number, (train, test) in enumerate(FOLDS.split(rows, TWO)):
        scaler = StandardScaler().fit(rows[train])
        both = np.concatenate([scaler.transform(rows[train]), scaler.transform(rows[test])])
        y, n = np.concatenate([TWO[train], TWO[test]]), len(train)
        split = [(np.arange(n), np.arange(n, len(y)))]
        by_hand = clone(SHUFFLED).set_params(shuffle=False)
        ours = OnePassSearchCV(
            clone(pipeline).set_params(clf__shuffle=False), grid, cv=[(train, test)]
        ).fit(rows, TWO)
        theirs = OnePassSearchCV(by_hand, {"gravity": [1e-4, 1e-2]}, cv=split).fit(both, y)
        name = "split0_test_score"
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], rtol=1e-12)
        for k, gravity in enumerate(grid["clf__gravity"]):
            alone = clone(SHUFFLED).set_params(gravity=gravity).fit(both[:n], y[:n])
            score = alone.score(both[n:], y[n:])
            assert search.cv_results_[f"split{number}_test_score"][k] == pytest.approx(score)


def test_a_regressor_and_splits_that_repeat_rows() -> None:
    """Rows in any order, several times."""
    reg = thresher.TruncatedGradientRegressor(passes=2, shuffle=False, dtype="float64")
    pipeline = Pipeline([("scale", MaxAbsScaler()), ("reg", reg)])
    agree(
        pipeline,
        {"reg__gravity": [1e-3, 0.1]},
        X,
        VALUES,
        cv=KFold(4, shuffle=True, random_state=0),
    )
    splits = [(RNG.integers(0, 160, 300), np.arange(160, 240)) for _ in range(2)]
    agree(pipeline, {"reg__gravity": [1e-3, 0.1]}, X, VALUES, cv=splits)
    agree(pipeline, {"reg__eta0": [0.01, 0.1]}, X, VALUES, cv=ShuffleSplit(2, random_state=0))


def test_a_transformer_that_uses_labels() -> None:
    """It sees only the labels of the training rows."""
    pipeline = Pipeline([("few", SelectKBest(chi2, k=5)), ("clf", CLF)])
    noise = sp.random_array((120, 800), density=0.1, rng=RNG, format="csr")
    y = RNG.integers(0, 2, 120)
    search = OnePassSearchCV(pipeline, {"clf__gravity": [0.0, 1e-3]}, cv=4).fit(noise, y)
    assert search.best_score_ < 0.7  # the selection would reveal the labels of all rows
    agree(pipeline, {"clf__gravity": [0.0, 1e-3]}, noise, y)


def test_raw_texts() -> None:
    """X is a list of texts; `predict` and others take texts too."""
    pipeline = make_pipeline(TfidfVectorizer(), CLF)
    name = "truncatedgradientclassifier__gravity"
    found = agree(pipeline, {name: [1e-4, 1e-2]}, TEXTS, OPINIONS, scoring="neg_log_loss")
    assert found.predict(["a good story", "awful"]).tolist() == ["+", "-"]
    assert found.predict_proba(["nice"]).shape == (1, 2)
    assert found.decision_function(["nice"]).shape == (1,)
    assert found.score(TEXTS, OPINIONS) > -0.5
    again = pickle.loads(pickle.dumps(found))
    assert again.predict(["good"]).tolist() == ["+"]


def test_grids_over_transformers() -> None:
    """Points are grouped by the parameters of transformers."""
    pipeline = Pipeline([("text", TfidfVectorizer()), ("clf", CLF)])
    grid = {
        "text__ngram_range": [(1, 1), (1, 2)],
        "text__min_df": [1, 2],
        "clf__gravity": [0, 1e-3],
    }
    assert agree(pipeline, grid, TEXTS, OPINIONS).n_readings_ == 4 * 3
    swapped: list[dict[str, Any]] = [
        {"text": [TfidfVectorizer(), HashingVectorizer(n_features=64)], "clf__gravity": [0, 1e-3]},
        {"clf": [thresher.FTRLClassifier(alpha=1.0, shuffle=False, dtype="float64")],
         "clf__l1": [0.1, 1.0]},
    ]  # fmt: skip
    found = agree(pipeline, swapped, TEXTS, OPINIONS)
    assert found.n_readings_ == 3 + 1 + 3  # the hashed rows are transformed once
    names = [dot.name for dot in found.best_model_.frontier.dots]
    assert "clf__gravity=0, text=HashingVectorizer(n_features=64)" in names
    assert not any("\n" in name for name in names)


def test_a_step_that_is_left_out() -> None:
    """Steps may be "passthrough", and there may be no transformer."""
    pipeline = Pipeline([("scale", MaxAbsScaler()), ("clf", CLF)])
    agree(pipeline, {"scale": [MaxAbsScaler(), "passthrough"], "clf__eta0": [0.1, 0.5]}, X, TWO)
    agree(Pipeline([("clf", CLF)]), {"clf__eta0": [0.1, 0.5]}, X, TWO)


# ---- how often rows are transformed --------------------------------------------------------------


def test_transformers_are_fitted_once_per_fold() -> None:
    """There is one fit per fold for all points, and one for the final fit."""
    Counted.calls.clear()
    pipeline = Pipeline([("count", Counted()), ("clf", CLF)])
    OnePassSearchCV(pipeline, GRID, cv=KFold(3)).fit(X.toarray(), TWO)
    fold = [("fit", 160), ("transform", 160), ("transform", 80)]
    assert Counted.calls == [*fold * 3, ("fit", 240), ("transform", 240)]


@pytest.mark.parametrize(
    "step", [Normalizer(), Binarizer(), FunctionTransformer(), FunctionTransformer(np.abs)]
)
def test_transformers_that_learn_nothing(step: Any) -> None:
    """Rows are transformed once, and all folds train together."""
    pipeline = Pipeline([("step", step), ("clf", CLF)])
    assert agree(pipeline, GRID, X.toarray(), TWO).n_readings_ == 1


def test_hashed_texts_are_transformed_once() -> None:
    """A `HashingVectorizer` learns nothing from rows."""
    pipeline = Pipeline([("text", HashingVectorizer(n_features=256)), ("clf", CLF)])
    assert agree(pipeline, GRID, TEXTS, OPINIONS).n_readings_ == 1


def test_a_function_that_looks_at_all_rows() -> None:
    """It has the same tag as one that does not, so its results are compared."""
    pipeline = Pipeline([("f", FunctionTransformer(lambda X: X - X.mean(axis=0))), ("clf", CLF)])
    assert PipelineRows(X.toarray(), TWO).transformed_once(pipeline) is None
    assert agree(pipeline, GRID, X.toarray(), TWO).n_readings_ == 3


# ---- arguments -----------------------------------------------------------------------------------


def test_weights() -> None:
    """Weights are those of the last step; other steps get theirs by name."""
    pipeline = Pipeline([("scale", StandardScaler()), ("clf", CLF)])
    rows, grid = X.toarray(), {"clf__gravity": [1e-4, 1e-2]}
    named = {"clf__sample_weight": WEIGHTS}
    both = {**named, "scale__sample_weight": WEIGHTS}
    for fit in (named, both):
        ours = OnePassSearchCV(pipeline, grid, cv=FOLDS).fit(rows, TWO, **fit)
        for number, (train, test) in enumerate(FOLDS.split(rows, TWO)):
            own = {name: value[train] for name, value in fit.items()}
            for k, gravity in enumerate(grid["clf__gravity"]):
                model = clone(pipeline).set_params(clf__gravity=gravity)
                model.fit(rows[train], TWO[train], **own)
                score = model.score(rows[test], TWO[test], sample_weight=WEIGHTS[test])
                found = ours.cv_results_[f"split{number}_test_score"][k]
                assert found == pytest.approx(score)
    short = OnePassSearchCV(pipeline, grid, cv=FOLDS).fit(rows, TWO, sample_weight=WEIGHTS)
    long = OnePassSearchCV(pipeline, grid, cv=FOLDS).fit(rows, TWO, **named)
    np.testing.assert_array_equal(short.predict(rows), long.predict(rows))
    with pytest.raises(thresher.ParameterError, match="clf__sample_weight, and parameters of"):
        OnePassSearchCV(pipeline, grid).fit(rows, TWO, weights=WEIGHTS)


def test_plain_fits_in_a_pipeline() -> None:
    """The last step may be of a rule without lanes."""
    clf = thresher.FTRLClassifier(passes=2, random_state=0)
    agree(Pipeline([("s", MaxAbsScaler()), ("clf", clf)]), {"clf__target_nnz": [2, 5]}, X, TWO)
    clf = thresher.StabilizedClassifier(passes=2, paths=4, random_state=0)
    agree(Pipeline([("s", MaxAbsScaler()), ("clf", clf)]), {"clf__target_nnz": [2, 5]}, X, TWO)


def test_several_scores_and_progress() -> None:
    """Progress counts the readings of all folds."""
    seen: list[SearchProgress] = []
    pipeline = Pipeline([("scale", MaxAbsScaler()), ("clf", CLF)])
    options: dict[str, Any] = {"scoring": ["accuracy", "roc_auc"], "refit": "roc_auc"}
    found = agree(pipeline, GRID, X, TWO, **options)
    pytest.importorskip("matplotlib").use("Agg")
    display = SparsityPathDisplay.from_estimator(found, metric="accuracy")
    assert len(display.frontier.dots) == 6
    OnePassSearchCV(pipeline, GRID, cv=FOLDS, callback=seen.append).fit(X, TWO)
    assert {p.reading for p in seen} == {1, 2, 3}
    assert {p.readings for p in seen} == {3}


def test_a_fold_without_a_class() -> None:
    """It is found before any transformer is fitted."""
    Counted.calls.clear()
    pipeline = Pipeline([("count", Counted()), ("clf", CLF)])
    cv = [(np.arange(60), np.arange(60, 240))]
    y = np.repeat(["a", "b", "c"], 80)
    with pytest.raises(thresher.ParameterError, match="split 0 has no row of class 'b'"):
        OnePassSearchCV(pipeline, GRID, cv=cv).fit(X.toarray(), y)
    assert Counted.calls == []


# ---- paths ---------------------------------------------------------------------------------------


def test_a_path_of_a_pipeline() -> None:
    """Models of all rows are pipelines; folds have their own transformers."""
    pipeline = Pipeline([("scale", MaxAbsScaler()), ("clf", CLF)])
    path = SparsityPath(pipeline, cv=FOLDS).fit(X, TWO)
    assert path.param_name_ == "gravity"
    assert isinstance(path.chosen_estimator_, Pipeline)
    assert path.chosen_estimator_.score(X, TWO) > 0.8
    grid = {"clf__gravity": path.gravities_.tolist()}
    theirs = GridSearchCV(pipeline, grid, cv=FOLDS).fit(X, TWO)
    np.testing.assert_allclose(
        1 - path.errors_, theirs.cv_results_["mean_test_score"], rtol=1e-8, atol=1e-10
    )
    alone = clone(pipeline).set_params(clf__gravity=path.best_gravity_).fit(X, TWO)
    assert path.models_[path.best_index_].nnz == alone["clf"].model_.nnz
    text = make_pipeline(TfidfVectorizer(), thresher.FTRLClassifier(passes=2, random_state=0))
    path = SparsityPath(text, [1, 2, 8], cv=FOLDS, param_name="target_nnz").fit(TEXTS, OPINIONS)
    assert path.nonzeros_.tolist() == [1, 2, 8]
    assert path.chosen_estimator_.predict(["good", "bad"]).tolist() == ["+", "-"]
