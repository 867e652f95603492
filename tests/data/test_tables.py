"""Tables: each kind of column, labels, weights, names, bad cells, and going on after a break."""

import gzip
import os
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher import _core, scan
from thresher.data import bad_lines, tables
from thresher.data.block import Position
from thresher.data.features import key_of
from thresher.data.tables import TableColumns, TableSource
from thresher.errors import DataError, ParameterError

pa = pytest.importorskip("pyarrow", reason="needs the extra arrow")
parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra arrow")


def csv_file(tmp_path, text, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def table_file(tmp_path, columns, name="data.parquet", **options):
    path = tmp_path / name
    parquet.write_table(
        columns if isinstance(columns, pa.Table) else pa.table(columns), path, **options
    )
    return str(path)


def named_rows(block):
    """Return the rows as lists of (name, value), in their order."""
    names = dict(block.native.names)
    keys = block.native.keys.view(np.uint64).tolist()
    values = block.native.values.tolist()
    starts = block.native.starts.tolist()
    return [
        [(names[keys[i]].decode(), values[i]) for i in range(starts[r], starts[r + 1])]
        for r in range(block.rows)
    ]


def rows_of(path, format="csv", bits=None, delimiter=None, **columns):
    source = TableSource(path, format, TableColumns(**columns), bits, delimiter)
    return [
        row for block in source.blocks(dtype="float64", names=True) for row in named_rows(block)
    ]


@pytest.fixture
def small(monkeypatch):
    """Batches of 4 rows, so that small files have several."""
    monkeypatch.setattr(tables, "BATCH_ROWS", 4)


# --- columns --------------------------------------------------------------------------------------


def test_csv_columns(tmp_path):
    path = csv_file(
        tmp_path,
        "age,city,member,label\n31.5,Rome,true,1\n,Oslo,False,0\nNA,,TRUE,1\n-4e2, Rome,,0\n",
    )
    assert rows_of(path) == [
        [("age", 31.5), ("city^Rome", 1), ("member", 1)],
        [("city^Oslo", 1), ("member", 0)],
        [("member", 1)],
        [("age", -400), ("city^ Rome", 1)],
    ]
    (block,) = TableSource(path, "csv").blocks()
    assert block.labels.tolist() == [1, 0, 1, 0]
    assert block.native.values.dtype == np.float32
    assert block.place(2) == f"{path}:4"
    assert block.end == Position(0, 1, 5)
    assert block.words is block.native.weights is None


def test_keys_are_those_of_names(tmp_path):
    path = csv_file(tmp_path, "age,city,12,label\n3,Rome,4,1\n")
    (block,) = TableSource(path, "csv").blocks()
    expected = [_core.hash_name(b"age"), _core.hash_name(b"city^Rome"), 12]
    assert block.native.keys.view(np.uint64).tolist() == expected
    (block,) = TableSource(path, "csv", bits=5).blocks(names=True)
    assert block.native.keys.tolist() == list(dict.fromkeys(key % 32 for key in expected))
    assert block.native.values.sum() == 3 + 1 + 4  # where keys meet, values add up
    assert block.native.width == 32
    assert dict(block.native.names)[12] == b"12"


@pytest.mark.parametrize(
    ("name", "key"),
    [(b"0", 0), (b"17", 17), (b"18446744073709551615", 2**64 - 1)],
)
def test_names_that_are_numbers(name, key):
    assert key_of(name) == key


@pytest.mark.parametrize(
    "name", [b"007", b"18446744073709551616", b"-1", b"", b"1.5", "٣".encode()]
)
def test_names_that_are_no_numbers(name):
    assert key_of(name) == _core.hash_name(name)


def test_typed_columns(tmp_path):
    columns = {
        "i": pa.array([1, None, 3], pa.int8()),
        "d": pa.array([Decimal(1), Decimal(2), None], pa.decimal128(5, 2)),
        "b": pa.array([True, None, False]),
        "s": pa.array(["x", "", None], pa.large_string()),
        "c": pa.array(["u", None, "v"]).dictionary_encode(),
        "n": pa.nulls(3),
        "bytes": pa.array([b"\xff", None, b""]),
        "words": pa.array([["p", None, "q", "p"], [], None]),
        "ids": pa.array([[7, 8], None, [7]], pa.list_(pa.int32())),
        "vector": pa.array([[0.5, 2], None, [3, None]], pa.list_(pa.float32(), 2)),
        "ragged": pa.array([[1.5], [2.5, 3.5], []], pa.large_list(pa.float64())),
        "map": pa.array(
            [[("k", 2)], None, [("k", None), ("l", 3)]], pa.map_(pa.string(), pa.int64())
        ),
        "y": pa.array([1, 0, None], pa.int64()),
    }
    expected = [
        [
            ("i", 1),
            ("d", 1),
            ("b", 1),
            ("s^x", 1),
            ("c^u", 1),
            ("words^p", 2),
            ("words^q", 1),
            ("ids^7", 1),
            ("ids^8", 1),
            ("vector^0", 0.5),
            ("vector^1", 2),
            ("ragged^0", 1.5),
            ("map^k", 2),
        ],
        [("d", 2), ("s^", 1), ("ragged^0", 2.5), ("ragged^1", 3.5)],
        [("i", 3), ("b", 0), ("c^v", 1), ("ids^7", 1), ("vector^0", 3), ("map^l", 3)],
    ]
    path = str(tmp_path / "data.arrow")
    table = pa.table(columns)
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)
    assert rows_of(path, "arrow", ignore=["bytes"]) == expected
    stream = str(tmp_path / "data.arrows")
    with pa.ipc.new_stream(stream, table.schema) as file:
        file.write_table(table, max_chunksize=2)
    assert rows_of(stream, "arrow", ignore=["bytes"]) == expected
    assert rows_of(table_file(tmp_path, table), "parquet", ignore=["bytes"]) == expected
    (block,) = TableSource(path, "arrow").blocks(names=True)
    assert b"bytes^\xff" in dict(block.native.names).values()
    np.testing.assert_array_equal(block.labels, [1, 0, np.nan])


