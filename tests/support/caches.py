"""Small caches."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from thresher import _core
from thresher.data.cache_writer import CacheWriter


def plain_block(rows: int = 3, seed: int = 0) -> _core.Block:
    rng = np.random.default_rng(seed)
    X = sp.random(rows, 40, 0.2, "csr", np.float64, rng)
    y = rng.choice([-1.0, 1.0], rows)
    return _core.make_block(
        X.indptr,
        X.indices,
        X.data,
        y,
        tags=[b"t%d" % i for i in range(rows)],
        names=[(3, b"three")],
    )


def write_cache(path: Path, *some: _core.Block, about: str = "{}", sketch: bytes = b"") -> bytes:
    with CacheWriter(path, about) as writer:
        for block in some:
            writer.add(block)
        writer.finish(sketch)
    return path.read_bytes()


# ---- caches with other numbers and right checksums -------------------------------------------

_ODD, _FULL = 0x9E3779B97F4A7C15, (1 << 64) - 1
_LANES = (
    0xD6E8FEB86659FD93, 0xADD1FD70CCB3FB26, 0x84BAFC29330DF8B9, 0x5BA3FAE19967F64C,
    0x328CF999FFC1F3DF, 0x0975F852661BF172, 0xE05EF70ACC75EF05, 0xB747F5C332CFEC98,
)  # fmt: skip
_HEADER = ("magic", "version", "size", "about")
_BLOCK = ("magic", "size", "sum", "rows", "nonzeros", "columns", "labels", "tag bytes", "names",
          "name bytes")  # fmt: skip
_KINDS = ("starts", "keys", "values", "kind of labels", "weights", "lists", "tags", "lines")
_ENTRY = ("at", "size", "rows", "nonzeros", "columns")
_END = ("index", "blocks", "rows", "nonzeros", "width", "named", "sketch", "file")


def _turned(word: int, by: int) -> int:
    return (word << by | word >> (64 - by)) & _FULL


def _checksum(data: bytes) -> int:
    lanes = list(_LANES)
    for word in range(len(data) // 8):
        value = int.from_bytes(data[8 * word : 8 * word + 8], "little")
        lanes[word % 8] = _turned(lanes[word % 8] ^ value, 29) * _ODD & _FULL
    total = len(data)
    for lane in lanes:
        total = (total ^ lane) * _ODD & _FULL
        total ^= total >> 32
    return total


def _places(cache: bytes) -> dict[str, tuple[int, int]]:
    """Return place and size of each number: of "header", of each block and entry, and of "end"."""
    end = len(cache) - 128
    found = {f"header {name}": (8 * k, 8) for k, name in enumerate(_HEADER)}
    found |= {f"end {name}": (end + 8 * k, 8) for k, name in enumerate(_END)}
    index, blocks = struct.unpack_from("<QQ", cache, end)
    for block in range(blocks):
        entry = index + 64 * block
        at = struct.unpack_from("<Q", cache, entry)[0]
        found |= {f"entry {block} {name}": (entry + 8 * k, 8) for k, name in enumerate(_ENTRY)}
        found |= {f"block {block} {name}": (at + 8 * k, 8) for k, name in enumerate(_BLOCK)}
        found |= {f"block {block} {name}": (at + 120 + k, 1) for k, name in enumerate(_KINDS)}
    return found


def numbers_of(cache: bytes) -> dict[str, int]:
    """Return the numbers of a cache by their names, such as "entry 0 rows"."""
    places = _places(cache).items()
    return {name: int.from_bytes(cache[at : at + size], "little") for name, (at, size) in places}


def forged(cache: bytes, numbers: dict[str, int], old: bytes = b"", new: bytes = b"") -> bytes:
    """Return a cache with other numbers, `old` replaced by `new`, and the right checksums."""
    places, made = _places(cache), bytearray(cache)
    if old:
        assert len(old) == len(new)
        assert cache.count(old) == 1
        made[cache.index(old) : cache.index(old) + len(old)] = new
    for name, value in numbers.items():
        at, size = places[name]
        made[at : at + size] = (value & _FULL).to_bytes(size, "little")

    def seal(at: int, size: int, place: int, rest: bytes) -> None:
        made[place : place + 8] = bytes(8)
        total = _turned(_checksum(made[at : at + size]), 31) ^ _checksum(rest)
        made[place : place + 8] = total.to_bytes(8, "little")

    before = numbers_of(cache)
    seal(0, 64, 56, made[64 : before["header size"]])
    for block in range(before["end blocks"]):
        at, size = before[f"entry {block} at"], before[f"entry {block} size"]
        seal(at, 128, at + 16, made[at + 128 : at + size])
    end = len(made) - 128
    seal(end, 128, end + 112, made[before["end index"] : end])
    return bytes(made)
