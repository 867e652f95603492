"""Shared outputs equal separate ones; new classes; multilabel rows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import thresher
from thresher import (
    AveragedSGDClassifier,
    DualAveragingClassifier,
    ForwardBackwardClassifier,
    FTRLClassifier,
    MarginPerceptronClassifier,
    OnePassClassifier,
    TruncatedGradientClassifier,
    _core,
)
from thresher.data import as_batch
from thresher.data.targets import Targets
from thresher.training import separate_outputs
from thresher.training.outputs_factory import OutputsFactory
from thresher.training.separate_outputs import SeparateOutputs
from thresher.training.shared_outputs import SharedOutputs

RULES: list[Any] = [
    TruncatedGradientClassifier(gravity=1e-3, period=3),
    TruncatedGradientClassifier(gravity=1e-3, average=True),
    TruncatedGradientClassifier(shrink="round", ceiling=0.01, loss="hinge"),
    TruncatedGradientClassifier(shrink="subgradient", gravity=1e-3, loss="clipped_square"),
    AveragedSGDClassifier(alpha=0.1),
    ForwardBackwardClassifier(l1=1e-3, loss="squared_hinge"),
    FTRLClassifier(alpha=1.0, l1=0.1),
    DualAveragingClassifier(l1=1e-3),
    OnePassClassifier(lanes=12),
    OnePassClassifier(lanes=4, target_nnz=5, refit=False),
]
named = pytest.mark.parametrize("rule", RULES, ids=lambda e: type(e).__name__)
LOOSE = {"float32": 1e-5, "float64": 1e-10}


def rows_of(seed: int, rows: int = 60, columns: int = 12) -> sp.csr_matrix:
    X = sp.random(rows, columns, 0.4, "csr", random_state=seed, dtype=np.float64)
    X.data -= 0.5
    return X


def sets_of(seed: int, rows: int, labels: int) -> np.ndarray:
    return (np.random.default_rng(seed).random((rows, labels)) < 0.3).astype(np.int64)


def targets_of(Y: np.ndarray, low: float = -1.0) -> Targets:
    table = sp.csr_matrix(Y)
    return Targets(
        Y.shape[1], None, table.indptr.astype(np.int64), table.indices.astype(np.int32), low
    )


def factory_for(rule: Any, width: int, **changes: Any) -> OutputsFactory:
    params = clone(rule).set_params(**changes).get_params()
    return OutputsFactory(rule.rule, params, None, width, width)


@st.composite
def streams(draw: Any) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray | None, np.ndarray | None]:
    seed, rows = draw(st.integers(0, 2**20)), draw(st.integers(1, 60))
    labels = draw(st.integers(2, 20))
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.1, 2.0, rows) if draw(st.booleans()) else None
    order = rng.permutation(rows) if draw(st.booleans()) else None
    return rows_of(seed, rows), sets_of(seed, rows, labels), weights, order


@named
@pytest.mark.parametrize("dtype", LOOSE)
@pytest.mark.parametrize("store", ["dense", "hashed"])
@given(stream=streams(), cut=st.integers(0, 60))
def test_shared_equals_separate(rule: Any, store: str, dtype: str, stream: Any, cut: int) -> None:
    X, Y, weights, order = stream
    factory = factory_for(rule, X.shape[1], store=store, dtype=dtype)
    low = 0.0 if rule.get_params()["loss"] == "clipped_square" else -1.0
    batch, targets, average = as_batch(X), targets_of(Y, low), bool(factory.params.get("average"))
    shared, separate = SharedOutputs(factory, Y.shape[1]), SeparateOutputs(factory, Y.shape[1])
    cut = min(cut, len(Y))
    for outputs in (shared, separate):
        outputs.learn(batch, targets, weights, order, 0, cut)
        outputs.next_pass()
        outputs.learn(batch, targets, weights, order, cut, len(Y))
    loose = LOOSE[dtype]
    close = {"rtol": loose, "atol": loose}
    np.testing.assert_allclose(
        shared.predict(batch, average), separate.predict(batch, average), **close
    )
    np.testing.assert_allclose(shared.tally, separate.tally, **close)
    assert shared.steps == separate.steps == len(Y)
    np.testing.assert_allclose(shared.rate, separate.rate, **close)
    for ours, theirs in zip(shared.outputs(average), separate.outputs(average), strict=True):
        table = np.zeros((2, X.shape[1]))
        table[0, ours.keys.astype(int)], table[1, theirs.keys.astype(int)] = ours[1], theirs[1]
        np.testing.assert_allclose(table[0], table[1], **close)
        np.testing.assert_allclose(ours.intercept, theirs.intercept, **close)

    def losses(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return (predictions - labels) ** 2

    np.testing.assert_allclose(
        shared.loss_on(batch, targets, losses, weights, average),
        separate.loss_on(batch, targets, losses, weights, average),
        rtol=1e-4,
    )


@named
def test_restored_outputs_continue_identically(rule: Any) -> None:
    X, Y = rows_of(1), sets_of(1, 60, 7)
    factory, batch, targets = factory_for(rule, X.shape[1]), as_batch(X), targets_of(Y)
    one, two = SharedOutputs(factory, 5), SharedOutputs(factory, 5)
    for outputs in (one, two):
        outputs.learn(batch, targets_of(Y[:, :5]), None, None, 0, 20)
        outputs.renumber(np.array([0, 5, 1, 2, 6, 3, 4]))
        outputs.add(2)
        outputs.learn(batch, targets, None, None, 20, 40)
    again = factory.restore(two.states(), 7)
    assert again.states() == two.states()
    for outputs in (one, again):
        outputs.learn(batch, targets, None, None, 40, 60)
    assert one.states() == again.states()
    np.testing.assert_array_equal(one.predict(batch), again.predict(batch))


def test_which_rules_have_shared_outputs() -> None:
    for rule, shared in (
        (TruncatedGradientClassifier(), True),
        (TruncatedGradientClassifier(certify=True), False),
        (TruncatedGradientClassifier(target_nnz=5), False),
        (OnePassClassifier(target_nnz=5), True),
        (AveragedSGDClassifier(center=True), False),
        (MarginPerceptronClassifier(), False),
        (FTRLClassifier(), True),
    ):
        assert factory_for(rule, 3).is_shared(3) == shared
        assert not factory_for(rule, 3).is_shared(1)


def test_losses_of_targets() -> None:
    Y = sets_of(3, 40, 6)
    targets = targets_of(Y)
    weights = np.random.default_rng(0).uniform(size=40)

    def losses(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, -labels * predictions)

    signs = np.where(Y == 1, 1.0, -1.0)
    np.testing.assert_array_equal(np.column_stack(list(targets)), signs)
    np.testing.assert_array_equal(targets.counts(), Y.sum(axis=0))
    raw = np.random.default_rng(1).normal(size=Y.shape)
    np.testing.assert_allclose(
        targets.row_losses(raw, losses), losses(raw, signs).mean(axis=1), rtol=1e-14
    )
    np.testing.assert_allclose(
        targets.row_losses(raw[7:9], losses, first=7), losses(raw, signs).mean(axis=1)[7:9]
    )
    zero = np.array([1.0, 3.0])  # values of an asymmetric loss for the two labels

    def asymmetric(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.where(labels == 1.0, zero[1], zero[0])

    wanted = np.average(np.where(Y == 1, 3.0, 1.0).mean(axis=1), weights=weights)
    np.testing.assert_allclose(targets.zero_loss(asymmetric, weights), wanted)
    assert targets.zero_loss(asymmetric, np.zeros(40)) == 0.0


# ---- new classes ------------------------------------------------------------------------------

X, CLASSES = rows_of(5, 300), np.array(["ash", "birch", "oak"])
Y = np.where(np.arange(300) % 7 == 0, "oak", np.where(np.arange(300) % 2, "ash", "birch"))
LATE = Y.copy()
LATE[150:][np.arange(150) % 11 == 0] = "alder"  # first in sorted order, but occurs late
LATE[200:][np.arange(100) % 13 == 0] = "pine"


@named
def test_a_new_class_equals_a_model_trained_from_its_first_row(rule: Any) -> None:
    rule = clone(rule).set_params(dtype="float64")
    grown = clone(rule).partial_fit(X[:100], LATE[:100], classes=CLASSES)
    for begin, end in ((100, 170), (170, 171), (171, 300)):
        grown.partial_fit(X[begin:end], LATE[begin:end])
    assert grown.classes_.tolist() == ["alder", "ash", "birch", "oak", "pine"]
    scores = grown.decision_function(X)
    assert scores.shape == (300, 5)
    for label, begin in (("ash", 0), ("birch", 0), ("oak", 0), ("alder", 150), ("pine", 200)):
        alone = clone(rule).partial_fit(X[begin:], LATE[begin:] == label, classes=[False, True])
        np.testing.assert_allclose(
            scores[:, grown.classes_.tolist().index(label)],
            alone.decision_function(X),
            rtol=1e-9,
            atol=1e-10,
        )
    assert set(grown.predict(X)) <= set(grown.classes_)
    assert grown.coef_.shape[0] == len(grown.model_.classes) == 5


@named
def test_new_classes_do_not_depend_on_batches_or_pickling(rule: Any) -> None:
    rule = clone(rule).set_params(store="hashed")
    whole = clone(rule).partial_fit(X[:60], LATE[:60], classes=CLASSES)
    cut = pickle.loads(pickle.dumps(whole))
    whole.partial_fit(X[60:], LATE[60:])
    for begin in range(60, 300, 40):
        cut.partial_fit(X[begin : begin + 40], LATE[begin : begin + 40])
        cut = pickle.loads(pickle.dumps(cut))
    assert cut.classes_.tolist() == whole.classes_.tolist()
    np.testing.assert_array_equal(cut.decision_function(X), whole.decision_function(X))
    np.testing.assert_array_equal(cut.intercept_, whole.intercept_)
    records = [[r._replace(seconds=0.0) for r in e.history_] for e in (cut, whole)]
    assert records[0] == records[1]


def test_a_class_is_not_added_if_a_row_before_it_is_bad() -> None:
    grown = TruncatedGradientClassifier().partial_fit(X[:100], Y[:100], classes=CLASSES)
    bad = X[150:260].toarray()
    bad[20, 3] = np.nan  # after the first alder, before the first pine
    with pytest.raises(_core.DataError, match="row 20"):
        grown.partial_fit(bad, LATE[150:260])
    assert grown.classes_.tolist() == ["alder", *CLASSES]
    assert grown.decision_function(X).shape == (300, 4)
    same = TruncatedGradientClassifier().partial_fit(X[:100], Y[:100], classes=CLASSES)
    same.partial_fit(X[150:170], LATE[150:170])
    np.testing.assert_array_equal(grown.decision_function(X), same.decision_function(X))


@pytest.mark.parametrize("rule", [MarginPerceptronClassifier(), AveragedSGDClassifier(center=True)])
def test_separate_outputs_refuse_new_classes(rule: Any) -> None:
    mean = {"mean": np.asarray(X.mean(axis=0)).ravel()} if "center" in rule.get_params() else {}
    rule = clone(rule).partial_fit(X[:100], Y[:100], classes=CLASSES, **mean)
    with pytest.raises(ValueError, match="alder is not among"):
        rule.partial_fit(X[100:], LATE[100:])


def test_warm_start_keeps_the_order_of_new_classes() -> None:
    clf = TruncatedGradientClassifier(dtype="float64", warm_start=True, passes=1, shuffle=False)
    clf.partial_fit(X[:100], Y[:100], classes=CLASSES).partial_fit(X[100:], LATE[100:])
    by_lane = clf.decision_function(X)
    again = pickle.loads(pickle.dumps(clf)).fit(X, LATE)
    assert again.classes_.tolist() == clf.classes_.tolist()
    clf._fitted.outputs.next_pass()
    clf.partial_fit(X, LATE)
    np.testing.assert_array_equal(again.decision_function(X), clf.decision_function(X))
    assert not np.array_equal(by_lane, clf.decision_function(X))


# ---- rows with any number of labels -------------------------------------------------------------

SETS = sets_of(9, 300, 6)


@pytest.mark.parametrize("rule", [*RULES, MarginPerceptronClassifier(passes=2)])
def test_each_label_equals_a_separate_model(rule: Any) -> None:
    rule = clone(rule).set_params(dtype="float64", random_state=3, passes=2)
    both = clone(rule).fit(X, SETS)
    assert both.classes_.tolist() == list(range(6))
    scores = both.decision_function(X)
    for label in range(6):
        alone = clone(rule).fit(X, SETS[:, label])
        np.testing.assert_allclose(
            scores[:, label], alone.decision_function(X), rtol=1e-8, atol=1e-9
        )
    np.testing.assert_array_equal(both.predict(X), (scores >= 0).astype(int))
    np.testing.assert_array_equal(both.model_.predict(X), both.predict(X))
    assert 0.0 <= both.score(X, SETS) <= 1.0


def test_sparse_labels_give_sparse_predictions() -> None:
    clf = TruncatedGradientClassifier(random_state=0, passes=3)
    dense = clone(clf).fit(X, SETS, eval_set=(X, SETS))
    sparse = clone(clf).fit(X, sp.csr_matrix(SETS), eval_set=(X, sp.csc_matrix(SETS)))
    assert sp.issparse(sparse.predict(X))
    assert not sp.issparse(dense.predict(X))
    np.testing.assert_array_equal(sparse.predict(X).toarray(), dense.predict(X))
    assert [r.valid_loss for r in sparse.history_] == [r.valid_loss for r in dense.history_]
    proba = dense.predict_proba(X)
    np.testing.assert_allclose(proba, 1 / (1 + np.exp(-dense.decision_function(X))))
    assert dense.model_.multilabel
    parts = TruncatedGradientClassifier().partial_fit(X[:100], SETS[:100])
    parts.partial_fit(X[100:], SETS[100:])
    whole = TruncatedGradientClassifier().partial_fit(X, SETS)
    np.testing.assert_array_equal(parts.decision_function(X), whole.decision_function(X))


def test_bad_labels_are_refused() -> None:
    clf = TruncatedGradientClassifier()
    with pytest.raises(ValueError, match="0 and 1"):
        clf.fit(X, SETS + 1)
    with pytest.raises(ValueError, match="inconsistent"):
        clf.fit(X, SETS[:-1])
    with pytest.raises(thresher.ParameterError, match="class_weight"):
        TruncatedGradientClassifier(class_weight="balanced").fit(X, SETS)
    clf.partial_fit(X, SETS)
    with pytest.raises(ValueError, match="5 columns"):
        clf.partial_fit(X, SETS[:, :5])
    with pytest.raises(ValueError, match="several columns"):
        clf.partial_fit(X, SETS[:, 0])


# ---- models with many outputs -------------------------------------------------------------------


def test_many_outputs_are_predicted_by_one_product() -> None:
    """The model's scores equal the estimator's, for sparse and dense rows."""
    Y = sets_of(2, 300, 70)
    clf = TruncatedGradientClassifier(loss="hinge", dtype="float64", gravity=1e-3).fit(X, Y)
    model = clf.model_
    for rows in (X, X.toarray(), X.astype(np.float32)):
        np.testing.assert_allclose(
            model.decision_function(rows), clf.decision_function(rows), rtol=1e-5, atol=1e-6
        )
    for value in (np.nan, np.inf):
        bad = X.toarray()
        bad[7, 3] = value
        with pytest.raises(_core.DataError, match="row 7: the value of feature 3"):
            model.decision_function(bad)
    empty = TruncatedGradientClassifier(loss="hinge", gravity=1e9).partial_fit(X, Y)
    np.testing.assert_allclose(
        empty.model_.decision_function(X), empty.decision_function(X), rtol=1e-6
    )


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_others_learn_all_rows_if_an_output_diverges(n_jobs, monkeypatch):
    """Before, outputs after the diverging one had learned none of the rows."""
    monkeypatch.setattr(separate_outputs, "_MUCH", 0)
    X = rows_of(1)
    y: Any = list(np.random.default_rng(1).normal(size=(4, 60)))
    y[1][20] = 1e300  # its square overflows
    rule = TruncatedGradientClassifier(loss="squared", eta0=0.1, gravity=1e-3)
    factory = factory_for(rule, 12, n_jobs=n_jobs)
    outputs, alone = SeparateOutputs(factory, 4), SeparateOutputs(factory, 3)
    with pytest.raises(_core.DivergenceError, match="diverged at step 21, row 20"):
        outputs.learn(as_batch(X), y, None, None, 0, 60)
    assert [learner.steps for learner in outputs] == [60, 20, 60, 60]
    alone.learn(as_batch(X), [y[0], *y[2:]], None, None, 0, 60)
    assert [outputs[i].state() for i in (0, 2, 3)] == alone.states()