def test_sliced_and_chunked_columns():
    from thresher.data.columns import entries_of_column, single

    for values in (
        ["a", "b", None, "c"],
        [["a"], None, ["b", "c"], ["d"]],
        [[1.0], [2.0, 3.0], None, []],
    ):
        whole = pa.array(values * 3)
        cut = single(pa.chunked_array([whole.slice(1, 4), whole.slice(5, 5)]))
        for part, same in zip(
            entries_of_column("x", cut, False, 1, False),
            entries_of_column("x", pa.array((values * 3)[1:10]), False, 1, False),
            strict=True,
        ):
            assert part.rows.tolist() == same.rows.tolist()
            assert part.keys.tolist() == same.keys.tolist()
            assert part.values.tolist() == same.values.tolist()


def test_text_and_ngrams(tmp_path):
    path = csv_file(tmp_path, 'text,y\n"Good film, GOOD!",1\n"",0\n"Über-film\nx_1",0\n?!,1\n')
    assert rows_of(path, text=["text"]) == [
        [("text^good", 2), ("text^film", 1)],
        [],
        [("text^über", 1), ("text^film", 1), ("text^x_1", 1)],
        [],
    ]
    assert rows_of(path, text=["text"], ngrams=3)[0] == [
        *[("text^good", 2), ("text^film", 1)],
        *[("text^good film", 1), ("text^film good", 1), ("text^good film good", 1)],
    ]
    assert len(rows_of(path, text=["text"], ngrams=9)[2]) == 6


