"""The binary cache: blocks that are read equal those that were written."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.blocks import blocks, fields, values
from support.caches import plain_block, write_cache
from support.streams import learner
from thresher import _core
from thresher.data.scan import scan

FIXTURES = Path(__file__).parents[1] / "fixtures"
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def first_names(blocks):
    """Return the first name of each feature."""
    found = {}
    for block in blocks:
        for key, name in block.names:
            found.setdefault(key, name)
    return found


def _named_block(key):
    """Return one row with one feature that has a name."""
    names = [(key, b"name%d" % key)]
    return _core.make_block(np.array([0, 1]), np.array([key]), np.ones(1), names=names)


class TestRoundTrip:
    @same_folder
    @given(st.lists(blocks(), max_size=3), st.text(max_size=80), st.binary(max_size=70))
    def test_blocks_are_equal(self, tmp_path, some, about, sketch):
        path = tmp_path / "a.cache"
        about = about.encode("utf-8", "ignore").decode()
        write_cache(path, *some, about=about, sketch=sketch)
        reader = _core.CacheReader(path)
        assert (reader.about, reader.sketch, reader.blocks) == (about, sketch, len(some))
        assert reader.rows == sum(block.rows for block in some)
        assert reader.nonzeros == sum(block.nonzeros for block in some)
        assert reader.named == any(block.names for block in some)
        assert first_names(reader.block(at) for at in range(len(some))) == first_names(some)
        for dtype in ("float32", "float64", "float32"):
            for number, block in enumerate(some):
                found = reader.block(number, dtype)
                # A block leaves out names that the blocks before it have.
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
            write_cache(tmp_path / "w", *some)
            assert _core.CacheReader(tmp_path / "w").width == width

    def test_small_types(self, tmp_path):
        starts, keys = np.array([0, 1000]), np.arange(1000)
        sizes = [
            len(write_cache(tmp_path / "s", _core.make_block(starts, at, x, np.ones(1))))
            for at in (keys, keys + 2**31)
            for x in (
                np.ones(1000),
                np.full(1000, 0.1),
                np.full(1000, 2**-20),
                np.full(1000, 1 / 3),
            )
        ]
        expected = [1000 * bytes_ for bytes_ in (4, 6, 8, 12, 8, 10, 12, 16)]
        assert [size // 1000 * 1000 for size in sizes] == expected

    @same_folder
    @given(
        st.sampled_from([1, 10, 100, 1000]),
        st.lists(
            st.integers(-33_000, 33_000) | st.sampled_from([32_767, 32_768, -32_767]), min_size=1
        ),
        st.sampled_from([None, -0.0, 1 / 3, np.nan, np.inf, 1e300, 0.1 + 1e-17, 5e-324]),
        st.integers(0, 3000),
        st.sampled_from(["float32", "float64"]),
    )
    def test_decimals_are_exact(self, tmp_path, parts, numbers, odd, ones, dtype):
        found = [1.0] * ones + [number / parts for number in numbers]
        with np.errstate(over="ignore"):
            given_values = np.array(found if odd is None else [*found, odd], dtype)
        count = len(given_values)
        block = _core.make_block(np.array([0, count]), np.arange(count), given_values)
        content = write_cache(tmp_path / "decimals", block)
        reader = _core.CacheReader(tmp_path / "decimals")
        for kind in ("float64", "float32"):
            with np.errstate(over="ignore"):
                wanted = given_values.astype(np.float64).astype(kind)
            assert reader.block(0, kind).values.tobytes() == wanted.tobytes()
        whole = np.round(given_values.astype(np.float64) * parts)
        if odd is None and dtype == "float64" and np.abs(whole).max() < 2**15:
            assert len(content) < 700 + 6 * count

    def test_a_cache_of_format_1(self):
        reader = _core.CacheReader(FIXTURES / "cache-format-1" / "rows.cache")
        assert (reader.about, reader.rows, reader.nonzeros) == ('{"made": "by format 1"}', 3, 4)
        first, second = (reader.block(number, "float64") for number in (0, 1))
        assert first.keys.tolist() == [3, 2**40, 7]
        assert first.values.tolist() == [0.37, -1.5, 2.0]
        assert first.labels.tolist() == [1.0, -1.0]
        assert first.names == [(3, b"three")]
        assert second.values.tolist() == [0.1 + 1e-9]

    def test_special_values_are_kept(self, tmp_path):
        odd = np.array([-0.0, 5e-324, 1e300, np.inf, np.nan, 1 + 2**-52])
        block = _core.make_block(np.array([0, 6]), np.arange(6), odd)
        write_cache(tmp_path / "odd", block)
        found = _core.CacheReader(tmp_path / "odd").block(0, "float64")
        assert found.values.tobytes() == odd.tobytes()

    def test_equal_blocks_give_equal_files(self, tmp_path):
        assert write_cache(tmp_path / "a", plain_block()) == write_cache(
            tmp_path / "b", plain_block()
        )


class TestLearning:
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("store", ["dense", "hashed"])
    def test_equals_csr(self, tmp_path, dtype, store):
        rng = np.random.default_rng(3)
        X = sp.random(300, 50, 0.1, "csr", np.float64, rng)
        y = rng.choice([-1.0, 1.0], 300)
        cuts = [(0, 1), (1, 120), (120, 120), (120, 300)]
        made = [
            _core.make_block(X.indptr[a : b + 1], X.indices, X.data, y[a:b], columns=50)
            for a, b in cuts
        ]
        write_cache(tmp_path / "a", *made)
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

    def test_blocks_stay_valid_without_their_reader(self, tmp_path):
        write_cache(tmp_path / "a", *(plain_block(50, seed) for seed in range(8)))
        reader = _core.CacheReader(tmp_path / "a")
        kept = [reader.block(number, "float64") for number in (0, 1, 2, 7, 3, 4, 5, 6)]
        reader.prefetch(3, "float64")
        arrays = [block.values for block in kept]
        del reader, kept
        gc.collect()
        for array, seed in zip(arrays, (0, 1, 2, 7, 3, 4, 5, 6), strict=True):
            assert array.tobytes() == plain_block(50, seed).values.tobytes()

    def test_the_block_read_ahead_may_be_wanted_in_another_form(self, tmp_path):
        some = [plain_block(50, seed) for seed in range(6)]
        write_cache(tmp_path / "a", *some)
        reader, wanted = (
            _core.CacheReader(tmp_path / "a"),
            ("float32", "float64", "float64", "float32"),
        )
        for number, dtype in enumerate(wanted):
            assert values(reader.block(number, dtype), dtype) == values(some[number], dtype)
        write_cache(tmp_path / "b", _named_block(1), _named_block(2), _named_block(3))
        reader = _core.CacheReader(tmp_path / "b")
        for number, names in enumerate((False, True, False)):
            expected = [(number + 1, b"name%d" % (number + 1))] if names else []
            assert reader.block(number, "float32", names).names == expected
        reader.prefetch(2, "float32", True)
        assert reader.block(1).rows == 1

    def test_a_forked_process_can_read(self, tmp_path):
        write_cache(tmp_path / "a", *(plain_block(50, seed) for seed in range(4)))
        reader = _core.CacheReader(tmp_path / "a")
        reader.block(0)
        child = os.fork()
        if child == 0:
            good = all(reader.block(number).rows == 50 for number in range(4))
            os._exit(0 if good else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert reader.block(1).rows == 50


def test_the_next_block_of_a_shuffled_cache_is_read_ahead(tmp_path):
    """Each block after the first is requested before the previous block is learned."""

    class Spy:
        def __init__(self, reader):
            self.reader, self.blocks, self.asked, self.ahead = reader, reader.blocks, [], []
            self.file_bytes = reader.file_bytes

        def block(self, number, dtype, names):
            self.asked.append(number)
            return self.reader.block(number, dtype, names)

        def prefetch(self, number, dtype, names):
            self.ahead.append(number)
            self.reader.prefetch(number, dtype, names)

    path = tmp_path / "rows.cache"
    write_cache(path, *(plain_block(seed=seed) for seed in range(9)))
    source = scan(path)
    stored = [values(block.native, "float64") for block in source.blocks()]
    spy = source.parts[0].reader = Spy(source.parts[0].reader)
    for number, block in enumerate(source.blocks(order=(3, 1))):
        assert spy.ahead == spy.asked[1:] + spy.ahead[number : number + 1]
        assert len(spy.ahead) == min(number + 1, 8)
        assert values(block.native, "float64") == stored[spy.asked[number]]
    assert sorted(spy.asked) == list(range(9))
    assert spy.asked != sorted(spy.asked)
    spy.ahead.clear()
    list(source.blocks())
    assert not spy.ahead
