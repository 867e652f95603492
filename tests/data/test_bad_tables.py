"""Bad tables: errors name file, line and column, and bad rows can be left out."""

import gzip
import sys

import numpy as np
import pytest

from thresher.data import bad_lines, tables
from thresher.data.tables import TableColumns, TableSource
from thresher.errors import DataError, ParameterError

pa = pytest.importorskip("pyarrow", reason="needs the extra arrow")

from support.tables import csv_file, named_rows, rows_of, table_file  # noqa: E402


@pytest.fixture
def small(monkeypatch):
    """Batches of 4 rows, so that small files have several batches."""
    monkeypatch.setattr(tables, "BATCH_ROWS", 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,y\n1,1\n2\n", r":3: expected 2 cells, found 1"),
        ("a,y\n1,1\n2,3,4\n", r":3: expected 2 cells, found 3"),
        ("a,y\n1,1\nnan,0\n", r":3: column 'a': nan is not a finite number"),
        ("a,y\n1e999,1\n", r":2: column 'a': inf is not a finite number"),
        ("a,y\n1,1\n2,inf\n", r":3: column 'y': inf is not"),
        ("a,y\n1e60,1\n", r":2: column 'a': 1e\+60 is too large for float32"),
        ("a,a,y\n1,1,1\n", r": two columns are named 'a'"),
        (b"a,y\n1,1\n\xff,1\n", r":3: column 'a': .*is not UTF-8; .* encoding='latin-1'"),
        ('a,y\n1,1\n"' + "2,1\n" * 200_000, r": a row is longer than 256 KiB, or a quote is never"),
    ],
)
def test_bad_csv(tmp_path, text, message):
    path = csv_file(tmp_path, text)
    with pytest.raises(
        (DataError, ParameterError), match="data.csv" + message.removeprefix("data.csv")
    ):
        list(TableSource(path, "csv").blocks())


def test_a_cell_of_another_kind_in_a_later_batch(tmp_path, small):
    path = csv_file(tmp_path, "a,b,y\n" + "1,true,0\n" * 5 + "x,maybe,1\n")
    with pytest.raises(DataError, match=r":7: column 'a': expected a number.*found \"x\".*kinds"):
        rows_of(path)
    with pytest.raises(DataError, match=r":7: column 'b': expected true or false.*\"maybe\""):
        rows_of(path, ignore=["a"])
    assert rows_of(path, categorical=["a", "b"])[-1] == [("a=x", 1), ("b=maybe", 1)]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1.0, np.nan, 2.0]), "row: .*nan is not a finite number"),
        (pa.array([[1.0], [np.inf], []]), "row: .*inf is not a finite number"),
        (
            pa.array([[("k", 1.0)], [("k", -np.inf)], []], pa.map_(pa.string(), pa.float64())),
            "row: .*-inf",
        ),
        (pa.array([0, 1, 2], pa.timestamp("s")), "timestamp.*dates='parts'.*ignore"),
        (pa.array([{"a": 1}] * 3), "type struct.*ignore"),
        (pa.array([[[1]]] * 3), "lists must hold"),
        (pa.array([[(1, 1)]] * 3, pa.map_(pa.int64(), pa.int64())), "maps must hold"),
    ],
)
def test_bad_columns(tmp_path, column, message):
    path = table_file(tmp_path, {"col": column, "y": [0, 1, 0]})
    message = message.replace("row: ", r"data.parquet:2: column 'col': ")
    with pytest.raises((DataError, ParameterError), match=message):
        list(TableSource(path, "parquet").blocks())
    with pytest.raises(ParameterError, match="text column 'col' has type"):
        list(TableSource(path, "parquet", TableColumns(text=["col"])).blocks())


@pytest.mark.parametrize("weight", ["-1", "", "inf", "NA"])
def test_bad_weights(tmp_path, weight):
    path = csv_file(tmp_path, f"a,w,y\n1,1,1\n1,{weight},1\n")
    with pytest.raises(DataError, match=r"data\.csv:3: column 'w'"):
        rows_of(path, weight="w")


@pytest.mark.parametrize("weights", [pa.nulls(2), pa.nulls(2, pa.float64())])
def test_a_column_without_any_weight(tmp_path, weights):
    path = table_file(tmp_path, {"a": [1, 2], "w": weights, "y": [0, 1]})
    with pytest.raises(DataError, match=r"data\.parquet:1: column 'w': the weight is missing"):
        rows_of(path, format="parquet", weight="w")


