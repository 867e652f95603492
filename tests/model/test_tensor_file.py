"""Safetensors files: the bytes are those of safetensors; what it refuses is refused."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors import SafetensorError
from safetensors.numpy import load, save

from thresher.file_format import RepeatedEntryError
from thresher.model.tensor_file import TensorFile, TensorFileError, parts, raw

KINDS = ["u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", "?"]
ARRAYS = st.sampled_from(KINDS).flatmap(
    lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0))
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(TEXT.filter(lambda name: name != "__metadata__"), ARRAYS, max_size=8), TEXT)
def test_bytes_are_those_of_safetensors(tensors, text):
    found = b"".join(bytes(part) for part in parts(tensors, {"thresher": text}))
    assert found == save(tensors, {"thresher": text})


@given(ARRAYS)
def test_raw_bytes(array):
    assert raw(array).tobytes() == array.tobytes()
    assert raw(array.T).tobytes() == array.T.tobytes()


def test_arrays_in_order_are_not_copied():
    array = np.arange(12.0).reshape(3, 4)
    assert np.shares_memory(np.frombuffer(raw(array)), array)
    with pytest.raises(KeyError):
        list(parts({"words": np.array(["a"])}, {}))


def read(path):
    """Return the metadata and the arrays of a file."""
    with TensorFile(path) as file:
        return file.metadata, {name: file.array(name) for name in file.places}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("tensors") / "file"


@given(st.dictionaries(TEXT.filter(lambda name: name != "__metadata__"), ARRAYS, max_size=8), TEXT)
def test_arrays_that_are_read_are_those_that_were_written(path, tensors, text):
    path.write_bytes(save(tensors, {"thresher": text}))
    metadata, found = read(path)
    assert metadata == {"thresher": text}
    assert found.keys() == tensors.keys()
    for name, array in tensors.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()


CONTENT = save({"a": np.arange(6.0).reshape(2, 3), "b": np.arange(4, dtype=np.uint8)}, {"key": "x"})
VALUES = st.sampled_from(
    [-1, 0, 2, 3, 4, 8, 48, 52, 53, 2**64, 1.0, None, True, "F64", "U8", "F8_E4M3", [], [3], {}]
)


def packed(header, rest):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + rest


@given(st.data())
def test_what_safetensors_refuses_is_refused(path, data):
    size = int.from_bytes(CONTENT[:8], "little")
    header, rest = json.loads(CONTENT[8 : 8 + size]), CONTENT[8 + size :]
    for _ in range(data.draw(st.integers(1, 2))):
        about = header[data.draw(st.sampled_from(["a", "b", "__metadata__"]))]
        name = data.draw(st.sampled_from(sorted(about)))
        place = about[name] if isinstance(about[name], list) and about[name] else about
        at = data.draw(st.sampled_from(range(len(place)))) if isinstance(place, list) else name
        place[at] = data.draw(VALUES)
    rest = data.draw(st.sampled_from([rest, rest[:-1], rest + b"0"]))
    path.write_bytes(packed(header, rest))
    try:
        _, found = read(path)
    except TensorFileError:
        return
    assert {name: array.tobytes() for name, array in found.items()} == {
        name: array.tobytes() for name, array in load(path.read_bytes()).items()
    }


@pytest.mark.parametrize(
    "content",
    [
        b"", CONTENT[:7], CONTENT[:8], CONTENT[:40], CONTENT[:-1], CONTENT + b"0", bytes(64),
        (2**63).to_bytes(8, "little") + CONTENT[8:], packed(b"[]", b""), packed(b"{}x", b""),
        packed(b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}", b""), packed(b"{\xff}", b""),
        packed({"a": {"dtype": "U8", "shape": [2**60] * 40, "data_offsets": [0, 1]}}, b"0"),
        packed({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}}, b"00"),
    ],
)  # fmt: skip
def test_other_files_are_refused(path, content):
    with pytest.raises(SafetensorError):
        load(content)
    path.write_bytes(content)
    with pytest.raises(TensorFileError):
        read(path)


def test_an_array_has_few_dimensions(path):
    """The product of a million large numbers would take minutes."""
    for shape in ([0] * 33, [2**60] * 1_000_000):
        path.write_bytes(
            packed({"a": {"dtype": "U8", "shape": shape, "data_offsets": [0, 0]}}, b"")
        )
        with pytest.raises(TensorFileError, match="'a' has no valid shape"):
            read(path)


def test_a_file_that_is_cut_while_it_is_read_is_refused(path):
    array = np.arange(100_000.0)
    path.write_bytes(save({"a": array, "b": array}))
    with TensorFile(path) as file:
        first = file.array("a")
        os.truncate(path, 1_000_000)
        with pytest.raises(TensorFileError, match="it became shorter"):
            file.array("b")
    np.testing.assert_array_equal(first, array)


def test_an_entry_that_occurs_twice_is_named(path):
    path.write_bytes(packed(b'{"b": {}, "a": {}, "b": {}}', b""))
    with pytest.raises(RepeatedEntryError, match="'b' occurs twice"):
        read(path)
