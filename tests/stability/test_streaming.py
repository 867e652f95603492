"""Stability selection on a stream: models in lanes equal separate fits on the halves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression

import thresher
from support.files import svmlight, vw
from support.stability_cases import X, Y
from thresher import DataError, DivergenceError, ParameterError
from thresher.stability import (
    StabilitySelection,
    StreamingStabilitySelection,
    false_selections_bound,
)
from thresher.stability.stream_halves import HalfAssigner

ONE_PASS = {"passes": 1, "shuffle": False, "dtype": "float64"}
FTRL = thresher.FTRLClassifier(l1=20.0, **ONE_PASS)


def half_masks(selector: StreamingStabilitySelection, strata: Any) -> np.ndarray:
    """Return a mask of rows for each half of a selector."""
    seed = np.random.RandomState(selector.random_state).randint(2**31 - 1, size=2)[0]
    assigner = HalfAssigner(selector.pairs, int(seed))
    strata = np.asarray(strata, np.int64)
    return assigner.members(strata, assigner.numbered(strata)).astype(bool)


def recounted(selector: StreamingStabilitySelection, X: Any, y: Any, strata: Any) -> np.ndarray:
    """Fit each half separately, with each value; return the selection probabilities."""
    values = selector.param_values or [None]
    counts, unions = np.zeros((len(values), X.shape[1])), []
    for half in half_masks(selector, strata).T:
        found = []
        for row, value in enumerate(values):
            setting = {} if value is None else {selector.param_name: value}
            alone = clone(selector.estimator).set_params(**setting).fit(X[half], y[half])
            chosen = np.unique(alone.model_.indices.astype(int))
            counts[row, chosen] += 1
            found.append(set(chosen.tolist()))
        unions.append(len(set.union(*found)))
    assert selector.n_selected_mean_ == np.mean(unions)
    return counts / (2 * selector.pairs)


# ---- halves --------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=60),
    st.integers(1, 140),
    st.integers(0, 2**31),
    st.integers(0, 60),
)
def test_halves_are_complementary_and_equal(strata, pairs, seed, cut):
    strata = np.array(strata)
    assigner = HalfAssigner(pairs, seed)
    masks = assigner.members(strata, assigner.numbered(strata))
    assert masks.shape == (len(strata), 2 * pairs)
    np.testing.assert_array_equal(masks[:, ::2] + masks[:, 1::2], 1)
    for stratum in set(strata.tolist()):
        sizes = masks[strata == stratum].sum(axis=0, dtype=int)
        assert np.abs(sizes[::2] - sizes[1::2]).max() <= 1
    again = HalfAssigner(pairs, seed)  # the same rows in two blocks
    parts = [again.members(part, again.numbered(part)) for part in np.split(strata, [cut])]
    np.testing.assert_array_equal(np.concatenate(parts), masks)
    fewer = HalfAssigner(1, seed)
    np.testing.assert_array_equal(fewer.members(strata, fewer.numbered(strata)), masks[:, :2])


def test_halves_are_random():
    strata = np.zeros(4000, np.int64)
    assigner = HalfAssigner(80, 7)
    first = assigner.members(strata, assigner.numbered(strata))[::2, ::2].astype(float)
    assert np.abs(first.mean(axis=0) - 0.5).max() < 0.06  # 2,000 random bits: 5 sigma is 0.056
    correlated = np.corrcoef(first.T) - np.eye(80)
    assert np.abs(correlated).max() < 0.12
    other = HalfAssigner(80, 8)
    assert (other.members(strata, other.numbered(strata))[::2, ::2] != first).mean() > 0.45


# ---- equal to separate fits ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "name", "values"),
    [
        (FTRL, "l1", [5.0, 20.0]),
        (thresher.FTRLClassifier(l1=20.0, store="hashed", **ONE_PASS), None, None),
        (thresher.TruncatedGradientClassifier(eta0=0.1, **ONE_PASS), "gravity", [0.02, 0.1]),
        (thresher.TruncatedGradientClassifier(eta0=0.1, target_nnz=5, **ONE_PASS), None, None),
        (thresher.ForwardBackwardClassifier(eta0=0.05, **ONE_PASS), "l1", [0.05, 0.2]),
        (thresher.DualAveragingClassifier(**ONE_PASS), "l1", [0.05, 0.2]),
        (thresher.MarginPerceptronClassifier(l1=0.5, **ONE_PASS), "margin", [0.5, 1.0]),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else None,
)
@pytest.mark.parametrize("stratify", [True, False])
def test_probabilities_equal_separate_fits(estimator, name, values, stratify):
    selector = StreamingStabilitySelection(
        estimator, param_name=name, param_values=values, pairs=3, stratify=stratify, random_state=5
    ).fit(X, Y)
    expected = recounted(selector, X, Y, np.where(stratify, Y == "spam", 0))
    found = selector.selection_probabilities_
    np.testing.assert_array_equal(found.toarray(), expected)
    assert 0 < found.nnz == np.count_nonzero(expected)
    np.testing.assert_array_equal(selector.selected_, np.flatnonzero((expected >= 0.6).any(axis=0)))
    assert selector.classes_.tolist() == ["ham", "spam"]
    assert (selector.n_rows_, selector.n_pairs_, selector.n_candidates_) == (301, 3, 40)
    for unimodal, bound in ((0, selector.false_selections_bound_), (1, selector.unimodal_bound_)):
        assert bound == false_selections_bound(
            selector.n_selected_mean_, 40, pairs=3, unimodal=bool(unimodal)
        )


def test_several_passes_and_weights_of_classes():
    estimator = thresher.FTRLClassifier(
        l1=20.0, passes=3, shuffle=False, dtype="float64", class_weight={"spam": 3.0}
    )
    selector = StreamingStabilitySelection(estimator, pairs=4, n_jobs=2, random_state=1).fit(X, Y)
    expected = recounted(selector, X, Y, Y == "spam")
    np.testing.assert_array_equal(selector.selection_probabilities_.toarray(), expected)


def test_regressor_and_several_classes():
    rng = np.random.default_rng(3)
    y = X[:, 4] - X[:, 9]
    regressor = thresher.FTRLRegressor(l1=20.0, **ONE_PASS)
    selector = StreamingStabilitySelection(regressor, pairs=4, random_state=1).fit(X, y)
    expected = recounted(selector, X, y, np.zeros(len(y)))
    np.testing.assert_array_equal(selector.selection_probabilities_.toarray(), expected)
    assert not hasattr(selector, "classes_")
    classes = np.digitize(y + 0.1 * rng.normal(size=len(y)), [-1.0, 1.0])
    selector = StreamingStabilitySelection(FTRL, pairs=4, random_state=1).fit(X, classes)
    expected = recounted(selector, X, classes, classes)
    np.testing.assert_array_equal(selector.selection_probabilities_.toarray(), expected)
    assert selector.classes_.tolist() == [0, 1, 2]


def test_shuffled_rows_keep_their_halves():
    shuffled = clone(FTRL).set_params(shuffle="each", passes=2)
    runs = [
        StreamingStabilitySelection(shuffled, pairs=5, random_state=seed).fit(X, Y)
        for seed in (2, 2, 3)
    ]
    first, again, other = (run.selection_probabilities_.toarray() for run in runs)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert {4, 9} <= set(runs[0].selected_.tolist())


def test_selects_the_same_as_stability_selection():
    slow = StabilitySelection(FTRL, pairs=20, refit=False, random_state=0).fit(X, Y)
    fast = StreamingStabilitySelection(FTRL, pairs=20, random_state=0).fit(X, Y)
    apart = slow.selection_probabilities_ - fast.selection_probabilities_
    assert np.abs(apart.toarray()).max() < 0.5
    assert fast.top(2) == slow.top(2)
    assert fast.transform(sp.csr_matrix(X)).shape == (301, len(fast.selected_))
    assert fast.get_support().sum() == len(fast.selected_) > 0


# ---- sources -------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", ["dense", "hashed"])
@pytest.mark.parametrize("classes", [(-1, 1), (1, 2, 5)])
def test_source_equals_matrix(tmp_path, store, classes):
    path = svmlight(tmp_path / "rows.svm", rows=500, classes=classes)
    rows, y = load_svmlight_file(str(path))
    rows.data[rows.indices == 50] = 0  # stored zeros
    estimator = clone(FTRL).set_params(store=store, l1=2.0)
    options = {"param_name": "l1", "param_values": [0.5, 2.0], "pairs": 6, "random_state": 9}
    of_matrix = StreamingStabilitySelection(estimator, **options).fit(rows, y.astype(int))
    lines = path.read_text().splitlines(keepends=True)
    without = [" ".join(w for w in line.split() if not w.startswith("51:")) for line in lines]
    (tmp_path / "a.svm").write_text("\n".join(without[:123]) + "\n")
    (tmp_path / "b.svm").write_text("\n".join(without[123:]) + "\n")
    of_files = StreamingStabilitySelection(estimator, **options).fit(
        thresher.scan([tmp_path / "a.svm", tmp_path / "b.svm"])
    )
    batches = ((rows[i : i + 77], y[i : i + 77]) for i in range(0, 500, 77))
    once = StreamingStabilitySelection(estimator, **options).fit(
        thresher.scan(batches), classes=classes
    )
    assert of_matrix.selection_probabilities_.nnz > 10
    for other in (of_files, once):
        difference = of_matrix.selection_probabilities_ != other.selection_probabilities_
        assert difference.nnz == 0
        assert other.n_candidates_ == of_matrix.n_candidates_ == 59
        assert other.n_features_in_ == 60
        assert other.classes_.tolist() == list(classes)
        assert other.false_selections_bound_ == of_matrix.false_selections_bound_
        assert other.n_rows_ == 500


def test_rules_without_dtype_or_zeros(tmp_path):
    path = svmlight(tmp_path / "rows.svm")
    rows, y = load_svmlight_file(str(path))
    for estimator in (
        thresher.MirrorDescentClassifier(l1=1e-2, passes=1, shuffle=False),
        thresher.AveragedSGDClassifier(average=False, **ONE_PASS),
    ):
        options = {"pairs": 2, "random_state": 0}
        found = StreamingStabilitySelection(estimator, **options).fit(thresher.scan(path))
        of_matrix = StreamingStabilitySelection(estimator, **options).fit(rows, y)
        expected = recounted(of_matrix, rows, y, y == 1)
        np.testing.assert_array_equal(of_matrix.selection_probabilities_.toarray(), expected)
        assert (found.selection_probabilities_ != of_matrix.selection_probabilities_).nnz == 0


def test_names_of_a_source(tmp_path):
    path = vw(tmp_path / "rows.vw", rows=600)
    estimator = clone(FTRL).set_params(l1=3.0)
    selector = StreamingStabilitySelection(estimator, pairs=5, permutations=1, random_state=0)
    selector.fit(thresher.scan(path, bits=18))
    names = [feature.name for feature in selector.top(5)]
    assert all(name.startswith(("word^w", "age^")) for name in names)
    assert selector.n_features_in_ == 2**18


def test_weights_of_a_source(tmp_path):
    lines = vw(tmp_path / "rows.vw").read_text().splitlines()
    weighted = [line.replace(" '", " 2.5 '", 1) for line in lines]
    (tmp_path / "weighted.vw").write_text("\n".join(weighted) + "\n")
    found = []
    for name, more in (
        ("rows.vw", {"class_weight": {-1: 2.5, 1: 2.5}}),
        ("weighted.vw", {}),
        ("rows.vw", {}),
    ):
        estimator = clone(FTRL).set_params(l1=6.0, **more)
        selector = StreamingStabilitySelection(estimator, pairs=4, permutations=0, random_state=0)
        selector.fit(thresher.scan(tmp_path / name, bits=18))
        found.append(selector.selection_probabilities_)
    assert (found[0] != found[1]).nnz == 0
    assert (found[0] != found[2]).nnz > 0


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": LogisticRegression()}, "learn row by row .*LogisticRegression is not"),
        ({"estimator": thresher.StabilizedClassifier()}, "StabilizedClassifier is not: its paths"),
        ({"pairs": 0}, "StreamingStabilitySelection: pairs must be a whole number >= 1; got 0"),
        ({"threshold": 1.5}, r"threshold must be a number in \(0, 1\]; got 1.5"),
        ({"param_name": "l1"}, "param_name and param_values must be given together"),
        ({"param_name": "l3", "param_values": [1]}, "must be a parameter of the estimator, one of"),
        ({"param_name": "passes", "param_values": [1]}, "may differ .*, one of .*; got 'passes'"),
        ({"param_name": "l1", "param_values": [1.0, -1.0]}, "l1 must be a number >= 0.* got -1.0"),
        ({"param_name": "l1", "param_values": []}, "must hold at least one value"),
        ({"estimator": clone(FTRL).set_params(tol=0.1)}, "tol must be None"),
        (
            {"estimator": clone(FTRL).set_params(target_nnz=5)},
            "target_nnz must be None .*steered after",
        ),
        ({"estimator": clone(FTRL).set_params(class_weight="balanced")}, "give a dict of weights"),
        ({"estimator": thresher.AveragedSGDClassifier(center=True)}, "center must be False"),
        (
            {"estimator": thresher.MarginPerceptronClassifier(max_density=0.5)},
            "max_density must be None",
        ),
        ({"memory_limit": 0}, "memory_limit must be a number of bytes >= 1"),
        ({"n_jobs": 0}, "n_jobs must be None, at least 1, or -1 for all; got 0"),
        ({"random_state": "luck"}, "StreamingStabilitySelection: random_state: "),
    ],
)
def test_errors_of_parameters(options, message):
    options = {"estimator": FTRL, "pairs": 2, **options}
    with pytest.raises(ParameterError, match=message):
        StreamingStabilitySelection(**options).fit(X[:6], [1, 2, 1, 2, 1, 2])


def test_errors_of_rows(tmp_path):
    selector = StreamingStabilitySelection(FTRL, pairs=2)
    with pytest.raises(ValueError, match="StreamingStabilitySelection needs rows of at least 2"):
        selector.fit(X, np.ones(len(X), int))
    with pytest.raises(ValueError, match="at least 2 rows of each class"):
        selector.fit(X, np.arange(len(X)) == 0)
    with pytest.raises(ParameterError, match="classes= is only for sources"):
        selector.fit(X, Y, classes=["ham", "spam"])
    path = svmlight(tmp_path / "rows.svm", rows=30)
    with pytest.raises(ParameterError, match="a source has its own labels; give only X"):
        selector.fit(thresher.scan(path), Y)
    with pytest.raises(ParameterError, match=r"set bits= in scan"):
        selector.fit(thresher.scan(vw(tmp_path / "rows.vw", rows=30)))
    with pytest.raises(ParameterError, match="can be read only once, and its classes are not"):
        selector.fit(thresher.scan(iter([(X, Y)])))
    twice = StreamingStabilitySelection(clone(FTRL).set_params(passes=2), pairs=2)
    with pytest.raises(ParameterError, match="can be read only once; set passes=1"):
        twice.fit(thresher.scan(iter([(X, Y)])), classes=["ham", "spam"])
    path.write_text(path.read_text() + "7 3:1\n")
    with pytest.raises(DataError, match=r"rows.svm:31:1: the label .* is not among the classes"):
        selector.fit(thresher.scan(path), classes=[-1, 1])
    assert not hasattr(selector, "selected_")


def test_models_that_do_not_fit_in_memory(tmp_path):
    selector = StreamingStabilitySelection(FTRL, pairs=50, memory_limit=10_000)
    with pytest.raises(
        MemoryError, match=r"100 models need [\d,]+ bytes, and memory_limit is 10,0"
    ):
        selector.fit(X, Y)
    path = svmlight(tmp_path / "rows.svm")
    for store in ("dense", "hashed"):
        selector = StreamingStabilitySelection(
            clone(FTRL).set_params(store=store), pairs=50, memory_limit=10_000
        )
        with pytest.raises(MemoryError, match="100 models need"):
            selector.fit(thresher.scan(path))


def test_the_error_names_the_half_that_diverges():
    wild = thresher.TruncatedGradientRegressor(eta0=1e6, gravity=0.0, **ONE_PASS)
    selector = StreamingStabilitySelection(wild, pairs=2, random_state=0)
    with pytest.raises(DivergenceError, match="half 1 of pair 1: "):
        selector.fit(100 * X, X[:, 0])
