"""Defaults on real data, end to end: errors and numbers of nonzeros are as expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from thresher import (
    CoordinateDescentClassifier,
    DualAveragingClassifier,
    ForwardBackwardClassifier,
    FTRLClassifier,
    HardThresholdRegressor,
    MarginPerceptronClassifier,
    MirrorDescentClassifier,
    StabilizedClassifier,
    TruncatedGradientClassifier,
    UnitVarianceScaler,
    datasets,
    stability_score,
)
from thresher.health import NoSignalWarning

pytestmark = pytest.mark.data


@pytest.mark.parametrize(
    ("name", "error"), [("a9a", 0.155), ("agaricus", 0.002), ("basehock", 0.025), ("pcmac", 0.10)]
)
@pytest.mark.parametrize(
    "cls", [TruncatedGradientClassifier, ForwardBackwardClassifier, FTRLClassifier]
)
def test_defaults(data_dir: Path, cls: Any, name: str, error: float) -> None:
    """Default parameters have about the error of tuned linear models on these sets."""
    data = datasets.load(name, data_dir)
    model = cls(random_state=0).fit(data.X_train, data.y_train)
    assert 1 - model.score(data.X_test, data.y_test) <= error
    assert 0 < model.model_.nnz < data.X_train.shape[1]


def test_a_sparse_model_of_real_text(data_dir: Path, tmp_path: Path) -> None:
    """A model of a few hundred words of two newsgroups is streamed, saved and loaded."""
    data = datasets.load("basehock", data_dir)
    online = FTRLClassifier(l1=1.0)
    for _ in range(5):
        for start in range(0, data.X_train.shape[0], 200):
            rows = slice(start, start + 200)
            online.partial_fit(data.X_train[rows], data.y_train[rows], classes=[-1, 1])
    assert online.model_.density < 0.25
    assert online.score(data.X_test, data.y_test) > 0.96
    losses = [record.loss for record in online.history_]
    assert losses[-1] < 0.3 * losses[0]
    online.model_.save(tmp_path / "news.thresher")
    loaded = thresher.load(tmp_path / "news.thresher")
    np.testing.assert_array_equal(loaded.predict(data.X_test), online.predict(data.X_test))


@pytest.mark.parametrize(
    ("cls", "name", "error", "density"),
    [
        (CoordinateDescentClassifier, "a9a", 0.155, 1.0),
        (CoordinateDescentClassifier, "basehock", 0.04, 0.1),
        (CoordinateDescentClassifier, "pcmac", 0.11, 0.15),
        (MirrorDescentClassifier, "agaricus", 0.005, 0.95),
        (MirrorDescentClassifier, "basehock", 0.05, 0.9),
        (MirrorDescentClassifier, "pcmac", 0.115, 0.97),
    ],
)
def test_defaults_of_the_slower_rules(
    data_dir: Path, cls: Any, name: str, error: float, density: float
) -> None:
    data = datasets.load(name, data_dir)
    model = cls(random_state=0).fit(data.X_train, data.y_train)
    assert 1 - model.score(data.X_test, data.y_test) <= error
    assert 0 < model.model_.density <= density


def test_hard_thresholding_of_text(data_dir: Path) -> None:
    """P-11: the published step 1/3 diverges on tf-idf with a warning; the safe one does not."""
    data = datasets.load("basehock", data_dir)
    y = data.y_train.astype(float)
    wild = HardThresholdRegressor(n_nonzero=2000, step=1 / 3, passes=10, tol=None)
    with pytest.warns(UserWarning, match=r"step 0.333 is too long.* is safe"):
        wild.fit(data.X_train, y)
    assert wild.psi_[-1] > 1e20 * wild.psi_[0]
    assert np.isfinite(wild.coef_).all()
    calm = HardThresholdRegressor(n_nonzero=500).fit(data.X_train, y)
    assert np.all(np.diff(calm.psi_) <= 0)
    assert calm.model_.nnz == 500
    assert np.mean(np.sign(calm.predict(data.X_test)) != data.y_test) <= 0.08


@pytest.mark.parametrize(
    ("name", "error", "nonzeros"),
    [("dexter_scaled", 0.09, 380), ("basehock", 0.025, 734), ("dorothea", 0.07, 1970)],
)
def test_stabilized(data_dir: Path, tmp_path: Path, name: str, error: float, nonzeros: int) -> None:
    """It keeps a given number of features, the same ones for other orders; its error is low."""
    data = datasets.load(name, data_dir)
    supports = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(data.X_train.shape[0])
        clf = StabilizedClassifier(target_nnz=nonzeros, random_state=seed, n_jobs=2)
        clf.fit(data.X_train[order], data.y_train[order])
        assert 1 - clf.score(data.X_test, data.y_test) <= error
        supports.append(clf.model_.indices)
        assert len(supports[-1]) <= nonzeros
    assert stability_score(supports, data.X_train.shape[1]) > 0.9
    clf.model_.save(tmp_path / "stable.thresher")
    loaded = thresher.load(tmp_path / "stable.thresher")
    best = loaded.top(1)[0]
    why = loaded.why(best.name)
    assert why == clf.model_.why(best.name)
    assert why.documents == np.count_nonzero(data.X_train[:, int(best.name)].toarray())
    assert why.z is not None
    assert abs(why.z) > 5


@pytest.mark.parametrize(
    ("name", "error"),
    [("dexter_scaled", 0.08), ("basehock", 0.02), ("dorothea", 0.07), ("arcene", 0.2)],
)
def test_stabilized_by_labels(data_dir: Path, name: str, error: float) -> None:
    """The number chosen by the labels has a low error; permuted labels keep nothing."""
    data = datasets.load(name, data_dir)
    clf = StabilizedClassifier(random_state=0, n_jobs=2).fit(data.X_train, data.y_train)
    assert 1 - clf.score(data.X_test, data.y_test) <= error
    y = np.random.default_rng(0).permutation(data.y_train)
    with pytest.warns(NoSignalWarning):
        assert clf.fit(data.X_train, y).model_.nnz == 0


@pytest.mark.parametrize(
    ("name", "error", "nonzeros", "kappa"),
    [
        ("dexter_scaled", 0.08, 500, 0.9),
        ("basehock", 0.02, 4000, 0.6),
        ("dorothea", 0.07, 600, 0.85),
    ],
)
def test_stabilized_by_labels_in_other_orders(
    data_dir: Path, name: str, error: float, nonzeros: int, kappa: float
) -> None:
    """The number chosen by the labels changes little, and so do the features."""
    data = datasets.load(name, data_dir)
    supports = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(data.X_train.shape[0])
        clf = StabilizedClassifier(random_state=seed, n_jobs=2)
        clf.fit(data.X_train[order], data.y_train[order])
        assert 1 - clf.score(data.X_test, data.y_test) <= error
        supports.append(clf.model_.indices)
    sizes = [len(support) for support in supports]
    assert nonzeros / 2 < min(sizes) <= max(sizes) <= nonzeros
    assert stability_score(supports, data.X_train.shape[1]) > kappa


def test_published_stabilized(data_dir: Path) -> None:
    """With hinge loss its gravity is soon 0 (A-36), and there is a warning."""
    data = datasets.load("dexter_scaled", data_dir)
    clf = StabilizedClassifier(variant="paper", loss="hinge", passes=5, random_state=0, n_jobs=2)
    X = UnitVarianceScaler().fit_transform(data.X_train)
    with pytest.warns(UserWarning, match="gravity is 0"):
        clf.fit(X, data.y_train)
    assert 0 < clf.model_.nnz < 0.5 * data.X_train.shape[1]


@pytest.mark.parametrize(
    ("cls", "error"), [(DualAveragingClassifier, 0.1), (MarginPerceptronClassifier, 0.1)]
)
def test_more_defaults(data_dir: Path, cls: Any, error: float) -> None:
    data = datasets.load("pcmac", data_dir)
    model = cls(random_state=0).fit(data.X_train, data.y_train)
    assert 1 - model.score(data.X_test, data.y_test) <= error
