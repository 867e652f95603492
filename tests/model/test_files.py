"""Model files: a saved model is loaded unchanged, and a failed write leaves the old file."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import thresher
from thresher import (
    AveragedSGDClassifier,
    FTRLClassifier,
    Model,
    TruncatedGradientClassifier,
    TruncatedGradientRegressor,
)

RNG = np.random.default_rng(2)
X = RNG.normal(size=(200, 30)) * (RNG.random((200, 30)) < 0.3)
X = X.astype(np.float32).astype(np.float64)  # exact in float32, so that models use the same values
SIGNAL = X[:, 0] - X[:, 7]
TWO = (SIGNAL > 0).astype(int)
THREE = np.array(["älm", "birch", "oak"])[np.digitize(SIGNAL, [-0.3, 0.3])]
NAMED = pd.DataFrame(X, columns=[f'größe "{j}"' for j in range(30)])
TRUNCATED = TruncatedGradientClassifier(eta0=0.1, gravity=1e-2, random_state=0)

CASES: dict[str, tuple[Any, Any, Any]] = {
    "binary": (TRUNCATED, X, TWO),
    "booleans": (TRUNCATED, X, TWO == 1),
    "strings": (TRUNCATED, X, THREE),
    "objects": (TRUNCATED, X, THREE.astype(object)),
    "sparse": (clone(TRUNCATED).set_params(store="hashed"), sp.csr_matrix(X), THREE),
    "named": (TRUNCATED, NAMED, THREE),
    "averaged": (AveragedSGDClassifier(alpha=0.1, random_state=0), X, TWO),
    "ftrl": (FTRLClassifier(alpha=0.1, l1=2.0, random_state=0), X, THREE),
    "hinge": (clone(TRUNCATED).set_params(loss="hinge"), X, TWO),
    "clipped": (clone(TRUNCATED).set_params(loss="clipped_square"), X, TWO),
    "regressor": (TruncatedGradientRegressor(eta0=0.01, random_state=0), X, SIGNAL),
    "poisson": (
        TruncatedGradientRegressor(eta0=0.01, loss="poisson", random_state=0), X, TWO.astype(float),
    ),
    "all zero": (clone(TRUNCATED).set_params(gravity=1e3), X, TWO),
}  # fmt: skip


every_case = pytest.mark.parametrize("case", CASES)


def fitted(case: str) -> tuple[Any, Any]:
    """Return a fitted estimator and its training rows."""
    estimator, rows, y = CASES[case]
    return clone(estimator).fit(rows, y), rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.thresher"


# ---- round trips ------------------------------------------------------------------------------


@every_case
def test_a_loaded_model_equals_the_saved_one(case: str, path: Path) -> None:
    model = fitted(case)[0].model_
    model.save(path)
    loaded = thresher.load(path)
    assert isinstance(loaded, Model)
    for part in ("indptr", "indices", "weights", "intercept"):
        np.testing.assert_array_equal(getattr(loaded, part), getattr(model, part))
        assert getattr(loaded, part).dtype == getattr(model, part).dtype
    assert loaded.n_features == 30
    assert loaded.loss == model.loss
    assert loaded.names == model.names
    assert loaded.top(5) == model.top(5)
    assert (loaded.nnz, loaded.density) == (model.nnz, model.density)
    if model.classes is None:
        assert loaded.classes is None
    else:
        np.testing.assert_array_equal(loaded.classes, model.classes)
        assert loaded.classes is not None
        assert loaded.classes.dtype == model.classes.dtype
    for one, other in zip(loaded.history, model.history, strict=True):
        assert one._replace(seconds=0.0) == other._replace(seconds=0.0)
    assert loaded.parameters["rule"] == model.parameters["rule"]
    assert loaded.parameters["loss"] == model.loss


@every_case
def test_loaded_models_predict_like_their_estimators(case: str, path: Path) -> None:
    estimator, rows = fitted(case)
    estimator.model_.save(path)
    loaded = thresher.load(path)
    np.testing.assert_array_equal(loaded.predict(rows), estimator.predict(rows))
    assert loaded.predict(rows).dtype == estimator.predict(rows).dtype
    # With several classes in float32, the products of a row are summed in float32.
    single = getattr(estimator, "dtype", "") == "float32" and len(estimator.intercept_) > 1
    close = {"rtol": 1e-4, "atol": 1e-5} if single else {"rtol": 1e-15}
    if loaded.classes is not None:
        np.testing.assert_allclose(
            loaded.decision_function(rows), estimator.decision_function(rows), **close
        )
    if hasattr(estimator, "predict_proba"):
        np.testing.assert_allclose(
            loaded.predict_proba(rows), estimator.predict_proba(rows), **close
        )
    else:
        with pytest.raises(ValueError, match="classifier"):
            loaded.predict_proba(rows)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_models_predict_in_double_precision(dtype: str, path: Path) -> None:
    """A float32 estimator rounds the values of its rows; a model does not."""
    estimator = clone(TRUNCATED).set_params(dtype=dtype).fit(X, THREE)
    estimator.model_.save(path)
    odd = X * np.pi
    np.testing.assert_allclose(
        thresher.load(path).decision_function(odd),
        estimator.decision_function(odd),
        atol=1e-5 if dtype == "float32" else 1e-13,
    )


@every_case
def test_equal_runs_give_equal_bytes(case: str, tmp_path: Path) -> None:
    """Files have no time stamps and no random order; a loaded model is saved to equal bytes."""
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    fitted(case)[0].model_.save(one)
    fitted(case)[0].model_.save(two)
    assert two.read_bytes() == one.read_bytes()
    thresher.load(one).save(three)
    assert three.read_bytes() == one.read_bytes()


def test_paths_may_be_strings_and_files_are_replaced(path: Path) -> None:
    clone(TRUNCATED).fit(X, TWO).model_.save(str(path))
    model = clone(TRUNCATED).fit(X, THREE).model_
    model.save(path)
    assert thresher.load(str(path)).nnz == model.nnz
    assert os.listdir(path.parent) == ["a.thresher"]


def test_files_have_the_usual_permissions(path: Path) -> None:
    clone(TRUNCATED).fit(X, TWO).model_.save(path)
    (path.parent / "other").write_text("")
    assert path.stat().st_mode == (path.parent / "other").stat().st_mode


# ---- writing that fails -----------------------------------------------------------------------


@pytest.mark.parametrize("step", ["replace", "fsync"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "disk full"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    def fail(*args: Any) -> None:
        raise error

    clone(TRUNCATED).set_params(passes=1).fit(NAMED, THREE).model_.save(path)
    content = path.read_bytes()
    model = clone(TRUNCATED).fit(X, TWO).model_
    with monkeypatch.context() as patched:
        patched.setattr(os, step, fail)
        with pytest.raises(type(error)):
            model.save(path)
        with pytest.raises(type(error)):
            model.save(path.parent / "new")
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == ["a.thresher"]


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    model = clone(TRUNCATED).fit(X, TWO).model_
    with pytest.raises(OSError, match="none"):
        model.save(tmp_path / "none" / "a.thresher")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        model.save(tmp_path / "folder")
    assert os.listdir(tmp_path) == ["folder"]


def test_labels_that_cannot_be_written_leave_no_file(tmp_path: Path) -> None:
    dates = np.array(["2024-01-01", "2024-01-02"], "datetime64[D]")[TWO]
    model = Model(
        indptr=np.array([0, 0]), indices=np.array([], np.uint64), weights=np.array([]),
        intercept=np.array([0.0]), n_features=3, classes=np.unique(dates), loss="logistic",
    )  # fmt: skip
    with pytest.raises((TypeError, ValueError)):
        model.save(tmp_path / "a")
    assert os.listdir(tmp_path) == []
