"""The shuffle buffer of rows that can be read only once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher import scan
from thresher.data import shuffle_buffer
from thresher.data.row_folds import mixed
from thresher.data.shuffle_buffer import BufferedSource


def numbered(rows, size, **reading):
    X, y = np.arange(1.0, rows + 1)[:, None], np.arange(rows)
    pieces = [(X[i : i + size], y[i : i + size]) for i in range(0, rows, size)]
    return scan(iter(pieces), **reading)


def labels_of(source, seed=0, **reading):
    found = []
    for visit in source.visits(0, "each", seed, **reading):
        assert np.array_equal(np.asarray(visit.block.native.values) - 1, visit.block.labels)
        found += visit.block.labels.astype(int).tolist()
    return found


def naive(rows, buffer, seed):
    """Replace one row after the other."""
    salt = mixed(np.array([seed], np.uint64))[0]
    held, left = list(range(min(rows, buffer))), []
    for row in range(buffer, rows):
        slot = int(mixed(np.array([row], np.uint64) ^ salt)[0] % np.uint64(buffer))
        left.append(held[slot])
        held[slot] = row
    order = np.random.default_rng(seed).permutation(len(held))
    return left + [held[at] for at in order]


@settings(max_examples=3 * settings.default.max_examples)
@given(
    st.integers(1, 300), st.integers(1, 80), st.integers(1, 400), st.integers(0, 3)
)  # rows, rows of a block, rows of the buffer, seed
def test_equals_a_naive_buffer_for_any_blocks(rows, size, buffer, seed):
    found = labels_of(BufferedSource(numbered(rows, size), buffer, seed), seed)
    assert found == naive(rows, buffer, seed)
    assert sorted(found) == list(range(rows))


def test_rows_far_apart_stay_apart():
    found = np.array(labels_of(BufferedSource(numbered(5000, 100), 200, 0)))
    late = np.arange(5000) - found  # how much later than in the pipe
    assert late.min() >= -200
    assert 150 < late[:4000].mean() + 200 < 450


def test_a_pipe_that_is_read_again_continues_after_any_position():
    whole = labels_of(BufferedSource(numbered(500, 37), 60, 1), 1)
    done = 0
    for visit in BufferedSource(numbered(500, 37), 60, 1).visits(0, "each", 1):
        done += visit.block.rows
        rest = labels_of(BufferedSource(numbered(500, 37), 60, 1), 1, after=visit.end)
        assert rest == whole[done:]


@pytest.mark.parametrize("size", [10, 33, 500])
def test_long_rows_make_the_buffer_smaller(monkeypatch, size):
    monkeypatch.setattr(shuffle_buffer, "BYTES", 50 * 36)  # 12 for the value, 24 for the row
    found = labels_of(BufferedSource(numbered(500, size), 1000, 0))
    assert found == naive(500, 50, 0)


def test_names_come_with_the_rows_that_leave():
    rows = [({f"word{i}": 1.0 + i, "all": 1.0}, i % 2) for i in range(300)]
    source = BufferedSource(scan(iter(rows)), 50, 0)
    for visit in source.visits(0, "each", 0, names="blocks"):
        names = dict(visit.block.names)
        keys = np.asarray(visit.block.native.keys).astype(np.int64).view(np.uint64)
        for key, value in zip(keys.tolist(), visit.block.native.values, strict=True):
            assert names[key] in ("all", f"word{value - 1:.0f}")


def test_few_names_are_kept(monkeypatch):
    """The names of features that no row in the buffer has are forgotten."""
    kept = []

    class Few(shuffle_buffer._Names):
        def __init__(self):
            super().__init__()
            self._most = 100

        def prune(self, buffer):
            super().prune(buffer)
            self._most = 100
            kept.append(len(self.known))

    monkeypatch.setattr(shuffle_buffer, "_Names", Few)
    rows = [({f"word{i}": 1.0 + i}, i % 2) for i in range(5000)]
    found = {}
    for visit in BufferedSource(scan(iter(rows)), 50, 0).visits(0, "each", 0, names="blocks"):
        found.update(visit.block.names)
    assert set(found.values()) == {f"word{i}" for i in range(5000)}
    assert kept
    assert max(kept) < 2500


@pytest.mark.parametrize("labels", ["words", "lists"])
def test_other_labels_stay_with_their_rows(tmp_path, labels):
    def label(i):
        return [f"w{i % 7}"] if labels == "words" else [float(k) for k in range(i % 4)]

    if labels == "words":
        source = scan(iter([({"n": float(i + 1)}, label(i)[0]) for i in range(400)]))
    else:
        lines = [f"{','.join(map(str, label(i)))} 1:{i + 1}\n" for i in range(400)]
        (tmp_path / "rows.svm").write_text("".join(lines))
        source = scan(tmp_path / "rows.svm", multilabel=True)
    seen = []
    for visit in BufferedSource(source, 60, 3).visits(0, "each", 3):
        starts, own = visit.block.label_sets()
        if labels == "words":
            assert visit.block.native.labels is None
            assert visit.block.labels.tolist() == own.tolist()
        for row, value in enumerate(np.asarray(visit.block.native.values)):
            assert own[starts[row] : starts[row + 1]].tolist() == label(int(value) - 1)
            seen.append(int(value))
    assert sorted(seen) == list(range(1, 401))
    assert seen != sorted(seen)


def test_places_are_those_of_the_rows(tmp_path):
    lines = [f"{i} 1:{i}" + ("\n" if i % 5 else "\n\n") for i in range(1, 300)]
    (tmp_path / "rows.svm").write_text("".join(lines))
    text = (tmp_path / "rows.svm").read_text().splitlines()
    for visit in BufferedSource(scan(tmp_path / "rows.svm"), 40, 0).visits(0, "each", 0):
        for row in range(visit.block.rows):
            line = int(visit.block.place(row).rsplit(":", 1)[1])
            assert float(text[line - 1].split()[0]) == visit.block.labels[row]
            assert visit.block.label_place(row).endswith(f"rows.svm:{line}:1")
