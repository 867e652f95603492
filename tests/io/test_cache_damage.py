"""A damaged cache raises an error that names the damage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.blocks import fields, values
from support.caches import plain_block, write_cache
from thresher import _core


def everything(reader: _core.CacheReader) -> list[object]:
    """Return all contents of a cache, for comparison."""
    found = [reader.about, reader.blocks, reader.rows, reader.nonzeros, reader.width]
    found += [reader.named, reader.sketch]
    for number in range(reader.blocks):
        block = reader.block(number, "float64")
        found += [fields(block), values(block, "float64")]
    return found


class TestDamage:
    @pytest.fixture
    def whole(self, tmp_path) -> bytes:
        return write_cache(tmp_path / "a.cache", plain_block(), plain_block(2, 1), about='{"a": 1}')

    def test_truncated_at_any_byte(self, whole):
        for size in range(len(whole)):
            with pytest.raises(_core.CacheError):
                everything(_core.CacheReader.from_memory(whole[:size]))

    def test_the_error_of_a_truncated_file(self, tmp_path, whole):
        path = tmp_path / "cut.cache"
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(_core.CacheError, match=r"cut\.cache: the cache is cut short"):
            _core.CacheReader(path)

    def test_bytes_after_the_end(self, whole):
        for more in (b"\0", bytes(64), whole[-128:]):
            with pytest.raises(_core.CacheError):
                _core.CacheReader.from_memory(whole + more)

    def test_any_flipped_bit(self, whole):
        for at in range(len(whole)):
            for bit in range(8):
                changed = bytearray(whole)
                changed[at] ^= 1 << bit
                with pytest.raises(_core.CacheError):
                    everything(_core.CacheReader.from_memory(bytes(changed)))

    @given(st.data())
    def test_torn_pages(self, data):
        path = Path(os.environ.get("TMPDIR", "/tmp")) / f"torn-{os.getpid()}"
        whole = write_cache(path, plain_block(200))
        path.unlink()
        size = data.draw(st.sampled_from([64, 512, 4096]))
        at = data.draw(st.integers(0, len(whole) // size - 1)) * size
        to = data.draw(st.integers(0, len(whole) // size - 1)) * size
        for page in (bytes(size), whole[at : at + size]):  # not written, or another page
            torn = whole[:to] + page + whole[to + size :]
            if torn != whole:
                with pytest.raises(_core.CacheError):
                    everything(_core.CacheReader.from_memory(torn))

    def test_the_error_names_the_block_and_its_bytes(self, tmp_path, whole):
        path = tmp_path / "a.cache"
        at = whole.rindex(b"\x89TBlock\n")
        path.write_bytes(whole[: at + 200] + b"X" + whole[at + 201 :])
        reader = _core.CacheReader(path)
        assert reader.block(0).rows == 3
        for _ in range(2):
            with pytest.raises(_core.CacheError, match=rf"a\.cache: block 1 \(bytes {at} to \d+\)"):
                reader.block(1)

    def test_other_files(self, tmp_path):
        (tmp_path / "empty").touch()
        (tmp_path / "text").write_text("1 2:3\n" * 100)
        damaged = {"empty": "empty", "text": "not a Thresher cache", "": "regular file"}
        for name, why in damaged.items():
            with pytest.raises(_core.CacheError, match=why):
                _core.CacheReader(tmp_path / name)
        with pytest.raises(FileNotFoundError) as caught:
            _core.CacheReader(tmp_path / "none")
        assert caught.value.filename == str(tmp_path / "none")
        assert issubclass(_core.CacheError, ValueError)

    def test_another_version(self, whole):
        with pytest.raises(_core.CacheError, match=r"format 9; this version reads 1 to 2"):
            _core.CacheReader.from_memory(whole[:8] + b"\x09" + whole[9:])

    @given(st.binary(max_size=300), st.data())
    def test_any_bytes(self, some, data):
        head = b"\x89TCache\n\x01\0\0\0\0\0\0\0" if data.draw(st.booleans()) else b""
        with pytest.raises(_core.CacheError):
            everything(_core.CacheReader.from_memory(head + some))

    def test_no_such_block(self, tmp_path, whole):
        with pytest.raises(IndexError, match="block 2 of a cache of 2"):
            _core.CacheReader(tmp_path / "a.cache").block(2)
