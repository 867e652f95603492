"""What text files may begin with, and how their lines may end."""

from __future__ import annotations

import gzip
import os
import threading

import pytest

from thresher import DataError, scan
from thresher.data.spans import Span
from thresher.data.text_part import TextPart

ROWS = {"svm": ["1 1:2", "-1 2:3", "1 1:1"], "vw": ["1 |a x", "-1 |a y:2", "1 't|a x"]}
BOM = b"\xef\xbb\xbf"


def rows_of(path, **options):
    """Return labels and keys of all rows, and where blocks end."""
    blocks = list(scan(path, **options).blocks())
    labels = [label for block in blocks for label in block.labels.tolist()]
    return labels, [key for block in blocks for key in block.native.keys.tolist()]


@pytest.fixture(params=ROWS)
def kind(request):
    """A format of text, by its suffix."""
    return request.param


@pytest.mark.parametrize("end", ["\r", ""])
@pytest.mark.parametrize("named", [False, True])
def test_lines_that_end_with_cr_alone_are_refused(tmp_path, kind, end, named):
    path = tmp_path / f"rows.{kind}"
    path.write_bytes(("\r".join(ROWS[kind]) + end).encode())
    format = {"svm": "svmlight", "vw": "vw"}[kind] if named else None
    for policy in ("error", "skip"):
        with pytest.raises(DataError, match=r"rows\.\w+: its lines end with CR alone.*tr '"):
            rows_of(path, format=format, on_bad_line=policy)


@pytest.mark.parametrize("text", ["1 |a x\r", "1 |a x\r\n-1 |a y\r\n", "1 |a x\r-1 |a y\n1 |a x\n"])
def test_other_ends_of_lines_are_read_as_before(tmp_path, text):
    path = tmp_path / "rows.vw"
    path.write_bytes(text.encode())
    assert len(rows_of(path)[0]) == max(text.count("\n"), 1)


LONG = {"svm": " 7:1" * 20_000, "vw": " z" * 40_000}  # more than the bytes that are looked at


@pytest.mark.parametrize("text", ["1 |a x\r|b y", "|a x\ry", "'t|a x \r |b\r |c y"])
@pytest.mark.parametrize("rest", ["", LONG["vw"]])
def test_vw_text_may_have_cr_within_its_only_row(tmp_path, text, rest):
    path, ended = tmp_path / "rows.vw", tmp_path / "ended.vw"
    path.write_text(text + rest, newline="")
    ended.write_text(text + rest + "\n", newline="")
    options = {"format": "vw", "labelled": False}
    labels, keys = rows_of(path, **options)
    assert len(labels) == 1
    assert keys == rows_of(ended, **options)[1]


@pytest.mark.parametrize("blanks", [0, 1, 2, 3])
def test_long_lines_that_end_with_cr_alone_are_refused(tmp_path, kind, blanks):
    """The bytes that are looked at may end within a number."""
    first = {"svm": "1 1:2", "vw": "1 |a x"}[kind] + " " * blanks
    path = tmp_path / f"rows.{kind}"
    path.write_bytes(f"{first}\r{first}{LONG[kind]}\r".encode())
    with pytest.raises(DataError, match="its lines end with CR alone"):
        rows_of(path)


@pytest.mark.parametrize(("kind", "row"), [("vw", "-1 |a x"), ("svm", "1 24:0.7")])
def test_a_cr_before_the_only_row_is_refused(tmp_path, kind, row):
    path = tmp_path / f"rows.{kind}"
    path.write_text(f"\r{row}", newline="")
    with pytest.raises(DataError, match="its lines end with CR alone"):
        list(scan(str(path)).blocks())


@pytest.mark.parametrize("text", [b"|a x\r|a y\r", BOM + b"|a x\r|a y"])
def test_rows_without_labels_that_end_with_cr_alone_are_refused(tmp_path, text):
    path = tmp_path / "rows.vw"
    path.write_bytes(text)
    with pytest.raises(DataError, match="its lines end with CR alone"):
        rows_of(path, labelled=False)
    path.write_bytes(b"\r\r")
    assert rows_of(path, labelled=False, on_bad_line="skip") == ([], [])


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path, kind):
    text = ("\n".join(ROWS[kind]) + "\n").encode()
    plain, marked = tmp_path / f"plain.{kind}", tmp_path / f"marked.{kind}"
    packed = tmp_path / f"marked.{kind}.gz"
    plain.write_bytes(text)
    marked.write_bytes(BOM + text)
    packed.write_bytes(gzip.compress(BOM + text))
    assert rows_of(marked) == rows_of(packed) == rows_of(plain)
    assert [block.end.offset for block in scan(marked).blocks()] == [len(BOM + text)]


def test_a_byte_order_mark_in_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(BOM + b"1 |a x\n-1 |a y\n"))
    writer.start()
    assert rows_of(path, format="vw")[0] == [1.0, -1.0]
    writer.join()


def test_a_byte_order_mark_before_a_span(tmp_path, kind):
    text = BOM + ("\n".join(ROWS[kind]) + "\n").encode()
    path = tmp_path / f"rows.{kind}"
    path.write_bytes(text)
    source = scan(path)
    halves = [Span(0, 5), Span(5, len(text))]
    format = {"svm": "svmlight", "vw": "vw"}[kind]
    found = []
    for span in halves:
        source.parts = [TextPart(str(path), format, source.reading, span)]
        found += [label for block in source.blocks() for label in block.labels.tolist()]
    assert found == [1.0, -1.0, 1.0]