@given(
    texts=st.lists(
        st.none() | st.text("aBéß٣ \u0301,.-9_\n—\U0001f600", max_size=12), min_size=1, max_size=8
    ),
    ngrams=st.integers(1, 4),
)
def test_text_is_what_a_loop_makes_of_it(texts, ngrams):
    import re

    from thresher.data.columns import entries_of_column
    from thresher.data.features import rows_of_entries

    parts = entries_of_column("t", pa.array(texts, pa.string()), True, ngrams, False)
    rows = rows_of_entries(parts, len(texts), "float64", None, True)
    names = dict(rows["names"])
    keys = rows["keys"].view(np.uint64).tolist()
    for row, text in enumerate(texts):
        words = re.findall(r"\w+", (text or "").lower())
        expected = [
            "t^" + " ".join(words[i : i + n])
            for n in range(1, ngrams + 1)
            for i in range(len(words) - n + 1)
        ]
        found = keys[rows["starts"][row] : rows["starts"][row + 1]]
        assert [names[key].decode() for key in found] == expected


def test_categorical_numbers_and_ignored_columns(tmp_path):
    path = csv_file(tmp_path, "zip,id,label\n00123,7,1\n4,8,0\n")
    assert rows_of(path, categorical=["zip"], ignore=["id"]) == [[("zip^00123", 1)], [("zip^4", 1)]]
    path = table_file(tmp_path, {"zip": [123, 4], "label": [1, 0]})
    assert rows_of(path, "parquet", categorical=["zip"]) == [[("zip^123", 1)], [("zip^4", 1)]]


def test_pandas_is_not_imported(tmp_path):
    path = csv_file(tmp_path, "a,b,c,text,y\n1,u,true,some words,1\n2,,NA,,0\n")
    code = (
        "import sys\n"
        "from thresher.data.tables import TableColumns, TableSource\n"
        f"source = TableSource({path!r}, 'csv', TableColumns(text=['text'], ngrams=2))\n"
        "assert [block.rows for block in source.blocks(names=True)] == [2]\n"
        "slow = {'pandas', 'scipy', 'sklearn'} & set(sys.modules)\n"
        "assert not slow, slow"
    )
    folder = os.path.dirname(os.path.abspath(__file__))
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)


def test_names_of_wanted_keys_only(tmp_path):
    path = csv_file(tmp_path, "a,b,y\n1,u,1\n2,v,0\n")
    wanted = np.array([_core.hash_name(b"b^v"), 5], np.uint64)
    (block,) = TableSource(path, "csv").blocks(names=wanted)
    assert block.native.names == [(_core.hash_name(b"b^v"), b"b^v")]
    (block,) = TableSource(path, "csv").blocks()
    assert not block.native.names


# --- labels and weights ---------------------------------------------------------------------------


def test_labels_of_strings_and_weights(tmp_path):
    path = csv_file(tmp_path, "kind;x;w\ncat;1;0.5\ndog;2;3\n")
    (block,) = TableSource(path, "csv", TableColumns(label="kind", weight="w")).blocks()
    assert block.labels.tolist() == ["cat", "dog"]
    assert block.native.labels is None
    assert block.native.weights.tolist() == [0.5, 3]
    assert block.native.keys.view(np.uint64).tolist() == [_core.hash_name(b"x")] * 2
    path = table_file(tmp_path, {"class": pa.array(["a", "b"]).dictionary_encode(), "x": [1, 2]})
    (block,) = TableSource(path, "parquet").blocks()
    assert block.labels.tolist() == ["a", "b"]


def test_rows_with_several_labels(tmp_path):
    path = table_file(tmp_path, {"label": [[3, 1], [], None, [2]], "x": [1, 2, 3, 4]})
    (block,) = TableSource(path, "parquet").blocks()
    assert block.labels is None
    assert block.native.label_starts.tolist() == [0, 2, 2, 2, 3]
    assert block.native.label_values.tolist() == [3, 1, 2]
    path = table_file(tmp_path, {"label": [[3], [1, None]], "x": [1, 2]})
    with pytest.raises(DataError, match=r"data\.parquet:2: column 'label': .*null"):
        list(TableSource(path, "parquet").blocks())


