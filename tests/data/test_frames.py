"""Frames as sources: the same features as files, and clear errors."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thresher import FTRLClassifier, FTRLRegressor, scan
from thresher.data.features import key_of
from thresher.data.frames import MixedColumnWarning, has_words, is_frame, matrix_of, opened
from thresher.errors import DataError, ParameterError


class Stream:
    """An object that has only the Arrow C stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


class Interchange:
    """An object that has only the dataframe interchange protocol."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        return self._table.__dataframe__(nan_as_null, allow_copy)


def table(rows: int = 20_000) -> pa.Table:
    rng = np.random.default_rng(0)
    age = rng.normal(size=rows)
    colour = rng.choice(["red", "green", "blue"], rows)
    label = (age + 2.0 * (colour == "red") > 0.7).astype(np.int64)
    return pa.table({"age": age, "colour": colour, "ok": rng.random(rows) < 0.5, "label": label})


MAKERS = {
    "pandas": lambda t: t.to_pandas(),
    "categories": lambda t: t.to_pandas().astype({"colour": "category"}),
    "objects": lambda t: t.to_pandas().astype({"colour": object}),
    "polars": pl.from_arrow,
    "lazy": lambda t: pl.from_arrow(t).lazy(),
    "arrow": lambda t: t,
    "batch": lambda t: t.combine_chunks().to_batches()[0],
    "reader": lambda t: t.to_reader(),
    "stream": Stream,
    "interchange": Interchange,
}


def rows_of(source: Any) -> list[list[tuple[str, float]]]:
    found = []
    for block in source.blocks(names="blocks"):
        native, names = block.native, dict(block.names)
        keys = native.keys.view(np.uint64)
        for a, b in zip(native.starts, native.starts[1:], strict=False):
            found.append(
                [(names[int(k)], float(v)) for k, v in zip(keys[a:b], native.values[a:b],
                                                           strict=True)]
            )  # fmt: skip
    return found


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_every_frame_gives_the_model_of_the_file(make: Any, tmp_path: Path) -> None:
    rows = table()
    pq.write_table(rows, tmp_path / "a.parquet")
    rule = FTRLClassifier(store="hashed", passes=5, random_state=0)
    expected = rule.fit(scan(tmp_path / "a.parquet")).model_
    frame = make(rows)
    assert is_frame(frame)
    found = FTRLClassifier(passes=5, random_state=0).fit(scan(frame)).model_
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.weights, expected.weights)
    np.testing.assert_array_equal(found.intercept, expected.intercept)
    assert found.names == expected.names
    assert {"age", "colour=red"} <= {feature.name for feature in found.top(4)}


def test_a_csv_file_gives_the_same_model(tmp_path: Path) -> None:
    rows = table(3000).to_pandas()
    rows.to_csv(tmp_path / "a.csv", index=False)
    rule = FTRLClassifier(store="hashed", passes=2, random_state=0)
    expected = rule.fit(scan(tmp_path / "a.csv")).model_
    found = FTRLClassifier(passes=2, random_state=0).fit(scan(rows)).model_
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert found.names == expected.names


def test_the_keys_are_those_of_older_models() -> None:
    (block,) = scan(pd.DataFrame({"c": ["red"], "n": [2.0]}), label="").blocks(names=True)
    assert dict(block.names) == {key_of(b"c^red"): "c=red", key_of(b"n"): "n"}


def test_what_is_a_frame() -> None:
    column = table(5).column("age")
    no = (np.zeros((2, 2)), [1, 2], "a.csv", pd.Series([1]), pl.Series([1]), column, pd.DataFrame)
    assert not any(map(is_frame, no))
    assert not has_words(opened(pd.DataFrame({"a": [1, 2.5], "b": [True, False]})))
    assert not has_words(opened(pd.DataFrame({"a": [1, None]}, dtype=object)))
    assert has_words(opened(pd.DataFrame({"a": ["x"]})))
    assert has_words(opened(pl.DataFrame({"a": [datetime.date(2024, 1, 1)]})))


def test_types_of_columns() -> None:
    frame = pl.DataFrame(
        {
            "n": [1, 2],
            "b": [True, False],
            "s": ["x", "y"],
            "words": [["p", "q"], []],
            "ids": [[7, 8], [7]],
            "vector": [[0.5, 1.5], [2.0]],
            "review": ["Good film", "bad"],
            "left": ["a", "b"],
            "price": [decimal.Decimal("1.50"), decimal.Decimal("2.25")],
        }
    )
    source = scan((frame, [0, 1]), text="review", ngrams=2, ignore="left")
    assert rows_of(source) == [
        [("n", 1), ("b", 1), ("s=x", 1), ("words^p", 1), ("words^q", 1), ("ids^7", 1), ("ids^8", 1),
         ("vector^0", 0.5), ("vector^1", 1.5), ("review^good", 1), ("review^film", 1),
         ("review^good film", 1), ("price", 1.5)],
        [("n", 2), ("b", 0), ("s=y", 1), ("ids^7", 1), ("vector^0", 2.0), ("review^bad", 1),
         ("price", 2.25)],
    ]  # fmt: skip
    assert source.columns == ["n", "b", "s", "words", "ids", "vector", "review", "price"]


def test_kinds_of_columns() -> None:
    frame = pd.DataFrame({"zip": [123, 45], "size": ["1.5", "2"]})
    source = scan((frame, [0, 1]), kinds={"zip": "string", "size": "number"})
    assert rows_of(source) == [[("zip=123", 1), ("size", 1.5)], [("zip=45", 1), ("size", 2)]]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_dates(make: Any) -> None:
    frame = make(
        {
            "when": [datetime.datetime(2024, 3, 4, 17, 30), None],
            "s": ["x", "y"],
        }
    )
    with pytest.raises(ParameterError, match=r"column 'when' holds dates or times .*dates='parts'"):
        rows_of(scan((frame, [0, 1]), missing="zero"))
    assert rows_of(scan((frame, [0, 1]), dates="parts", missing="zero")) == [
        [("when.year=2024", 1), ("when.month=3", 1), ("when.weekday=monday", 1),
         ("when.hour=17", 1), ("s=x", 1)],
        [("s=y", 1)],
    ]  # fmt: skip


def test_dates_are_in_their_time_zone() -> None:
    when = pd.Series(pd.to_datetime(["2024-03-04T23:30:00Z"]))
    frame = pd.DataFrame({"when": when.dt.tz_convert("Europe/Rome")})
    ((_, _, weekday, hour),) = rows_of(scan((frame, [0]), dates="parts"))
    assert (weekday[0], hour[0]) == ("when.weekday=tuesday", "when.hour=0")
    frame = pa.table({"day": pa.array([0], pa.date32()), "at": pa.array([7200], pa.time32("s"))})
    assert [name for name, _ in rows_of(scan((frame, [0]), dates="parts"))[0]] == [
        "day.year=1970", "day.month=1", "day.weekday=thursday", "at.hour=2",
    ]  # fmt: skip


MISSING = {
    "NaN": pd.DataFrame({"a": [1.0, np.nan], "s": ["x", None]}),
    "NA": pd.DataFrame({"a": pd.array([1, pd.NA], "Int64"), "s": pd.array(["x", pd.NA], "string")}),
    "None": pd.DataFrame({"a": [1.0, None], "s": ["x", None]}, dtype=object),
    "categories": pd.DataFrame({"a": [1.0, None], "s": pd.Categorical(["x", None])}),
    "polars": pl.DataFrame({"a": [1.0, None], "s": ["x", None]}),
    "polars NaN": pl.DataFrame({"a": [1.0, float("nan")], "s": ["x", None]}),
    "arrow": pa.table({"a": [1.0, None], "s": ["x", None]}),
}


@pytest.mark.parametrize("frame", MISSING.values(), ids=MISSING)
def test_missing_cells(frame: Any) -> None:
    for options in ({}, {"missing": "error"}):
        with pytest.raises(
            DataError,
            match=r"^row 1, column 'a': the value is missing .*'indicator' .* adds .*'a=mis",
        ):
            rows_of(scan((frame, [0, 1]), **options))
    first = [("a", 1), ("s=x", 1)]
    assert rows_of(scan((frame, [0, 1]), missing="zero")) == [first, []]
    assert rows_of(scan((frame, [0, 1]), missing="indicator")) == [
        first, [("a=missing", 1), ("s=missing", 1)],
    ]  # fmt: skip


def test_missing_cells_of_files(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("label,a,s\n1,2,x\n0,,\n")
    assert rows_of(scan(path)) == [[("a", 2), ("s=x", 1)], []]
    assert rows_of(scan(path, missing="indicator"))[1] == [("a=missing", 1), ("s=missing", 1)]
    with pytest.raises(DataError, match=r"a\.csv:3: column 'a': the value is missing"):
        rows_of(scan(path, missing="error"))


def test_bad_rows_may_be_left_out() -> None:
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "s": ["x", "y", "z"], "label": [0, 1, 1]})
    source = scan(frame, on_bad_line="skip")
    (block,) = source.blocks()
    assert block.labels.tolist() == [0, 1]
    assert source.bad_lines.count == 1
    assert block.place(1) == "row 2"


def test_mixed_columns_are_categories() -> None:
    frame = pd.DataFrame({"a": [1, "x", 2.5, None]}, dtype=object)
    with pytest.warns(MixedColumnWarning, match=r"column 'a' has 1 words and 2 other values"):
        source = scan((frame, [0, 1, 0, 1]), missing="zero")
    assert rows_of(source) == [[("a=1", 1)], [("a=x", 1)], [("a=2.5", 1)], []]
    with pytest.raises(ParameterError, match="column 'a' holds objects of the types complex, str"):
        scan((pd.DataFrame({"a": [1j, "x"]}, dtype=object), [0, 1]))


BAD = {
    "duration": (pa.array([1, 2], pa.duration("s")), "column 'a' has type duration"),
    "struct": (pa.array([{"x": 1}, {"x": 2}]), "column 'a' has type struct"),
    "lists of lists": (pa.array([[[1]], [[2]]]), "column 'a' has type list.*lists must hold"),
}


@pytest.mark.parametrize(("column", "message"), BAD.values(), ids=BAD)
def test_types_without_features(column: Any, message: str) -> None:
    frame = pa.table({"a": column, "b": ["x", "y"]})
    with pytest.raises(ParameterError, match=f"{message}.*ignore"):
        rows_of(scan((frame, [0, 1])))
    assert rows_of(scan((frame, [0, 1]), ignore="a")) == [[("b=x", 1)], [("b=y", 1)]]


def test_odd_categories() -> None:
    bins = pd.cut(pd.Series([1.0, 5.0]), [0, 2, 9])
    numbers = pd.Series([3, 4]).astype("category")
    days = pd.Series(pd.to_datetime(["2024-01-01", "2024-01-02"])).astype("category")
    unused = pd.Categorical(["u", "v"], categories=["u", "v", "never"])
    frame = pd.DataFrame({"bin": bins, "n": numbers, "day": days, "c": unused})
    assert rows_of(scan((frame, [0, 1])))[0] == [
        ("bin=(0, 2]", 1), ("n=3", 1), ("day=2024-01-01 00:00:00", 1), ("c=u", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("last", [None, 1])  # also without a null among the indices
@pytest.mark.parametrize("missing", ["zero", "indicator"])
def test_a_dictionary_that_holds_a_null(missing: str, last: int | None) -> None:
    cells = pa.array([0, 1, 2, 1, last], pa.int32())
    column = pa.DictionaryArray.from_arrays(cells, pa.array(["x", None, "y"]))
    table, labels = pa.table({"s": column}), [0, 1, 0, 1, 1]
    none = [("s=missing", 1)] if missing == "indicator" else []
    found = rows_of(scan((table, labels), missing=missing))
    assert found == [[("s=x", 1)], none, [("s=y", 1)], none, none]
    assert rows_of(scan(iter([(table, labels)]))) == [[("s=x", 1)], [], [("s=y", 1)], [], []]
    with pytest.raises(DataError, match="row 1, column 's': the value is missing"):
        rows_of(scan((table, labels), missing="error"))
    (block,) = scan(pa.table({"a": labels, "label": column})).blocks()
    assert block.label_sets()[1].tolist() == ["x", "y"]


def test_nullable_numbers() -> None:
    frame = pd.DataFrame({"a": pd.array([1, 2, 3, 4], dtype="Int64")})
    frame["b"] = pd.array([True, False, True, True], dtype="boolean")
    labels, plain = [0, 1, 0, 1], np.column_stack([[1, 2, 3, 4], [1, 0, 1, 1]])
    expected = FTRLClassifier(shuffle=False).fit(plain, labels).coef_
    for given in (frame, pa.table({"a": [1, 2, 3, 4], "b": [True, False, True, True]})):
        assert FTRLClassifier(shuffle=False).fit(given, labels).coef_.tolist() == expected.tolist()
    frame["b"] = pd.array([True, None, True, True], dtype="boolean")
    found = matrix_of(frame)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [[1, 1], [2, np.nan], [3, 1], [4, 1]])
    np.testing.assert_array_equal(matrix_of(pa.table({"a": [1, None], "b": [True, False]})),
                                  [[1, 1], [np.nan, 0]])  # fmt: skip
    for given in (
        pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64")}),
        pa.table({"a": [1, None, 3]}),
    ):
        with pytest.raises(DataError, match="row 1, column 'a': the value is missing"):
            FTRLClassifier().fit(given, [0, 1, 0])


def test_columns_of_pandas_that_arrow_does_not_have() -> None:
    frame = pd.DataFrame({"a": np.array([1j, 2, 3]), "s": list("abc")})
    with pytest.raises(ParameterError, match=r"column 'a' has type complex128, .*ignore"):
        scan((frame, [0, 1, 0]))
    assert rows_of(scan((frame, [0, 1, 0]), ignore="a"))[0] == [("s=a", 1)]
    frame["a"] = [object(), object(), None]
    with pytest.raises(ParameterError, match="column 'a' holds objects of the types object"):
        scan((frame, [0, 1, 0]))
    model = FTRLClassifier().fit(frame, [0, 1, 0], reading={"ignore": ["a"]})
    assert model.predict(frame).shape == (3,)
    frame = pd.DataFrame({"a": pd.period_range("2024-01-01", periods=3), "s": list("abc")})
    with pytest.raises(ParameterError, match=r"column 'a' has type .*period.*ignore"):
        rows_of(scan((frame, [0, 1, 0])))


def test_a_frame_has_no_format() -> None:
    with pytest.raises(ParameterError, match="a frame has no format"):
        scan((pd.DataFrame({"s": ["x"]}), [0]), format="csv")


def test_names_of_columns() -> None:
    frame = pd.DataFrame([["x", 2.0]], columns=[7, "a"])
    assert rows_of(scan((frame, [0]))) == [[("7=x", 1), ("a", 2)]]
    for names in (["a", "a"], [1, "1"]):
        with pytest.raises(ParameterError, match="two columns are named"):
            scan((pd.DataFrame([["x", 2.0]], columns=names), [0]))
    twice = pa.Table.from_arrays([pa.array(["x"]), pa.array([1])], ["a", "a"])
    with pytest.raises(ParameterError, match="two columns are named 'a'"):
        scan((twice, [0]))


def test_frames_without_rows_or_columns() -> None:
    empty = pd.DataFrame({"s": pd.Series([], dtype=str), "label": pd.Series([], dtype=float)})
    assert rows_of(scan(empty)) == []
    with pytest.raises(DataError, match="no rows to learn from"):
        FTRLClassifier().fit(scan(empty))
    with pytest.raises(ParameterError, match="the frame has no columns"):
        scan((pd.DataFrame(index=range(2)), [0, 1]))


def test_sparse_columns_beside_words() -> None:
    cells = pd.arrays.SparseArray([0.0, 3.0, 0.0])
    frame = pd.DataFrame({"s": ["x", "y", "z"], "a": cells})
    assert rows_of(scan((frame, [0, 1, 0]))) == [[("s=x", 1)], [("a", 3), ("s=y", 1)], [("s=z", 1)]]
    frame["a"] = pd.arrays.SparseArray([0.0, np.inf, 0.0])
    with pytest.raises(DataError, match="row 1, column 'a': inf is not a finite number"):
        rows_of(scan((frame, [0, 1, 0])))
    source = scan((frame, [0, 1, 0]), on_bad_line="skip")
    assert rows_of(source) == [[("s=x", 1)], [("s=z", 1)]]
    assert source.bad_lines.count == 1
    wide = pd.DataFrame.sparse.from_spmatrix(__import__("scipy.sparse").sparse.eye(50).tocsr())
    wide.columns = [f"c{k}" for k in range(50)]
    wide["s"] = "x"
    assert rows_of(scan((wide, np.zeros(50))))[7] == [("c7", 1), ("s=x", 1)]


def test_labels_and_weights_in_columns() -> None:
    frame = pl.DataFrame({"price": [1.5, 2.5], "w": [1.0, 3.0], "s": ["x", "y"]})
    (block,) = scan(frame, label="price", weight="w").blocks()
    assert (block.labels.tolist(), block.weights.tolist()) == ([1.5, 2.5], [1, 3])
    with pytest.raises(DataError, match=r"which column is the label\?"):
        scan(frame)
    with pytest.raises(DataError, match="there is no column 'cost'"):
        scan(frame, label="cost")
    with pytest.raises(DataError, match="expected 2 labels"):
        scan((frame, [1, 2, 3]))


def test_numbers_without_nulls_are_not_copied() -> None:
    values = np.arange(10.0)
    frame = pd.DataFrame({"a": values}, copy=False)
    frame["s"] = "x"
    part = scan((frame, np.zeros(10))).parts[0]
    column = part.table.table.column("a").chunk(0)
    assert np.shares_memory(np.frombuffer(column.buffers()[1]), frame["a"].to_numpy())


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    for frame in (pd.DataFrame({"s": ["x", "y"] * 5}), pl.DataFrame({"s": ["x", "y"] * 5})):
        with pytest.raises(ParameterError, match=r"needs the package pyarrow: pip install"):
            FTRLClassifier().fit(frame, [0, 1] * 5)
    FTRLRegressor().fit(pd.DataFrame({"s": [1.0, 2.0] * 5}), [0, 1] * 5)
