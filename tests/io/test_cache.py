"""The binary cache: nothing is lost, damage is named, and nothing half-written stays."""

from __future__ import annotations

import errno
import gc
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.blocks import blocks, fields, values
from support.streams import learner
from thresher import _core
from thresher.data import cache
from thresher.data.scan import scan

LINUX = tuple(int(part) for part in re.findall(r"\d+", platform.release())[:2])
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


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


def write(path: Path, *some: _core.Block, about: str = "{}", sketch: bytes = b"") -> bytes:
    with _core.CacheWriter(path, about) as writer:
        for block in some:
            writer.add(block)
        writer.finish(sketch)
    return path.read_bytes()


def everything(reader: _core.CacheReader) -> list[object]:
    """Return all that a cache says, so that anything that changed shows."""
    found = [reader.about, reader.blocks, reader.rows, reader.nonzeros, reader.width]
    found += [reader.named, reader.sketch]
    for number in range(reader.blocks):
        block = reader.block(number, "float64")
        found += [fields(block), values(block, "float64")]
    return found


def first_names(blocks):
    """Return the first name of each feature."""
    found = {}
    for block in blocks:
        for key, name in block.names:
            found.setdefault(key, name)
    return found


class TestNothingIsLost:
    @same_folder
    @given(st.lists(blocks(), max_size=3), st.text(max_size=80), st.binary(max_size=70))
    def test_blocks_come_back(self, tmp_path, some, about, sketch):
        path = tmp_path / "a.cache"
        about = about.encode("utf-8", "ignore").decode()
        write(path, *some, about=about, sketch=sketch)
        reader = _core.CacheReader(path)
        assert (reader.about, reader.sketch, reader.blocks) == (about, sketch, len(some))
        assert reader.rows == sum(block.rows for block in some)
        assert reader.nonzeros == sum(block.nonzeros for block in some)
        assert reader.named == any(block.names for block in some)
        assert first_names(reader.block(at) for at in range(len(some))) == first_names(some)
        for dtype in ("float32", "float64", "float32"):
            for number, block in enumerate(some):
                found = reader.block(number, dtype)
                # A name is enough once; those written a short while ago are left out.
                assert {**fields(found), "names": 0} == {**fields(block), "names": 0}
                assert set(found.names) <= set(block.names)
                assert found.values.dtype == dtype
                assert values(found, dtype) == values(block, dtype)
                assert reader.rows_of(number) == block.rows

    @given(blocks())
    def test_width_bounds_the_keys(self, block):
        keys = block.keys.astype(np.int64).view(np.uint64)
        assert block.width == 0 or np.all(keys < block.width)
        assert block.width > 0 or keys.size == 0 or keys.max() >= 2**63 - 1

    def test_width_of_a_file(self, tmp_path):
        def block(*keys: int) -> _core.Block:
            many = np.array(keys, np.uint64).view(np.int64)
            return _core.make_block(np.array([0, len(keys)]), many, np.ones(len(keys)))

        for some, width in [
            ((), 0),
            ((block(3), block(), block(7)), 8),
            ((block(2**63), block(1)), 0),
        ]:
            write(tmp_path / "w", *some)
            assert _core.CacheReader(tmp_path / "w").width == width

    def test_small_types(self, tmp_path):
        starts, keys = np.array([0, 1000]), np.arange(1000)
        sizes = [
            len(write(tmp_path / "s", _core.make_block(starts, at, x, np.ones(1))))
            for at in (keys, keys + 2**31)
            for x in (np.ones(1000), np.full(1000, 0.5), np.full(1000, 0.1))
        ]
        expected = [1000 * bytes_ for bytes_ in (4, 8, 12, 8, 12, 16)]
        assert [size // 1000 * 1000 for size in sizes] == expected

    def test_signs_of_zero_and_odd_values_survive(self, tmp_path):
        odd = np.array([-0.0, 5e-324, 1e300, np.inf, np.nan, 1 + 2**-52])
        block = _core.make_block(np.array([0, 6]), np.arange(6), odd)
        write(tmp_path / "odd", block)
        found = _core.CacheReader(tmp_path / "odd").block(0, "float64")
        assert found.values.tobytes() == odd.tobytes()

    def test_bytes_depend_on_blocks_alone(self, tmp_path):
        assert write(tmp_path / "a", plain_block()) == write(tmp_path / "b", plain_block())


class TestDamage:
    @pytest.fixture
    def whole(self, tmp_path) -> bytes:
        return write(tmp_path / "a.cache", plain_block(), plain_block(2, 1), about='{"a": 1}')

    def test_cut_anywhere(self, whole):
        for size in range(len(whole)):
            with pytest.raises(_core.CacheError):
                everything(_core.CacheReader.from_memory(whole[:size]))

    def test_cut_is_called_cut(self, tmp_path, whole):
        path = tmp_path / "cut.cache"
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(_core.CacheError, match=r"cut\.cache: the cache is cut short"):
            _core.CacheReader(path)

    def test_longer_than_it_was(self, whole):
        for more in (b"\0", bytes(64), whole[-128:]):
            with pytest.raises(_core.CacheError):
                _core.CacheReader.from_memory(whole + more)

    def test_every_bit_counts(self, whole):
        for at in range(len(whole)):
            for bit in range(8):
                changed = bytearray(whole)
                changed[at] ^= 1 << bit
                with pytest.raises(_core.CacheError):
                    everything(_core.CacheReader.from_memory(bytes(changed)))

    @given(st.data())
    def test_torn_pages(self, data):
        path = Path(os.environ.get("TMPDIR", "/tmp")) / f"torn-{os.getpid()}"
        whole = write(path, plain_block(200))
        path.unlink()
        size = data.draw(st.sampled_from([64, 512, 4096]))
        at = data.draw(st.integers(0, len(whole) // size - 1)) * size
        to = data.draw(st.integers(0, len(whole) // size - 1)) * size
        for page in (bytes(size), whole[at : at + size]):  # never written, or written elsewhere
            torn = whole[:to] + page + whole[to + size :]
            if torn != whole:
                with pytest.raises(_core.CacheError):
                    everything(_core.CacheReader.from_memory(torn))

    def test_block_is_named_with_its_bytes(self, tmp_path, whole):
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
        for name, why in [("empty", "empty"), ("text", "no Thresher cache"), ("", "regular file")]:
            with pytest.raises(_core.CacheError, match=why):
                _core.CacheReader(tmp_path / name)
        with pytest.raises(FileNotFoundError) as caught:
            _core.CacheReader(tmp_path / "none")
        assert caught.value.filename == str(tmp_path / "none")
        assert issubclass(_core.CacheError, ValueError)

    def test_another_version(self, whole):
        with pytest.raises(_core.CacheError, match=r"format 9; this version reads 1"):
            _core.CacheReader.from_memory(whole[:8] + b"\x09" + whole[9:])

    @given(st.binary(max_size=300), st.data())
    def test_any_bytes(self, some, data):
        head = b"\x89TCache\n\x01\0\0\0\0\0\0\0" if data.draw(st.booleans()) else b""
        with pytest.raises(_core.CacheError):
            everything(_core.CacheReader.from_memory(head + some))

    @pytest.mark.skipif(LINUX < (5, 14), reason="the kernel cannot read ahead and say how it went")
    def test_cut_while_it_is_open(self, tmp_path):
        path = tmp_path / "a.cache"
        write(path, plain_block(2000), plain_block(2000, 1))
        reader = _core.CacheReader(path)
        os.truncate(path, 64)
        with pytest.raises(OSError, match=r"a\.cache") as caught:
            reader.block(1)
        assert caught.value.errno == errno.EIO

    def test_no_such_block(self, tmp_path, whole):
        with pytest.raises(IndexError, match="block 2 of a cache of 2"):
            _core.CacheReader(tmp_path / "a.cache").block(2)


class TestWriting:
    def test_abandoned_leaves_nothing(self, tmp_path):
        path = tmp_path / "a.cache"
        before = write(path, plain_block())

        def fail() -> None:
            with _core.CacheWriter(path, "{}") as writer:
                writer.add(plain_block())
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fail()
        writer = _core.CacheWriter(path, "{}")
        writer.add(plain_block())
        del writer
        gc.collect()
        writer = _core.CacheWriter(path, "{}")
        writer.abandon()
        with pytest.raises(ValueError, match="finished or abandoned"):
            writer.add(plain_block())
        assert os.listdir(tmp_path) == ["a.cache"]
        assert path.read_bytes() == before

    def test_full_disk(self, tmp_path):
        path = tmp_path / "a.cache"
        before = write(path, plain_block())
        code = f"""
import os, resource, signal
import numpy as np
from thresher import _core
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
block = _core.make_block(np.array([0, 5000]), np.arange(5000), np.full(5000, 0.1), np.ones(1))
for room in (10, 40, 1000, 60_500):
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    try:
        with _core.CacheWriter({str(path)!r}, "{{}}") as writer:
            writer.add(block)
            writer.finish()
    except OSError as error:
        print(error.errno, error.filename, os.listdir({str(tmp_path)!r}))
"""
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert run.stdout.splitlines() == 4 * [f"{errno.EFBIG} {path} ['a.cache']"]
        assert path.read_bytes() == before

    def test_a_fork_leaves_the_file_alone(self, tmp_path):
        writer = _core.CacheWriter(tmp_path / "a.cache", "{}")
        writer.add(plain_block())
        child = os.fork()
        if child == 0:
            writer.abandon()
            os._exit(0)
        os.waitpid(child, 0)
        writer.finish()
        assert _core.CacheReader(tmp_path / "a.cache").rows == 3

    def test_places_that_cannot_be(self, tmp_path):
        with pytest.raises(FileNotFoundError) as caught:
            _core.CacheWriter(tmp_path / "none" / "a.cache", "{}")
        assert caught.value.filename == str(tmp_path / "none" / "a.cache")
        (tmp_path / "folder" / "full").mkdir(parents=True)
        with pytest.raises(OSError, match="folder"):
            write(tmp_path / "folder", plain_block())
        assert os.listdir(tmp_path) == ["folder"]

    def test_permissions_are_those_of_open(self, tmp_path):
        write(tmp_path / "a", plain_block())
        (tmp_path / "b").touch()
        assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


class TestLearning:
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("store", ["dense", "hashed"])
    def test_as_from_csr(self, tmp_path, dtype, store):
        rng = np.random.default_rng(3)
        X = sp.random(300, 50, 0.1, "csr", np.float64, rng)
        y = rng.choice([-1.0, 1.0], 300)
        cuts = [(0, 1), (1, 120), (120, 120), (120, 300)]
        made = [
            _core.make_block(X.indptr[a : b + 1], X.indices, X.data, y[a:b], columns=50)
            for a, b in cuts
        ]
        write(tmp_path / "a", *made)
        reader = _core.CacheReader(tmp_path / "a")
        params = {"loss": "logistic", "gravity": 0.01, "period": 3}
        one, two, three = (
            learner("truncated_gradient", 50, store=store, dtype=dtype, **params) for _ in range(3)
        )
        for _ in range(2):
            one.learn(_core.sparse_batch(X.indptr, X.indices, X.data, 50, y))
            for number, block in enumerate(made):
                two.learn(block.batch)
                three.learn(reader.block(number, dtype).batch)
        assert one.state() == two.state() == three.state()

    def test_blocks_outlive_their_reader(self, tmp_path):
        write(tmp_path / "a", *(plain_block(50, seed) for seed in range(8)))
        reader = _core.CacheReader(tmp_path / "a")
        kept = [reader.block(number, "float64") for number in (0, 1, 2, 7, 3, 4, 5, 6)]
        reader.prefetch(3, "float64")
        arrays = [block.values for block in kept]
        del reader, kept
        gc.collect()
        for array, seed in zip(arrays, (0, 1, 2, 7, 3, 4, 5, 6), strict=True):
            assert array.tobytes() == plain_block(50, seed).values.tobytes()

    def test_a_forked_process_reads_on(self, tmp_path):
        write(tmp_path / "a", *(plain_block(50, seed) for seed in range(4)))
        reader = _core.CacheReader(tmp_path / "a")
        reader.block(0)
        child = os.fork()
        if child == 0:
            good = all(reader.block(number).rows == 50 for number in range(4))
            os._exit(0 if good else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert reader.block(1).rows == 50


class TestFingerprints:
    def test_current_until_something_changes(self, tmp_path):
        source, path = tmp_path / "data.svm", tmp_path / "a.cache"
        source.write_bytes(b"1 2:3\n" * 50_000)
        options = {"bits": 18, "interactions": ("ab",)}
        now = cache.fingerprint([source])
        assert cache.is_current(path, now, options) == "there is no cache yet"
        write(path, plain_block(), about=cache.about(now, options))
        assert cache.is_current(path, cache.fingerprint([source]), options) is True
        reason = cache.is_current(path, now, options | {"bits": 20})
        assert reason == "bits was 18 and is 20"
        reason = cache.is_current(path, now, options | {"zero_based": True})
        assert reason == "zero_based was not given and is true"
        assert cache.is_current(path, [*now, *now], options) == "it was made from other files"
        os.utime(source, ns=(0, 12345))
        changed = cache.fingerprint([source])
        assert cache.is_current(path, changed, options) == f"{source} changed"
        path.write_bytes(path.read_bytes()[:-1])
        assert "cut short" in cache.is_current(path, now, options)
        write(path, plain_block(), about="nothing")
        assert "does not say" in cache.is_current(path, now, options)

    @pytest.mark.parametrize("at", [0, 65_535, 65_536, 100_000])
    def test_ends_of_files_count(self, tmp_path, at):
        source = tmp_path / "data.svm"
        found = []
        for byte in b"ab":
            text = bytearray(b"x" * 100_001)
            text[at] = byte
            source.write_bytes(text)
            os.utime(source, ns=(0, 0))
            found += cache.fingerprint([source])
        assert found[0] != found[1]
        assert found[0]["size"] == 100_001


def test_the_next_block_of_a_shuffled_cache_is_read_ahead(tmp_path):
    """Each block but the first is asked for before the one in front of it is learned."""

    class Spy:
        def __init__(self, reader):
            self.reader, self.blocks, self.asked, self.ahead = reader, reader.blocks, [], []

        def block(self, number, dtype, names):
            self.asked.append(number)
            return self.reader.block(number, dtype, names)

        def prefetch(self, number, dtype, names):
            self.ahead.append(number)
            self.reader.prefetch(number, dtype, names)

    path = tmp_path / "rows.cache"
    write(path, *(plain_block(seed=seed) for seed in range(9)))
    source = scan(path)
    lying = [values(block.native, "float64") for block in source.blocks()]
    spy = source.parts[0].reader = Spy(source.parts[0].reader)
    for number, block in enumerate(source.blocks(order=(3, 1))):
        assert spy.ahead == spy.asked[1:] + spy.ahead[number : number + 1]
        assert len(spy.ahead) == min(number + 1, 8)
        assert values(block.native, "float64") == lying[spy.asked[number]]
    assert sorted(spy.asked) == list(range(9))
    assert spy.asked != sorted(spy.asked)
    spy.ahead.clear()
    list(source.blocks())
    assert not spy.ahead
