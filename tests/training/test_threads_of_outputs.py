"""Outputs that train separately: the number of threads changes nothing."""

from __future__ import annotations

import _thread
import pickle
import time
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from thresher import (
    AveragedSGDClassifier,
    FTRLClassifier,
    MarginPerceptronClassifier,
    MirrorDescentClassifier,
    TruncatedGradientClassifier,
    _core,
)
from thresher.data import as_batch
from thresher.training import separate_outputs
from thresher.training.in_threads import in_threads
from thresher.training.separate_outputs import SeparateOutputs

RNG = np.random.default_rng(3)
ROWS, CLASSES = 300, 5
X = sp.random(ROWS, 40, 0.3, format="csr", random_state=3, dtype=np.float32)
Y = (X @ RNG.normal(size=(40, CLASSES))).argmax(axis=1)
LABELS = (X @ RNG.normal(size=(40, CLASSES)) > 0.5).astype(int)
WEIGHTS = RNG.integers(0, 3, ROWS).astype(float)
CASES = {
    "margin perceptron": MarginPerceptronClassifier(),
    "levels": MarginPerceptronClassifier(levels=(0.1, 0.3, 0.5), max_density=0.7),
    "mirror descent": MirrorDescentClassifier(),
    "target_nnz, FTRL": FTRLClassifier(target_nnz=4),
    "target_nnz, truncated gradient": TruncatedGradientClassifier(target_nnz=4),
    "certify": TruncatedGradientClassifier(
        certify=True, eta0=0.1, schedule="constant", decay=1.0, shuffle=False, passes=2
    ),
    "center": AveragedSGDClassifier(center=True),
}