def test_which_column_is_the_label(tmp_path):
    path = csv_file(tmp_path, "a,b\n1,2\n")
    with pytest.raises(DataError, match=r"data.csv: which column is the label\?.*columns are a, b"):
        rows_of(path)
    assert rows_of(path, label_needed=False) == [[("a", 1), ("b", 2)]]
    (block,) = TableSource(path, "csv", TableColumns(label_needed=False)).blocks()
    assert np.isnan(block.labels).all()
    path = csv_file(tmp_path, "y,target\n1,2\n")
    with pytest.raises(DataError, match="y and target could be; name it"):
        rows_of(path)
    assert rows_of(path, label="y") == [[("target", 2)]]
    # To predict, a label that is there is no feature.
    assert rows_of(path, label="target", label_needed=False) == [[("y", 1)]]


@pytest.mark.parametrize("option", ["label", "weight", "text", "categorical", "ignore"])
def test_columns_that_are_not_there(tmp_path, option):
    path = csv_file(tmp_path, "a,y\n1,2\n")
    named = "none" if option in ("label", "weight") else ["none"]
    with pytest.raises(DataError, match="there is no column 'none'; the columns are a, y"):
        rows_of(path, **{option: named})


# --- bad input ------------------------------------------------------------------------------------


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
        (b"a,y\n\xff,1\n", r"data.csv: .*UTF8"),
        ('a,y\n1,1\n"' + "2,1\n" * 200_000, r": a row is longer than 256 KiB, or a quote is never"),
    ],
)
def test_bad_csv(tmp_path, text, message):
    path = csv_file(tmp_path, text)
    with pytest.raises(
        (DataError, ParameterError), match="data.csv" + message.removeprefix("data.csv")
    ):
        list(TableSource(path, "csv").blocks())


def test_a_number_column_that_is_none_later(tmp_path, small):
    path = csv_file(tmp_path, "a,b,y\n" + "1,true,0\n" * 5 + "x,maybe,1\n")
    with pytest.raises(DataError, match=r":7: column 'a': expected a number.*found \"x\".*kinds"):
        rows_of(path)
    with pytest.raises(DataError, match=r":7: column 'b': expected true or false.*\"maybe\""):
        rows_of(path, ignore=["a"])
    assert rows_of(path, categorical=["a", "b"])[-1] == [("a^x", 1), ("b^maybe", 1)]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1.0, np.nan, 2.0]), "row: .*nan is not a finite number"),
        (pa.array([[1.0], [np.inf], []]), "row: .*inf is not a finite number"),
        (
            pa.array([[("k", 1.0)], [("k", -np.inf)], []], pa.map_(pa.string(), pa.float64())),
            "row: .*-inf",
        ),
        (pa.array([0, 1, 2], pa.timestamp("s")), "type timestamp.*ignore"),
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


def test_bad_rows_are_told_and_left_out(tmp_path, small):
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
    # After a break, what was told before is not told again.
    again = []
    (rest,) = source.blocks(after=blocks[0].end, on_bad=again.append)
    assert rest.place(0) == f"{path}:9"
    assert [row.line for row in again] == [7, 8, 10]


def test_bad_rows_are_told_in_the_order_of_their_lines(tmp_path):
    text = "a,b,y\n1,inf,1\n2,2\nnan,3,1\n4,inf,1\n5,5,1\n6\n"
    path, bad = csv_file(tmp_path, text), []
    (block,) = TableSource(path, "csv").blocks(on_bad=bad.append)
    assert [row.line for row in bad] == [2, 3, 4, 5, 7]
    assert block.place(0) == f"{path}:6"


