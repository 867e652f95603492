"""Inputs that fuzzing found: readers either read any bytes correctly or raise their errors.

`make fuzz` starts from `tests/corpus/TARGET`; see CONTRIBUTING.md.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzzing.targets import TARGETS
from oracles import text as oracle
from support.streams import learner
from support.text_cases import ShortReads, assert_same, read
from thresher import _core
from thresher.errors import DataError, DivergenceError

CORPUS = Path(__file__).parents[1] / "corpus"


def corpus(target: str) -> list[bytes]:
    found = [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]
    assert found
    return found


def assert_holds(block: _core.Block) -> None:
    """Assert that a block is valid for learners."""
    starts, keys, values = (np.asarray(a) for a in (block.starts, block.keys, block.values))
    assert starts[0] == 0
    assert (np.diff(starts) >= 0).all()
    assert len(starts) == block.rows + 1
    keys = keys.astype(np.int64).view(np.uint64)
    assert not block.width or (keys < block.width).all()
    assert len(keys) == len(values) == starts[-1]


OPTIONS: dict[str, list[dict[str, Any]]] = {
    "svmlight": [
        {},
        {"dtype": "float64", "bits": 5, "zero_based": True},
        {"multilabel": True},
    ],
    "vw": [
        {},
        {"dtype": "float64", "bits": 5},
        {"interactions": [b"ab", b": ", b"cc"]},
        {"dtype": "float64", "bits": 40, "interactions": [b"::"]},
    ],
}


@pytest.mark.parametrize(
    ("text_format", "options"),
    [(text_format, options) for text_format, some in OPTIONS.items() for options in some],
    ids=str,
)
def test_text_equals_the_naive_parsers(text_format, options):
    for data in corpus(text_format):
        expected = getattr(oracle, text_format)(data, **options)
        dtype = options.get("dtype", "float32")
        for block_bytes in (1 << 20, 20):
            source = ShortReads(data)
            blocks = read(data, text_format, source, block_bytes=block_bytes, **options)
            assert_same(blocks, expected, dtype)
            for block in blocks:
                assert_holds(block)
                assert np.isfinite(block.values).all()
                for keys in np.split(block.keys, block.starts[1:-1]):
                    assert len(np.unique(keys)) == len(keys)
        some = {b.first_line + bad.line for b in blocks for bad in b.bad}
        begun = read(data, text_format, keep_going=False, **options)
        assert [b.first_line + bad.line for b in begun for bad in b.bad] == sorted(some)[:1]
        named = read(data, text_format, names=True, sketch=True, threads=2, **options)
        assert_same(named, expected, dtype)


def test_caches_are_read_or_refused():
    """Checksums are right but values are arbitrary; learning must not crash."""
    refused = 0
    for data in corpus("cache"):
        try:
            reader = _core.CacheReader.from_memory(data)
            for number in range(reader.blocks):
                for dtype in ("float32", "float64"):
                    block = reader.block(number, dtype)
                    assert_holds(block)
                    if block.labels is not None:
                        with contextlib.suppress(DataError, DivergenceError):
                            learner("ftrl", 0, store="hashed").learn(block.batch)
        except _core.CacheError:
            refused += 1
    assert 0 < refused < len(corpus("cache"))


@pytest.mark.parametrize("target", TARGETS)
def test_files_are_read_or_refused(target, tmp_path):
    for data in corpus(target):
        TARGETS[target](data, tmp_path)
