"""The result of an estimator depends only on rows, their order and parameters."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from thresher import (
    AveragedSGDClassifier,
    AveragedSGDRegressor,
    ForwardBackwardClassifier,
    ForwardBackwardRegressor,
    FTRLClassifier,
    FTRLRegressor,
    ParameterError,
    TruncatedGradientClassifier,
    TruncatedGradientRegressor,
)

CLASSIFIERS = [
    TruncatedGradientClassifier(eta0=0.1, gravity=1e-3, period=3),
    TruncatedGradientClassifier(eta0=0.1, gravity=1e-3, schedule="sqrt", average=True, l2=0.01),
    TruncatedGradientClassifier(eta0=0.1, shrink="round", ceiling=0.02, loss="hinge"),
    TruncatedGradientClassifier(eta0=0.1, gravity=1e-3, shrink="subgradient", store="hashed"),
    AveragedSGDClassifier(alpha=0.05),
    ForwardBackwardClassifier(eta0=0.1, l1=1e-3, loss="squared_hinge", schedule="inverse"),
    FTRLClassifier(alpha=0.1, beta=1.0, l1=0.5, l2=0.1),
]
REGRESSORS = [
    TruncatedGradientRegressor(eta0=0.02, gravity=1e-3, period=3, decay=0.9),
    AveragedSGDRegressor(alpha=1.0, loss="huber", epsilon=0.5),
    ForwardBackwardRegressor(eta0=0.02, l1=1e-3, loss="absolute"),
    FTRLRegressor(alpha=0.1, beta=1.0, l1=0.5, loss="squared"),
]
ROWS, COLUMNS = 300, 20
RNG = np.random.default_rng(7)
X = RNG.normal(size=(ROWS, COLUMNS)) * (RNG.random((ROWS, COLUMNS)) < 0.4)
X = X.astype(np.float32).astype(np.float64)
X[[11, 140]] = 0.0
SIGNAL = X[:, 0] - 2.0 * X[:, 3] + 0.5 * X[:, 5] + 0.3
Y = SIGNAL + 0.1 * RNG.normal(size=ROWS)
LABELS = np.where(Y > 0, "yes", "no")
THREE = np.array(["ash", "birch", "oak"])[np.digitize(Y, [-0.7, 0.9])]


def named(estimators: list[Any]) -> Any:
    """Run a test for each of the estimators; its id is the class name and list index."""
    names = [f"{type(estimator).__name__}-{i}" for i, estimator in enumerate(estimators)]
    return pytest.mark.parametrize("estimator", estimators, ids=names)


def target(estimator: Any) -> np.ndarray:
    return LABELS if hasattr(estimator, "class_weight") else Y


def learn(estimator: Any, rows: slice = slice(None), X: Any = X, y: Any = None) -> Any:
    """Call partial_fit with some rows, and with the classes."""
    y = target(estimator) if y is None else y
    more = {"classes": np.unique(y)} if hasattr(estimator, "class_weight") else {}
    return estimator.partial_fit(X[rows], y[rows], **more)


def dense(coef: Any) -> np.ndarray:
    return coef.toarray() if sp.issparse(coef) else coef


def records(estimator: Any) -> list[Any]:
    """Return the history without seconds."""
    return [record._replace(seconds=0.0) for record in estimator.history_]


def assert_same(one: Any, other: Any) -> None:
    """Check that two models and their predictions are bit-identical."""
    np.testing.assert_array_equal(dense(one.coef_), dense(other.coef_))
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


# ---- batches, matrix formats and stores --------------------------------------------------------


every_split = pytest.mark.parametrize("cuts", [[1, 2, 130], [128, 256], [37, 255, 299]], ids=str)


def learn_split(estimator: Any, cuts: list[int]) -> Any:
    for first, last in zip([0, *cuts], [*cuts, ROWS], strict=True):
        learn(estimator, slice(first, last))
    return estimator


@named(CLASSIFIERS + REGRESSORS)
@every_split
def test_several_calls_of_partial_fit_equal_one(estimator: Any, cuts: list[int]) -> None:
    assert_same(learn_split(clone(estimator), cuts), learn(clone(estimator)))


@named([CLASSIFIERS[0], CLASSIFIERS[4], REGRESSORS[0], REGRESSORS[3]])
@every_split
def test_history_does_not_depend_on_batches(estimator: Any, cuts: list[int]) -> None:
    """Each record is of all rows since the last record, over several calls."""
    whole = records(learn(clone(estimator)))
    assert [record.examples for record in whole] == [128, 256]
    assert records(learn_split(clone(estimator), cuts)) == whole


@named(CLASSIFIERS + REGRESSORS)
def test_one_pass_without_shuffling_equals_partial_fit(estimator: Any) -> None:
    streamed = learn(clone(estimator))
    fitted = clone(estimator).set_params(shuffle=False, passes=1).fit(X, target(estimator))
    assert_same(fitted, streamed)
    assert records(fitted)[:-1] == records(streamed)
    assert fitted.history_[-1].examples == ROWS
    assert fitted.n_iter_ == 1


@named([*CLASSIFIERS, REGRESSORS[0]])
def test_every_matrix_format_gives_the_same_model(estimator: Any) -> None:
    """Models from dense, CSR and other formats of the same rows are bit-identical."""
    reference = learn(clone(estimator), X=sp.csr_matrix(X))
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(COLUMNS)])
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert wide.indices.dtype == np.int64
    for other in (
        X,
        X.astype(np.float32),
        np.asfortranarray(X),
        sp.csr_array(X),
        sp.csc_matrix(X),
        sp.csr_matrix(X.astype(np.float32)),
        wide,
    ):
        assert_same(learn(clone(estimator), X=other), reference)
    from_frame = learn(clone(estimator), X=frame)
    np.testing.assert_array_equal(dense(from_frame.coef_), dense(reference.coef_))


@named([*CLASSIFIERS, *REGRESSORS])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_stores_agree(estimator: Any, dtype: str) -> None:
    models = [
        clone(estimator)
        .set_params(store=store, dtype=dtype, passes=3, random_state=1)
        .fit(X, target(estimator))
        for store in ("dense", "hashed")
    ]
    assert_same(*models)
    assert [sp.issparse(model.coef_) for model in models] == [False, True]
    assert records(models[0]) == records(models[1])


@named(CLASSIFIERS)
def test_predictions_during_training_change_nothing(estimator: Any) -> None:
    unread, read = clone(estimator), clone(estimator)
    for first in range(0, ROWS, 50):
        learn(unread, slice(first, first + 50))
        learn(read, slice(first, first + 50))
        assert read.model_.nnz == np.count_nonzero(dense(read.coef_))
        read.predict(X), read.model_.top(3)
    assert_same(read, unread)


# ---- several classes --------------------------------------------------------------------------


@named(CLASSIFIERS)
def test_one_vs_rest(estimator: Any) -> None:
    """Each output equals a separate binary model of its class against all others."""
    fixed = clone(estimator).set_params(random_state=5, passes=3)
    together = clone(fixed).fit(X, THREE)
    assert together.coef_.shape == (3, COLUMNS)
    for k, label in enumerate(together.classes_):
        alone = clone(fixed).fit(X, label == THREE)
        for ours, theirs in (
            (dense(together.coef_)[k], dense(alone.coef_)[0]),
            (together.intercept_[k], alone.intercept_[0]),
            (together.decision_function(X)[:, k], alone.decision_function(X)),
        ):
            loose = 1e-5 if getattr(fixed, "dtype", "float64") == "float32" else 1e-10
            np.testing.assert_allclose(ours, theirs, rtol=loose, atol=loose)
    best = together.classes_[together.decision_function(X).argmax(axis=1)]
    np.testing.assert_array_equal(together.predict(X), best)


@named(CLASSIFIERS)
def test_a_known_class_that_first_occurs_later(estimator: Any) -> None:
    order = np.argsort(THREE == "oak", kind="stable")  # all oaks last
    oaks = int((THREE == "oak").sum())
    late, whole = clone(estimator), clone(estimator)
    late.partial_fit(X[order[:-oaks]], THREE[order[:-oaks]], classes=["oak", "ash", "birch"])
    np.testing.assert_array_equal(late.classes_, ["ash", "birch", "oak"])
    before = late.decision_function(X[order[-oaks:]])[:, 2]
    late.partial_fit(X[order[-oaks:]], THREE[order[-oaks:]])
    whole.partial_fit(X[order], THREE[order], classes=["ash", "birch", "oak"])
    assert_same(late, whole)
    assert late.decision_function(X[order[-oaks:]])[:, 2].mean() > before.mean()


# ---- further training --------------------------------------------------------------------------


@named(CLASSIFIERS + REGRESSORS)
def test_a_warm_start_equals_one_longer_run(estimator: Any) -> None:
    one = clone(estimator).set_params(shuffle=False, passes=3).fit(X, target(estimator))
    two = clone(estimator).set_params(shuffle=False, passes=2, warm_start=True)
    two.fit(X, target(estimator)).set_params(passes=1).fit(X, target(estimator))
    assert_same(two, one)
    assert records(two) == records(one)
    assert two.n_iter_ == one.n_iter_ == 3


def test_without_warm_start_fit_starts_again() -> None:
    estimator = TruncatedGradientClassifier(eta0=0.1, random_state=3)
    once, twice = clone(estimator).fit(X, LABELS), clone(estimator).fit(X, THREE).fit(X, LABELS)
    assert_same(twice, once)
    assert records(twice) == records(once)


def test_a_warm_start_keeps_classes_without_rows() -> None:
    estimator = TruncatedGradientClassifier(eta0=0.1, warm_start=True, random_state=0)
    estimator.fit(X, THREE)
    some = THREE != "oak"
    estimator.fit(X[some], THREE[some])
    np.testing.assert_array_equal(estimator.classes_, ["ash", "birch", "oak"])
    assert estimator.coef_.shape == (3, COLUMNS)


@pytest.mark.parametrize("labels", [["ash", "elm", "fir"], ["ash", "birch", "elm", "oak"]])
def test_a_warm_start_refuses_other_classes(labels: list[str]) -> None:
    estimator = TruncatedGradientClassifier(eta0=0.1, warm_start=True).fit(X, THREE)
    before = estimator.decision_function(X)
    with pytest.raises(ValueError, match="classes"):
        estimator.fit(X, np.array(labels)[np.arange(ROWS) % len(labels)])
    np.testing.assert_array_equal(estimator.decision_function(X), before)
    np.testing.assert_array_equal(estimator.classes_, ["ash", "birch", "oak"])


@named(CLASSIFIERS + REGRESSORS)
def test_source_of_checks_rows_like_fit(estimator: Any) -> None:
    checked, y = clone(estimator), target(estimator)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(COLUMNS)])
    source = checked.source_of(frame, y, np.ones(ROWS))
    assert (source.rows, source.width(), checked.n_features_in_) == (ROWS, COLUMNS, COLUMNS)
    assert checked.feature_names_in_[3] == "f3"
    assert source.block.weights.tolist() == [1.0] * ROWS
    np.testing.assert_array_equal(source.block.labels, y)
    if hasattr(estimator, "class_weight"):
        assert checked.classes_.tolist() == ["no", "yes"]
        with pytest.raises(ValueError, match="needs rows of at least 2 classes; y has one"):
            checked.source_of(X, np.zeros(ROWS))
    with pytest.raises(ValueError, match="sample_weight"):
        checked.source_of(X, y, -np.ones(ROWS))
    assert not hasattr(checked, "history_")


def test_amend_replaces_attributes_of_the_fitted_state() -> None:
    clf = FTRLClassifier(random_state=0).fit(X, LABELS)
    before = clf.model_
    names = {feature: f"word {feature}" for feature in before.indices.tolist()}
    assert clf.amend(names=names).model_.names == names
    np.testing.assert_array_equal(clf.model_.weights, before.weights)
    assert clf.partial_fit(X, LABELS).model_.names == names
    with pytest.raises(ValueError, match="not fitted"):
        FTRLClassifier().amend(names=names)


@named(CLASSIFIERS + REGRESSORS)
def test_training_continues_after_sparsify(estimator: Any) -> None:
    plain, sparse = (learn(clone(estimator), slice(150)) for _ in range(2))
    assert sparse.sparsify() is sparse
    assert sp.issparse(sparse.coef_)
    assert sparse.coef_.format == "csr"
    np.testing.assert_array_equal(sparse.coef_.toarray(), dense(plain.coef_))
    assert sparse.coef_.nnz == sparse.model_.nnz == np.count_nonzero(dense(plain.coef_))
    learn(plain, slice(150, None)), learn(sparse, slice(150, None))
    assert sp.issparse(sparse.coef_)
    assert_same(sparse, plain)
    assert isinstance(sparse.densify().coef_, np.ndarray)
    assert_same(sparse, plain)


@named(CLASSIFIERS + REGRESSORS)
@pytest.mark.parametrize("duplicate", [lambda e: pickle.loads(pickle.dumps(e)), copy.deepcopy])
def test_copies_continue_bit_identically(estimator: Any, duplicate: Any) -> None:
    original = learn(clone(estimator), slice(170))
    twin = duplicate(original)
    assert_same(twin, original)
    learn(original, slice(170, None)), learn(twin, slice(170, None))
    assert_same(twin, original)
    assert records(twin) == records(original)


def test_copies_do_not_share_state() -> None:
    original = learn(TruncatedGradientClassifier(eta0=0.1), slice(100))
    before, twin = original.decision_function(X), copy.deepcopy(original)
    learn(twin, slice(100, None))
    np.testing.assert_array_equal(original.decision_function(X), before)


@pytest.mark.parametrize(
    "change", [{"dtype": "float64"}, {"store": "hashed"}, {"gravity": 0.2}, {"eta0": 0.01}], ids=str
)
def test_parameters_set_after_a_fit_do_not_change_the_model(change: dict[str, Any]) -> None:
    """They are for the next fit; partial_fit refuses them."""
    original = learn(TruncatedGradientClassifier(eta0=0.1, gravity=1e-3), slice(170))
    before = original.decision_function(X)
    original.set_params(**change)
    twin = pickle.loads(pickle.dumps(original))
    assert_same(twin, original)
    np.testing.assert_array_equal(twin.decision_function(X), before)
    for model in (original, twin):
        with pytest.raises(ParameterError, match=next(iter(change))):
            learn(model, slice(170, None))