@pytest.fixture(autouse=True)
def threads_for_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use threads also where they do not pay."""
    monkeypatch.setattr(separate_outputs, "_MUCH", 0)


def fitted(case: str, n_jobs: int | None, y: Any = Y, **options: Any) -> Any:
    """Return a fitted copy of a case."""
    estimator: Any = pickle.loads(pickle.dumps(CASES[case]))
    estimator.set_params(n_jobs=n_jobs, random_state=0)
    if case != "certify":
        estimator.set_params(passes=3)
    return estimator.fit(X, y, **options)


def same(one: Any, other: Any) -> None:
    """Compare weights, intercepts, histories and what the model says of itself."""
    assert_array_equal(one.coef_, other.coef_)
    assert_array_equal(one.intercept_, other.intercept_)
    assert [r[:4] for r in one.history_] == [r[:4] for r in other.history_]
    assert one.model_.parameters == other.model_.parameters
    assert "n_jobs" not in one.model_.parameters


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_the_number_of_threads_changes_nothing(case: str) -> None:
    first = fitted(case, None)
    for n_jobs in (2, 3, 50, -1):
        same(fitted(case, n_jobs), first)
    weighted = fitted(case, None, sample_weight=WEIGHTS)
    same(fitted(case, 3, sample_weight=WEIGHTS), weighted)


@pytest.mark.filterwarnings("ignore")
def test_levels_of_all_outputs_are_kept() -> None:
    one, many = fitted("levels", None), fitted("levels", 4)
    assert one.level_models_.keys() == many.level_models_.keys()
    for level, model in one.level_models_.items():
        assert_array_equal(model.weights, many.level_models_[level].weights)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", ["margin perceptron", "target_nnz, FTRL"])
def test_several_labels(case: str) -> None:
    same(fitted(case, 3, LABELS), fitted(case, None, LABELS))


@pytest.mark.parametrize("case", ["margin perceptron", "target_nnz, FTRL", "center"])
def test_batches(case: str) -> None:
    found = []
    for n_jobs in (None, 2):
        estimator: Any = pickle.loads(pickle.dumps(CASES[case])).set_params(n_jobs=n_jobs)
        more = {"mean": np.asarray(X.mean(axis=0)).ravel()} if case == "center" else {}
        for start in range(0, ROWS, 70):
            rows = slice(start, start + 70)
            estimator.partial_fit(X[rows], Y[rows], classes=range(CLASSES), **more)
        found.append(estimator)
    same(*found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_threads_are_used(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = set()

    def spied(act: Any, items: Any, threads: int) -> list[Any]:
        asked.add(threads)
        return in_threads(act, items, threads)

    monkeypatch.setattr(separate_outputs, "in_threads", spied)
    fitted(case, 3)
    assert asked == {3}


def test_the_number_of_threads_may_change_while_training_continues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def spied(act: Any, items: Any, threads: int) -> list[Any]:
        asked.append(threads)
        return in_threads(act, items, threads)

    monkeypatch.setattr(separate_outputs, "in_threads", spied)
    clf = MarginPerceptronClassifier(n_jobs=2).partial_fit(X, Y, classes=range(CLASSES))
    clf.set_params(n_jobs=3).partial_fit(X, Y)
    clf = pickle.loads(pickle.dumps(clf)).partial_fit(X, Y)
    clf.set_params(n_jobs=None, warm_start=True, passes=1).fit(X, Y)
    clf.set_params(n_jobs=4).fit(X, Y)
    assert list(dict.fromkeys(asked)) == [2, 3, 1, 4]


@pytest.mark.parametrize("n_jobs", [None, 3])
def test_a_bad_row_stops_all_outputs_before_it(n_jobs: int | None) -> None:
    batch = as_batch(np.ones((6, 2), np.float32))
    estimator = MarginPerceptronClassifier(n_jobs=n_jobs).fit(X[:20], Y[:20])
    outputs: Any = estimator._fitted.outputs
    assert isinstance(outputs, SeparateOutputs)
    before = outputs.steps

    class Bad:
        """Targets whose fourth row is no number."""

        def __getitem__(self, output: int) -> np.ndarray:
            return np.array([1.0, -1.0, 1.0, np.nan, 1.0, 1.0])

    with pytest.raises(_core.DataError):
        outputs.learn(batch, Bad(), None, None, 0, 6)
    assert {learner.steps - before for learner in outputs} == {3}


def test_a_copy_of_a_batch_has_targets_of_its_own() -> None:
    batch = as_batch(np.eye(2, dtype=np.float32), np.array([1.0, -1.0]))
    other = batch.copy()
    other.set_targets(np.array([-1.0, -1.0]))
    outputs = MarginPerceptronClassifier().fit(np.eye(2), [0, 1])._fitted.outputs
    assert isinstance(outputs, SeparateOutputs)
    (start,), states = outputs.states(), []
    for rows in (batch, other, batch):
        outputs[0].restore(start)
        outputs[0].learn(rows)
        states += outputs.states()
    assert states[0] == states[2] != states[1]
    assert (other.rows, other.columns) == (2, 2)


def test_all_calls_finish_before_the_first_error_is_raised() -> None:
    done = []

    def act(item: int) -> int:
        if item in (1, 2):
            raise ValueError(f"item {item}")
        done.append(item)
        return item

    with pytest.raises(ValueError, match="item 1"):
        in_threads(act, range(5), 3)
    assert sorted(done) == [0, 3, 4]
    assert in_threads(act, [], 3) == []


def test_on_ctrl_c_all_calls_finish_first() -> None:
    done = []

    def act(item: int) -> None:
        if item == 0:
            _thread.interrupt_main()
        time.sleep(0.05)
        done.append(item)

    with pytest.raises(KeyboardInterrupt):
        in_threads(act, range(6), 2)
    assert sorted(done) == list(range(6))


def test_on_ctrl_c_all_outputs_learn_the_rows_once() -> None:
    clf = MarginPerceptronClassifier(n_jobs=2).fit(X, Y)
    outputs: Any = clf._fitted.outputs
    before = [learner.steps for learner in outputs]

    class Interrupting:
        """Targets that press Ctrl-C when the second output asks for them."""

        def __getitem__(self, output: int) -> np.ndarray:
            if output == 1:
                _thread.interrupt_main()
                time.sleep(0.05)
            return np.where(output == Y, 1.0, -1.0)

    with pytest.raises(KeyboardInterrupt):
        outputs.learn(as_batch(X), Interrupting(), None, None, 0, ROWS)
    assert [learner.steps for learner in outputs] == [steps + ROWS for steps in before]


def test_few_rows_are_learned_by_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(separate_outputs, "_MUCH", ROWS * CLASSES + 1)
    names = set()

    def spied(act: Any, items: Any, threads: int) -> list[Any]:
        names.add(threads)
        return in_threads(act, items, threads)

    monkeypatch.setattr(separate_outputs, "in_threads", spied)
    MarginPerceptronClassifier(n_jobs=3, passes=1).fit(X, Y)
    assert names == {1}
