"""Fuzz targets in Python: each reads any bytes as a file, and asserts what must be true.

A target raises an error if something is wrong. `run.py` generates bytes with atheris;
`tests/io/test_corpus.py` runs the targets with the corpus.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import scipy.sparse as sp
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_of

import thresher
from support.streams import learner
from thresher import ModelFileError
from thresher.data import as_batch
from thresher.data.byte_stream import BinaryStream
from thresher.errors import DataError
from thresher.model import file as model_file
from thresher.model.model import Model
from thresher.report.model_page import model_page
from thresher.training import checkpoint as checkpoints

LIMIT = 1 << 20  # decompressed bytes that are checked: a small file may hold gigabytes


class Safetensors:
    """The parts of a safetensors file; each can be changed separately."""

    def __init__(self, data: bytes) -> None:
        size = int.from_bytes(data[:8], "little")
        self.header = json.loads(data[8 : 8 + size])
        self.tensors = data[8 + size :]
        [(self.key, text)] = self.header["__metadata__"].items()
        self.about = json.loads(text)

    def pack(self) -> bytes:
        """Return the file."""
        self.header["__metadata__"] = {self.key: json.dumps(self.about)}
        header = json.dumps(self.header).encode()
        return len(header).to_bytes(8, "little") + header + self.tensors


UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError, SafetensorError)


def sealed_model(data: bytes, state: bool = True) -> bytes | None:
    """Return a model file with the right checksums; None if it cannot be read.

    `state`: also with the right size and checksum of the learner's state.
    """
    try:
        parts, tensors = Safetensors(data), tensors_of(data)
        parts.about.pop("checksum", None)
        learner = sorted(name for name in tensors if name.startswith("learner_"))
        if state and "learner" in parts.about:
            size = sum(tensors[name].nbytes for name in learner)
            digest = model_file._digest(tensors, learner)
            parts.about["learner"] = {"bytes": size, "checksum": digest}
        parts.about["checksum"] = model_file._checksum(tensors, parts.about)
        return parts.pack()
    except UNREADABLE:
        return None


def model(data: bytes, folder: Path) -> None:
    """A damaged model raises an error; any other predicts, and is unchanged after saving."""
    for content in (data, sealed_model(data)):
        if content is None:
            continue
        (path := folder / "a.thresher").write_bytes(content)
        try:
            found = thresher.load(path)
        except ModelFileError as error:
            assert str(path) in str(error)
            continue
        found.save(again := folder / "b.thresher")
        found.save(third := folder / "c.thresher")
        assert again.read_bytes() == third.read_bytes()
        assert repr(thresher.load(again)) == repr(found)
        assert len(found.top(5)) == min(5, found.nnz)
        if zlib.crc32(content) % 8 == 0:  # a page takes long
            assert ET.fromstring(model_page(found).removeprefix("<!DOCTYPE html>")) is not None
        for certificate in found.certificates:
            assert str(certificate)
        goes_on(found)
        if 0 < found.n_features < 10_000:
            column = found.n_features - 1
            found.why(column, None if len(found.intercept) == 1 else found.classes.tolist()[0])
            X = sp.csr_matrix(([1.0, 2.0], [0, column], [0, 1, 2, 2]), (3, found.n_features))
            assert len(found.predict(X)) == 3


def goes_on(found: Model) -> None:
    """A damaged state of a learner raises an error; any other predicts and learns."""
    if found.learner is None or found.n_features > 10_000:
        return
    try:
        estimator = found.estimator()
    except ModelFileError:
        return
    if estimator.state_.outputs is None:
        return
    X = sp.csr_matrix(([1.0, 2.0], [0, found.n_features - 1], [0, 1, 2]), (2, found.n_features))
    with contextlib.suppress(ValueError, ArithmeticError, thresher.DivergenceError):
        assert estimator.state_.outputs.predict(as_batch(X)).shape == (2, len(found.intercept))
        estimator.partial_fit(X, [0.0, 1.0] if found.classes is None else found.classes[:2])


def sealed_checkpoint(data: bytes) -> bytes | None:
    """Return a checkpoint with the right digest; None if it cannot be read."""
    try:
        parts = Safetensors(data)
        tensors = tensors_of(data)
        states, best = (
            [tensors[f"{name}{i}"].tobytes() for i in range(min(parts.about[many], len(tensors)))]
            for name, many in (("state", "states"), ("best", "best"))
        )
        parts.about["digest"] = checkpoints.TrainingCheckpoint(
            parts.about["about"], states, best
        ).digest
        return parts.pack()
    except UNREADABLE:
        return None


def checkpoint(data: bytes, folder: Path) -> None:
    """A damaged checkpoint raises an error; any other is unchanged after writing.

    A learner either refuses its states or predicts.
    """
    for content in (data, sealed_checkpoint(data)):
        if content is None:
            continue
        (path := folder / "a.checkpoint").write_bytes(content)
        try:
            found = checkpoints.read(path)
        except ModelFileError as error:
            assert str(path) in str(error)
            continue
        assert found.write(again := folder / "b.checkpoint") == found.digest
        assert checkpoints.read(again).digest == found.digest
        for state in (*found.states, *found.best):
            one = learner("ftrl", 0, store="hashed", dtype="float32", l1=0.3, alpha=1.0)
            with contextlib.suppress(ValueError):
                one.restore(state)
                assert len(one.predict(as_batch(sp.csr_matrix([[0.0, 1.0], [2.0, 0.0]])))) == 2


def decompressed(stream: BinaryStream, sizes: tuple[int, ...]) -> tuple[bytes, str | None]:
    """Return the first bytes of a stream, read in pieces of these sizes, and its error."""
    found = bytearray()
    turn = 0
    try:
        while len(found) < LIMIT:
            buffer = bytearray(sizes[turn % len(sizes)])
            turn += 1
            count = stream.readinto(buffer)
            assert 0 <= count <= len(buffer)
            if count == 0:
                assert stream.readinto(bytearray(1)) == 0
                break
            found += buffer[:count]
    except DataError as error:
        assert f" {len(found)} bytes " in str(error), (len(found), error)
        return bytes(found), str(error)
    return bytes(found[:LIMIT]), None


PEERS: dict[str | None, Callable[[bytes], bytes]] = {
    None: bytes,
    "gzip": gzip.decompress,
    "bzip2": bz2.decompress,
    "xz": lambda data: lzma.decompress(data.rstrip(b"\0")),  # lzma does not allow padding
}


def unpacking(data: bytes, folder: Path) -> None:
    """The bytes do not depend on the sizes of reads, and equal those of Python's modules.

    With damaged data, the number of bytes before the error may depend on the sizes.
    """

    def stream() -> BinaryStream:
        return BinaryStream(io.BytesIO(data), "x", len(data), local=False, rereadable=False)

    whole, error = decompressed(stream(), (1 << 16,))
    pieces = decompressed(stream(), (1, 100, 7, 1 << 12))
    both = min(len(whole), len(pieces[0]))
    assert pieces[0][:both] == whole[:both]
    if both < LIMIT:
        assert (pieces[1] is None) == (error is None)
        assert error is not None or len(pieces[0]) == len(whole)
    again = stream()
    peeked = again.peek(50)
    assert decompressed(again, (1 << 16,))[0][: len(peeked)] == peeked[:LIMIT]
    if len(whole) < LIMIT and (peer := PEERS.get(again.compression)) and error is None:
        assert peer(data) == whole


TARGETS: dict[str, Callable[[bytes, Path], None]] = {
    "model": model,
    "checkpoint": checkpoint,
    "unpacking": unpacking,
}


# --- mutations that random ones rarely make: of one part, with the rest of the file consistent ----


def change_safetensors(data: bytes, change: Callable[[bytes], bytes], choice: int) -> bytes:
    """Change one part of a safetensors file, and the parts that depend on it."""
    try:
        parts = Safetensors(data)
    except UNREADABLE:
        return change(data)
    with contextlib.suppress(*UNREADABLE):
        if choice % 4 == 0:
            parts.header = json.loads(change(json.dumps(parts.header).encode()))
        elif choice % 4 == 1:
            parts.tensors = change(parts.tensors)
        else:
            place, name = _somewhere(parts.about, choice // 4)
            place[name] = json.loads(change(json.dumps(place[name]).encode()))
        return parts.pack()
    return change(data)


def _somewhere(place: Any, choice: int) -> tuple[Any, Any]:
    """Return a random place in nested JSON: a container, and a name or index in it."""
    while True:
        names = list(place) if isinstance(place, dict) else list(range(len(place)))
        name = names[choice % len(names)]
        choice //= len(names)
        if not place[name] or not isinstance(place[name], dict | list) or choice % 3 == 0:
            return place, name
        place, choice = place[name], choice // 3


def change_compressed(data: bytes, change: Callable[[bytes], bytes], choice: int) -> bytes:
    """Change the decompressed bytes, or the compressed ones."""
    if choice % 3:
        return change(data)
    for packing, unpack, pack in (
        (b"\x1f\x8b", gzip.decompress, lambda b: gzip.compress(b, mtime=0)),
        (b"BZh", bz2.decompress, bz2.compress),
        (b"\xfd7zXZ", lzma.decompress, lzma.compress),
    ):
        if data.startswith(packing):
            with contextlib.suppress(OSError, EOFError, zlib.error, lzma.LZMAError, ValueError):
                return pack(change(unpack(data)[:10_000]))
    return change(data)


CHANGES = {
    "model": change_safetensors,
    "checkpoint": change_safetensors,
    "unpacking": change_compressed,
}
