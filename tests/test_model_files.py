"""Models as files: what is written comes back, and nothing else is ever taken for a model."""

from __future__ import annotations

import errno
import json
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.base import clone

import thresher
from fuzzing.targets import sealed_model
from thresher import (
    AveragedSGDClassifier,
    FTRLClassifier,
    Model,
    ModelFileError,
    StabilizedClassifier,
    TruncatedGradientClassifier,
    TruncatedGradientRegressor,
    evidence,
)

RNG = np.random.default_rng(2)
X = RNG.normal(size=(200, 30)) * (RNG.random((200, 30)) < 0.3)
X = X.astype(np.float32).astype(np.float64)  # so that float32 estimators see what models see
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
    """A fitted estimator and the rows it learned from."""
    estimator, rows, y = CASES[case]
    return clone(estimator).fit(rows, y), rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.thresher"


@pytest.fixture
def content(path: Path) -> bytes:
    """The bytes of a small model, which is also at `path`."""
    clone(TRUNCATED).set_params(passes=1).fit(NAMED.iloc[:, :5], THREE).model_.save(path)
    return path.read_bytes()


def refused(path: Path, content: bytes | None = None) -> str:
    """The message with which a file is refused; it names the file."""
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        thresher.load(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


# ---- round trips ------------------------------------------------------------------------------


@every_case
def test_everything_comes_back(case: str, path: Path) -> None:
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
def test_loaded_models_answer_like_their_estimators(case: str, path: Path) -> None:
    estimator, rows = fitted(case)
    estimator.model_.save(path)
    loaded = thresher.load(path)
    np.testing.assert_array_equal(loaded.predict(rows), estimator.predict(rows))
    assert loaded.predict(rows).dtype == estimator.predict(rows).dtype
    # Several classes in single precision sum the products of a row in single precision.
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
def test_models_see_rows_in_double_precision(dtype: str, path: Path) -> None:
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
    """No times of day, no order of dictionaries; a loaded model is written as it was."""
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


# ---- files that are no models -----------------------------------------------------------------


def test_truncated_files(content: bytes, tmp_path: Path) -> None:
    """Cut at every length."""
    for length in range(len(content)):
        refused(tmp_path / "cut", content[:length])


def test_flipped_bytes(content: bytes, tmp_path: Path) -> None:
    places = np.random.default_rng(0).choice(len(content), 400, replace=False)
    for place in {*range(9), len(content) - 1, *places.tolist()}:
        for bits in (0x01, 0x10, 0x80, 0xFF):
            damaged = bytearray(content)
            damaged[place] ^= bits
            refused(tmp_path / "flipped", bytes(damaged))


def test_bytes_too_many(content: bytes, tmp_path: Path) -> None:
    refused(tmp_path / "long", content + b"\0")
    refused(tmp_path / "twice", content + content)


@pytest.mark.parametrize(
    "other",
    [b"", b"1 3:0.5 7:1\n" * 100, b"{}", bytes(4096), pickle.dumps({"format": 1})],
    ids=["empty", "text", "json", "zeros", "pickle"],
)
def test_other_files(other: bytes, path: Path) -> None:
    assert "not a model" in refused(path, other)


def test_other_safetensors(path: Path) -> None:
    save_file({"weights": np.ones(3)}, path)
    assert "not a Thresher model" in refused(path)
    save_file({"weights": np.ones(3)}, path, {"format": "pt"})
    assert "not a Thresher model" in refused(path)


def rewritten(path: Path, **changes: Any) -> None:
    """Change the description of a model, without a new checksum."""
    with safe_open(path, framework="numpy") as file:
        about = json.loads(file.metadata()["thresher"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(tensors, path, {"thresher": json.dumps(about | changes)})


@pytest.mark.usefixtures("content")
def test_newer_format(path: Path) -> None:
    rewritten(path, format=99)
    message = refused(path)
    assert "99" in message
    assert "newer" in message


@pytest.mark.usefixtures("content")
@pytest.mark.parametrize(
    "change",
    [
        {"n_features": 3}, {"loss": "hinge"}, {"classes": ["a", "b", "c"]}, {"format": "1"},
        {"format": None}, {"checksum": None}, {"checksum": "0" * 64},
    ],
    ids=str,
)  # fmt: skip
def test_altered_descriptions(path: Path, change: dict[str, Any]) -> None:
    rewritten(path, **change)
    assert "damaged" in refused(path)


@pytest.mark.usefixtures("content")
@pytest.mark.parametrize(
    "change",
    [
        {"n_features": "9"}, {"n_features": 2**64 + 1}, {"n_features": True}, {"loss": ["hinge"]},
        {"classes": ["a", "b", "c", "d"]}, {"classes": "abc"}, {"classes": [["a"], "b", "c"]},
        {"classes_dtype": "<U2000000000"}, {"classes_dtype": "i4,i4"}, {"classes_dtype": 3},
        {"parameters": []}, {"parameters": {"class_weight": {"a": "b"}}},
        {"parameters": {"eta0": [1]}},
        {"certificates": [{"name": 1, "value": 2, "statement": "a"}]},
        {"certificates": [{"name": 1, "value": 2, "statement": "", "assumptions": []}]},
        {"certificates": [{"name": "", "value": 2, "statement": "", "assumptions": [[1, None]]}]},
    ],
    ids=str,
)  # fmt: skip
def test_descriptions_that_no_model_has(path: Path, change: dict[str, Any]) -> None:
    rewritten(path, **change)
    content = sealed_model(path.read_bytes())
    assert content is not None
    path.write_bytes(content)
    message = refused(path)
    assert "damaged" in message
    assert "checksum" not in message


CHANGES: dict[str, Any] = {
    "not finite": [
        ("history", lambda history: np.full_like(history, np.inf)),
        ("history", lambda history: np.full_like(history, np.nan)),
        ("weights", lambda weights: weights * np.inf),
    ],
    "do not increase": [("indices", lambda indices: indices[::-1].copy())],
    "do not fit together": [("indptr", lambda indptr: indptr[:1]), ("intercept", lambda b: b[:0])],
    "wrong type": [("weights", lambda weights: weights.astype(np.float32))],
}


@pytest.mark.usefixtures("content")
@pytest.mark.parametrize("message", CHANGES)
def test_tensors_that_no_model_has(message: str, path: Path) -> None:
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for name, change in CHANGES[message]:
        save_file(tensors | {name: change(tensors[name])}, path, metadata)
        content = sealed_model(path.read_bytes())
        assert content is not None
        path.write_bytes(content)
        assert message in refused(path)


@pytest.mark.usefixtures("content")
def test_numbers_that_python_does_not_read(path: Path) -> None:
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header, rest = json.loads(content[8 : 8 + size]), content[8 + size :]
    header["weights"]["dtype"] = "F8_E4M3"
    header["weights"]["shape"][0] *= 8
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + rest)
    assert "damaged" in refused(path)
    path.write_bytes(content)
    rewritten(path, format=0)
    content = path.read_bytes().replace(b'\\"format\\": 0', b'\\"format\\": ' + b"1" * 5000)
    size = int.from_bytes(content[:8], "little") + 4999
    path.write_bytes(size.to_bytes(8, "little") + content[8:])
    assert "damaged" in refused(path)


@pytest.mark.usefixtures("content")
@pytest.mark.parametrize("text", ["", "[]", "null", "nonsense", '{"format": 2}', "1"])
def test_broken_descriptions(path: Path, text: str) -> None:
    with safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(tensors, path, {"thresher": text})
    assert "damaged" in refused(path)
    del tensors["weights"]
    save_file(tensors, path, {"thresher": '{"format": 2}'})
    assert "damaged" in refused(path)


# ---- evidence ------------------------------------------------------------------------------------

DAMAGE: dict[str, Any] = {
    "does not fit together": [
        lambda parts: parts | {"indptr": parts["indptr"][[0, -1]]},  # fewer outputs than the model
        lambda parts: parts | {"indptr": np.append(parts["indptr"], parts["indptr"][-1])},
        lambda parts: parts | {"purged": parts["purged"][:-1]},
        lambda parts: parts | {"updates": parts["updates"][:, None]},
    ],
    "outside the width": [lambda parts: parts | {"features": parts["features"] + np.uint64(1)}],
    "do not increase": [
        lambda parts: parts | {"features": parts["features"][::-1].copy()},
        lambda parts: parts | {"features": np.zeros_like(parts["features"])},
    ],
}


@pytest.mark.parametrize("message", DAMAGE)
def test_evidence_that_does_not_fit_the_model(message: str, path: Path) -> None:
    model = StabilizedClassifier(target_nnz=3, random_state=0).fit(X, THREE).model_
    assert model.evidence is not None
    model.save(path)
    for change in (dict, *DAMAGE[message]):
        parts = change({name: getattr(model.evidence, name) for name in evidence.KINDS})
        replace(model, evidence=evidence.Evidence(**parts)).save(path)
        if change is dict:
            assert thresher.load(path).why(3, "oak") == model.why(3, "oak")
        else:
            assert message in refused(path)


def test_evidence_of_outputs_without_features() -> None:
    empty = {name: np.zeros(0, kind) for name, kind in evidence.TENSORS.items()}
    empty["evidence_indptr"] = np.zeros(4, np.int64)
    found = evidence.Evidence.from_tensors(empty, outputs=3, n_features=5)
    assert found.of(2, 4) == {"documents": 0, "updates": 0}
    one = {name: np.zeros(1, kind) for name, kind in evidence.TENSORS.items()}
    one["evidence_indptr"] = np.array([0, 0, 1, 1])
    assert evidence.Evidence.from_tensors(one, 3, 5).of(1, 0)["documents"] == 0


def test_directory_and_missing_file(tmp_path: Path) -> None:
    with pytest.raises((OSError, ModelFileError), match=str(tmp_path)):
        thresher.load(tmp_path)
    missing = tmp_path / "none.thresher"
    with pytest.raises(FileNotFoundError, match=str(missing)):
        thresher.load(missing)


class Trap:
    """Leaves a trace when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("sprung",)


@pytest.mark.usefixtures("content")
def test_loading_runs_no_code(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused(tmp_path / "trap", pickle.dumps(Trap()))
    assert not os.path.exists("sprung")

    def unpickled(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("something was unpickled")

    for module, name in ((pickle, "load"), (pickle, "loads"), (pickle, "Unpickler")):
        monkeypatch.setattr(module, name, unpickled)
    thresher.load(path)


# ---- writing that fails -----------------------------------------------------------------------


@pytest.mark.parametrize("step", ["replace", "fsync"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "disk full"), KeyboardInterrupt()])
def test_failing_write_leaves_the_old_file(
    content: bytes, path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    def fail(*args: Any) -> None:
        raise error

    model = clone(TRUNCATED).fit(X, TWO).model_
    with monkeypatch.context() as patched:
        patched.setattr(os, step, fail)
        with pytest.raises(type(error)):
            model.save(path)
        with pytest.raises(type(error)):
            model.save(path.parent / "new")
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == ["a.thresher"]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    model = clone(TRUNCATED).fit(X, TWO).model_
    with pytest.raises(OSError, match="none"):
        model.save(tmp_path / "none" / "a.thresher")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        model.save(tmp_path / "folder")
    assert os.listdir(tmp_path) == ["folder"]


def test_labels_that_cannot_be_written_leave_nothing(tmp_path: Path) -> None:
    dates = np.array(["2024-01-01", "2024-01-02"], "datetime64[D]")[TWO]
    model = Model(
        indptr=np.array([0, 0]), indices=np.array([], np.uint64), weights=np.array([]),
        intercept=np.array([0.0]), n_features=3, classes=np.unique(dates), loss="logistic",
    )  # fmt: skip
    with pytest.raises((TypeError, ValueError)):
        model.save(tmp_path / "a")
    assert os.listdir(tmp_path) == []
