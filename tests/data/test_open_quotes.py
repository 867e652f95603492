"""A quote of a CSV file that is never closed is a bad line; other quotes are read as before."""

from __future__ import annotations

import csv
import gzip
import io
import os
import random
import threading

import pytest

pytest.importorskip("pyarrow")

from support.tables import csv_file
from thresher import DataError, look, scan
from thresher.data import csv_files
from thresher.data.csv_layout import CsvLayout

HEAD = "label,a,b\n"
ROWS = "1,2.5,x\n0,3,y\n" * 500
OPEN = HEAD + ROWS + '1,2,"x\n' + ROWS


def labels(path, **options):
    """Return the labels of all rows."""
    found = []
    for block in scan(path, label="label", **options).blocks(labelled=True):
        found += block.labels.tolist()
    return found


@pytest.mark.parametrize("end", ["\n", "", "\r\n", "\n\n", '""\n'])
def test_the_error_names_the_line(tmp_path, end):
    path = csv_file(tmp_path, OPEN.removesuffix("\n") + end)
    with pytest.raises(DataError, match=r"csv:1002: a quote is never closed.*1,000 lines.*quotes"):
        labels(path)


@pytest.mark.parametrize(
    ("row", "line"), [('1,"2,x', 1002), ('"1,2,x', 1002), ('1,2,x\n0,3\n1,2,"y', 1003)]
)
def test_in_any_cell(tmp_path, row, line):
    path = csv_file(tmp_path, HEAD + ROWS + row + "\n" + ROWS)
    with pytest.raises(DataError, match=rf"csv:{line}: "):
        labels(path)
    assert labels(path, on_bad_line="skip")[:1000] == [1.0, 0.0] * 500


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "latin-1", "utf-8-sig"])
def test_other_encodings(tmp_path, encoding):
    path = csv_file(tmp_path, OPEN.encode(encoding))
    with pytest.raises(DataError, match=r"csv:1002: a quote is never closed"):
        labels(path, encoding=encoding)
    path = csv_file(tmp_path, (HEAD + ROWS + '1,2,"x\n"').encode(encoding))
    assert len(labels(path, encoding=encoding)) == 1001


def test_a_utf16_file_of_the_other_byte_order(tmp_path):
    path = csv_file(tmp_path, b"\xfe\xff" + OPEN.encode("utf-16-be"))
    with pytest.raises(DataError, match=r"csv:1002: a quote is never closed"):
        labels(path)


def test_a_compressed_file(tmp_path):
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(OPEN.encode()))
    with pytest.raises(DataError, match=r"gz:1002: a quote is never closed"):
        labels(str(path))


def test_a_bad_line_that_is_left_out(tmp_path):
    path, bad = csv_file(tmp_path, OPEN), tmp_path / "bad"
    source = scan(path, label="label", on_bad_line=f"quarantine={bad}")
    assert sum(block.rows for block in source.blocks(labelled=True)) == 1000
    assert source.bad_lines.count == 1
    assert "csv:1002: a quote is never closed" in source.bad_lines.warning
    assert bad.read_text() == '1,2,"x\n' + ROWS


def test_no_quotes(tmp_path):
    assert len(labels(csv_file(tmp_path, OPEN), quotes=False)) == 2001


def test_look_reads_quotes_as_plain_characters(tmp_path):
    for row in ('1,2,"x\n', '1,"2,x\n'):
        found = look(csv_file(tmp_path, HEAD + ROWS + row + ROWS))
        assert found.facts.rows.read == 2001
        assert "--no-quotes" in found.command


def _rows(data, columns, **layout):
    """Return rows, and the bad lines, as the reader of CSV returns them."""
    bad = []
    names = tuple(f"c{place}" for place in range(columns))
    kind = CsvLayout(header=False, names=names, **layout)
    tables = csv_files.read_csv(data, 7, kind, lambda *line: bad.append(line))
    rows = [row for table in tables for row in zip(*table.to_pydict().values(), strict=True)]
    return [tuple((cell or b"").decode() for cell in row) for row in rows], bad


@pytest.mark.parametrize("columns", [1, 3])
def test_legal_quotes_are_read_as_before(tmp_path, monkeypatch, columns):
    """Doubled quotes and line breaks, also at the end of the file and of the reader's blocks."""
    monkeypatch.setattr(csv_files, "_BLOCK", 96)
    rng = random.Random(columns)
    pieces = ["a", "b,c", '"', '""', "\n", "\n\n", " ", 'x"y', '"z"']
    for case in range(60):
        rows = [
            tuple("".join(rng.choices(pieces, k=rng.randrange(1, 5))) for _ in range(columns))
            for _ in range(rng.randrange(1, 30))
        ]
        text = io.StringIO()
        csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
        whole = text.getvalue()
        end = ["", "\n", "\r\n", "\n\n"][case % 4]
        path = csv_file(tmp_path, (whole.removesuffix("\n") + end).encode())
        assert _rows(path, columns) == (rows, [])
        # Without its last quote, the last row is bad; the rows before it are as they were.
        path = csv_file(tmp_path, (whole.removesuffix('"\n') + end).encode())
        found, bad = _rows(path, columns)
        assert found == rows[:-1]
        assert [line[0] for line in bad] == [len(rows)]
        assert "a quote is never closed" in str(bad[0][1])


def test_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text(OPEN))
    writer.start()
    with pytest.raises(DataError, match=r"pipe:1002: a quote is never closed"):
        labels(str(path), format="csv")
    writer.join()
