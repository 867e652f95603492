"""Training that goes on from a file, row by row and in parts, equals training without a stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import thresher
from thresher import ParameterError
from thresher.training.continuing import kept_values
from thresher.training.fitted import FittedState

ROWS = 240
RNG = np.random.default_rng(0)
X = sp.random(ROWS, 30, 0.3, "csr", random_state=0)
SCORE = np.asarray(X @ RNG.normal(size=30))
LABELS: dict[str, Any] = {
    "two": (SCORE > 0).astype(int),
    "three": np.digitize(SCORE, [-0.5, 0.5]),
    "numbers": SCORE,
}
NUMBERS: dict[str, dict[str, list[Any]]] = {
    "OnePass": {"lanes": [4, 12]},
    "FTRL": {"alpha": [0.05, 1.0], "l1": [0.0, 0.5], "l2": [0.0, 0.1]},
    "TruncatedGradient": {"eta0": [0.05], "gravity": [0.0, 0.02], "period": [1, 5]},
    "AdaGrad": {"alpha": [0.1], "l1": [0.0, 0.01]},
}


def same(one: Any, other: Any) -> None:
    for name in ("indptr", "indices", "weights", "intercept"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
    assert [r._replace(seconds=0) for r in one.history] == [
        r._replace(seconds=0) for r in other.history
    ]


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=60)
@given(data=st.data())
def test_partial_fit_through_files_equals_one_call(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rule = data.draw(st.sampled_from(sorted(NUMBERS)))
    labels = data.draw(st.sampled_from(sorted(LABELS)))
    params = {name: data.draw(st.sampled_from(known)) for name, known in NUMBERS[rule].items()}
    params |= {
        "store": data.draw(st.sampled_from(["dense", "hashed"])),
        "dtype": data.draw(st.sampled_from(["float32", "float64"])),
    }
    y, rest = LABELS[labels], {}
    if labels != "numbers":
        rest = {"classes": np.unique(y)}
    weights = data.draw(st.sampled_from([None, RNG.integers(0, 3, ROWS).astype(float)]))
    kind = getattr(thresher, rule + ("Regressor" if labels == "numbers" else "Classifier"))
    whole = kind(random_state=0, **params).partial_fit(X, y, sample_weight=weights, **rest)
    path = tmp_path_factory.mktemp("parts") / "model"
    cuts = sorted(data.draw(st.lists(st.integers(1, ROWS - 1), max_size=3, unique=True)))
    made = kind(random_state=0, **params)
    for begin, end in zip([0, *cuts], [*cuts, ROWS], strict=True):
        if begin:
            made.model_.save(path, state=True)
            made, rest = thresher.load(path).estimator(), {}
        part = slice(begin, end)
        own = None if weights is None else weights[part]
        made.partial_fit(X[part], y[part], sample_weight=own, **rest)
    same(made.model_, whole.model_)


def test_notes_name_values_that_stay() -> None:
    def notes(requested: dict[str, Any], rows: int | None, rule: str = "ftrl", **now: Any) -> Any:
        return kept_values(FittedState(rule, requested | now, requested, rows, 5))

    assert notes({"alpha": 0.1, "l1": 1.0}, 50) == []
    assert notes({"alpha": "auto", "l1": "auto"}, None, alpha=0.25) == [
        "alpha stays 0.25, which the first rows gave"
    ]
    assert notes({"gravity": "auto"}, 5000, "truncated-gradient") == [
        "gravity=auto stays the value for 5,000 rows"
    ]


def test_the_best_estimator_of_a_search_goes_on(tmp_path: Path) -> None:
    y = LABELS["two"]
    learner = thresher.FTRLClassifier(passes=2, random_state=0)
    search = thresher.OnePassSearchCV(learner, {"l1": [0.1, 1.0]}, cv=2).fit(X, y)
    best = search.best_estimator_
    best.model_.save(tmp_path / "best", state=True)
    loaded = thresher.load(tmp_path / "best").estimator()
    assert loaded.model_.frontier is not None
    alone = clone(best).fit(X, y)
    for each in (best, loaded, alone):
        each.partial_fit(X, y)
    np.testing.assert_array_equal(loaded.coef_, best.coef_)
    np.testing.assert_array_equal(alone.coef_, best.coef_)


def test_why_training_cannot_continue() -> None:
    y = LABELS["two"]
    path = thresher.SparsityPath(thresher.FTRLClassifier(random_state=0), cv=2).fit(X, y)
    with pytest.raises(ParameterError, match="cannot continue, because a search trained it"):
        path.chosen_estimator_.partial_fit(X, y)
    state = FittedState("ftrl", {}, {}, None, 5, final=True)
    with pytest.raises(ParameterError, match="because it was trained with scaled columns, on a"):
        thresher.FTRLRegressor().take(state).partial_fit(X, y)


@pytest.mark.parametrize("estimator", ["OnePassClassifier", "FTRLClassifier"])
def test_numbered_rows_do_not_follow_named_ones(tmp_path: Path, estimator: str) -> None:
    rows: list[dict[str, Any]] = [{"age": 3.0, "colour": "red"}, {"age": 1.0, "colour": "blue"}]
    learner = getattr(thresher, estimator)()
    learner.partial_fit(rows * 20, [1, 0] * 20, classes=[0, 1])
    (tmp_path / "rows.svm").write_text("1 1:2\n0 2:1\n")
    with pytest.raises(ParameterError, match="have numbers, and those of the model have names"):
        learner.partial_fit(thresher.scan(tmp_path / "rows.svm"))
    learner.model_.save(tmp_path / "a.thresher")
    assert thresher.load(tmp_path / "a.thresher").n_features == 2**64


def test_folded_rows_after_named_ones_do_not_make_the_model_narrower(tmp_path: Path) -> None:
    (tmp_path / "rows.vw").write_text("1 |a red |b x:2\n0 |a blue |b x:1\n" * 20)
    learner = thresher.FTRLClassifier(store="hashed")
    learner.partial_fit(thresher.scan(tmp_path / "rows.vw"), classes=[0, 1])
    learner.partial_fit(thresher.scan(tmp_path / "rows.vw", bits=10))
    learner.model_.save(tmp_path / "a.thresher")
    assert thresher.load(tmp_path / "a.thresher").n_features == 2**64


@pytest.mark.parametrize("estimator", ["OnePassClassifier", "FTRLClassifier", "AdaGradClassifier"])
def test_a_model_that_has_seen_one_class_is_kept_and_goes_on(
    tmp_path: Path, estimator: str
) -> None:
    stays, stops = (getattr(thresher, estimator)() for _ in range(2))
    for learner in (stays, stops):
        for _ in range(5):
            learner.learn_one({"a": 1.0, "kind": "u"}, "no")
    stops.model_.save(tmp_path / "a.thresher", state=True)
    loaded = thresher.load(tmp_path / "a.thresher")
    assert loaded.classes.tolist() == ["no"]
    assert loaded.predict([{"a": 2.0}]).tolist() == ["no"]
    stops = loaded.estimator()
    for label in ("yes", "no", "perhaps"):
        for learner in (stays, stops):
            learner.learn_one({"a": 1.0, "kind": "v"}, label)
    one, other = stays.model_, stops.model_
    assert one.classes.tolist() == other.classes.tolist() == ["no", "perhaps", "yes"]
    assert one.weights.tolist() == other.weights.tolist()
    assert one.intercept.tolist() == other.intercept.tolist()
