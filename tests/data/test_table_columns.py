"""Columns of tables: the features of each type, labels, weights and names."""

import os
import re
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher import _core
from thresher.data.block import Position
from thresher.data.features import key_of, rows_of_entries
from thresher.data.tables import TableColumns, TableSource
from thresher.errors import DataError, ParameterError

pa = pytest.importorskip("pyarrow", reason="needs the extra arrow")

from support.tables import CountedName, csv_file, rows_of, table_file  # noqa: E402
from thresher.data.columns import entries_of_column, single  # noqa: E402
from thresher.data.table_files import check_unique  # noqa: E402


def test_csv_columns(tmp_path):
    path = csv_file(
        tmp_path,
        "age,city,member,label\n31.5,Rome,true,1\n,Oslo,False,0\nNA,,TRUE,1\n-4e2, Rome,,0\n",
    )
    assert rows_of(path) == [
        [("age", 31.5), ("city=Rome", 1), ("member", 1)],
        [("city=Oslo", 1), ("member", 0)],
        [("member", 1)],
        [("age", -400), ("city= Rome", 1)],
    ]
    (block,) = TableSource(path, "csv").blocks()
    assert block.labels.tolist() == [1, 0, 1, 0]
    assert block.native.values.dtype == np.float32
    assert block.place(2) == f"{path}:4"
    assert block.end == Position(0, 1, 5)
    assert block.words is block.native.weights is None


def test_keys_are_hashes_of_names(tmp_path):
    path = csv_file(tmp_path, "age,city,12,label\n3,Rome,4,1\n")
    (block,) = TableSource(path, "csv").blocks()
    expected = [_core.hash_name(b"age"), _core.hash_name(b"city^Rome"), 12]
    assert block.native.keys.view(np.uint64).tolist() == expected
    (block,) = TableSource(path, "csv", bits=5).blocks(names=True)
    assert block.native.keys.tolist() == list(dict.fromkeys(key % 32 for key in expected))
    assert block.native.values.sum() == 3 + 1 + 4  # values of equal keys are added
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
def test_names_that_are_not_numbers(name):
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
            ("s=x", 1),
            ("c=u", 1),
            ("words^p", 2),
            ("words^q", 1),
            ("ids^7", 1),
            ("ids^8", 1),
            ("vector^0", 0.5),
            ("vector^1", 2),
            ("ragged^0", 1.5),
            ("map^k", 2),
        ],
        [("d", 2), ("s=", 1), ("ragged^0", 2.5), ("ragged^1", 3.5)],
        [("i", 3), ("b", 0), ("c=v", 1), ("ids^7", 1), ("vector^0", 3), ("map^l", 3)],
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
    assert b"bytes=\xff" in dict(block.native.names).values()
    np.testing.assert_array_equal(block.labels, [1, 0, np.nan])


def test_sliced_and_chunked_columns():

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
def test_text_equals_a_simple_loop(texts, ngrams):

    from thresher.data.columns import entries_of_column

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
    assert rows_of(path, categorical=["zip"], ignore=["id"]) == [[("zip=00123", 1)], [("zip=4", 1)]]
    path = table_file(tmp_path, {"zip": [123, 4], "label": [1, 0]})
    assert rows_of(path, "parquet", categorical=["zip"]) == [[("zip=123", 1)], [("zip=4", 1)]]


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
    assert block.native.names == [(_core.hash_name(b"b^v"), b"b=v")]
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
    # For prediction, the column of labels is not a feature.
    assert rows_of(path, label="target", label_needed=False) == [[("y", 1)]]


@pytest.mark.parametrize("option", ["label", "weight", "text", "categorical", "ignore"])
def test_missing_columns(tmp_path, option):
    path = csv_file(tmp_path, "a,y\n1,2\n")
    named = "none" if option in ("label", "weight") else ["none"]
    with pytest.raises(DataError, match="there is no column 'none'; the columns are a, y"):
        rows_of(path, **{option: named})


def test_many_names_are_not_compared_with_each_other():
    names = [CountedName(f"column {place}") for place in range(300)]
    CountedName.compared = 0
    check_unique("data.csv", names)
    assert CountedName.compared < len(names)
    with pytest.raises(ParameterError, match=r"data\.csv: two columns are named 'column 7'"):
        check_unique("data.csv", [*names, CountedName("column 7")])


class _Keys(np.ndarray):
    """Keys that count how often they are sorted."""

    sorted = 0

    def __array_function__(self, function, types, args, kwargs):
        _Keys.sorted += function in (np.isin, np.unique, np.sort)
        return super().__array_function__(function, types, args, kwargs)


def test_wanted_names_are_sorted_once():
    columns = [single(pa.chunked_array([[1.5, 2.5]])) for _ in range(50)]
    entries = [
        entries_of_column(f"c{at}", one, False, 1, False)[0] for at, one in enumerate(columns)
    ]
    shown = [name for at in range(49, 0, -2) for name in [f"c{at}".encode()] * 2]
    wanted = np.array([*map(key_of, shown)], np.uint64).view(_Keys)
    _Keys.sorted = 0
    found = rows_of_entries(entries, 2, "float64", None, wanted)["names"]
    assert [name for _, name in found] == [f"c{at}".encode() for at in range(1, 50, 2)]
    assert _Keys.sorted == 1
