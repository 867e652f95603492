"""OnePassClassifier and OnePassRegressor: sources, classes, units, searches, and refusals."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_classification

import thresher
from thresher import (
    DataError,
    OnePassClassifier,
    OnePassRegressor,
    OnePassSearchCV,
    ParameterError,
    StabilitySelection,
    _core,
    scan,
)
from thresher.data import matrix_source
from thresher.data.writing import write
from thresher.distributed.modes.table import choose_mode
from thresher.training import bank
from thresher.training.bank import bytes_of, lanes_for
from thresher.training.observer import Interrupted, Observer


def table(seed: int = 0, rows: int = 300, columns: int = 12, classes: int = 2) -> tuple[Any, Any]:
    X, y = make_classification(
        rows, columns, n_informative=6, n_redundant=0, n_classes=classes, random_state=seed
    )
    X[np.abs(X) < 0.5] = 0.0
    return sp.csr_matrix(X.astype(np.float32)), y


def numbers(rows: int = 442) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_diabetes(return_X_y=True)
    return X[:rows] / X.std(axis=0), y[:rows]


def equal(one: Any, other: Any) -> None:
    """Check that two fitted estimators have the same bits."""
    for name in ("indptr", "indices", "weights", "intercept"):
        np.testing.assert_array_equal(getattr(one.model_, name), getattr(other.model_, name))


def lines(X: Any, y: Any) -> str:
    return "".join(
        f"{label} "
        + " ".join(f"{j + 1}:{float(v)!r}" for j, v in zip(row.indices, row.data, strict=True))
        + "\n"
        for label, row in zip(y, X, strict=True)
    )


class StopsAt(Observer):
    """Stops a run at its n-th visit of rows."""

    def __init__(self, visit: int) -> None:
        self.left = visit

    def progress(self, trainer: Any) -> None:
        self.left -= 1

    def stops(self) -> bool:
        return self.left == 0


class Notes(Observer):
    def __init__(self) -> None:
        self.found: list[str] = []

    def tell(self, event: str, **facts: Any) -> None:
        if event == "note":
            self.found.append(facts["message"])


# ---- ways to train -------------------------------------------------------------------------------


def test_files_pipes_caches_and_matrices_give_the_same_bits(tmp_path: Path) -> None:
    X, y = table()
    text, cache = tmp_path / "rows.svm", tmp_path / "rows.cache"
    text.write_text(lines(X, 2 * y - 1))
    write(scan(text), str(cache), "cache")
    expected = OnePassClassifier(shuffle=False).fit(X, 2 * y - 1)
    for source in (text, cache):
        equal(OnePassClassifier(shuffle=False).fit(scan(source)), expected)
    parts = ((X[i : i + 70], 2 * y[i : i + 70] - 1) for i in range(0, 300, 70))
    equal(OnePassClassifier().partial_fit(scan(parts), classes=[-1, 1]), expected)
    equal(OnePassClassifier(shuffle=False).fit(X.toarray(), 2 * y - 1), expected)
    equal(OnePassClassifier(shuffle=False, store="hashed").fit(X, 2 * y - 1), expected)


@pytest.mark.parametrize("size", [1, 37, 300])
def test_partial_fit_equals_fit(size: int) -> None:
    X, y = table()
    whole = OnePassClassifier(shuffle=False).fit(X, y)
    parts = OnePassClassifier()
    for begin in range(0, 300, size):
        parts.partial_fit(X[begin : begin + size], y[begin : begin + size], classes=[0, 1])
        if size == 37:
            parts = pickle.loads(pickle.dumps(parts))
    equal(parts, whole)


def test_a_checkpoint_continues_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table(rows=2000)
    file = tmp_path / "run.checkpoint"

    made = OnePassClassifier(passes=3, random_state=1)
    monkeypatch.setattr(matrix_source, "_CHUNK", X.nnz // 8)
    for visit in (1, 5, 8, 12, 20):
        with pytest.raises(Interrupted):
            clone(made).fit(X, y, checkpoint=file, observer=StopsAt(visit))
        resumed = clone(made).fit(X, y, checkpoint=file, resume=True)
        equal(resumed, clone(made).fit(X, y))
        assert len(resumed.history_) == len(clone(made).fit(X, y).history_)


def test_model_files(tmp_path: Path) -> None:
    X, y = table()
    clf = OnePassClassifier(random_state=0).fit(X, y)
    clf.model_.save(tmp_path / "m.thresher")
    loaded = thresher.load(tmp_path / "m.thresher")
    np.testing.assert_array_equal(loaded.predict(X), clf.predict(X))


def test_several_passes_are_the_mean_of_models() -> None:
    X, y = table(rows=4000)
    one, five = (
        OnePassClassifier(passes=passes, random_state=0).fit(X[:400], y[:400]) for passes in (1, 5)
    )
    assert len(five.history_) > len(one.history_)
    assert five.score(X[400:], y[400:]) >= one.score(X[400:], y[400:])


def test_warm_start_goes_on() -> None:
    X, y = table()
    clf = OnePassClassifier(warm_start=True, random_state=0).fit(X, y)
    first = clf.model_.weights.copy()
    clf.fit(X, y)
    assert np.isfinite(clf.model_.weights).all()
    assert not np.array_equal(clf.model_.weights, first)


# ---- several outputs -----------------------------------------------------------------------------


@pytest.mark.parametrize("target", [None, 4])
def test_many_classes_are_one_against_the_rest(target: int | None) -> None:
    X, y = table(rows=500, classes=4)
    clf = OnePassClassifier(shuffle=False, target_nnz=target).fit(X, y)
    assert clf.score(X, y) > 0.5
    for number in range(4):
        two = OnePassClassifier(shuffle=False, target_nnz=target).fit(X, y == number)
        np.testing.assert_array_equal(clf.coef_[number], two.coef_[0])
        assert clf.intercept_[number] == two.intercept_[0]
        if target is not None:
            assert np.count_nonzero(two.coef_) <= target


def test_rows_with_lists_of_labels() -> None:
    X, y = table(rows=500, classes=4)
    Y = np.column_stack([y == 0, y < 2, y > 0]).astype(int)
    clf = OnePassClassifier(shuffle=False).fit(X, Y)
    assert clf.predict(X).shape == Y.shape
    for number in range(3):
        two = OnePassClassifier(shuffle=False).fit(X, Y[:, number])
        np.testing.assert_array_equal(clf.coef_[number], two.coef_[0])


def test_classes_that_arrive_late() -> None:
    X, y = table(rows=900, classes=3)
    order = np.argsort(y == 2, kind="stable")  # the last class comes at the end
    clf = OnePassClassifier(shuffle=False).fit(X[order], y[order])
    assert np.isfinite(clf.coef_).all()
    arriving = OnePassClassifier()
    first = np.flatnonzero(y < 2)
    arriving.partial_fit(X[first], y[first], classes=[0, 1, 2])
    assert np.isfinite(arriving.coef_).all()
    arriving.partial_fit(X, y)
    assert arriving.score(X, y) > 0.5
    assert len(arriving.classes_) == 3


def test_classes_of_a_pipe_that_are_not_known(tmp_path: Path) -> None:
    X, y = table(rows=400, classes=3)
    parts = ((X[i : i + 100], y[i : i + 100]) for i in range(0, 400, 100))
    clf = OnePassClassifier().partial_fit(scan(parts), classes="arriving")
    assert sorted(clf.classes_) == [0, 1, 2]
    assert clf.score(X, y) > 0.5


def test_class_weights() -> None:
    X, y = table(rows=600)
    rare = np.flatnonzero((y == 0) | (np.arange(600) % 10 == 0))
    X, y = X[rare], y[rare]
    plain, balanced = (
        OnePassClassifier(shuffle=False, class_weight=weight).fit(X, y)
        for weight in (None, "balanced")
    )
    assert balanced.predict(X).mean() > plain.predict(X).mean()
    doubled = OnePassClassifier(shuffle=False, class_weight={0: 1.0, 1: 2.0}).fit(X, y)
    given = OnePassClassifier(shuffle=False).fit(X, y, sample_weight=np.where(y == 1, 2.0, 1.0))
    equal(doubled, given)


# ---- units ---------------------------------------------------------------------------------------

UNITS = {
    "y x 1000": (1.0, 1e3, 0.0),
    "y / 1000": (1.0, 1e-3, 0.0),
    "y + 100 sd": (1.0, 1.0, 100.0),
    "X x 1000": (1e3, 1.0, 0.0),
    "X / 1000": (1e-3, 1.0, 0.0),
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("loss", ["squared", "huber", "quantile"])
@pytest.mark.parametrize("lanes", [4, 12])
def test_units_do_not_matter(unit: str, loss: str, lanes: int) -> None:
    X, y = numbers()
    size, times, shift = UNITS[unit]
    made = OnePassRegressor(loss=loss, lanes=lanes, random_state=0)
    plain = clone(made).fit(X, y)
    target = times * y + shift * y.std()
    other = clone(made).fit(size * X, target)
    assert other.score(size * X, target) == pytest.approx(plain.score(X, y), abs=5e-4)
    power = 1 if loss == "quantile" else 2
    losses = [record.loss for record in other.history_]
    expected = [record.loss * times**power for record in plain.history_]
    np.testing.assert_allclose(losses, expected, rtol=1e-2)


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_columns_of_very_different_size(factor: float) -> None:
    X, y = numbers()
    scale = np.where(np.arange(X.shape[1]) % 2, factor, 1.0)
    plain, other = (OnePassRegressor(random_state=0).fit(Z, y).score(Z, y) for Z in (X, X * scale))
    assert plain > 0.45
    assert other > plain - 0.05


def test_powers_of_two_change_no_bit() -> None:
    X, y = numbers()
    made = OnePassRegressor(random_state=0, dtype="float64")
    plain, other = clone(made).fit(X, y), clone(made).fit(X * 2.0**-9, y * 2.0**13)
    np.testing.assert_array_equal(other.coef_, plain.coef_ * 2.0**22)
    np.testing.assert_array_equal(other.intercept_, plain.intercept_ * 2.0**13)


def test_classification_does_not_depend_on_the_units_of_rows() -> None:
    X, y = table()
    plain = OnePassClassifier(random_state=0).fit(X, y)
    other = OnePassClassifier(random_state=0).fit(X * np.float32(2.0**20), y)
    np.testing.assert_array_equal(other.predict(X * np.float32(2.0**20)), plain.predict(X))


# ---- bad input -----------------------------------------------------------------------------------


def test_huge_targets_are_refused() -> None:
    X, y = numbers()
    y = y.copy()
    y[5] = 1e300
    reg = OnePassRegressor(shuffle=False)
    with pytest.raises(DataError, match=r"row 5: the target 1e\+300 is too large"):
        reg.fit(X, y)
    assert not hasattr(reg, "coef_")


@pytest.mark.parametrize("loss", ["squared", "huber", "quantile"])
def test_constant_targets(loss: str) -> None:
    X, _ = numbers()
    with pytest.warns(UserWarning, match="all weights are zero") as caught:
        reg = OnePassRegressor(loss=loss).fit(X, np.full(len(X), 7.0))
    assert "penalty" not in str(caught[0].message)
    assert reg.predict(X[:2]).tolist() == [7.0, 7.0]


def test_counts_of_any_size() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    for mean in (0.0, 10.0, 24.0):
        y = np.round(np.exp(mean + X[:, 0]))
        reg = OnePassRegressor(loss="poisson", random_state=0).fit(X, y)
        assert np.isfinite(reg.predict(X)).all()
        assert reg.score(X, y) > 0.5


# ---- searches, selection, comparison -------------------------------------------------------------


def test_a_search_over_cut_equals_single_fits() -> None:
    X, y = table(rows=400)
    made = OnePassClassifier(random_state=0, shuffle=False)
    search = OnePassSearchCV(made, {"cut": [0.0, 0.001, 0.2]}, cv=3).fit(X, y)
    assert len(search.cv_results_["mean_test_score"]) == 3
    best = clone(made).set_params(**search.best_params_).fit(X, y)
    np.testing.assert_allclose(search.best_estimator_.coef_, best.coef_)


def test_a_search_over_target_nnz() -> None:
    X, y = table(rows=300)
    made = OnePassClassifier(shuffle=False, refit=False)
    search = OnePassSearchCV(made, {"target_nnz": [2, 5, None]}, cv=3)
    assert len(search.fit(X, y).cv_results_["mean_test_score"]) == 3


def test_a_search_over_lanes() -> None:
    X, y = table(rows=300)
    search = OnePassSearchCV(OnePassClassifier(shuffle=False), {"lanes": ["auto", 4, 12]}, cv=3)
    found = search.fit(X, y).cv_results_["mean_test_score"]
    assert found[0] == found[2]


def test_stability_selection() -> None:
    X, y = table(rows=400)
    selector = StabilitySelection(OnePassClassifier(target_nnz=4), pairs=5, random_state=0)
    assert 1 <= len(selector.fit(X, y).selected_) <= 12


def test_comparison() -> None:
    X, y = table(rows=300)
    found = thresher.compare(X, y, rules=["one-pass", "ftrl"], orders=2)
    assert "one-pass" in found.table()


def test_it_does_not_train_on_a_cluster() -> None:
    with pytest.raises(ParameterError, match=r"OnePassClassifier cannot be trained .* ftrl"):
        choose_mode(OnePassClassifier(), None)


# ---- lanes="auto" --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outputs", "width", "dtype", "lanes"),
    [
        (1, 1000, "float32", 12),
        (1, 2**20, "float64", 12),
        (1, 2**24, "float32", 12),  # 128 bytes a feature
        (1, 2**24 + 1, "float32", 4),
        (1, 2**24, "float64", 4),
        (16, 1000, "float32", 12),
        (17, 1000, "float32", 4),
        (4, 2**24, "float32", 4),
        (1, 0, "float32", 12),  # not known
    ],
)
def test_the_number_of_lanes(outputs: int, width: int, dtype: str, lanes: int) -> None:
    assert lanes_for({"dtype": dtype}, outputs, width) == lanes


@pytest.mark.parametrize("lanes", [4, 12])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("outputs", [1, 2, 5])
def test_the_estimate_of_bytes_is_that_of_the_core(outputs: int, dtype: str, lanes: int) -> None:
    words = {"loss": "logistic"}
    params = {"lanes": lanes, "cut": 0.0, "epsilon": 1.0, "quantile": 0.5, "fit_intercept": 1.0}
    made = _core.make_lanes(
        "one_pass", "dense", dtype, 1000, [params] * outputs, [words] * outputs, [0] * outputs,
        list(range(outputs)), "auto",
    )  # fmt: skip
    assert bytes_of(lanes, dtype, outputs, 1000) == pytest.approx(made.store_bytes, rel=0.05)


def test_a_note_says_that_there_are_fewer_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table()
    for limit, choice, noted in ((2**31, "auto", False), (1, "auto", True), (1, 12, False)):
        monkeypatch.setattr(bank, "LIMIT", limit)
        notes = Notes()
        clf = OnePassClassifier(shuffle=False, lanes=choice).fit(X, y, observer=notes)
        assert any("combines 4 lanes" in note for note in notes.found) == noted
        equal(clf, OnePassClassifier(shuffle=False, lanes=4 if noted else 12).fit(X, y))
