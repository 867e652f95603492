"""The bytes of a safetensors file in parts, without copies of the arrays.

`safetensors.numpy.save` makes the same bytes, and copies each array three times.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

# In the order in which a file has them, as safetensors orders them.
_TYPES = {
    "u8": "U64", "i8": "I64", "f8": "F64", "f4": "F32", "u4": "U32", "i4": "I32",
    "f2": "F16", "u2": "U16", "i2": "I16", "i1": "I8", "u1": "U8", "b1": "BOOL",
}  # fmt: skip
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
