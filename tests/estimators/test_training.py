"""Training by fit: order of rows, early stopping, records, row weights, memory."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import compute_class_weight

from thresher import (
    AveragedSGDClassifier,
    ForwardBackwardClassifier,
    FTRLClassifier,
    FTRLRegressor,
    Progress,
    TruncatedGradientClassifier,
    TruncatedGradientRegressor,
)

CLASSIFIERS = [
    TruncatedGradientClassifier(decay=1.0, eta0=0.1, gravity=1e-3, period=3),
    AveragedSGDClassifier(alpha=0.05),
    ForwardBackwardClassifier(eta0=0.1, l1=1e-3),
    FTRLClassifier(alpha=0.1, beta=1.0, l1=0.5, l2=0.1),
]
RNG = np.random.default_rng(3)
X = RNG.normal(size=(300, 10))
NOISE = RNG.normal(size=300)
Y = np.where(X[:, 0] - X[:, 1] + NOISE > 0.4, "b", "a")
THREE = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.3 * NOISE, [-1.0, 0.8])]


def named(estimators: list[Any]) -> Any:
    """Run a test for each of the estimators; its id is the class name."""
    return pytest.mark.parametrize("estimator", estimators, ids=lambda e: type(e).__name__)


def untimed(history: Any) -> list[Progress]:
    return [record._replace(seconds=0.0) for record in history]


def assert_same(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)


# ---- order of rows ----------------------------------------------------------------------------


def visited(shuffle: Any, rows: int, seed: int | None = 0, **params: Any) -> np.ndarray:
    """Return the weights after learning to predict 1 from unit rows with one feature each.

    A row learned at steps t with rates r_t has weight 1 - prod (1 - r_t), which identifies them.
    """
    model = TruncatedGradientRegressor(
        gravity=0.0, decay=1.0, fit_intercept=False, dtype="float64", shuffle=shuffle,
        random_state=seed, **params,
    )  # fmt: skip
    return model.fit(sp.eye(rows, format="csr"), np.ones(rows)).coef_[0]


def steps(shuffle: Any, rows: int, seed: int | None = 0) -> np.ndarray:
    """Return the step, from 1, at which each row was learned in one pass."""
    rates = visited(shuffle, rows, seed, eta0=1.0, schedule="inverse", passes=1)
    return np.rint(1.0 / rates).astype(int)


@pytest.mark.parametrize("shuffle", ["each", "once", "blocks", False])
def test_orders_are_permutations(shuffle: Any) -> None:
    seen = steps(shuffle, 5000)
    np.testing.assert_array_equal(np.sort(seen), np.arange(1, 5001))
    assert (seen == np.arange(1, 5001)).all() == (shuffle is False)
    times = np.log1p(-visited(shuffle, 5000, eta0=0.5, passes=3)) / np.log(0.5)
    np.testing.assert_allclose(times, 3.0)


def test_replace_draws_rows() -> None:
    rates = visited("replace", 5000, eta0=0.5, passes=2)
    times = np.rint(np.log1p(-rates) / np.log(0.5)).astype(int)
    assert times.sum() == 10_000
    assert (times == 0).mean() == pytest.approx(np.exp(-2), abs=0.03)
    assert times.max() > 4


def test_blocks_are_permuted_and_rows_within_them() -> None:
    seen = steps("blocks", 5000)
    blocks = [seen[:2000], seen[2000:4000], seen[4000:]]
    assert all(np.ptp(block) == len(block) - 1 for block in blocks)  # each is visited at once
    assert all((np.diff(block) != 1).any() for block in blocks)
    firsts = {tuple(np.argsort([b.min() for b in (s[:2000], s[2000:4000], s[4000:])]))
              for s in (steps("blocks", 5000, seed) for seed in range(8))}  # fmt: skip
    assert len(firsts) > 1


def test_once_repeats_its_order_and_each_does_not() -> None:
    """After two passes a row learned at steps s and n + s has weight 1 - (1-1/s)(1-1/(n+s))."""
    rows = 400
    for shuffle, repeats in (("once", True), ("each", False)):
        first = steps(shuffle, rows)
        both = visited(shuffle, rows, eta0=1.0, schedule="inverse", passes=2)
        again = 1 - (1 - 1 / first) * (1 - 1 / (rows + first))
        assert np.allclose(both, again, rtol=1e-12, atol=0) == repeats


@pytest.mark.parametrize("shuffle", ["each", "once", "replace", "blocks"])
def test_random_state_decides_the_order(shuffle: str) -> None:
    estimator = TruncatedGradientClassifier(decay=1.0, eta0=0.1, shuffle=shuffle, passes=2)
    one, again, other = (clone(estimator).set_params(random_state=s).fit(X, Y) for s in (1, 1, 2))
    assert_same(one, again)
    assert untimed(one.history_) == untimed(again.history_)
    assert not np.array_equal(one.coef_, other.coef_)
    state = np.random.RandomState(1)
    assert_same(clone(estimator).set_params(random_state=state).fit(X, Y), one)
    later = clone(estimator).set_params(random_state=state).fit(X, Y)  # the state has changed
    assert not np.array_equal(later.coef_, one.coef_)


# ---- records ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [100, 128, 256, 300])
@pytest.mark.parametrize("evaluated", [False, True])
def test_records_are_made_at_doublings_and_ends_of_passes(rows: int, evaluated: bool) -> None:
    model = TruncatedGradientClassifier(decay=1.0, eta0=0.1, passes=3, random_state=0)
    model.fit(X[:rows], Y[:rows], eval_set=(X, Y) if evaluated else None)
    ends = {rows, 2 * rows, 3 * rows}
    marks = {m for m in (128, 256, 512) if m <= 3 * rows}
    assert [record.examples for record in model.history_] == sorted(ends | marks)
    for record in model.history_:
        assert (record.valid_loss is not None) == (evaluated and record.examples in ends)
        assert record.rate == 0.1
    assert model.history_[-1].nonzeros == model.model_.nnz
    seconds = [record.seconds for record in model.history_]
    assert seconds == sorted(seconds)
    assert seconds[0] > 0


def test_recorded_losses_are_progressive() -> None:
    """R-3.5: the mean loss of the rows since the last record, each before it was learned."""
    labels = np.where(Y == "b", 1.0, -1.0)
    model, alone = (
        TruncatedGradientClassifier(decay=1.0, eta0=0.1, dtype="float64") for _ in range(2)
    )
    model.partial_fit(X, Y, classes=["a", "b"])
    losses = [np.log(2.0)]
    for i in range(1, len(X)):
        alone.partial_fit(X[i - 1 : i], Y[i - 1 : i], classes=["a", "b"])
        score = alone.decision_function(X[i : i + 1])[0]
        losses.append(np.log1p(np.exp(-labels[i] * score)))
    assert [r.examples for r in model.history_] == [128, 256]
    assert model.history_[0].loss == pytest.approx(np.mean(losses[:128]), rel=1e-10)
    assert model.history_[1].loss == pytest.approx(np.mean(losses[128:256]), rel=1e-10)


def test_valid_loss_is_the_mean_loss_on_the_evaluation_set() -> None:
    model = TruncatedGradientClassifier(decay=1.0, eta0=0.1, passes=1, random_state=0, average=True)
    model.fit(X[:200], Y[:200], eval_set=(X[200:], Y[200:]))
    margins = np.where(Y[200:] == "b", 1, -1) * model.decision_function(X[200:])
    assert model.history_[-1].valid_loss == pytest.approx(np.log1p(np.exp(-margins)).mean())
    listed = clone(model).fit(X[:200], Y[:200], eval_set=[(X[200:], Y[200:])])
    assert untimed(listed.history_) == untimed(model.history_)


@pytest.mark.parametrize("rows", [100, 128, 300])
def test_the_callback_receives_every_record(rows: int) -> None:
    """The records are those of history_, with valid_loss."""
    seen: list[Progress] = []
    model = TruncatedGradientClassifier(
        eta0=0.1, passes=3, random_state=0, callback=lambda record: seen.append(record)
    )
    model.fit(X[:rows], Y[:rows], eval_set=(X, Y))
    assert len(seen) >= 3
    assert seen == list(model.history_)


def test_training_stops_if_the_callback_returns_true() -> None:
    estimator = TruncatedGradientClassifier(gravity=0.001, passes=9, shuffle=False)
    stopped = clone(estimator).set_params(callback=lambda record: record.examples >= 256)
    stopped.fit(X, Y)
    assert stopped.history_[-1].examples == 256
    assert stopped.n_iter_ == 1
    assert_same(stopped, clone(estimator).partial_fit(X[:256], Y[:256], classes=["a", "b"]))


def test_an_error_of_the_callback_is_raised() -> None:
    def refuse(record: Progress) -> None:
        raise RuntimeError("enough")

    model = TruncatedGradientClassifier(decay=1.0, eta0=0.1, callback=refuse)
    with pytest.raises(RuntimeError, match="enough"):
        model.fit(X, Y)
    assert not hasattr(model, "model_")


# ---- early stopping ---------------------------------------------------------------------------


def passes_until(losses: list[float], tol: float, patience: int) -> int:
    """Return the number of passes after which a fit with these losses should stop."""
    best, stale = np.inf, 0
    for count, loss in enumerate(losses, 1):
        stale = 0 if loss < best - tol else stale + 1
        best = min(best, loss)
        if stale == patience:
            return count
    return len(losses)


def progressive(history: Any, rows: int) -> list[float]:
    """Return the mean progressive loss of each pass, from its records."""
    sums: dict[int, float] = {}
    before = 0
    for record in history:
        number = (record.examples - 1) // rows
        sums[number] = sums.get(number, 0.0) + record.loss * (record.examples - before)
        before = record.examples
    return [total / rows for total in sums.values()]


@pytest.mark.parametrize(("tol", "patience"), [(1e-2, 1), (1e-3, 2), (0.0, 3), (1e99, 3)])
@pytest.mark.parametrize("evaluated", [False, True])
def test_early_stopping(tol: float, patience: int, evaluated: bool) -> None:
    estimator = TruncatedGradientClassifier(decay=1.0, eta0=0.05, passes=40, random_state=0)
    evaluation = (X[200:], Y[200:]) if evaluated else None
    full = clone(estimator).fit(X[:200], Y[:200], eval_set=evaluation)
    assert full.n_iter_ == 40
    stopped = clone(estimator).set_params(tol=tol, patience=patience)
    stopped.fit(X[:200], Y[:200], eval_set=evaluation)
    if evaluated:
        losses = [r.valid_loss for r in full.history_ if r.valid_loss is not None]
    else:
        losses = progressive(full.history_, 200)
    assert len(losses) == 40
    assert stopped.n_iter_ == passes_until(losses, tol, patience) < 40
    assert untimed(stopped.history_) == untimed(full.history_[: len(stopped.history_)])
    kept = int(np.argmin(losses[: stopped.n_iter_])) + 1 if evaluated else stopped.n_iter_
    assert_same(stopped, clone(estimator).set_params(passes=kept).fit(X[:200], Y[:200]))


# ---- row weights -------------------------------------------------------------------------------


@named(CLASSIFIERS)
def test_rows_of_weight_zero_change_nothing(estimator: Any) -> None:
    """Their labels and values change neither weights nor the recorded loss."""
    weight = np.where(np.arange(300) % 3 == 0, 0.0, 1.0)
    nonsense, wild = Y.copy(), X.copy()
    nonsense[weight == 0] = np.where(Y[weight == 0] == "a", "b", "a")
    wild[weight == 0] *= -3.0
    one, other = (clone(estimator).set_params(random_state=0) for _ in range(2))
    one.fit(X, Y, sample_weight=weight), other.fit(wild, nonsense, sample_weight=weight)
    assert_same(one, other)
    assert untimed(one.history_) == untimed(other.history_)


@named(
    [
        FTRLClassifier(l1=0.1, alpha=0.1),
        TruncatedGradientClassifier(decay=1.0, eta0=0.1, gravity=0.0),
    ]
)
def test_rows_of_weight_zero_can_be_left_out(estimator: Any) -> None:
    """They make no step: `tests/core/test_weights.py` tests this for every rule."""
    keep = np.arange(300) % 3 != 0
    estimator = clone(estimator).set_params(shuffle=False, passes=2)
    weighted = clone(estimator).fit(X, Y, sample_weight=keep.astype(float))
    assert_same(weighted, clone(estimator).fit(X[keep], Y[keep]))


def test_a_weight_makes_several_steps() -> None:
    model = TruncatedGradientRegressor(
        decay=1.0, eta0=0.1, gravity=0.0, fit_intercept=False, dtype="float64"
    )
    model.partial_fit([[2.0]], [1.0], sample_weight=[3.0])
    assert model.coef_[0, 0] == pytest.approx(0.5 * (1 - 0.6**3))  # w <- w + 0.2 (1 - 2 w)


@named(CLASSIFIERS)
@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
def test_class_weights_are_sample_weights(estimator: Any, labels: np.ndarray) -> None:
    weight = dict(zip(np.unique(labels), (2.0, 0.5, 0.25), strict=False))
    rows = np.array([weight[label] for label in labels])
    estimator = clone(estimator).set_params(random_state=0, passes=2)
    by_class = clone(estimator).set_params(class_weight=weight).fit(X, labels)
    assert_same(by_class, clone(estimator).fit(X, labels, sample_weight=rows))
    extra = np.linspace(0.5, 1.5, 300)
    both = clone(estimator).set_params(class_weight=weight).fit(X, labels, sample_weight=extra)
    assert_same(both, clone(estimator).fit(X, labels, sample_weight=rows * extra))
    streamed = clone(estimator).set_params(class_weight=weight)
    streamed.partial_fit(X[:99], labels[:99], classes=np.unique(labels))
    streamed.partial_fit(X[99:], labels[99:])
    whole = clone(estimator).partial_fit(X, labels, classes=np.unique(labels), sample_weight=rows)
    assert_same(streamed, whole)


def test_balanced_class_weights() -> None:
    classes = np.unique(THREE)
    shares = compute_class_weight("balanced", classes=classes, y=THREE)
    estimator = TruncatedGradientClassifier(decay=1.0, eta0=0.1, random_state=0)
    balanced = clone(estimator).set_params(class_weight="balanced").fit(X, THREE)
    by_hand = clone(estimator).set_params(class_weight=dict(zip(classes, shares, strict=True)))
    assert_same(balanced, by_hand.fit(X, THREE))
    assert not np.array_equal(balanced.coef_, clone(estimator).fit(X, THREE).coef_)


@named([TruncatedGradientRegressor(decay=1.0, eta0=0.01), FTRLRegressor(alpha=0.1)])
def test_unit_weights_equal_no_weights(estimator: Any) -> None:
    estimator = clone(estimator).set_params(random_state=0)
    weighted = clone(estimator).fit(X, NOISE, sample_weight=np.ones(300))
    assert_same(weighted, clone(estimator).fit(X, NOISE))
    assert_same(clone(estimator).fit(X, NOISE, sample_weight=1.0), weighted)


# ---- memory -----------------------------------------------------------------------------------

FIT_AND_MEASURE = """
import resource, sys
import numpy as np, scipy.sparse as sp
from thresher import TruncatedGradientClassifier

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

