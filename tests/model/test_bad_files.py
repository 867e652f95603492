"""Files that are not models, or are damaged: each is refused, and the message names the file."""

from __future__ import annotations

import json
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import thresher
from fuzzing.targets import sealed_model
from thresher import (
    ModelFileError,
    StabilizedClassifier,
    TruncatedGradientClassifier,
)
from thresher.model import evidence

RNG = np.random.default_rng(2)
X = RNG.normal(size=(200, 30)) * (RNG.random((200, 30)) < 0.3)
SIGNAL = X[:, 0] - X[:, 7]
THREE = np.array(["älm", "birch", "oak"])[np.digitize(SIGNAL, [-0.3, 0.3])]
NAMED = pd.DataFrame(X[:, :5], columns=[f'größe "{j}"' for j in range(5)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.thresher"


@pytest.fixture
def content(path: Path) -> bytes:
    """Return the bytes of a small model, which is also at `path`."""
    learner = TruncatedGradientClassifier(eta0=0.1, gravity=1e-2, passes=1, random_state=0)
    learner.fit(NAMED, THREE).model_.save(path)
    return path.read_bytes()


def refused(path: Path, content: bytes | None = None) -> str:
    """Return the message with which a file is refused; check that it names the file."""
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        thresher.load(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.soak)])
def test_truncated_files(content: bytes, tmp_path: Path, step: int) -> None:
    """Cut at every length, or at a part of them."""
    for length in range(0, len(content), step):
        refused(tmp_path / "cut", content[:length])


@pytest.mark.parametrize("count", [60, pytest.param(400, marks=pytest.mark.soak)])
def test_flipped_bytes(content: bytes, tmp_path: Path, count: int) -> None:
    places = np.random.default_rng(0).choice(len(content), count, replace=False)
    for place in {*range(9), len(content) - 1, *places.tolist()}:
        for bits in (0x01, 0x10, 0x80, 0xFF):
            damaged = bytearray(content)
            damaged[place] ^= bits
            refused(tmp_path / "flipped", bytes(damaged))


def test_extra_bytes(content: bytes, tmp_path: Path) -> None:
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
        {"n_features": "9"}, {"n_features": 2**64 + 1}, {"n_features": True}, {"n_features": 1},
        {"loss": ["hinge"]}, {"loss": "unknown"}, {"classes": None}, {"classes": ["a", "b", None]},
        {"classes": ["a", "b", "c", "d"]}, {"classes": "abc"}, {"classes": [["a"], "b", "c"]},
        {"classes_dtype": "<U2000000000"}, {"classes_dtype": "i4,i4"}, {"classes_dtype": 3},
        {"parameters": []}, {"parameters": {"class_weight": {"a": "b"}}},
        {"parameters": {"eta0": [1]}}, {"parameters": {"quantile": "half"}},
        {"certificates": [{"name": 1, "value": 2, "statement": "a"}]},
        {"certificates": [{"name": 1, "value": 2, "statement": "", "assumptions": []}]},
        {"certificates": [{"name": "", "value": 2, "statement": "", "assumptions": [[1, None]]}]},
    ],
    ids=str,
)  # fmt: skip
def test_invalid_descriptions_with_a_correct_checksum(path: Path, change: dict[str, Any]) -> None:
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
    "not increasing": [("indices", lambda indices: indices[::-1].copy())],
    "do not match": [
        ("indptr", lambda indptr: indptr[:1]),
        ("intercept", lambda b: b[:0]),
        ("indptr", lambda indptr: indptr + 1),
        ("indptr", lambda indptr: np.array([0, 10**6, 1, indptr[-1]])),
        ("weights", lambda weights: weights[:-1]),
        ("indices", lambda indices: indices[:-1]),
        ("named", lambda named: named[:-1]),
        ("name_text", lambda text: text[:-1]),
        ("name_ends", lambda ends: ends[::-1].copy()),
        ("name_ends", lambda ends: np.concatenate([[-5], ends[1:]])),
    ],
    "wrong type": [
        ("weights", lambda weights: weights.astype(np.float32)),
        ("name_text", lambda text: text.astype(np.int64)),
        ("named", lambda named: named[:, None]),
    ],
    "two names": [("named", lambda named: np.full_like(named, named[0]))],
}


@pytest.mark.usefixtures("content")
@pytest.mark.parametrize("message", CHANGES)
def test_invalid_tensors_with_a_correct_checksum(message: str, path: Path) -> None:
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
def test_number_types_and_numbers_that_python_cannot_read(path: Path) -> None:
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header, rest = json.loads(content[8 : 8 + size]), content[8 + size :]
    header["weights"]["dtype"] = "F8_E4M3"
    header["weights"]["shape"][0] *= 8
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + rest)
    assert "'weights' has the unknown type 'F8_E4M3'" in refused(path)
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
    "do not match": [
        lambda parts: parts | {"indptr": parts["indptr"][[0, -1]]},  # fewer outputs than the model
        lambda parts: parts | {"indptr": np.append(parts["indptr"], parts["indptr"][-1])},
        lambda parts: parts | {"purged": parts["purged"][:-1]},
        lambda parts: parts | {"updates": parts["updates"][:, None]},
        lambda parts: parts | {"z": parts["z"][:-1]},
        lambda parts: parts | {"z": parts["z"].astype(np.float32)},
        lambda parts: parts | {"rows": parts["rows"][1:]},
        lambda parts: parts | {"shares": parts["shares"][1:]},
        lambda parts: parts | {"signal": parts["signal"].astype(np.int64)},
    ],
    "a share outside": [lambda parts: parts | {"shares": parts["shares"] - 1.0}],
    "rows that are not possible": [lambda parts: parts | {"rows": parts["rows"] * 0.0}],
    "too large": [lambda parts: parts | {"features": parts["features"] + np.uint64(1)}],
    "not increasing": [
        lambda parts: parts | {"features": parts["features"][::-1].copy()},
        lambda parts: parts | {"features": np.zeros_like(parts["features"])},
    ],
}
EVIDENCE_ARRAYS = (*evidence.KINDS, *evidence.MORE)


@pytest.mark.parametrize("message", DAMAGE)
def test_evidence_that_does_not_match_the_model(message: str, path: Path) -> None:
    model = StabilizedClassifier(target_nnz=3, random_state=0).fit(X, THREE).model_
    assert model.evidence is not None
    model.save(path)
    for change in (dict, *DAMAGE[message]):
        parts = change({name: getattr(model.evidence, name) for name in EVIDENCE_ARRAYS})
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
    """Makes a folder when it is unpickled."""

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
