"""A cache that changes while it is in use causes an error, and never a crash or another model."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from support.caches import plain_block, write_cache
from thresher import DataError, FTRLClassifier, Observer, _core, scan

ROWS = 500
SEEDS = range(4)


@pytest.fixture
def cache(tmp_path):
    """A cache of four blocks, and a reader that has read all of them."""
    path = tmp_path / "rows.cache"
    write_cache(path, *(plain_block(ROWS, seed) for seed in SEEDS))
    reader = _core.CacheReader(path)
    for number in SEEDS:
        reader.block(number, "float64")
    return path, reader


def overwrite(path, at, some):
    """Write bytes into a file; the file stays the same one."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(some)


def start_of_block(path, number):
    """Return the position of a block in a cache."""
    whole, at = path.read_bytes(), -1
    for _ in range(number + 1):
        at = whole.index(b"\x89TBlock\n", at + 1)
    return at


@pytest.mark.parametrize("at", [8, 24, 40, 64, 120, 128, 600])
def test_an_edit_after_the_first_reading_is_an_error(cache, at):
    path, reader = cache
    start = start_of_block(path, 2)
    overwrite(path, start + at, b"\xff\xff\xff\x7f")
    assert reader.block(1, "float64").rows == ROWS
    for _ in range(2):
        with pytest.raises(_core.CacheError, match=r"rows\.cache: block 2 .* has changed while"):
            reader.block(2, "float64")


def written_with_other_labels(other):
    """Write a cache whose labels have other signs; return its bytes."""
    # The labels of the blocks are the only difference, so that all sizes are the same.
    blocks = [plain_block(ROWS, seed) for seed in SEEDS]
    swapped = [
        _core.make_block(
            block.starts, block.keys, block.values, -block.labels, tags=block.tags,
            names=block.names,
        )
        for block in blocks
    ]  # fmt: skip
    return write_cache(other, *swapped)


def test_another_valid_cache_in_its_place_is_an_error(cache, tmp_path):
    """All checksums are right; only the rows are those of another cache."""
    path, reader = cache
    written = written_with_other_labels(tmp_path / "other.cache")
    assert len(written) == path.stat().st_size
    overwrite(path, 0, written)
    with pytest.raises(_core.CacheError, match=r"block 0 .* has changed while the cache is in use"):
        reader.block(0, "float64")
    found = _core.CacheReader(path).block(0, "float64").labels
    assert found.tolist() == (-plain_block(ROWS, 0).labels).tolist()


def test_another_valid_cache_in_its_place_during_the_only_reading(cache, tmp_path):
    path, _ = cache
    written = written_with_other_labels(tmp_path / "other.cache")
    blocks = scan(path).blocks()
    next(blocks)
    overwrite(path, 0, written)
    # A thread reads ahead: it may read a block while it is overwritten.
    with pytest.raises(_core.CacheError, match=r"block \d .* (has changed while|is damaged)"):
        list(blocks)


def test_a_block_that_was_read_does_not_change(cache):
    path, reader = cache
    kept = reader.block(3, "float64")
    before = [np.array(kept.values), np.array(kept.keys), np.array(kept.labels)]
    overwrite(path, 0, bytes(path.stat().st_size))
    for array, was in zip((kept.values, kept.keys, kept.labels), before, strict=True):
        assert array.tobytes() == was.tobytes()


@pytest.mark.parametrize("size", [0, 64, 70_000])
def test_a_cache_that_was_made_shorter_is_an_error(cache, size):
    path, reader = cache
    kept = reader.block(3, "float64")
    os.truncate(path, size)
    assert kept.values.tobytes() == plain_block(ROWS, 3).values.tobytes()
    with pytest.raises(_core.CacheError, match="bytes, and has fewer now"):
        reader.block(3, "float64")


def test_a_replaced_cache_is_read_as_it_was(cache):
    path, reader = cache
    write_cache(path, plain_block(7, 9))  # a new file under the same name
    for number in SEEDS:
        found = reader.block(number, "float64")
        assert found.values.tobytes() == plain_block(ROWS, number).values.tobytes()


class AfterFirstPass(Observer):
    """Calls a function after the first pass."""

    def __init__(self, change):
        self.change = change

    def tell(self, event, **facts):
        if event == "pass" and facts["number"] == 1:
            self.change()


@pytest.mark.parametrize("shuffle", [False, "blocks"])
@pytest.mark.parametrize("at", [130, 5000])
def test_training_ends_with_an_error(tmp_path, shuffle, at):
    path = tmp_path / "rows.cache"
    write_cache(path, *(plain_block(ROWS, seed) for seed in SEEDS))
    start = start_of_block(path, 2)
    change = AfterFirstPass(lambda: overwrite(path, start + at, b"\xff\xff\xff\x7f"))
    model = FTRLClassifier(store="hashed", passes=3, shuffle=shuffle, random_state=0)
    with pytest.raises((DataError, _core.CacheError), match="has changed while the cache is in"):
        model.fit(scan(path), observer=change)


def test_the_command_ends_with_an_error(tmp_path):
    """A process that trains from a cache whose file is cut after the first pass does not crash."""
    path = tmp_path / "rows.cache"
    write_cache(path, *(plain_block(ROWS, seed) for seed in SEEDS))
    code = """
import os, sys
from thresher.cli.app import main
from thresher.training.trainer import Trainer
ending = Trainer._end_pass
def cut(self):
    ending(self)
    os.truncate(sys.argv[2], 70000)
Trainer._end_pass = cut
main()
"""
    command = ["train", path, "--model", tmp_path / "model", "--rule", "ftrl", "--passes", "3"]
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, command)], capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    assert "rows.cache: the cache has changed while it is in use" in done.stderr
    assert not (tmp_path / "model").exists()


def test_digests_are_of_the_bytes_read(tmp_path):
    """Two caches with the same text digests and other values have other digests."""
    text = tmp_path / "a.svm"
    text.write_text("1 1:1\n0 2:1\n")
    (block,) = scan(text).blocks()
    found = []
    for factor in (1.0, 2.0):
        native = block.native
        made = _core.make_block(
            native.starts, native.keys, factor * native.values, native.labels,
            digest=native.digest, first_line=1, line_count=2,
        )  # fmt: skip
        write_cache(tmp_path / "a.cache", made)
        (again,) = scan(tmp_path / "a.cache").blocks()
        assert again.stored_digest == block.digest
        found.append(again.digest)
    assert len({*found, block.digest}) == 3
