"""`StabilizedClassifier` without `target_nnz`: the labels choose the number of features."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from thresher import Observer, StabilizedClassifier
from thresher.health import NoSignalWarning
from thresher.report.model_page import model_page
from thresher.training.observer import Interrupted

FIXTURES = Path(__file__).parents[1] / "fixtures" / "0.1.0"


def problem(rows: int = 600, width: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, width))
    return X, np.where(X[:, 3] - X[:, 7] + 0.5 * rng.normal(size=rows) > 0.5, "yes", "no")


def silent(clf: Any, X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoSignalWarning)
        return clf.fit(X, y)


def test_few_features_of_many() -> None:
    X, y = problem()
    clf = StabilizedClassifier(random_state=0).fit(X, y)
    assert {3, 7} <= set(clf.model_.indices.tolist())
    assert clf.model_.nnz <= 16
    assert clf.score(*problem(seed=1)) > 0.85
    assert clf.history_[-1].nonzeros == clf.model_.nnz


def test_no_signal() -> None:
    X, y = problem()
    y = np.random.default_rng(1).permutation(y)
    with pytest.warns(
        NoSignalWarning, match=r"StabilizedClassifier: no signal: .* intercept alone"
    ):
        clf = StabilizedClassifier(random_state=0).fit(X, y)
    model, share = clf.model_, np.mean(y == "yes")
    assert model.nnz == 0
    assert clf.intercept_[0] == pytest.approx(np.log(share / (1 - share)))
    np.testing.assert_allclose(clf.predict_proba(X[:5])[:, 1], share)
    assert [record.nonzeros for record in clf.history_] == [0, 0]
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert [record.loss for record in clf.history_] == pytest.approx([entropy] * 2, abs=0.01)
    told = str(model.why(3))
    assert "never judged: no signal" in told
    assert "probability" not in told
    assert "No signal: no model predicted other rows better" in model_page(model)
    given = StabilizedClassifier(target_nnz=4, random_state=0).fit(X, y)
    assert given.model_.nnz == 4


def test_every_class_has_its_own_number() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 40))
    y = np.where(X[:, 5] > 0.7, "a", rng.choice(["b", "c", "d"], 900))
    clf = silent(StabilizedClassifier(random_state=0), X, y)
    sizes = dict(zip(clf.classes_, np.diff(clf.model_.indptr), strict=True))
    assert 1 <= sizes["a"] <= 10
    z = {label: clf.model_.why(5, label).z for label in "abcd"}
    assert z["a"] is not None
    assert z["a"] > 10
    labels = np.where(y == "a", "a", "b")
    labels[rng.random(900) < 0.3] = "c"  # a class at random
    with pytest.warns(NoSignalWarning, match="for 'c'"):
        clf = StabilizedClassifier(random_state=0).fit(X, labels)
    sizes = dict(zip(clf.classes_, np.diff(clf.model_.indptr), strict=True))
    assert sizes["c"] == 0
    assert min(sizes["a"], sizes["b"]) > 0
    assert "1 of 3 classes have no signal" in model_page(clf.model_)


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_unbalanced_classes(share: float) -> None:
    rng = np.random.default_rng(3)
    X = (rng.random((3000, 80)) < 0.2).astype(float)
    score = 2 * X[:, 0] + 2 * X[:, 1] + 0.5 * rng.normal(size=3000)
    y = np.where(score > np.quantile(score, 1 - share), 1, 0)
    clf = StabilizedClassifier(random_state=0).fit(X, y)
    assert set(clf.model_.indices[:2].tolist()) == {0, 1}
    assert clf.model_.nnz <= 20
    assert silent(StabilizedClassifier(random_state=0), X, rng.permutation(y)).model_.nnz == 0


# ---- streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [100, 400])
def test_a_stream_without_signal(rows: int) -> None:
    """The first batch cannot be judged; after the second there are no features, and one warning."""
    X, y = problem(2000)
    y = np.random.default_rng(1).permutation(y)
    clf = StabilizedClassifier(random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NoSignalWarning)
        for begin in range(0, 2000, rows):
            clf.partial_fit(X[begin : begin + rows], y[begin : begin + rows], classes=["no", "yes"])
            assert (clf.model_.nnz > 0) == (begin == 0)
    assert len(caught) == 1
    share = np.mean(y == "yes")
    assert clf.intercept_[0] == pytest.approx(np.log(share / (1 - share)), abs=1e-3)
    assert "not in the model: no signal" in str(clf.model_.why(3)) or clf.model_.why(3).purged_at


def test_a_stream_with_signal() -> None:
    X, y = problem(2000)
    clf = StabilizedClassifier(random_state=0)
    for begin in range(0, 2000, 250):
        clf.partial_fit(X[begin : begin + 250], y[begin : begin + 250], classes=["no", "yes"])
    assert clf.score(*problem(seed=1)) > 0.8
    whole = StabilizedClassifier(random_state=0).fit(X, y)
    # z does not depend on batches, except for rounding
    for j in (3, 7, 20):
        assert clf.model_.why(j).z == pytest.approx(whole.model_.why(j).z)


# ---- states --------------------------------------------------------------------------------------


class StopsAtOnce(Observer):
    def stops(self) -> bool:
        return True


def test_interrupted_while_the_number_is_chosen(tmp_path: Path) -> None:
    """The checkpoint then has no state of this output: the resumed run has the same bytes."""
    X, y = problem(6000, 300)
    path = tmp_path / "checkpoint"
    params = {"random_state": 0, "passes": 1, "paths": 2}
    with pytest.raises(Interrupted):
        StabilizedClassifier(**params).fit(X, y, checkpoint=path, observer=StopsAtOnce())
    resumed = StabilizedClassifier(**params).fit(X, y, checkpoint=path, resume=True)
    whole = StabilizedClassifier(**params, n_jobs=3).fit(X, y)
    assert resumed._learners[0].state() == whole._learners[0].state()


def test_z_is_in_model_files(tmp_path: Path) -> None:
    X, y = problem()
    model = StabilizedClassifier(random_state=0).fit(X, y).model_
    model.save(tmp_path / "a.thresher")
    loaded = thresher.load(tmp_path / "a.thresher")
    assert [loaded.why(j) for j in range(60)] == [model.why(j) for j in range(60)]
    t = (y == "yes").astype(float)
    x = X[:, 3]
    covariance = np.sum((x - x.mean()) * (t - t.mean()))
    expected = covariance / np.sqrt(np.sum((x - x.mean()) ** 2) * t.mean() * (1 - t.mean()))
    why = model.why(3)
    assert why.z == pytest.approx(expected)
    assert why.q is not None
    assert why.q < 1e-6
    weak = model.why(20)
    assert weak.expected_false is not None
    assert weak.expected_false > 1


def test_models_of_version_0_1_0_show_what_they_have() -> None:
    model = thresher.load(FIXTURES / "stabilized.thresher")
    why = model.why(model.top(1)[0].name)
    assert why.z is None
    assert "selected with probability" in str(why)


def test_a_strong_l2_of_the_refit_leaves_finite_weights():
    """With few rows the l2 is strong: the scale of the weights is renewed many times."""
    X = np.array([[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1], [-1, -2], [2, 2], [-2, -2]])
    y = np.repeat([1, 2, 3], 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(20):
            found = StabilizedClassifier(random_state=seed).fit(X.astype(float), y)
            assert np.isfinite(found.coef_).all()
