"""A quote of a CSV file that is never closed is a bad line; other quotes are read as before."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import threading

import pytest

pytest.importorskip("pyarrow")

from support.files import called
from support.tables import csv_file
from thresher import DataError, look, scan
from thresher.data import csv_files
from thresher.data.csv_layout import CsvLayout
from thresher.errors import InputError

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


def test_look_counts_the_row_as_one_bad_line(tmp_path):
    """Cells with the delimiter show that quotes are marks; the row is in a later block."""
    rows = "".join(f'{i % 2},"Smith, J{i}",4\n' for i in range(60_000))
    path = csv_file(tmp_path, "y,a,b\n" + rows + '1,"Smi')
    found = look(path)
    assert found.facts.rows.read == 60_000
    assert found.facts.bad.lines == 1
    assert found.facts.bad.first.startswith(f"{path}:60002: a quote is never closed")
    assert "--no-quotes" not in found.command
    assert not any(one.name in ("empty", "quotes") for one in found.findings)


@pytest.mark.parametrize(
    "row", ['1,4,"Smi', '1,4,"Smi\n(2 rows)\n', '"1,4,Smi\n', '1,"x, y",4,"z\n']
)
def test_look_keeps_quotes_if_few_lines_follow(tmp_path, row):
    path = csv_file(tmp_path, 'y,a,b\n1,4,"Smith"\n0,5,"J, D"\n' + row)
    found = look(path)
    assert found.facts.rows.read == 2
    assert found.facts.bad.first.startswith(f"{path}:4: a quote is never closed")
    assert "--no-quotes" not in found.command


def test_look_names_the_option_if_quotes_may_be_plain():
    """A second reading would tell, but a pipe has none."""
    found = json.loads(called("look", "-", "--format", "csv", "--json", stdin=OPEN.encode()).stdout)
    assert found["rows"]["read"] == 1000
    (bad,) = (one for one in found["findings"] if one["name"] == "bad lines")
    assert "-:1002: a quote is never closed" in bad["what"]
    assert bad["advice"] == "if quotes are part of the cells, use --no-quotes"


def test_look_begins_again_with_all_files(tmp_path):
    """No row counts twice, and none was read in the other way."""
    first = csv_file(tmp_path, HEAD + ROWS, "first.csv")
    lines = '1,2.5,"x"\n0,3,y\n' * 20_000 + '1,2,"x\n' + ROWS
    found = look([first, csv_file(tmp_path, HEAD + lines, "second.csv")])
    assert found.facts.rows.read == 1000 + 40_000 + 1001
    assert found.facts.bad.lines == 0
    assert [one.layout.quotes for one in found.facts.files] == [True, False]
    column = found.facts.column("b")
    assert column.distinct == 4  # x, y, and with quotes: "x", "x
    assert "--no-quotes" in found.command


@pytest.mark.parametrize("head", ['y,"a\n', '"y,a\n', 'y,"a'])
@pytest.mark.parametrize("options", [{}, {"on_bad_line": "skip"}, {"header": True}])
def test_a_header(tmp_path, head, options):
    path = csv_file(tmp_path, head + "1,2\n2,3\n" * head.endswith("\n"))
    what = r"csv:1: a quote in the header is never closed; .*quotes=False"
    with pytest.raises(InputError, match=what):
        list(scan(path, label="y", **options).blocks(labelled=True))
    assert look(path).facts.files[0].unsure == ("quotes",)


@pytest.mark.parametrize("rows", [10_000, 100_000])
def test_a_header_of_a_longer_file(tmp_path, rows):
    path = csv_file(tmp_path, 'y,"a\n' + "1,2\n2,3\n" * rows)
    with pytest.raises(InputError, match=r"csv:1: .*never closed, or the header is longer than 64"):
        list(scan(path, label="y").blocks())
    assert look(path).facts.rows.read == 2 * rows


def test_a_header_of_several_lines_is_legal(tmp_path):
    for end in ("", "\n", "\n\n"):
        path = csv_file(tmp_path, 'label,"a\n""b"""' + end)
        assert labels(path) == []
    assert labels(csv_file(tmp_path, 'label,"a\nb"\n1,2\n')) == [1.0]


def test_the_first_row_of_a_file_without_a_header_is_a_bad_line(tmp_path):
    path = csv_file(tmp_path, '1,"2\n0,3\n')
    with pytest.raises(DataError, match=r"csv:1: a quote is never closed"):
        list(scan(path, label=0, header=False).blocks())
    source = scan(path, label=0, header=False, on_bad_line="skip")
    assert sum(block.rows for block in source.blocks()) == 0


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
