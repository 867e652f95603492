"""Interrupted and resumed runs on rows in memory are bit-identical to uninterrupted ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import thresher
from thresher import Interrupted, Observer
from thresher.data import matrix_source
from thresher.errors import DataError, ModelFileError
from thresher.training import resuming

ROWS, COLUMNS = 400, 30
CLASSIFIERS = [
    (thresher.TruncatedGradientClassifier, {"gravity": 0.01}),
    (thresher.TruncatedGradientClassifier, {"target_nnz": 10, "store": "hashed"}),
    (thresher.TruncatedGradientClassifier, {"certify": True, "eta0": 0.01, "decay": 1.0}),
    (thresher.AveragedSGDClassifier, {"center": True, "alpha": 0.01}),
    (thresher.ForwardBackwardClassifier, {}),
    (thresher.FTRLClassifier, {"alpha": "auto"}),
    (thresher.FTRLClassifier, {"target_nnz": 8}),
    (thresher.DualAveragingClassifier, {}),
    (thresher.MarginPerceptronClassifier, {"levels": (0.3, 0.6)}),
    (thresher.MirrorDescentClassifier, {}),
]


def rows(classes: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = sp.random(ROWS, COLUMNS, 0.2, "csr", random_state=1, dtype=np.float64)
    X.data = rng.normal(size=X.nnz)
    return X, np.abs(X[:, :classes].toarray() + 0.1 * rng.normal(size=(ROWS, classes))).argmax(1)


class StopsAt(Observer):
    """Stops a run at its n-th visit of rows."""

    def __init__(self, visit: int) -> None:
        self.left = visit

    def progress(self, trainer: Any) -> None:
        self.left -= 1

    def stops(self) -> bool:
        return self.left == 0


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make about eight visits per pass, so that runs are interrupted within a pass."""
    monkeypatch.setattr(matrix_source, "_CHUNK", ROWS * 6 // 8)


def interrupted(made: Any, path: Path, visit: int, *data: Any, **more: Any) -> Any:
    with pytest.raises(Interrupted):
        made().fit(*data, checkpoint=path, observer=StopsAt(visit), **more)
    return made().fit(*data, checkpoint=path, resume=True, **more)


def same(one: Any, other: Any) -> None:
    model, expected = one.model_, other.model_
    for name in ("indptr", "indices", "weights", "intercept"):
        np.testing.assert_array_equal(getattr(model, name), getattr(expected, name))
    assert [r._replace(seconds=0) for r in model.history] == [
        r._replace(seconds=0) for r in expected.history
    ]
    assert one.n_iter_ == other.n_iter_
    assert model.certificates == expected.certificates


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize(("kind", "params"), CLASSIFIERS)
def test_same_bits(tmp_path: Path, kind: Any, params: dict[str, Any], classes: int) -> None:
    data = rows(classes)
    whole = kind(passes=3, random_state=5, **params).fit(*data)
    for visit in (1, 7, 12):
        resumed = interrupted(
            lambda: kind(passes=3, random_state=5, **params),
            tmp_path / f"{visit}.checkpoint",
            visit,
            *data,
        )
        same(resumed, whole)
        if "levels" in params:
            assert list(resumed.level_models_) == list(whole.level_models_)
            assert [m.nnz for m in resumed.level_models_.values()] == [
                m.nnz for m in whole.level_models_.values()
            ]


@pytest.mark.parametrize(("kind", "params"), CLASSIFIERS)
def test_rows_with_weights_are_resumed(tmp_path: Path, kind: Any, params: dict[str, Any]) -> None:
    if params.get("certify"):
        pytest.skip("a certificate needs weights of 1")
    data, weights = rows(), np.random.default_rng(3).choice([0.0, 0.4, 1.0, 3.0, 50.0], ROWS)
    whole = kind(passes=3, random_state=5, **params).fit(*data, sample_weight=weights)
    resumed = interrupted(
        lambda: kind(passes=3, random_state=5, **params), tmp_path / "run", 9, *data,
        sample_weight=weights,
    )  # fmt: skip
    same(resumed, whole)


@pytest.mark.parametrize("kind", [thresher.FTRLClassifier, thresher.FTRLRegressor])
@pytest.mark.parametrize("weight", [None, 1.0, 2.0])
def test_checkpoints_with_another_meaning_of_weights_are_refused(
    tmp_path: Path, kind: Any, weight: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, made, data = tmp_path / "run", kind(random_state=5), rows()
    weights = None if weight is None else np.full(ROWS, weight)
    with monkeypatch.context() as earlier:
        earlier.setattr(resuming, "bits_of", lambda *_: {})
        with pytest.raises(Interrupted):
            made.fit(*data, sample_weight=weights, checkpoint=path, observer=StopsAt(1))
    if weight == 2.0:
        with pytest.raises(ModelFileError, match=r"in weights \(1, now 2\)"):
            made.fit(*data, sample_weight=weights, checkpoint=path, resume=True)
    else:
        made.fit(*data, sample_weight=weights, checkpoint=path, resume=True)


@pytest.mark.parametrize("shuffle", ["each", "once", "replace", "blocks", False])
def test_every_kind_of_shuffling_is_resumed(tmp_path: Path, shuffle: Any) -> None:
    data = rows()
    params = {"passes": 3, "random_state": 2, "shuffle": shuffle}
    resumed = interrupted(lambda: thresher.FTRLClassifier(**params), tmp_path / "run", 10, *data)
    same(resumed, thresher.FTRLClassifier(**params).fit(*data))


def test_early_stopping_is_resumed(tmp_path: Path) -> None:
    X, y = rows()
    weights = np.random.default_rng(3).uniform(0.5, 2.0, ROWS)
    params = {"passes": 8, "random_state": 2, "tol": 0.0, "patience": 2, "eta0": 3.0}
    held_out = {"eval_set": (X[:100], y[:100]), "sample_weight": weights}
    resumed = interrupted(
        lambda: thresher.TruncatedGradientClassifier(**params), tmp_path / "run", 20, X, y,
        **held_out,
    )  # fmt: skip
    same(resumed, thresher.TruncatedGradientClassifier(**params).fit(X, y, **held_out))


def test_without_a_seed_the_resumed_run_uses_that_of_the_checkpoint(tmp_path: Path) -> None:
    data, path = rows(), tmp_path / "run"
    first = interrupted(thresher.FTRLClassifier, path, 3, *data)
    second = thresher.FTRLClassifier().fit(*data, checkpoint=path, resume=True)
    np.testing.assert_array_equal(first.coef_, second.coef_)


def test_regression_is_resumed(tmp_path: Path) -> None:
    X, _ = rows()
    y = X[:, 0].toarray().ravel() * 3
    params = {"passes": 2, "random_state": 0, "l1": 0.01}
    resumed = interrupted(lambda: thresher.FTRLRegressor(**params), tmp_path / "run", 4, X, y)
    same(resumed, thresher.FTRLRegressor(**params).fit(X, y))


def test_checkpoints_of_other_runs_are_refused(tmp_path: Path) -> None:
    X, y = rows()
    path = tmp_path / "run"
    with pytest.raises(Interrupted):
        thresher.FTRLClassifier(random_state=0).fit(X, y, checkpoint=path, observer=StopsAt(2))
    again = {"checkpoint": path, "resume": True}
    other = X.copy()
    other.data[7] += 1.0
    with pytest.raises(DataError, match="are not those of the run that wrote"):
        thresher.FTRLClassifier(random_state=0).fit(other, y, **again)
    with pytest.raises(ModelFileError, match=r"l1 was 0\.1 .* is 2\.0 now"):
        thresher.FTRLClassifier(l1=2.0, random_state=0).fit(X, y, **again)
    with pytest.raises(ModelFileError, match="rule was 'ftrl'"):
        thresher.TruncatedGradientClassifier(random_state=0).fit(X, y, **again)
    with pytest.raises(ModelFileError, match=r"learns row by row|needs all rows"):
        thresher.CoordinateDescentClassifier(random_state=0).fit(X, y, **again)
    with pytest.raises(thresher.ParameterError, match="needs checkpoint"):
        thresher.FTRLClassifier().fit(X, y, resume=True)
    with pytest.raises(thresher.ParameterError, match="every must be"):
        thresher.FTRLClassifier().fit(X, y, checkpoint=path, every=-1)


def test_an_interrupted_fit_leaves_the_estimator_as_it_was(tmp_path: Path) -> None:
    X, y = rows()
    clf = thresher.FTRLClassifier(random_state=0, passes=2).fit(X, y)
    before = clf.coef_.copy()
    clf.set_params(passes=4)
    with pytest.raises(Interrupted):
        clf.fit(X, y, checkpoint=tmp_path / "run", observer=StopsAt(5))
    np.testing.assert_array_equal(clf.coef_, before)
    with pytest.raises(KeyboardInterrupt):  # there is no checkpoint file
        clf.fit(X, y, observer=StopsAt(5))
