"""A file that changes while it is read, or between passes, is an error that names lines."""

from __future__ import annotations

import contextlib
import gzip
import os

import numpy as np
import pytest

from support.changing_files import (
    FORMATS,
    Once,
    replaced,
    rewritten,
    rows_as_text,
    some_rows,
    write_rows,
)
from thresher import DataError, FTRLClassifier, Interrupted, scan

ROWS = 30_000  # several blocks in each format
CHANGED = r"rows\.\S+: the input has changed"


def model(**options):
    """Return an estimator that makes three passes in stored order."""
    options = {"passes": 3, "shuffle": False, "random_state": 0, **options}
    return FTRLClassifier(store="hashed", **options)


def weights(fitted):
    """Return all weights, for comparison."""
    found = fitted.model_
    return found.indices.tolist(), found.weights.tolist(), np.asarray(fitted.intercept_).tolist()


@pytest.fixture(params=FORMATS)
def path(request, tmp_path):
    """A file of rows in each format."""
    file = tmp_path / f"rows.{request.param}"
    write_rows(file, ROWS)
    return file


@pytest.mark.parametrize(
    ("change", "rows", "seed"), [(replaced, 0, 0), (rewritten, 8192, 0), (replaced, ROWS, 1)]
)
def test_between_two_passes(path, change, rows, seed):
    """Neither no rows, nor fewer, nor others are learned; the error names the file."""
    observer = Once(lambda: change(path, rows, seed))
    with pytest.raises(DataError, match=r"rows\.\S+: .*(has changed|Empty CSV)"):
        model().fit(scan(path), observer=observer)
    assert observer.done


