"""Stability selection as an estimator: edge cases, parameters, interruption, scikit-learn."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from support.stability_cases import SPARSE, X, Y
from thresher import FTRLClassifier, FTRLRegressor, ParameterError
from thresher.preprocessing import UnitVarianceScaler
from thresher.stability import (
    Bound,
    PairsDone,
    StabilitySelection,
)


def test_nothing_selected() -> None:
    selector = StabilitySelection(FTRLClassifier(l1=1e6), pairs=2, random_state=0).fit(X, Y)
    assert selector.selected_.tolist() == []
    assert selector.n_selected_mean_ == 0
    assert selector.false_selections_bound_.number == 0
    assert selector.top() == []
    with pytest.warns(UserWarning, match="No features were selected"):
        assert selector.transform(X).shape == (301, 0)
    for answer in (selector.predict, selector.decision_function, lambda X: selector.score(X, Y)):
        with pytest.raises(ValueError, match=r"no feature was selected.*threshold = 0\.6"):
            answer(X)
    fitted = StabilitySelection(clone(SPARSE), pairs=2, random_state=0).fit(X, Y)
    assert hasattr(fitted, "estimator_")
    fitted.set_params(estimator__l1=1e6).fit(X, Y)
    assert not hasattr(fitted, "estimator_")


def test_without_refit_there_are_no_predictions() -> None:
    selector = StabilitySelection(SPARSE, pairs=2, refit=False).fit(X, Y)
    assert not hasattr(selector, "estimator_")
    for method in ("predict", "score", "decision_function", "predict_proba"):
        assert not hasattr(selector, method)
    with pytest.raises(AttributeError, match="predict") as caught:
        selector.predict(X)
    assert "needs refit=True" in str(caught.value.__cause__)
    assert not is_classifier(selector)


def test_not_fitted() -> None:
    selector = StabilitySelection(SPARSE)
    for ask in (
        lambda: selector.transform(X),
        lambda: selector.predict(X),
        lambda: selector.get_support(),
        lambda: selector.top(),
    ):
        with pytest.raises(NotFittedError):
            ask()


def test_callback_is_called_for_every_pair_and_can_end_the_selection() -> None:
    records: list[PairsDone] = []
    StabilitySelection(
        SPARSE, pairs=5, n_jobs=2, random_state=0, callback=records.append
    ).fit(X, Y)  # fmt: skip
    assert [(r.done, r.pairs) for r in records] == [(k, 5) for k in range(1, 6)]
    three = StabilitySelection(
        SPARSE, pairs=5, n_jobs=2, random_state=0, callback=lambda r: r.done == 3
    ).fit(X, Y)
    assert three.n_pairs_ == 3
    assert three.n_selected_mean_ == records[2].n_selected_mean
    shares = three.selection_probabilities_.data * 6
    np.testing.assert_allclose(shares, shares.round())
    assert three.unimodal_bound_.number is None  # three pairs are too few for a threshold of 0.6


def test_seeds_of_the_estimator() -> None:
    """A random_state of the estimator is kept; None is replaced by a seed of the selection."""
    own = StabilitySelection(clone(SPARSE).set_params(random_state=7), pairs=2, random_state=0)
    assert own.fit(X, Y).estimator_.random_state == 7
    free = StabilitySelection(SPARSE, pairs=2, random_state=0).fit(X, Y)
    assert isinstance(free.estimator_.random_state, int)
    assert SPARSE.random_state is None


def test_names_of_columns() -> None:
    frame = pd.DataFrame(X, columns=[f"size {j}" for j in range(40)])
    selector = StabilitySelection(SPARSE, pairs=5, threshold=0.9, random_state=0).fit(frame, Y)
    assert selector.get_feature_names_out().tolist() == ["size 4", "size 9"]
    assert {name for name, _ in selector.top(2)} == {"size 4", "size 9"}
    assert list(selector.set_output(transform="pandas").transform(frame)) == ["size 4", "size 9"]
    assert selector.score(frame, Y) > 0.85
    back = selector.set_output(transform="default").inverse_transform(X[:, [4, 9]])
    np.testing.assert_array_equal(np.flatnonzero(back.any(axis=0)), [4, 9])


def test_pipeline_search_clone_and_pickle() -> None:
    selector = StabilitySelection(SPARSE, pairs=3, threshold=0.9, random_state=0)
    pipeline = make_pipeline(UnitVarianceScaler(), selector, FTRLClassifier(random_state=0))
    assert pipeline.fit(X, Y).score(X, Y) > 0.85
    search = GridSearchCV(selector, {"estimator__l1": [20.0, 30.0]}, cv=2, error_score="raise")
    assert search.fit(X, Y).best_score_ > 0.85
    fitted = clone(selector).fit(X, Y)
    twin = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(twin.predict(X), fitted.predict(X))
    assert twin.false_selections_bound_ == fitted.false_selections_bound_
    assert isinstance(twin.unimodal_bound_, Bound)
    assert not hasattr(clone(fitted), "selected_")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"pairs": 0}, "StabilitySelection: pairs must be a whole number >= 1; got 0"),
        ({"threshold": 1.5}, r"StabilitySelection: threshold must be a number in \(0, 1\]"),
        ({"param_name": "l1"}, "param_name and param_values must be given together"),
        ({"param_values": [1.0]}, "param_name and param_values must be given together"),
        ({"param_name": "l1", "param_values": []}, "param_values must hold at least one"),
        ({"param_name": "l3", "param_values": [1]}, "one of alpha, beta, .*; got 'l3'"),
        ({"support_of": "coef_"}, "support_of must be callable or None"),
        ({"callback": "print"}, "callback must be callable or None; got 'print'"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_parameters(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        StabilitySelection(SPARSE, **bad).fit(X, Y)


def fail(*_: Any) -> None:
    raise KeyboardInterrupt


def test_a_failed_or_interrupted_fit_changes_nothing() -> None:
    new = StabilitySelection(SPARSE, pairs=2, random_state=0)
    old = clone(new).fit(pd.DataFrame(X, columns=[f"f{j}" for j in range(40)]), Y)
    before = [dict(vars(selector)) for selector in (new, old)]
    assert "estimator_" in before[1]
    others = np.where(Y == "spam", 1, 0)

    class Breaks(FTRLClassifier):
        def fit(self, X: Any, y: Any) -> Any:
            if len(y) > 200:  # the refit has all rows
                raise MemoryError
            return super().fit(X, y)

    breaks = Breaks(l1=60.0, passes=5)
    for changes, error in (({"callback": fail}, KeyboardInterrupt), ({"estimator": breaks}, None)):
        for selector, state in zip((new, old), before, strict=True):
            selector.set_params(**changes)
            with pytest.raises(error or MemoryError):
                selector.fit(X[:, :20], others)
            selector.set_params(**{name: state[name] for name in changes})
            assert vars(selector) == state
    for selector, state in zip((new, old), before, strict=True):
        with pytest.raises(ValueError, match="y has one class"):
            selector.fit(X[:, :7], np.zeros(301, int))
        assert vars(selector) == state
    assert not hasattr(new, "n_features_in_")


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_rows_of_zeros(make: Any) -> None:
    zeros = make(np.zeros((40, 6)))
    selector = StabilitySelection(SPARSE, pairs=2, random_state=0).fit(zeros, [0, 1] * 20)
    assert selector.n_candidates_ == 0
    assert selector.selected_.tolist() == []
    for bound in (selector.false_selections_bound_, selector.unimodal_bound_):
        assert bound.number is None
        assert str(bound) == (
            "not available, because all values of X are zero: there is nothing to select"
        )


def test_classes_too_small_to_halve() -> None:
    with pytest.raises(ValueError, match=r"at least 2 rows of each class.*'rare' has 1"):
        StabilitySelection(SPARSE, pairs=1).fit(X[:5], ["a", "a", "rare", "b", "b"])
    with pytest.raises(ValueError, match="y has one class, 'a'"):
        StabilitySelection(SPARSE, pairs=1).fit(X[:5], ["a"] * 5)


@parametrize_with_checks(
    [
        StabilitySelection(FTRLClassifier(passes=5), pairs=2),
        StabilitySelection(FTRLRegressor(passes=5), pairs=2),
        StabilitySelection(FTRLClassifier(passes=5), pairs=2, refit=False),
    ]
)
def test_estimator_checks(estimator: Any, check: Any) -> None:
    """One of scikit-learn's checks."""
    check(estimator)
