"""A cache with right checksums and wrong numbers is refused: nothing beyond it is read."""

from __future__ import annotations

import numpy as np
import pytest

from support.blocks import fields, values
from support.caches import forged, numbers_of, plain_block, write_cache
from thresher import _core

HUGE = 2**63


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("forged") / "a.cache"
    return write_cache(path, plain_block(30), plain_block(20, 1), about='{"a": 1}')


def everything(content: bytes) -> list[object]:
    """Return all contents of a cache in memory, for comparison."""
    reader = _core.CacheReader.from_memory(content)
    found: list[object] = [reader.about, reader.rows, reader.nonzeros, reader.width]
    for number in range(reader.blocks):
        block = reader.block(number, "float64")
        found += [fields(block), values(block, "float64")]
    return found


def test_a_cache_that_is_sealed_again_is_the_same(whole):
    assert forged(whole, {}) == whole
    wide = forged(whole, {"end width": 0})
    assert wide != whole
    assert _core.CacheReader.from_memory(wide).width == 0
    assert everything(wide)[4:] == everything(whole)[4:]


# Where it can be, the other numbers fit: only the check of this number can find it.
@pytest.mark.parametrize(
    "change",
    [
        lambda n: {"entry 1 at": n["entry 0 at"]},
        lambda n: {"entry 0 size": 64, "entry 1 at": n["entry 0 at"] + 64,
                   "entry 1 size": n["entry 0 size"] + n["entry 1 size"] - 64},
        lambda n: {"entry 0 size": n["entry 0 size"] + 8, "entry 1 at": n["entry 1 at"] + 8,
                   "entry 1 size": n["entry 1 size"] - 8},
        lambda n: {"entry 0 size": -64, "entry 1 at": n["entry 0 at"] - 64,
                   "entry 1 size": n["entry 0 size"] + n["entry 1 size"] + 64},
        lambda n: {"entry 1 size": n["entry 1 size"] - 64},
        lambda n: {"entry 0 rows": n["entry 0 size"] + 1,
                   "end rows": n["entry 0 size"] + 1 + n["entry 1 rows"]},
        lambda n: {"entry 0 rows": HUGE, "entry 1 rows": HUGE + n["end rows"]},
        lambda n: {"entry 0 nonzeros": n["entry 0 size"] + 1,
                   "end nonzeros": n["entry 0 size"] + 1 + n["entry 1 nonzeros"]},
        lambda _: {"entry 0 columns": HUGE, "end width": 0},
        lambda n: {"entry 1 columns": n["end width"] + 1},
        lambda _: {"entry 1 columns": 0},
        lambda n: {"end rows": n["end rows"] + 1},
        lambda n: {"end nonzeros": n["end nonzeros"] - 1},
        lambda _: {"end width": HUGE},
        lambda _: {"end blocks": 3},
        lambda _: {"end blocks": HUGE},
        lambda n: {"end blocks": 1, "end rows": n["entry 0 rows"],
                   "end nonzeros": n["entry 0 nonzeros"]},
        lambda _: {"end sketch": 1},
        lambda _: {"end sketch": HUGE},
        lambda n: {"end index": n["end index"] + 8},
        lambda _: {"end index": 0},
        lambda n: {"end index": n["end file"]},
    ],
)  # fmt: skip
def test_an_index_with_wrong_numbers(whole, change):
    content = forged(whole, change(numbers_of(whole)))
    with pytest.raises(_core.CacheError, match="the index of the cache is damaged; create it"):
        _core.CacheReader.from_memory(content)


@pytest.mark.parametrize(
    "change",
    [
        lambda _: {"header size": 56},
        lambda n: {"header size": n["header size"] + 8},
        lambda n: {"header about": n["header size"] - 63},
        lambda _: {"header about": HUGE},
    ],
)
def test_a_header_with_wrong_numbers(whole, change):
    content = forged(whole, change(numbers_of(whole)))
    with pytest.raises(_core.CacheError, match="the header of the cache is damaged"):
        _core.CacheReader.from_memory(content)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda n: {"block 1 rows": n["block 1 rows"] - 1}, "its header does not match the index"),
        (lambda n: {"block 1 size": n["block 1 size"] - 64}, "its header does not match the index"),
        (lambda _: {"block 1 tags": 2}, "its header has unknown types"),
        (lambda _: {"block 1 values": 7}, "its header has unknown types"),
        (lambda _: {"block 1 starts": 0}, "its header has unknown types"),
        (lambda _: {"block 1 keys": 2}, "its sizes do not match"),
        (lambda _: {"block 1 tag bytes": HUGE}, "its sizes do not match"),
        (lambda _: {"block 1 names": 2**64 - 1}, "its sizes do not match"),
        (lambda _: {"block 1 rows": 2**64 - 1, "entry 1 rows": 10}, "does not match the index"),
        (lambda _: {"block 1 columns": 39, "entry 1 columns": 39},
         "a key exceeds its number of columns"),
    ],
)  # fmt: skip
def test_a_block_with_wrong_numbers(whole, change, what):
    assert everything(whole)[6]["keys"] != []
    assert max(everything(whole)[6]["keys"]) == 39
    numbers = change(numbers_of(whole))
    if "entry 1 rows" in numbers:
        numbers["end rows"] = numbers_of(whole)["entry 0 rows"] + numbers["entry 1 rows"]
    reader = _core.CacheReader.from_memory(forged(whole, numbers))
    assert reader.block(0).rows == 30
    with pytest.raises(
        _core.CacheError, match=rf"block 1 \(bytes \d+ to \d+\) is damaged: .*{what}"
    ):
        reader.block(1)


def _some_block(kind: str) -> _core.Block:
    """Return a block with row starts 0, 2, 5 and 9, and other starts, all of them different."""
    given = {
        "lists": {"label_starts": np.array([0, 3, 4, 11]), "label_values": np.arange(11.0)},
        "tags": {"tags": [b"abc", b"de", b"fghij"]},
        "names": {"names": [(1, b"one"), (2, b"second")]},
    }
    starts = np.array([0, 2, 5, 9])
    return _core.make_block(starts, np.arange(9), np.full(9, 1 / 3), **given.get(kind, {}))


@pytest.mark.parametrize(
    ("kind", "dtype", "right"),
    [
        ("rows", np.int32, [0, 2, 5, 9]),
        ("lists", np.int64, [0, 3, 4, 11]),
        ("tags", np.uint32, [0, 3, 5, 10]),
        ("names", np.uint64, [0, 3, 9]),
    ],
)
def test_starts_out_of_order(tmp_path, kind, dtype, right):
    content = write_cache(tmp_path / "a", _some_block(kind))
    old = np.array(right, dtype).tobytes()
    assert everything(forged(content, {}, old, old)) == everything(content)
    first, falls, last = [1, *right[1:]], list(right), [*right[:-1], right[-1] + 1]
    falls[1] = right[-1] + 3
    for wrong in (first, falls, last, [*right[:-1], right[-1] - 1]):
        reader = _core.CacheReader.from_memory(
            forged(content, {}, old, np.array(wrong, dtype).tobytes())
        )
        with pytest.raises(_core.CacheError, match="its row starts are out of order"):
            reader.block(0)