def test_ragged_lines_are_forgotten_once_they_were_told(tmp_path, small, monkeypatch):
    kept = []
    lines = bad_lines.RaggedLines.lines

    def counted(self, places):
        kept.append(len(self._ahead))
        return lines(self, places)

    monkeypatch.setattr(bad_lines.RaggedLines, "lines", counted)
    rows = 80_000  # Arrow reads some 256 KiB ahead
    text = "a,y\n" + "".join(
        f"{row}\n{row},1\n" if row % 8 == 0 else f"{row},1\n" for row in range(rows)
    )
    path, bad = csv_file(tmp_path, text), []
    for block in TableSource(path, "csv").blocks(on_bad=bad.append):
        row = int(block.native.values[-1])
        assert block.place(block.rows - 1) == f"{path}:{row + 2 + row // 8 + 1}"
    assert len(bad) == rows // 8
    assert max(kept) < rows // 8
    assert kept[-1] == 0


def test_files_that_are_no_tables(tmp_path):
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


def test_a_packed_file_that_is_cut_off_gives_rows_first(tmp_path):
    rng = np.random.default_rng(0)
    text = "a,y\n" + "".join(f"{value},1\n" for value in rng.random(200_000))
    path = csv_file(tmp_path, gzip.compress(text.encode())[:-1000], "data.csv.gz")
    first = []
    with pytest.raises(DataError, match=r"data\.csv\.gz: the gzip data is cut off near byte"):
        first.extend(block.rows for block in TableSource(path, "csv").blocks())
    assert first  # how many depends on how far Arrow reads ahead
    assert set(first) == {8192}


# --- several files, and going on ------------------------------------------------------------------


def flat(blocks):
    return [
        (
            block.end,
            block.native.keys.tolist(),
            block.native.values.tolist(),
            block.labels.tolist(),
            [block.place(row) for row in range(block.rows)],
        )
        for block in blocks
    ]


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "arrow"])
def test_going_on_after_any_block(tmp_path, small, kind):
    import pyarrow.csv

    files = []
    for number, rows in enumerate((10, 3, 0, 9)):
        ids = np.arange(rows) + 100 * number
        table = pa.table({"a": ids * 0.5, "b": [f"v{i % 3}" for i in ids], "y": ids % 2})
        path = tmp_path / f"{number}.{kind}"
        files.append(str(path))
        if kind == "parquet":
            parquet.write_table(table, path, row_group_size=3)
        elif kind == "arrow":
            with pa.ipc.new_file(str(path), table.schema) as file:
                file.write_table(table, max_chunksize=5)
        else:
            pyarrow.csv.write_csv(table, path)
            if kind == "csv.gz":
                path.write_bytes(gzip.compress(path.read_bytes()))
    source = scan(files)
    whole = flat(source.blocks())
    assert [len(labels) for _, _, _, labels, _ in whole] == [4, 4, 2, 3, 4, 4, 1]
    assert whole[-1][0] == Position(3, 3, 9 + (kind not in ("parquet", "arrow")))
    assert source.size == sum(len(open(file, "rb").read()) for file in files)  # noqa: SIM115
    assert flat(source.blocks()) == whole
    for done in range(len(whole)):
        position = Position.from_json(whole[done][0].to_json())
        assert flat(scan(files).blocks(after=position)) == whole[done + 1 :]


def test_big_batches_are_cut_by_rows_alone(tmp_path):
    values = np.arange(20_000.0)
    path = table_file(tmp_path, {"a": values, "y": values}, row_group_size=15_000)
    blocks = list(TableSource(path, "parquet").blocks(dtype="float64"))
    assert [block.rows for block in blocks] == [8192, 8192, 3616]
    np.testing.assert_array_equal(np.concatenate([block.native.values for block in blocks]), values)


def test_memory_does_not_follow_the_file(tmp_path):
    path = tmp_path / "big.parquet"
    rng = np.random.default_rng(0)
    with parquet.ParquetWriter(path, pa.schema([("a", pa.float64()), ("y", pa.float64())])) as file:
        for _ in range(4):
            values = rng.random(500_000)
            file.write_table(pa.table({"a": values, "y": values}), row_group_size=500_000)
    before = pa.total_allocated_bytes()
    peak = max(
        pa.total_allocated_bytes() - before for _ in TableSource(str(path), "parquet").blocks()
    )
    assert path.stat().st_size > 30 << 20
    assert peak < 16 << 20