rows, per_row, columns = 150_000, 40, 1000
TruncatedGradientClassifier(eta0=0.1, passes=1).fit(sp.eye(64, format="csr"), np.arange(64) % 2)
values = np.random.default_rng(0).random(rows * per_row)
keys = np.empty((rows, per_row), np.int32)
keys[:] = np.arange(0, columns, columns // per_row, dtype=np.int32)
starts = np.arange(0, rows * per_row + 1, per_row, dtype=np.int32)
X = sp.csr_matrix((values, keys.reshape(-1), starts), shape=(rows, columns))
y = np.arange(rows) % 2
before = peak()
TruncatedGradientClassifier(decay=1.0, eta0=0.01, passes=2, random_state=0).fit(X, y)
print(peak() - before, X.data.nbytes + X.indices.nbytes)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no module resource")
def test_fit_makes_no_copy_of_sparse_rows() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIT_AND_MEASURE], capture_output=True, text=True, check=True
    )
    grown, size = map(int, done.stdout.split())
    assert grown < size / 3


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda e: type(e).__name__)
def test_fit_does_not_change_its_input(estimator: Any) -> None:
    unsorted = sp.csr_matrix(X * (np.abs(X) > 0.5))
    unsorted.indices[:4] = unsorted.indices[3::-1].copy()
    copies = [X.copy(), Y.copy(), unsorted.copy()]
    weight = np.linspace(0, 1, 300)
    estimator = clone(estimator).fit(X, Y, sample_weight=weight)
    estimator.predict(X)
    clone(estimator).fit(unsorted, Y).predict(unsorted)
    np.testing.assert_array_equal(X, copies[0])
    np.testing.assert_array_equal(Y, copies[1])
    np.testing.assert_array_equal(weight, np.linspace(0, 1, 300))
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(unsorted, part), getattr(copies[2], part))