@pytest.mark.parametrize("suffix", ["svm", "vw", "csv"])
def test_emptied_between_two_passes(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    write_rows(path, ROWS)
    with pytest.raises(DataError, match=CHANGED):
        model().fit(scan(path), observer=Once(lambda: path.write_bytes(b"")))


def test_the_error_names_the_lines(tmp_path):
    path = tmp_path / "rows.svm"
    write_rows(path, ROWS)
    ends = [block.end for block in scan(path).blocks()]
    assert len(ends) > 2
    whole = path.read_bytes()

    def changed_to(some):
        path.write_bytes(whole)
        with pytest.raises(DataError, match=CHANGED) as caught:
            model().fit(scan(path), observer=Once(lambda: path.write_bytes(some)))
        return str(caught.value).partition("last read: ")[2]

    first, second, last = ends[0].line, ends[1].line, ends[-1].line
    assert changed_to(b"") == f"lines 1 to {last} are missing"
    assert changed_to(whole[: ends[0].offset]) == f"lines {first + 1} to {last} are missing"
    edited = bytearray(whole)
    edited[ends[0].offset] ^= 1  # the label 0 or 1 of a row
    assert changed_to(bytes(edited)) == f"lines {first + 1} to {second} differ"


@pytest.mark.parametrize("suffix", ["svm", "vw", "csv", "svm.gz"])
@pytest.mark.parametrize("passes", [1, 3])
def test_cut_at_a_block_boundary_in_the_first_pass(tmp_path, suffix, passes):
    """The rest of the rows is missing in every pass, so no digest differs."""
    path = tmp_path / f"rows.{suffix}"
    X, y = some_rows(ROWS)
    pieces = [rows_as_text(path, X[:5000], y[:5000]), rows_as_text(path, X[5000:], y[5000:])]
    if suffix == "csv":
        pieces[1] = pieces[1].partition(b"\n")[2]
    if suffix == "svm.gz":  # two members: each is whole
        pieces = [gzip.compress(piece, 1) for piece in pieces]
    path.write_bytes(b"".join(pieces))
    os.utime(path, (1e9, 1e9))
    source, cut = scan(path, threads=1), []
    blocks = source.blocks

    def cutting(*args, **options):
        if not cut and options.get("dtype") is not None:
            cut.append(os.truncate(path, len(pieces[0])))
        return blocks(*args, **options)

    # The size is known when the reading begins, and the file is cut before its end.
    source.parts[0].watch.size = path.stat().st_size
    source.blocks = cutting
    with pytest.raises(DataError, match=CHANGED):
        model(passes=passes).fit(source)
    assert cut


def test_rewritten_in_the_first_pass(path):
    """Other rows in the same file: the only pass may have read a part of each."""
    with pytest.raises(DataError, match=r"rows\.\S+: .*"):
        model(passes=1).fit(
            scan(path, threads=1), observer=Once(lambda: rewritten(path, ROWS, 1), blocks=1)
        )


def test_replaced_in_the_first_pass(path):
    """The file that is open stays as it was: its rows are learned, or there is an error."""
    expected = weights(model(passes=1).fit(scan(path, threads=1)))
    observer = Once(lambda: replaced(path, ROWS, 1), blocks=1)
    found = None
    with contextlib.suppress(DataError):
        found = weights(model(passes=1).fit(scan(path, threads=1), observer=observer))
    assert found in (None, expected)
    assert observer.done


def test_a_file_that_is_only_touched_is_not_an_error(path):
    expected = model().fit(scan(path))
    found = model().fit(scan(path), observer=Once(lambda: os.utime(path), blocks=2))
    assert weights(found) == weights(expected)


class TestGrowth:
    """Lines that are added to a file are not read."""

    @pytest.mark.parametrize("suffix", ["svm", "vw", "csv"])
    @pytest.mark.parametrize("blocks", [1, None])
    def test_whole_lines_are_left_for_a_later_run(self, tmp_path, suffix, blocks):
        path = tmp_path / f"rows.{suffix}"
        write_rows(path, ROWS)
        expected = model().fit(scan(path))
        more = rows_as_text(path, *some_rows(9000, 3))

        def grow():
            with path.open("ab") as file:
                file.write(more.partition(b"\n")[2])

        found = model().fit(scan(path), observer=Once(grow, blocks=blocks))
        assert weights(found) == weights(expected)

    def test_whole_lines_of_utf16(self, tmp_path):
        """The last byte of a line is not that of its end."""
        path = tmp_path / "rows.csv"
        path.write_text("x,label\n" + "1,0\n2,1\n" * 50, encoding="utf-16-le")
        source = scan(path, label="label", encoding="utf-16-le")
        rows = sum(block.rows for block in source.blocks())
        with path.open("ab") as file:
            file.write("3,1\n".encode("utf-16-le"))
        assert sum(block.rows for block in source.blocks()) == rows == 100

    @pytest.mark.parametrize("suffix", ["svm", "csv"])
    @pytest.mark.parametrize("passes", [1, 3])
    def test_a_line_that_was_not_complete_is_an_error(self, tmp_path, suffix, passes):
        path = tmp_path / f"rows.{suffix}"
        write_rows(path, ROWS)
        path.write_bytes(path.read_bytes()[:-1])
        os.utime(path, (1e9, 1e9))

        def grow():
            with path.open("ab") as file:
                file.write(b"7\n")

        with pytest.raises(DataError, match="its last line was not complete"):
            model(passes=passes).fit(scan(path), observer=Once(grow, blocks=1))

    def test_a_resumed_run_does_not_read_them(self, tmp_path):
        path, checkpoint = tmp_path / "rows.svm", tmp_path / "run"
        write_rows(path, ROWS)
        expected = model().fit(scan(path))
        stopping = Once(lambda: None, blocks=2)
        stopping.stops = lambda: stopping.done
        with pytest.raises(Interrupted):
            model().fit(scan(path), observer=stopping, checkpoint=checkpoint)
        with path.open("ab") as file:
            file.write(rows_as_text(path, *some_rows(9000, 3)))
        found = model().fit(scan(path), checkpoint=checkpoint, resume=True)
        assert weights(found) == weights(expected)


def test_a_resumed_run_whose_file_is_cut_in_a_later_pass(tmp_path):
    path, checkpoint = tmp_path / "rows.svm", tmp_path / "run"
    write_rows(path, ROWS)
    ends = [block.end for block in scan(path).blocks()]
    stopping = Once(lambda: None, blocks=len(ends) + 1)
    stopping.stops = lambda: stopping.done
    with pytest.raises(Interrupted):
        model().fit(scan(path), observer=stopping, checkpoint=checkpoint)
    os.truncate(path, ends[1].offset)
    missing = f"lines {ends[1].line + 1} to {ROWS} are missing"
    with pytest.raises(DataError, match=f"{CHANGED}.*{missing}"):
        model().fit(scan(path), checkpoint=checkpoint, resume=True)