def test_bad_rows_are_reported_and_left_out(tmp_path, small):
    lines = [
        "a,b,y",
        "1,1,1",
        "2",
        "3,nan,1",
        "4,4,1",
        "5,5,1",
        "6,6,6,6",
        "7,inf,nan",
        "8,8,1",
        "9",
    ]
    path = csv_file(tmp_path, "\n".join(lines))
    bad = []
    source = TableSource(path, "csv")
    blocks = list(source.blocks(on_bad=bad.append, names=True))
    kept = [
        (row[0][1], block.place(i)) for block in blocks for i, row in enumerate(named_rows(block))
    ]
    assert kept == [(a, f"{path}:{a + 1}") for a in (1, 4, 5, 8)]
    assert [row.line for row in bad] == [3, 4, 7, 8, 10]
    assert str(bad[0]) == f"{path}:3: expected 3 cells, found 1"
    assert "column 'b'" in str(bad[1])
    assert bad[2].text == "6,6,6,6"
    # After resuming, earlier bad rows are not reported again.
    again = []
    (rest,) = source.blocks(after=blocks[0].end, on_bad=again.append)
    assert rest.place(0) == f"{path}:9"
    assert [row.line for row in again] == [7, 8, 10]


def test_bad_rows_are_reported_in_the_order_of_their_lines(tmp_path):
    text = "a,b,y\n1,inf,1\n2,2\nnan,3,1\n4,inf,1\n5,5,1\n6\n"
    path, bad = csv_file(tmp_path, text), []
    (block,) = TableSource(path, "csv").blocks(on_bad=bad.append)
    assert [row.line for row in bad] == [2, 3, 4, 5, 7]
    assert block.place(0) == f"{path}:6"


def test_ragged_lines_are_removed_after_they_were_reported(tmp_path, small, monkeypatch):
    kept = []
    lines = bad_lines.RaggedLines.lines

    def counted(self, places):
        kept.append(len(self._ahead))
        return lines(self, places)

    monkeypatch.setattr(bad_lines.RaggedLines, "lines", counted)
    rows = 16_000  # Arrow reads about 256 KiB ahead
    zeros = 30 * "0"  # fewer and longer lines
    text = "a,y\n" + "".join(
        f"{row}\n{row}.{zeros},1\n" if row % 8 == 0 else f"{row}.{zeros},1\n" for row in range(rows)
    )
    path, bad = csv_file(tmp_path, text), []
    for block in TableSource(path, "csv").blocks(on_bad=bad.append):
        row = int(block.native.values[-1])
        assert block.place(block.rows - 1) == f"{path}:{row + 2 + row // 8 + 1}"
    assert len(bad) == rows // 8
    assert max(kept) < rows // 8
    assert kept[-1] == 0


def test_files_that_are_not_tables(tmp_path):
    for name in ("parquet", "arrow"):
        path = csv_file(tmp_path, b"PAR1" + bytes(100), name)
        with pytest.raises(DataError, match=name):
            list(TableSource(path, name).blocks())
    with pytest.raises(ParameterError, match="format must be one of csv, parquet, arrow"):
        TableSource("a.vw", "vw")
    whole = table_file(tmp_path, {"y": list(range(10_000))})
    with open(whole, "r+b") as file:
        file.truncate(2000)
    with pytest.raises(DataError, match=r"data\.parquet: "):
        list(TableSource(whole, "parquet").blocks())


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ParameterError, match=r"reading csv files needs .*thresher\[arrow\]"):
        TableSource("a.csv", "csv")


@pytest.mark.parametrize("text", ["", "\n", "a,y\n", "a,y"])
def test_no_rows(tmp_path, text):
    assert rows_of(csv_file(tmp_path, text)) == []


def test_rows_before_the_end_of_a_truncated_file_are_read(tmp_path):
    rng = np.random.default_rng(0)
    text = "a,y\n" + "".join(f"{value},1\n" for value in rng.random(200_000))
    path = csv_file(tmp_path, gzip.compress(text.encode())[:-1000], "data.csv.gz")
    first = []
    with pytest.raises(DataError, match=r"data\.csv\.gz: the gzip data is cut off near byte"):
        first.extend(block.rows for block in TableSource(path, "csv").blocks())
    assert first  # the number depends on how far Arrow reads ahead
    assert set(first) == {8192}
