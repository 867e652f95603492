"""Shared by the tests of readers: read a whole text, and compare with an oracle's rows."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from oracles.text import FULL, Parsed
from thresher import _core


class ShortReads:
    """A source that returns few bytes at a time, like a stream that decompresses."""

    def __init__(self, data: bytes, steps: tuple[int, ...] = (1, 7, 3, 64)) -> None:
        self._stream = io.BytesIO(data)
        self._steps, self._turn = steps, 0

    def readinto(self, buffer: memoryview) -> int:
        self._turn += 1
        return self._stream.readinto(buffer[: self._steps[self._turn % len(self._steps)]])


def read(data: bytes, text_format: str, source: Any = None, **options: Any) -> list[_core.Block]:
    """Return all blocks of a text."""
    reader = _core.Reader(source or io.BytesIO(data), text_format, **options)
    blocks = []
    while (block := reader.next()) is not None:
        blocks.append(block)
    return blocks


def assert_same(blocks: list[_core.Block], expected: Parsed, dtype: str = "float32") -> None:
    """Assert that the blocks have exactly the oracle's rows and bad lines."""
    rows = iter(expected.rows)
    for block in blocks:
        starts, keys, values = (np.asarray(a) for a in (block.starts, block.keys, block.values))
        assert values.dtype == np.dtype(dtype)
        for r in range(block.rows):
            row = next(rows)
            assert block.line(r) == row.line
            if block.labels is None:
                lo, hi = block.label_starts[r : r + 2]
                assert block.label_values[lo:hi].tolist() == row.labels
            else:
                np.testing.assert_array_equal(block.labels[r : r + 1], row.labels)
            assert row.weight == (1.0 if block.weights is None else block.weights[r])
            assert row.tag == (b"" if block.tags is None else block.tags[r])
            lo, hi = starts[r : r + 2]
            assert [int(k) & FULL for k in keys[lo:hi]] == [k for k, _ in row.cells]
            want = np.array([v for _, v in row.cells], values.dtype)
            assert values[lo:hi].tobytes() == want.tobytes()
            if block.width:
                assert all(k < block.width for k, _ in row.cells)
    assert next(rows, None) is None
    bad = [(b.first_line + line.line, line.column) for b in blocks for line in b.bad]
    assert bad == expected.bad
