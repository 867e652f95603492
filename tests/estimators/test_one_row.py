"""learn_one and predict_one: the bits of partial_fit and predict."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import warnings
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher
from support.dict_cases import ROWS, cases, equal, rows_of_words
from thresher import (
    AdaGradClassifier,
    AveragedSGDClassifier,
    FTRLClassifier,
    FTRLRegressor,
    MirrorDescentClassifier,
    OnePassClassifier,
    OnePassRegressor,
    TruncatedGradientClassifier,
    TruncatedGradientRegressor,
)

ROWS_OF_WORDS = rows_of_words(140)


def labels_of(Estimator, params, count, classes, seed=1):
    rng = np.random.default_rng(seed)
    if Estimator.task == "classifier":
        return [classes[i] for i in rng.integers(len(classes), size=count)]
    values = rng.random(count)
    return values.tolist() if params.get("loss") == "clipped_square" else (5 * values).tolist()


def learned_one_by_one(estimator, rows, y, weights=None, classes=None):
    for i, (row, label) in enumerate(zip(rows, y, strict=True)):
        w = 1.0 if weights is None else weights[i]
        estimator.learn_one(row, label, w, classes=classes if i == 0 else None)
    return estimator


def learned_in_batches(estimator, rows, y, size, weights=None, classes=None):
    for first in range(0, len(rows), size):
        part = slice(first, first + size)
        more = {} if classes is None or first else {"classes": classes}
        w = None if weights is None else weights[part]
        estimator.partial_fit(rows[part], y[part], sample_weight=w, **more)
    return estimator


@pytest.mark.parametrize(("Estimator", "params", "count"), cases())
@pytest.mark.filterwarnings("ignore")
def test_same_bits_as_partial_fit(Estimator, params, count, tmp_path):
    rows, two = ROWS_OF_WORDS[:count], ["no", "yes"]
    y = labels_of(Estimator, params, len(rows), two)
    classes = two if Estimator.task == "classifier" else None
    one = learned_one_by_one(Estimator(**params), rows, y, classes=classes)
    other = learned_in_batches(Estimator(**params), rows, y, 1, classes=classes)
    assert "learn_one" in one._cached
    assert equal(one, other, tmp_path)
    if Estimator.rule != "one-pass":
        assert [one.predict_one(row) for row in rows] == one.predict(rows).tolist()
    if hasattr(one, "predict_proba_one"):
        found = [list(other.predict_proba_one(row).values()) for row in rows[:20]]
        assert found == other.predict_proba(rows[:20]).tolist()
    rule = thresher.rules.RULES[Estimator.rule]
    if not rule.rate_from_rows:  # otherwise the rows of the first call decide the rate
        whole = learned_in_batches(Estimator(**params), rows, y, len(rows), classes=classes)
        assert equal(one, whole, tmp_path)


@settings(max_examples=settings.default.max_examples)
@given(st.lists(ROWS, min_size=1, max_size=12), st.data())
def test_any_rows_have_the_bits_of_scan(tmp_path_factory, rows, data):
    weights = [[1.0, 0.5, 3.0, 0.0][i % 4] for i in range(len(rows))]
    y = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    folder = tmp_path_factory.mktemp("models")
    make = data.draw(
        st.sampled_from([
            lambda: OnePassClassifier(),
            lambda: TruncatedGradientClassifier(dtype="float64", loss="clipped_square"),
            lambda: FTRLClassifier(alpha=0.3, l1=0.01),
            lambda: AveragedSGDClassifier(alpha=0.1),
        ])
    )  # fmt: skip
    one = learned_one_by_one(make(), rows, y, weights)
    items = list(zip(rows, y, weights, strict=True))
    store = make().set_params(store="hashed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = store.partial_fit(thresher.scan(items), classes=[False, True])
    assert one.state_.outputs.states() == other.state_.outputs.states()
    assert one.model_.names == other.model_.names
    assert [one.predict_one(row) in (False, True) for row in rows] == [True] * len(rows)
    model = one.model_
    assert [model.predict_one(row) for row in rows] == model.predict(rows).tolist()
    assert model.predict(rows).tolist() == model.predict(thresher.scan(rows)).tolist()
    model.save(folder / "model")
    again = thresher.load(folder / "model")
    assert [again.predict_proba_one(row) for row in rows] == [
        dict(zip([False, True], p, strict=True)) for p in model.predict_proba(rows).tolist()
    ]


@pytest.mark.parametrize("Estimator", [OnePassClassifier, TruncatedGradientClassifier])
@pytest.mark.parametrize("labels", [["b", "a", "c"], [3, 1, 2], [0, 1]])
def test_classes_that_arrive(Estimator, labels, tmp_path):
    rows, y = ROWS_OF_WORDS, [labels[i % len(labels)] for i in range(len(ROWS_OF_WORDS))]
    one = learned_one_by_one(Estimator(), rows, y)
    batches = learned_in_batches(Estimator(), rows, y, 1, classes="arriving")
    whole = learned_in_batches(Estimator(), rows, y, len(rows), classes="arriving")
    assert equal(one, batches, tmp_path)
    assert equal(one, whole, tmp_path)
    assert one.classes_.tolist() == sorted(labels)
    assert [batches.predict_one(row) for row in rows] == batches.predict(rows).tolist()
    found = [list(batches.predict_proba_one(row).values()) for row in rows]
    assert found == batches.predict_proba(rows).tolist()


def test_before_a_second_class_the_only_class_is_predicted():
    for estimator in (OnePassClassifier(), TruncatedGradientClassifier()):
        assert estimator.predict_one({"a": 1.0}) is None
        assert estimator.predict_proba_one({"a": 1.0}) == {}
        assert estimator.learn_one({"a": 1.0}, "x") is estimator
        assert estimator.predict_one({"b": 1.0}) == "x"
        assert estimator.predict_proba_one({"b": 1.0}) == {"x": 1.0}
        assert estimator.predict([{"b": 1.0}]).tolist() == ["x"]
        assert estimator.predict_proba([{"b": 1.0}]).tolist() == [[1.0]]
        assert estimator.model_.predict_one({"b": 1.0}) == "x"
        assert estimator.model_.predict_proba([{"b": 1.0}]).tolist() == [[1.0]]
    assert OnePassRegressor().predict_one({"a": 1.0}) == 0.0


def test_true_and_false_are_two_classes():
    estimator = OnePassClassifier().learn_one({"a": 1.0}, True)
    assert estimator.classes_.tolist() == [False, True]
    assert estimator.predict_one({"a": 1.0}) is True
    assert list(estimator.predict_proba_one({"a": 1.0})) == [False, True]
    assert len(estimator.model_.intercept) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: TruncatedGradientClassifier(store="nonzero", loss="hinge"),
        lambda: TruncatedGradientClassifier(store="auto", average=True),
        lambda: AdaGradClassifier(alpha=0.3, class_weight={"a": 2.0, "b": 0.5}),
        lambda: TruncatedGradientClassifier(class_weight={"c": 2.5}, dtype="float64"),
    ],
)
def test_other_parameters(make, tmp_path):
    rows, y = ROWS_OF_WORDS, ["abc"[i % 3] for i in range(len(ROWS_OF_WORDS))]
    weights = [[1.0, 0.0, 2.5][i % 3] for i in range(len(rows))]
    one = learned_one_by_one(make(), rows, y, weights, classes=["a", "b", "c"])
    other = learned_in_batches(make(), rows, y, 1, weights, classes=["a", "b", "c"])
    assert "learn_one" in one._cached
    assert equal(one, other, tmp_path)
    assert [one.predict_one(row) for row in rows] == one.predict(rows).tolist()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("params", [{"target_nnz": 3}, {"certify": True, "gravity": 0.01}])
def test_weights_that_are_chosen_or_certified(params, tmp_path):
    rows, y = ROWS_OF_WORDS[:140], [i % 2 for i in range(140)]
    one = TruncatedGradientClassifier(**params)
    for i, (row, label) in enumerate(zip(rows, y, strict=True)):
        one.learn_one(row, label, classes=[0, 1] if i == 0 else None)
        if i % 20 == 0:
            assert one.predict_one(row) == one.model_.predict_one(row) == one.predict([row])[0]
    other = learned_in_batches(TruncatedGradientClassifier(**params), rows, y, 1, classes=[0, 1])
    assert equal(one, other, tmp_path)


@pytest.mark.parametrize("Estimator", [OnePassClassifier, TruncatedGradientClassifier])
def test_copies_and_pickles_in_the_middle(Estimator, tmp_path):
    rows, y = ROWS_OF_WORDS, ["ab"[i % 2] for i in range(len(ROWS_OF_WORDS))]
    whole = learned_one_by_one(Estimator(), rows, y)
    first = learned_one_by_one(Estimator(), rows[:100], y[:100])
    first.predict_one(rows[0])
    copies = [pickle.loads(pickle.dumps(first)), copy.deepcopy(first), first]
    for estimator in copies:
        assert estimator.predict_one(rows[0]) == first.predict_one(rows[0])
        learned_one_by_one(estimator, rows[100:], y[100:])
        assert equal(estimator, whole, tmp_path)
        assert set(estimator.model_.names) == set(estimator.model_.indices.tolist())


def test_learning_between_other_ways_of_training(tmp_path):
    rows, y = ROWS_OF_WORDS, [bool(i % 2) for i in range(len(ROWS_OF_WORDS))]
    one, other = TruncatedGradientClassifier(), TruncatedGradientClassifier()
    learned_one_by_one(one, rows[:40], y[:40])
    one.partial_fit(rows[40:60], y[40:60])
    learned_one_by_one(one, rows[60:100], y[60:100])
    one.partial_fit(thresher.scan(list(zip(rows[100:120], y[100:120], strict=True))))
    learned_one_by_one(one, rows[120:], y[120:])
    learned_in_batches(other, rows, y, len(rows), classes=[False, True])
    assert equal(one, other, tmp_path)


def test_a_changed_parameter_is_noticed():
    estimator = TruncatedGradientClassifier(gravity=0.1)
    learned_one_by_one(estimator, ROWS_OF_WORDS[:5], [True, False] * 2 + [True])
    estimator.gravity = 0.2
    with pytest.raises(thresher.ParameterError, match=r"gravity was 0\.1"):
        estimator.learn_one(ROWS_OF_WORDS[5], True)
    estimator.gravity = 0.1
    estimator.learn_one(ROWS_OF_WORDS[5], True)
    assert estimator.state_.outputs_steps == 6


def test_records_and_callback():
    seen = []
    estimator = TruncatedGradientRegressor(callback=seen.append)
    for i in range(300):
        estimator.learn_one({"a": float(i % 3), "b": "xyz"[i % 3]}, float(i % 3))
    assert [record.examples for record in seen] == [128, 256]
    assert [record.examples for record in estimator.history_] == [128, 256]
    assert estimator.model_.top(1)[0].name in ("a", "b^x", "b^z")


def test_divergence_is_noticed():
    estimator = TruncatedGradientRegressor(eta0=1e3, loss="squared", schedule="constant")
    rows = [{"a": 1.0 + i % 7, "b": 3.0} for i in range(1000)]
    with pytest.raises((thresher.DivergenceError, thresher.DataError)):
        learned_one_by_one(estimator, rows, list(range(1000)))


def test_bits_of_the_first_training(tmp_path):
    rows, y = ROWS_OF_WORDS, [i % 2 for i in range(len(ROWS_OF_WORDS))]
    items = list(zip(rows, y, strict=True))
    for Estimator in (MirrorDescentClassifier, TruncatedGradientClassifier):
        one, other = (
            Estimator().partial_fit(thresher.scan(items[:10], bits=10), classes=[0, 1])
            for _ in range(2)
        )
        learned_one_by_one(one, rows[10:], y[10:])
        for item in items[10:]:
            other.partial_fit(thresher.scan([item], bits=10))
        assert one.state_.outputs.states() == other.state_.outputs.states()
        assert [one.predict_one(row) for row in rows] == one.predict(rows).tolist()


def test_threads_learn_every_row():
    estimator = FTRLRegressor(alpha=0.1).learn_one({"a": 1.0}, 1.0)

    def learn():
        for i in range(500):
            estimator.learn_one({"a": 1.0, f"b{i % 5}": 1.0}, 1.0)
            estimator.predict_one({"a": 1.0})

    threads = [threading.Thread(target=learn) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert estimator.state_.outputs_steps == 1501


def test_a_callback_that_holds_the_estimator_is_freed():
    class Holder:
        def __init__(self):
            self.estimator = TruncatedGradientClassifier(callback=self.see)

        def see(self, record):
            return False

    holder = Holder()
    learned_one_by_one(holder.estimator, ROWS_OF_WORDS[:5], [True, False] * 2 + [True])
    found = weakref.ref(holder)
    del holder
    gc.collect()
    assert found() is None
