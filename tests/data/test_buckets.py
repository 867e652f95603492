"""A true shuffle in memory and on disk: a permutation in each pass, the same for any blocks."""

import errno
import os
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.files import svmlight, vw
from thresher import DataError, scan
from thresher.data import buckets, shuffled
from thresher.data.shuffled import ShuffledSource
from thresher.errors import ParameterError


@pytest.fixture(params=["memory", "disk"])
def kept(request, monkeypatch):
    """Keep rows in memory, or in many small segments on disk."""
    if request.param == "disk":
        on_disk(monkeypatch)
    return request.param


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Return an empty folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def on_disk(monkeypatch, count=8):
    monkeypatch.setattr(shuffled, "LIMIT", 4000)
    monkeypatch.setattr(shuffled, "BATCH", 3000)
    monkeypatch.setattr(buckets, "FEWEST", count)
    monkeypatch.setattr(buckets, "_ROWS", 64)


def numbered(rows, size=None, y=None):
    """Return a source whose rows have their number as label and as value."""
    X, y = np.arange(1.0, rows + 1)[:, None], np.arange(rows) if y is None else y
    size = size or max(rows, 1)
    return scan(lambda: ((X[i : i + size], y[i : i + size]) for i in range(0, rows, size)))


def labels_of(source, number=0, shuffle="each", seed=0, after=None):
    visits = source.visits(number, shuffle, seed, after)
    found = []
    for visit in visits:
        assert visit.order is None
        values = np.asarray(visit.block.native.values)
        assert np.array_equal(values - 1, visit.block.labels)
        found.append(np.array(visit.block.labels))
    return np.concatenate(found).astype(int).tolist()


@settings(max_examples=settings.default.max_examples)
@given(st.integers(1, 700), st.integers(1, 99), st.integers(0, 5), st.booleans())
def test_every_pass_is_a_permutation_that_blocks_do_not_change(rows, size, seed, disk):
    with pytest.MonkeyPatch.context() as patch:
        if disk:
            on_disk(patch)
        source, other = (ShuffledSource(numbered(rows, s), seed) for s in (size, rows))
        passes = [labels_of(source, number, seed=seed) for number in range(3)]
        for number, found in enumerate(passes):
            assert sorted(found) == list(range(rows))
            assert labels_of(other, number, seed=seed) == found
        if rows > 20:
            assert len({tuple(found) for found in passes}) == 3
        assert labels_of(source, 2, "once", seed) == passes[0]
        assert labels_of(source, 1, "each", seed) == passes[1]  # again


def test_rows_on_disk_are_in_buckets(monkeypatch, temporary):
    on_disk(monkeypatch)
    source = ShuffledSource(numbered(1000, 50), 0)
    assert sorted(labels_of(source)) == list(range(1000))
    kept = source.part.opened
    assert isinstance(kept, buckets.FileBuckets)
    assert len(kept.sizes) == 8
    assert sum(kept.sizes) == 1000
    assert min(kept.sizes) > 80
    assert kept.reader.blocks > 8  # several segments of each
    assert not list(temporary.iterdir())  # the file has no name


def test_a_pass_continues_after_any_position(kept):
    source = ShuffledSource(numbered(500, 40), 3)
    whole = labels_of(source, 1, seed=3)
    done = 0
    for visit in source.visits(1, "each", 3):
        done += visit.block.rows
        assert (labels_of(source, 1, seed=3, after=visit.end) if done < 500 else []) == whole[done:]


def test_threads_do_not_matter(tmp_path, monkeypatch):
    on_disk(monkeypatch)
    file = svmlight(tmp_path / "rows.svm", rows=3000)
    found = []
    for threads in (1, 2, 4):
        blocks = ShuffledSource(scan(file, threads=threads), 1).blocks()
        found.append(b"".join(np.asarray(b.native.values).tobytes() for b in blocks))
    assert found[0] == found[1] == found[2]


