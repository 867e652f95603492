"""Safetensors files that are written and read without copies of the arrays.

`safetensors.numpy.save` makes the same bytes, and copies each array three times.
`safetensors.safe_open` maps the file into memory: if another program cuts the file, the process
ends by SIGBUS. Here, all that is used is first read into memory of this process.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from thresher.file_format import RepeatedEntryError, from_json

# In the order in which a file has them, as safetensors orders them.
_TYPES = {
    "u8": "U64", "i8": "I64", "f8": "F64", "f4": "F32", "u4": "U32", "i4": "I32",
    "f2": "F16", "u2": "U16", "i2": "I16", "i1": "I8", "u1": "U8", "b1": "BOOL",
}  # fmt: skip
_KINDS = {name: np.dtype(f"<{kind}") for kind, name in _TYPES.items()}
_MAX_HEADER = 100_000_000  # bytes, as in safetensors
_MAX_DIMENSIONS = 32
_Bytes = TypeVar("_Bytes", bytearray, memoryview)
_PLACES = {kind: place for place, kind in enumerate(_TYPES)}


def raw(array: NDArray[Any]) -> memoryview:
    """Return the bytes of an array, in C order; if it has this order, they are not copied."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def parts(
    tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]
) -> Iterator[bytes | memoryview]:
    """Yield the header of a file, and the bytes of each tensor.

    Parameters
    ----------
    tensors : mapping of str to array
        Arrays of numbers or booleans in the byte order of the machine, which is little-endian.
    metadata : mapping of str to str
    """
    kinds = {name: array.dtype.str[1:] for name, array in tensors.items()}
    names = sorted(tensors, key=lambda name: (_PLACES[kinds[name]], name))
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for name in names:
        start, end = end, end + tensors[name].nbytes
        header[name] = {
            "dtype": _TYPES[kinds[name]],
            "shape": list(tensors[name].shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for name in names:
        yield raw(tensors[name])


class TensorFileError(ValueError):
    """A file is not a safetensors file, or is cut short."""


@dataclass(frozen=True)
class TensorPlace:
    """Where an array is in a file, and what it is."""

    kind: np.dtype[Any]
    shape: tuple[int, ...]
    start: int

    @property
    def nbytes(self) -> int:
        """Its size."""
        return math.prod(self.shape) * self.kind.itemsize


class TensorFile:
    """A safetensors file, opened for a `with` statement. Its arrays are read when asked for.

    Parameters
    ----------
    path : path

    Attributes
    ----------
    metadata : dict of str to str
    places : dict of str to TensorPlace

    Raises
    ------
    OSError
        The file cannot be opened or read.
    TensorFileError
        It is not a safetensors file, or is cut short.
    RepeatedEntryError
        An entry of its header occurs twice.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._handle = os.open(path, os.O_RDONLY)
        try:
            self.metadata, self.places = self._header()
        except BaseException:
            os.close(self._handle)
            raise

    def _header(self) -> tuple[dict[str, str], dict[str, TensorPlace]]:
        size = os.fstat(self._handle).st_size
        length = int.from_bytes(self._read(bytearray(min(8, size)), 0), "little")
        if not 2 <= length <= min(size - 8, _MAX_HEADER):
            raise TensorFileError(f"its header would have {length:,} bytes, the file has {size:,}")
        text = self._read(bytearray(length), 8)
        try:
            if not text.startswith(b"{"):
                raise ValueError("it is not a JSON object")
            return _parsed(from_json(text.decode()), 8 + length, size)
        except (TensorFileError, RepeatedEntryError):
            raise
        except (ValueError, RecursionError) as error:
            raise TensorFileError(f"its header cannot be read: {error}") from error

    def array(self, name: str) -> NDArray[Any]:
        """Read an array; raise KeyError if there is none with this name."""
        place = self.places[name]
        found = np.empty(place.shape, place.kind)
        self._read(raw(found), place.start)
        return found

    def _read(self, into: _Bytes, start: int) -> _Bytes:
        """Fill bytes from a place of the file; return them.

        A file object would say only "not seekable" if the disk fails when it goes to the place.
        """
        room = memoryview(into)
        while room.nbytes:
            count = os.preadv(self._handle, [room], start)
            if count == 0:
                raise TensorFileError("it became shorter while it was read")
            room, start = room[count:], start + count
        return into

    def __enter__(self) -> TensorFile:
        """Return the file itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        os.close(self._handle)


def _parsed(
    header: dict[str, Any], start: int, size: int
) -> tuple[dict[str, str], dict[str, TensorPlace]]:
    """Return the metadata, and the places of arrays that fill the file from `start` to `size`."""
    metadata = header.pop("__metadata__", None) or {}
    texts = list(metadata.values()) if isinstance(metadata, dict) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise TensorFileError("its metadata are not texts")
    places: dict[str, TensorPlace] = {}
    ends = []
    for name, about in header.items():
        if not isinstance(about, dict) or set(about) != {"dtype", "shape", "data_offsets"}:
            raise TensorFileError(f"{name[:40]!r} is not described as a tensor")
        shape, offsets, kind = about["shape"], about["data_offsets"], about["dtype"]
        if not (_are_counts(shape, 0, _MAX_DIMENSIONS) and _are_counts(offsets, 2, 2)):
            raise TensorFileError(f"{name[:40]!r} has no valid shape and place")
        if not isinstance(kind, str) or kind not in _KINDS:
            raise TensorFileError(f"{name[:40]!r} has the unknown type {str(kind)[:40]!r}")
        place = TensorPlace(_KINDS[kind], tuple(shape), start + offsets[0])
        if place.nbytes != offsets[1] - offsets[0]:
            raise TensorFileError(f"{name[:40]!r} has another size than its shape")
        places[name] = place
        ends.append((place.start, start + offsets[1]))
    for begin, end in sorted(ends):
        if begin != start:
            raise TensorFileError("its tensors overlap, or bytes between them are not used")
        start = end
    if start != size:
        raise TensorFileError(f"its tensors end at byte {start:,}, the file at byte {size:,}")
    return metadata, places


def _are_counts(found: Any, fewest: int, most: int) -> bool:
    if not isinstance(found, list) or not fewest <= len(found) <= most:
        return False
    return all(type(one) is int and one >= 0 for one in found)
