"""The bytes of a safetensors file: those that safetensors itself makes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.numpy import save

from thresher.model.tensor_file import parts, raw

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
