"""What an estimator learns depends on rows, order and parameters, and on nothing else."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from oracles.averaged import averaged
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
    """Run a test for each of the estimators, under its class name and place in the list."""
    names = [f"{type(estimator).__name__}-{i}" for i, estimator in enumerate(estimators)]
    return pytest.mark.parametrize("estimator", estimators, ids=names)


def target(estimator: Any) -> np.ndarray:
    return LABELS if hasattr(estimator, "class_weight") else Y


def learn(estimator: Any, rows: slice = slice(None), X: Any = X, y: Any = None) -> Any:
    """Let the estimator learn some rows by partial_fit; say which classes there are."""
    y = target(estimator) if y is None else y
    more = {"classes": np.unique(y)} if hasattr(estimator, "class_weight") else {}
    return estimator.partial_fit(X[rows], y[rows], **more)


def dense(coef: Any) -> np.ndarray:
    return coef.toarray() if sp.issparse(coef) else coef


def records(estimator: Any) -> list[Any]:
    """The history without times of day."""
    return [record._replace(seconds=0.0) for record in estimator.history_]


def assert_same(one: Any, other: Any) -> None:
    """Bit for bit the same model, and the same answers."""
    np.testing.assert_array_equal(dense(one.coef_), dense(other.coef_))
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


# ---- rows, however they come ------------------------------------------------------------------


every_split = pytest.mark.parametrize("cuts", [[1, 2, 130], [128, 256], [37, 255, 299]], ids=str)


def learn_split(estimator: Any, cuts: list[int]) -> Any:
    for first, last in zip([0, *cuts], [*cuts, ROWS], strict=True):
        learn(estimator, slice(first, last))
    return estimator


@named(CLASSIFIERS + REGRESSORS)
@every_split
def test_split_partial_fit_is_one_partial_fit(estimator: Any, cuts: list[int]) -> None:
    assert_same(learn_split(clone(estimator), cuts), learn(clone(estimator)))


@named([CLASSIFIERS[0], CLASSIFIERS[4], REGRESSORS[0], REGRESSORS[3]])
@every_split
def test_history_of_a_stream_does_not_know_its_cuts(estimator: Any, cuts: list[int]) -> None:
    """Each record is of all rows since the record before, whichever calls they came in."""
    whole = records(learn(clone(estimator)))
    assert [record.examples for record in whole] == [128, 256]
    assert records(learn_split(clone(estimator), cuts)) == whole


@named(CLASSIFIERS + REGRESSORS)
def test_one_pass_in_order_is_partial_fit(estimator: Any) -> None:
    streamed = learn(clone(estimator))
    fitted = clone(estimator).set_params(shuffle=False, passes=1).fit(X, target(estimator))
    assert_same(fitted, streamed)
    assert records(fitted)[:-1] == records(streamed)
    assert fitted.history_[-1].examples == ROWS
    assert fitted.n_iter_ == 1


@named([*CLASSIFIERS, REGRESSORS[0]])
def test_every_kind_of_matrix_teaches_the_same(estimator: Any) -> None:
    """Dense, CSR and the rest: the rows are the same, so the model is, bit for bit."""
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
def test_looking_changes_nothing(estimator: Any) -> None:
    quiet, watched = clone(estimator), clone(estimator)
    for first in range(0, ROWS, 50):
        learn(quiet, slice(first, first + 50))
        learn(watched, slice(first, first + 50))
        assert watched.model_.nnz == np.count_nonzero(dense(watched.coef_))
        watched.predict(X), watched.model_.top(3)
    assert_same(watched, quiet)


# ---- several classes --------------------------------------------------------------------------


@named(CLASSIFIERS)
def test_one_against_the_rest(estimator: Any) -> None:
    """Each output is the model of its class against all others, alone."""
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
def test_class_first_seen_in_mid_stream(estimator: Any) -> None:
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


# ---- going on ---------------------------------------------------------------------------------


@named(CLASSIFIERS + REGRESSORS)
def test_warm_start_is_one_longer_run(estimator: Any) -> None:
    one = clone(estimator).set_params(shuffle=False, passes=3).fit(X, target(estimator))
    two = clone(estimator).set_params(shuffle=False, passes=2, warm_start=True)
    two.fit(X, target(estimator)).set_params(passes=1).fit(X, target(estimator))
    assert_same(two, one)
    assert records(two) == records(one)
    assert two.n_iter_ == one.n_iter_ == 3


def test_without_warm_start_fit_begins_anew() -> None:
    estimator = TruncatedGradientClassifier(eta0=0.1, random_state=3)
    once, twice = clone(estimator).fit(X, LABELS), clone(estimator).fit(X, THREE).fit(X, LABELS)
    assert_same(twice, once)
    assert records(twice) == records(once)


def test_warm_start_keeps_classes_that_are_absent() -> None:
    estimator = TruncatedGradientClassifier(eta0=0.1, warm_start=True, random_state=0)
    estimator.fit(X, THREE)
    some = THREE != "oak"
    estimator.fit(X[some], THREE[some])
    np.testing.assert_array_equal(estimator.classes_, ["ash", "birch", "oak"])
    assert estimator.coef_.shape == (3, COLUMNS)


@pytest.mark.parametrize("labels", [["ash", "elm", "fir"], ["ash", "birch", "elm", "oak"]])
def test_warm_start_refuses_other_classes(labels: list[str]) -> None:
    estimator = TruncatedGradientClassifier(eta0=0.1, warm_start=True).fit(X, THREE)
    before = estimator.decision_function(X)
    with pytest.raises(ValueError, match="classes"):
        estimator.fit(X, np.array(labels)[np.arange(ROWS) % len(labels)])
    np.testing.assert_array_equal(estimator.decision_function(X), before)
    np.testing.assert_array_equal(estimator.classes_, ["ash", "birch", "oak"])


@named(CLASSIFIERS + REGRESSORS)
def test_rows_are_checked_as_in_a_fit(estimator: Any) -> None:
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


def test_parts_of_a_fitted_state_are_replaced() -> None:
    clf = FTRLClassifier(random_state=0).fit(X, LABELS)
    before = clf.model_
    names = {feature: f"word {feature}" for feature in before.indices.tolist()}
    assert clf.amend(names=names).model_.names == names
    np.testing.assert_array_equal(clf.model_.weights, before.weights)
    assert clf.partial_fit(X, LABELS).model_.names == names
    with pytest.raises(ValueError, match="not fitted"):
        FTRLClassifier().amend(names=names)


@named(CLASSIFIERS + REGRESSORS)
def test_sparsify_keeps_learning(estimator: Any) -> None:
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
def test_copies_go_on_bit_for_bit(estimator: Any, duplicate: Any) -> None:
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
def test_copies_stay_what_they_were_fitted_as(change: dict[str, Any]) -> None:
    """A parameter set after a fit belongs to the next fit, and going on says so."""
    original = learn(TruncatedGradientClassifier(eta0=0.1, gravity=1e-3), slice(170))
    before = original.decision_function(X)
    original.set_params(**change)
    twin = pickle.loads(pickle.dumps(original))
    assert_same(twin, original)
    np.testing.assert_array_equal(twin.decision_function(X), before)
    for model in (original, twin):
        with pytest.raises(ParameterError, match=next(iter(change))):
            learn(model, slice(170, None))


# ---- losses -----------------------------------------------------------------------------------


def test_probabilities_of_two_classes_are_logistic() -> None:
    model = TruncatedGradientClassifier(eta0=0.1, random_state=0).fit(X, LABELS)
    score, p = model.decision_function(X), model.predict_proba(X)
    np.testing.assert_allclose(score, X @ model.coef_[0] + model.intercept_[0], atol=1e-12)
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-score)), rtol=1e-14)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(model.predict(X), np.where(score >= 0, "yes", "no"))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(p))


def test_probabilities_of_three_classes_sum_to_one() -> None:
    model = FTRLClassifier(alpha=0.1, l1=0.1, random_state=0).fit(X, THREE)
    p = model.predict_proba(X)
    assert p.shape == (ROWS, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    share = 1 / (1 + np.exp(-model.decision_function(X)))
    np.testing.assert_allclose(p, share / share.sum(axis=1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "squared", "square"])
def test_other_losses_have_no_probabilities(loss: str) -> None:
    model = TruncatedGradientClassifier(loss=loss, eta0=0.01, random_state=0).fit(X, LABELS)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "predict_log_proba")
    with pytest.raises(ValueError, match="logistic"):
        model.model_.predict_proba(X)
    assert model.score(X, LABELS) > 0.9


def test_no_row_is_no_reason_to_be_unsure_of_zero() -> None:
    """A-20: a score of exactly 0 is the second class."""
    model = TruncatedGradientClassifier(eta0=0.1, fit_intercept=False).fit(X, LABELS)
    assert model.predict(np.zeros((1, COLUMNS))).tolist() == ["yes"]


@pytest.mark.parametrize("rows", [X, sp.csr_matrix(X)], ids=["dense", "sparse"])
def test_clipped_square_classifier(rows: Any) -> None:
    """R-0.7, R-1.8: q = w.x / sqrt(|x|_0) + b, the score is q - 0.5, the probability clip(q)."""
    model = TruncatedGradientClassifier(
        loss="clipped_square", eta0=0.2, gravity=1e-4, random_state=0, dtype="float64"
    ).fit(rows, LABELS)
    q = (X @ model.coef_[0]) / np.sqrt(np.maximum(1, (X != 0).sum(axis=1))) + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(rows), q - 0.5, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(rows)[:, 1], np.clip(q, 0, 1), atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0)
    assert ((q < 0) | (q > 1)).any()  # the clip matters
    assert model.score(rows, LABELS) > 0.85


@named(
    [
        TruncatedGradientRegressor(loss="poisson", eta0=0.01, gravity=0.0, passes=20),
        FTRLRegressor(loss="poisson", alpha=0.1, l1=0.0, passes=20),
    ]
)
def test_poisson_finds_the_rates(estimator: Any) -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(4000, 3)) * 0.5
    rates = np.exp(inputs @ [1.0, -0.5, 0.0] + 0.7)
    model = clone(estimator).set_params(random_state=0).fit(inputs, rng.poisson(rates))
    assert (model.predict(inputs) > 0).all()
    np.testing.assert_allclose(model.predict(inputs).mean(), rates.mean(), rtol=0.1)
    np.testing.assert_allclose(model.coef_[0], [1.0, -0.5, 0.0], atol=0.15)
    assert not hasattr(model, "decision_function")


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_quantile_regression_covers_its_share(quantile: float) -> None:
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(4000, 3))
    y = inputs @ [1.0, 0.0, -1.0] + rng.exponential(size=4000)
    model = TruncatedGradientRegressor(
        loss="quantile", quantile=quantile, eta0=0.1, schedule="sqrt", gravity=0.0, passes=10,
        random_state=0,
    ).fit(inputs, y)  # fmt: skip
    assert np.mean(y <= model.predict(inputs)) == pytest.approx(quantile, abs=0.04)
    assert model.intercept_[0] == pytest.approx(-np.log(1 - quantile), abs=0.15)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("rows", [X, sp.csr_matrix(X)], ids=["dense", "sparse"])
def test_centred_rows(average: bool, rows: Any) -> None:
    """R-14.7: as if the mean row had been subtracted, in fit and with the mean given."""
    params = {"alpha": 0.5, "center": True, "average": average, "dtype": "float64"}
    oracle = averaged(
        X, Y, [np.arange(ROWS)] * 2, loss="huber", epsilon=0.5, alpha=0.5, center=True
    )
    weights = oracle.average_weights if average else oracle.weights
    bias = oracle.average_intercept if average else oracle.intercept
    model = AveragedSGDRegressor(loss="huber", epsilon=0.5, passes=2, shuffle=False, **params)
    model.fit(rows, Y)
    np.testing.assert_allclose(model.coef_[0], weights, atol=1e-10)
    assert model.intercept_[0] == pytest.approx(bias, abs=1e-10)
    streamed = AveragedSGDRegressor(loss="huber", epsilon=0.5, **params)
    streamed.partial_fit(rows[:100], Y[:100], mean=X.mean(axis=0))
    streamed.partial_fit(rows[100:], Y[100:]).partial_fit(rows, Y)
    np.testing.assert_allclose(streamed.coef_, model.coef_, atol=1e-12)
