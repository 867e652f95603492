"""Frames in place of X: with words, with labels in a column, and of numbers alone."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import thresher
from thresher import (
    AveragedSGDClassifier,
    CoordinateDescentClassifier,
    FeatureDiscovery,
    FTRLClassifier,
    FTRLRegressor,
    OnePassClassifier,
    OnePassSearchCV,
    SparsityPath,
    StabilizedClassifier,
    scan,
)
from thresher.data.frame_reading import NewColumnsWarning
from thresher.errors import DataError, ParameterError

N = 3000
RNG = np.random.default_rng(0)
AGE, COLOUR = RNG.normal(size=N), RNG.choice(["red", "green", "blue"], N)
FRAME = pd.DataFrame({"age": AGE, "colour": COLOUR, "ok": RNG.random(N) < 0.5})
Y = np.where(AGE + 2.0 * (COLOUR == "red") > 0.7, "yes", "no")
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


def made(make: Any, frame: pd.DataFrame = FRAME) -> Any:
    return make({name: frame[name].to_numpy() for name in frame})


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize(
    "rule",
    [
        FTRLClassifier(random_state=0),
        OnePassClassifier(random_state=0),
        AveragedSGDClassifier(random_state=0),
        CoordinateDescentClassifier(random_state=0, l1=0.001, passes=50, tol=None),
        StabilizedClassifier(random_state=0),
    ],
    ids=lambda rule: type(rule).__name__,
)
def test_fit_and_predict(rule: Any, make: Any) -> None:
    frame = made(make)
    clf = clone(rule).fit(frame, Y)
    assert clf.score(frame, Y) > 0.95
    assert clf.feature_names_in_.tolist() == ["age", "colour", "ok"]
    assert clf.n_features_in_ == 3
    assert clf.classes_.tolist() == ["no", "yes"]
    assert {feature.name for feature in clf.model_.top(2)} == {"age", "colour=red"}
    turned = made(make, FRAME[["ok", "colour", "age"]])
    np.testing.assert_array_equal(clf.decision_function(turned), clf.decision_function(frame))
    np.testing.assert_array_equal(clf.model_.predict(turned), clf.predict(frame))
    assert clf.predict(frame[:5] if make is not pa.table else frame.slice(0, 5)).shape == (5,)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict(turned), clf.predict(frame))
    if hasattr(clf, "predict_proba"):
        assert clf.predict_proba(frame).shape == (N, 2)
    labelled = made(make, FRAME.assign(target=Y))
    other = clone(rule).fit(labelled, label="target")
    np.testing.assert_array_equal(other.model_.weights, clf.model_.weights)
    assert other.score(labelled) == clf.score(frame, Y)
    np.testing.assert_array_equal(other.predict(labelled), clf.predict(frame))
    np.testing.assert_array_equal(other.predict(frame), clf.predict(frame))


def test_a_frame_of_numbers_keeps_its_bits() -> None:
    X = RNG.normal(size=(500, 4))
    y = X[:, 1] > 0
    plain = FTRLClassifier(random_state=0).fit(X, y)
    names = ["a", "b", "c", "d"]
    for make in MAKERS.values():
        frame = made(make, pd.DataFrame(X, columns=names))
        clf = FTRLClassifier(random_state=0).fit(frame, y)
        np.testing.assert_array_equal(clf.coef_, plain.coef_)
        assert clf.model_.top(1)[0].name == "b"
        assert clf.feature_names_in_.tolist() == names
        labelled = made(make, pd.DataFrame(X, columns=names).assign(price=y))
        other = FTRLClassifier(random_state=0).fit(labelled, label="price")
        np.testing.assert_array_equal(other.coef_, plain.coef_)
        for found in (other.predict(labelled), other.model_.predict(labelled)):
            np.testing.assert_array_equal(found, plain.predict(X))
        assert other.score(labelled) == plain.score(X, y)
        turned = made(make, pd.DataFrame(X, columns=names)[names[::-1]])
        for model in (clf, clf.model_):
            same = model.decision_function(frame)
            np.testing.assert_array_equal(model.decision_function(turned), same)


def test_sparse_columns_are_not_made_dense() -> None:
    X = sp.random(400, 30, 0.1, "csr", random_state=0)
    y = np.asarray(X[:, 0].todense()).ravel() > 0
    plain = FTRLClassifier(random_state=0).fit(X, y)
    frame = pd.DataFrame.sparse.from_spmatrix(X, columns=[f"c{k}" for k in range(30)])
    mixed = frame.assign(c3=frame["c3"].sparse.to_dense())
    for given in (frame, mixed):
        clf = FTRLClassifier(random_state=0).fit(given, y)
        np.testing.assert_array_equal(clf.coef_, plain.coef_)
        assert clf.feature_names_in_[3] == "c3"
        for model in (clf, clf.model_):
            np.testing.assert_array_equal(model.predict(given), plain.predict(X))
        np.testing.assert_array_equal(
            clf.model_.predict(given[given.columns[::-1]]), plain.predict(X)
        )
    wide = sp.random(50, 200_000, 1e-4, "csr", random_state=0)  # 80 MB if dense
    big = pd.DataFrame.sparse.from_spmatrix(wide[:, :2000])
    assert FTRLClassifier().fit(big, np.arange(50) % 2).predict(big).shape == (50,)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_missing_number_is_named(make: Any) -> None:
    frame = FRAME[["age"]].assign(size=1.0)
    clf = FTRLClassifier(random_state=0).fit(made(make, frame), Y)
    bad = frame.copy()
    bad.loc[3, "size"] = np.nan
    message = r"^row 3, column 'size': the value is missing \(NaN\); missing='indicator'"
    for act in (
        lambda: FTRLClassifier().fit(made(make, bad), Y),
        lambda: FTRLClassifier().partial_fit(made(make, bad), Y, classes=["no", "yes"]),
        lambda: clf.predict(made(make, bad)),
    ):
        with pytest.raises(DataError, match=message):
            act()
    clf = FTRLClassifier(random_state=0).fit(
        made(make, bad), Y, reading={"missing": "indicator"}
    )  # fmt: skip
    assert clf.predict(made(make, bad)).shape == (N,)
    nullable = pd.DataFrame({"n": pd.array([1, pd.NA, 3] * 5, "Int64")})
    with pytest.raises(DataError, match="row 1, column 'n'"):
        FTRLClassifier().fit(nullable, [0, 1, 0] * 5)


def test_options_of_reading() -> None:
    frame = FRAME.assign(review=np.where(Y == "yes", "Very good", "too bad"), id=range(N))
    frame.loc[0, "colour"] = None
    reading = {"text": ["review"], "ignore": ["id"], "missing": "indicator"}
    clf = FTRLClassifier(random_state=0).fit(frame, Y, reading=reading)
    assert {"review^good", "review^bad"} <= {feature.name for feature in clf.model_.top(4)}
    assert clf.feature_names_in_.tolist() == ["age", "colour", "ok", "review"]
    for found in (clf.predict(frame), clf.predict(frame.drop(columns="id"))):
        np.testing.assert_array_equal(found, clf.model_.predict(frame))
    scores = cross_val_score(clf, frame, Y, params={"reading": reading}, cv=3)
    assert scores.min() > 0.95
    with pytest.raises(ParameterError, match="label= and reading= are for frames"):
        FTRLClassifier().fit(np.zeros((2, 2)), [0, 1], reading=reading)
    with pytest.raises(ParameterError, match="give y or label=, not both"):
        FTRLClassifier().fit(frame, Y, label="ok")
    with pytest.raises(ParameterError, match="there is no column 'price'; the columns are age"):
        FTRLClassifier().fit(frame, label="price")
    with pytest.raises(ValueError, match="needs labels: pass y, or name their column with label="):
        FTRLClassifier().fit(frame)


def test_weights_classes_and_validation_rows() -> None:
    weights = RNG.random(N)
    three = np.digitize(AGE, [-0.5, 0.5])
    clf = FTRLClassifier(random_state=0, class_weight="balanced")
    clf.fit(FRAME, three, sample_weight=weights, eval_set=(FRAME[:50], three[:50]))
    assert clf.classes_.tolist() == [0, 1, 2]
    assert clf.history_[-1].valid_loss < 1
    solver = CoordinateDescentClassifier(random_state=0, passes=5, tol=None)
    solver.fit(FRAME, Y, weights, eval_set=(FRAME[:50], Y[:50]))
    assert solver.history_[-1].valid_loss < 1
    both = FTRLClassifier(random_state=0).fit(FRAME, np.stack([Y == "yes", AGE > 1], axis=1) * 1)
    assert both.predict(FRAME).shape == (N, 2)
    sparse = clone(both).fit(FRAME, sp.csr_matrix(np.stack([Y == "yes", AGE > 1], axis=1) * 1))
    np.testing.assert_array_equal(sparse.predict(FRAME).toarray(), both.predict(FRAME))
    reg = FTRLRegressor(random_state=0).fit(FRAME, AGE)
    assert reg.score(FRAME, AGE) > 0.5
    true = OnePassClassifier(random_state=0).fit(FRAME, Y == "yes")
    assert true.classes_.dtype == bool


def test_partial_fit() -> None:
    clf = FTRLClassifier(random_state=0)
    clf.partial_fit(FRAME[:1000], Y[:1000], classes=["no", "yes"])
    clf.partial_fit(pl.from_pandas(FRAME[["ok", "colour", "age"]][1000:]), Y[1000:])
    assert clf.score(FRAME, Y) > 0.9
    assert clf.feature_names_in_.tolist() == ["age", "colour", "ok"]
    with pytest.raises(ParameterError, match=r"^column 'ok' is missing: the training data had it"):
        clf.partial_fit(FRAME[["age", "colour"]], Y)
    reg = FTRLRegressor(random_state=0).partial_fit(FRAME, AGE).partial_fit(FRAME, AGE)
    assert "age" in reg.model_.names.values()
    with pytest.raises(ParameterError, match="needs a matrix, and the frame has words"):
        StabilizedClassifier().partial_fit(FRAME, Y, classes=["no", "yes"])
    numbers = FTRLClassifier().fit(FRAME[["age"]], Y)
    words = FRAME[["colour"]].set_axis(["age"], axis=1)
    with pytest.raises(ParameterError, match="column 'age' holds words, and held numbers"):
        numbers.predict(words)


def test_other_columns_than_in_training(tmp_path: Path) -> None:
    clf = FTRLClassifier(random_state=0).fit(FRAME, Y)
    clf.model_.save(tmp_path / "m.thresher")
    new = FRAME.assign(zip=1, id="x")
    for model in (clf, clf.model_, thresher.load(tmp_path / "m.thresher")):
        with pytest.raises(ValueError, match=r"^columns 'age', 'ok' are missing: the training"):
            model.predict(FRAME[["colour"]])
        with pytest.warns(NewColumnsWarning, match=r"^columns 'zip', 'id' are new"):
            found = model.predict(new)
        np.testing.assert_array_equal(found, clf.predict(FRAME))
    numbers = FTRLClassifier(random_state=0).fit(FRAME[["age", "ok"]], Y)
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*unseen.*- zip"):
        numbers.predict(FRAME[["age", "ok"]].assign(zip=1))
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*missing.*- ok"):
        numbers.predict(FRAME[["age"]])


def test_a_model_of_a_file_predicts_a_frame_and_back(tmp_path: Path) -> None:
    FRAME.assign(label=Y).to_csv(tmp_path / "a.csv", index=False)
    FRAME.to_parquet(tmp_path / "a.parquet")
    of_file = FTRLClassifier(store="hashed", random_state=0).fit(scan(tmp_path / "a.csv"))
    of_frame = FTRLClassifier(random_state=0).fit(FRAME, Y)
    np.testing.assert_array_equal(of_file.model_.weights, of_frame.model_.weights)
    assert of_file.model_.names == of_frame.model_.names
    expected = of_frame.predict(FRAME)
    rows = scan(tmp_path / "a.parquet", labelled=False)
    for name, clf in (("file", of_file), ("frame", of_frame)):
        clf.model_.save(tmp_path / name)
        for model in (clf, clf.model_, thresher.load(tmp_path / name)):
            np.testing.assert_array_equal(model.predict(FRAME[["ok", "colour", "age"]]), expected)
            np.testing.assert_array_equal(model.predict(rows), expected)
            with pytest.raises(ValueError, match="column 'age' is missing"):
                model.predict(FRAME[["colour", "ok"]])


def test_new_categories_and_types(tmp_path: Path) -> None:
    clf = FTRLClassifier(random_state=0).fit(FRAME.assign(zip=["007"] * N), Y)
    other = FRAME[:3].assign(colour="pink", zip=7)
    assert clf.predict(other).shape == (3,)
    empty = clf.predict(FRAME.assign(zip="")[:0])
    assert empty.shape == (0,)
    with pytest.raises(DataError, match="row 0, column 'age': expected a number"):
        clf.predict(other.assign(age="old"))


def test_scikit_learn_tools() -> None:
    pipe = make_pipeline(FunctionTransformer(), OnePassClassifier(random_state=0))
    for frame in (FRAME, pl.from_pandas(FRAME)):
        assert cross_val_score(pipe, frame, Y, cv=3).min() > 0.95
    grid = GridSearchCV(FTRLClassifier(random_state=0), {"l1": [0.1, 1.0]}, cv=3).fit(FRAME, Y)
    assert grid.best_score_ > 0.95
    assert grid.best_estimator_.feature_names_in_.tolist() == ["age", "colour", "ok"]


def test_searches_and_discovery() -> None:
    rule = FTRLClassifier(random_state=0, passes=2)
    search = OnePassSearchCV(rule, {"l1": [0.1, 1.0]}, cv=3).fit(FRAME, Y)
    assert search.best_score_ > 0.95
    assert search.score(FRAME, Y) > 0.95
    assert search.feature_names_in_.tolist() == ["age", "colour", "ok"]
    assert SparsityPath(rule, cv=3).fit(FRAME, Y).chosen_estimator_.predict(FRAME).shape == (N,)
    with pytest.warns(UserWarning, match="calibrat"):
        found = FeatureDiscovery(random_state=0, refit=True).fit(FRAME, Y)
    assert {each.feature for each in found.findings(2)} == {"age", "colour=red"}
    assert (found.predict(FRAME) == Y).mean() > 0.9
    with pytest.raises(ParameterError, match="groups are for frames of numbers"):
        FeatureDiscovery().fit(FRAME, Y, groups=np.arange(N))


def test_old_spellings_of_names() -> None:
    model = FTRLClassifier(random_state=0).fit(FRAME, Y).model_
    assert model.why("colour^red") == model.why("colour=red")
    assert model.why("colour=red").weight > 0


# ---- texts without a frame -----------------------------------------------------------------------

TEXTS = ["the orbit of the moon " * 10, "a car is for sale " * 10] * 5


@pytest.mark.parametrize("given", [TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, object)])
def test_texts_are_refused_without_showing_them(given):
    fits = (
        OnePassClassifier().fit,
        partial(OnePassClassifier().partial_fit, classes=[0, 1]),
        thresher.FTRLRegressor().fit,
        thresher.FeatureDiscovery().fit,
    )
    for fit in fits:
        with pytest.raises(ValueError, match=r"^rows are texts: .* TfidfVec.*'text'") as caught:
            fit(given, [0, 1] * 5)
        assert "orbit" not in str(caught.value)
    with pytest.raises(ValueError, match="rows are texts"):
        OnePassClassifier().fit(np.eye(10), [0, 1] * 5).predict(given)


def test_long_texts_in_an_array_are_cut():
    with pytest.raises(ValueError, match="could not convert string to float") as caught:
        OnePassClassifier().fit([[text] for text in TEXTS], [0, 1] * 5)
    assert len(str(caught.value)) < 150


def test_a_model_with_names_says_which_rows_it_takes():
    frame = pd.DataFrame({"message": TEXTS, "length": np.arange(10.0)})
    model = OnePassClassifier().fit(frame, [0, 1] * 5, reading={"text": ["message"]}).model_
    wanted = r"DataFrame with the columns message, length, .* dicts such as \{'message'"
    for rows in (["the orbit"], np.zeros((2, 3)), np.zeros(2)):
        with pytest.raises(ValueError, match=wanted):
            model.predict(rows)
    rows = [{"colour": "red"}, {"colour": "blue"}]
    model = OnePassClassifier().partial_fit(rows, [0, 1], classes=[0, 1]).model_
    with pytest.raises(ValueError, match=r"features by name: give a list of dicts \{name: value\}"):
        model.predict(["the orbit"])
    model = OnePassClassifier().fit(np.eye(4), [0, 1, 0, 1]).model_
    with pytest.raises(ValueError, match="rows are texts"):
        model.predict(["the orbit"])