def test_places_in_the_order_are_uniform(kept):
    """Chi-square over the fifth of the pass in which each fifth of the rows is learned."""
    rows, table = 500, np.zeros((5, 5))
    source = ShuffledSource(numbered(rows, 50), 0)
    for seed in range(20):
        for number in range(2):
            found = np.array(labels_of(source, number, seed=seed))
            np.add.at(table, (np.arange(rows) // 100, found // 100), 1)
    expected = table.sum() / 25
    chi = ((table - expected) ** 2 / expected).sum()
    assert 16 - 4 * np.sqrt(32) < chi < 16 + 4 * np.sqrt(32)  # 16 degrees of freedom


def test_neighbours_come_from_anywhere(kept):
    found = np.array(labels_of(ShuffledSource(numbered(2000, 100), 0)))
    correlation = np.corrcoef(found[1:], found[:-1])[0, 1]
    assert abs(correlation) < 4 / np.sqrt(2000)


def test_with_replacement_rows_repeat_within_buckets(kept):
    source = ShuffledSource(numbered(600, 50), 0)
    found = labels_of(source, 1, "replace")
    assert len(found) == 600
    assert 300 < len(set(found)) < 450  # about 63 %
    assert labels_of(source, 1, "replace") == found
    assert labels_of(source, 2, "replace") != found


def test_weights_lists_of_labels_and_names(tmp_path, kept):
    file = tmp_path / "rows.svm"
    lines = [f"{i % 7},{100 + i} {1 + i % 9}:{i}" for i in range(1, 400)]
    file.write_text("\n".join(lines) + "\n")
    found = set()
    for block in ShuffledSource(scan(file, multilabel=True), 0).blocks():
        starts, labels = block.label_sets()
        values = np.asarray(block.native.values)
        for row in range(block.rows):
            own = labels[starts[row] : starts[row + 1]]
            assert own.tolist() == [values[row] % 7, 100 + values[row]]
            found.add(values[row])
    assert len(found) == 399

    source = scan(vw(tmp_path / "rows.vw", rows=500))
    moved = ShuffledSource(source, 0)
    keys = np.unique(np.concatenate([np.asarray(b.native.keys) for b in source.blocks()]))
    keys = keys.astype(np.int64).view(np.uint64).tolist()
    assert moved.names(keys) == source.names(keys)
    weights = [np.ones(b.rows) if b.weights is None else b.weights for b in source.blocks()]
    shuffled_weights = [np.ones(b.rows) if b.weights is None else b.weights for b in moved.blocks()]
    assert sorted(np.concatenate(weights)) == sorted(np.concatenate(shuffled_weights))


def test_words_as_labels(kept):
    words = np.array(["ham", "spam", "eggs"], object)[np.arange(300) % 3]
    source = ShuffledSource(numbered(300, 20, words), 0)
    for block in source.blocks():
        values = np.asarray(block.native.values).astype(int) - 1
        assert block.labels.tolist() == words[values].tolist()
    assert source.labels().tolist() == ["eggs", "ham", "spam"]


def test_errors_name_the_line(tmp_path, kept):
    file = svmlight(tmp_path / "rows.svm", rows=300)
    lines = file.read_text().splitlines()
    source = ShuffledSource(scan(file), 0)
    for block in source.blocks():
        for row in range(0, block.rows, 20):
            path, line = block.place(row).rsplit(":", 1)
            assert path == str(file)
            assert float(lines[int(line) - 1].split()[0]) == block.labels[row]
            assert block.label_place(row) == f"{file}:{line}:1"


def test_no_file_is_left_after_an_error_or_an_interrupt(monkeypatch, temporary):
    on_disk(monkeypatch)

    def broken(error):
        for _ in range(30):
            yield np.ones((50, 1)), np.zeros(50)
        assert list(temporary.iterdir())  # rows are on disk by now
        raise error

    for error in (RuntimeError("no more"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            list(ShuffledSource(scan(lambda e=error: broken(e)), 0).blocks())
        assert not list(temporary.iterdir())


def test_a_full_disk_is_an_error_that_names_the_folder(monkeypatch, temporary):
    on_disk(monkeypatch)
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr(buckets.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(OSError, match="has no space for the shuffled rows") as caught:
        list(ShuffledSource(numbered(1000, 50), 0).blocks())
    assert caught.value.errno == errno.ENOSPC
    assert str(temporary) in str(caught.value)
    assert not list(temporary.iterdir())


def test_rows_kept_in_a_cache_are_used_again(tmp_path, kept, monkeypatch):
    file, path = svmlight(tmp_path / "rows.svm", rows=400), str(tmp_path / "rows.cache")
    first = ShuffledSource(scan(file), 0, path)
    assert first.why_read() == "there is no cache yet"
    found = [block.labels.tolist() for block in first.blocks()]
    again = ShuffledSource(scan(file), 0, path)
    assert again.why_read() is None
    assert [block.labels.tolist() for block in again.blocks()] == found
    assert [b.labels.tolist() for b in ShuffledSource(scan(file), 0).blocks()] == found  # without
    again = ShuffledSource(scan(file), 5, path)
    assert again.why_read() is None  # for any seed
    os.utime(file, (1, 1))
    assert "changed" in ShuffledSource(scan(file), 0, path).why_read()


def test_a_pipe_can_be_shuffled_in_a_cache(tmp_path, kept):
    X, y = np.arange(1.0, 401)[:, None], np.arange(400)
    once = scan(iter([(X[i : i + 50], y[i : i + 50]) for i in range(0, 400, 50)]))
    source = ShuffledSource(once, 0, str(tmp_path / "rows.cache"))
    assert source.rereadable
    for number in range(2):
        assert sorted(labels_of(source, number)) == list(range(400))


def test_no_rows_are_an_error(tmp_path):
    (tmp_path / "rows.svm").write_text("# nothing\n")
    with pytest.raises(DataError, match="no rows to learn from"):
        list(ShuffledSource(scan(tmp_path / "rows.svm", format="svmlight"), 0).blocks())


@pytest.mark.parametrize("words_first", [True, False])
def test_labels_of_two_kinds_are_an_error(words_first):
    batches = [(np.eye(2), np.array([0, 1])), (np.eye(2), np.array(["no", "yes"]))]
    batches = batches[::-1] if words_first else batches
    with pytest.raises(ParameterError, match="labels are partly numbers and partly words"):
        list(ShuffledSource(scan(lambda: iter(batches)), 0).blocks())
