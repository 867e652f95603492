"""`thresher.look` over paths, sources, frames and matrices; its limits and its errors."""

from __future__ import annotations

import gzip
import os
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import thresher
from support.files import called
from support.files_people_have import KINDS
from thresher.errors import DataError, ParameterError


def names(look):
    return [one.name for one in look.findings]


# ---- inputs --------------------------------------------------------------------------------------


def test_matrices_and_arrays():
    rng = np.random.default_rng(0)
    X = sp.random(500, 40, 0.2, "csr", random_state=0)
    y = rng.integers(0, 3, 500)
    look = thresher.look(X, y)
    assert (look.facts.rows.read, look.facts.features.nonzeros) == (500, X.nnz)
    assert look.facts.label.task == "classes"
    assert look.command == ""  # there is no file
    assert [one.settings[0].name for one in look.findings if one.settings] == ["multiclass"]
    dense = thresher.look(X.toarray(), y.tolist())
    assert dense.facts.features.top == look.facts.features.top
    without = thresher.look(X)
    assert without.facts.label.task == ""
    assert "no label" in names(without)
    both = thresher.look(X, (rng.random((500, 4)) < 0.3).astype(int))
    assert both.facts.label.task == "multilabel"
    words = thresher.look(X, np.where(y > 0, "yes", "no"))
    assert dict(words.facts.label.counts).keys() == {"yes", "no"}


def test_wrong_inputs_are_refused():
    with pytest.raises(DataError, match="3 rows and 2 labels"):
        thresher.look(np.eye(3), [1, 0])
    with pytest.raises(ParameterError, match="two dimensions"):
        thresher.look(np.zeros(3))
    with pytest.raises(ParameterError, match="max_rows"):
        thresher.look(np.eye(3), max_rows="some")
    with pytest.raises(ParameterError, match="max_rows"):
        thresher.look(np.eye(3), max_rows=0)
    with pytest.raises(FileNotFoundError, match="no such file"):
        thresher.look("no-such-file.csv")


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames(kind):
    rng = np.random.default_rng(1)
    columns = {
        "city": rng.choice(["Rome", "Oslo"], 300).tolist(),
        "size": rng.normal(size=300).tolist(),
        "seen": (rng.random(300) < 0.5).tolist(),
        "price": (100 * rng.random(300)).tolist(),
    }
    columns["size"][3] = None
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[kind](columns)
    look = thresher.look(frame, label="price")
    kinds = {one.name: one.kind for one in look.facts.columns}
    assert kinds == {"city": "category", "size": "number", "seen": "truth", "price": "number"}
    assert look.facts.label.task == "regression"
    assert next(one.missing for one in look.facts.columns if one.name == "size") == 1
    apart = thresher.look(frame, rng.integers(0, 2, 300))
    assert apart.facts.label.task == "two classes"
    assert "no label" not in names(apart)


def test_frames_of_mixed_objects():
    frame = pd.DataFrame({"a": [1, "x", None, 2.5] * 30, "label": [0, 1] * 60})
    look = thresher.look(frame)
    (column,) = (one for one in look.facts.columns if one.name == "a")
    assert (column.missing, column.numbers, column.words) == (30, 60, 30)
    assert "mixed" in names(look)
    sparse = pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0] * 50), "y": [0, 1] * 50})
    assert thresher.look(sparse).facts.label.task == "two classes"


def test_sources_and_iterators(tmp_path):
    made = KINDS["svmlight"](tmp_path)
    assert thresher.look(thresher.scan(made.path)).command.startswith(
        f"thresher train {made.path} -m "
    )
    made = KINDS["no_usual_label_name"](tmp_path)
    source = thresher.scan(made.path, label="opinion", text=["words"])
    look = thresher.look(source)
    assert look.facts.label.columns == ("opinion",)
    rows = [({"a": 1.0, "b": float(i)}, i % 2) for i in range(1, 101)]
    look = thresher.look(iter(rows))
    assert look.facts.label.task == "two classes"
    assert {name for name, _ in look.facts.features.top} == {"a", "b"}
    look = thresher.look(thresher.scan(lambda: iter(rows)))
    assert look.facts.rows.read == 100


def test_a_cache(tmp_path):
    from support.files import called

    made = KINDS["vw_with_namespaces"](tmp_path)
    called("convert", made.path, tmp_path / "rows.cache", "--quiet")
    look = thresher.look(tmp_path / "rows.cache")
    assert look.facts.rows.read == made.rows
    assert look.facts.label.task == "two classes"


def test_several_files(tmp_path):
    (tmp_path / "a.csv").write_text("x,label\n1,0\n2,1\n" * 1)
    (tmp_path / "b.csv").write_text("x,z,label\n1,5,0\n2,6,1\n")
    look = thresher.look([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert look.facts.rows.read == 4
    assert any("new columns z" in one.what for one in look.findings)
    assert look.command == f"thresher train {tmp_path}/a.csv {tmp_path}/b.csv -m model.thresher"
    look = thresher.look(str(tmp_path / "*.csv"))
    assert len(look.facts.files) == 2


def test_a_pipe(tmp_path):
    made = KINDS["label_tab_text"](tmp_path)
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(made.path.read_bytes()))
    writer.start()
    look = thresher.look(fifo)
    writer.join()
    assert look.facts.rows.read == made.rows
    assert look.facts.label.task == "two classes"


# ---- limits --------------------------------------------------------------------------------------


def test_the_first_rows_and_an_estimate(tmp_path):
    made = KINDS["numbers_without_header"](tmp_path, rows=30_000)
    seen = []
    look = thresher.look(made.path, max_rows=10_000, on_progress=lambda *at: seen.append(at))
    rows = look.facts.rows
    assert (rows.read, rows.exact, rows.all_read) == (10_000, False, False)
    assert 24_000 < rows.total < 36_000
    assert seen[-1][0] == 10_000
    assert "the first 10,000 rows were read of about" in str(look)
    assert "estimated by bytes; --all reads all" in " ".join(str(look).split())
    look = thresher.look(made.path, max_rows=None)
    assert (look.facts.rows.total, look.facts.rows.exact) == (30_000, True)


def test_the_rows_of_parquet_files_are_known(tmp_path):
    made = KINDS["parquet_with_types"](tmp_path, rows=20_000)
    rows = thresher.look(made.path, max_rows=5_000).facts.rows
    assert (rows.read, rows.total, rows.exact, rows.all_read) == (5_000, 20_000, True, False)


def test_one_class_in_the_first_rows_is_told(tmp_path):
    made = KINDS["texts_sorted_by_label"](tmp_path, rows=20_000)
    look = thresher.look(made.path, max_rows=5_000)
    (finding,) = (one for one in look.findings if one.name == "one class")
    assert finding.what == "all 5,000 rows that were read have the label 1"
    assert finding.advice == "look at all rows with --all"


def test_wide_tables_take_little_memory(tmp_path):
    rng = np.random.default_rng(0)
    lines = [",".join(f"c{j}" for j in range(3000)) + ",label"]
    lines += [
        ",".join(map(str, rng.integers(0, 9, 3000).tolist())) + f",{i % 2}" for i in range(40)
    ]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join(lines) + "\n")
    look = thresher.look(path)
    assert len(look.facts.columns) == 3001
    assert "and 2,977 more: 2,977 number" in str(look)


# ---- damage --------------------------------------------------------------------------------------


def test_a_file_that_is_cut_short(tmp_path):
    made = KINDS["svmlight"](tmp_path, rows=10_000)
    whole = gzip.compress(made.path.read_bytes() * 5, 1)
    path = tmp_path / "cut.svm.gz"
    path.write_bytes(whole[: len(whole) // 2])
    look = thresher.look(path)
    assert look.facts.rows.read > 1000
    assert any("reading ended after row" in one.what for one in look.findings)
    table = KINDS["parquet_with_types"](tmp_path)
    table.path.write_bytes(table.path.read_bytes()[:20_000])
    look = thresher.look(table.path)
    assert "problem" in names(look)


def test_bytes_that_are_not_text_come_late(tmp_path):
    made = KINDS["text_column"](tmp_path, rows=6_000)
    data = made.path.read_bytes().rstrip(b"\n").rsplit(b"\n", 1)[0]
    made.path.write_bytes(data + b"\nK\xf6ln is fine,Rome,3,1\n")
    look = thresher.look(made.path)
    (finding,) = (one for one in look.findings if one.name == "encoding")
    assert finding.what.endswith(f"{made.path}:6001")
    assert "--encoding latin-1" in look.command


def test_a_quote_that_is_never_closed_comes_late(tmp_path):
    lines = ["label,words"] + [f"{i % 2},word{i % 7} and more words {i}" for i in range(90_000)]
    lines[20_000] = '0,"an open quote'
    path = tmp_path / "open.csv"
    path.write_text("\n".join(lines) + "\n")
    look = thresher.look(path)
    assert look.facts.rows.read == 90_000
    assert "quotes" in names(look)
    assert "--no-quotes" in look.command


def test_repeated_and_empty_names(tmp_path):
    path = tmp_path / "names.csv"
    path.write_text("a,a,,label\n" + "1,2,3,0\n4,5,6,1\n" * 20)
    look = thresher.look(path, header=True)
    assert [one.name for one in look.facts.columns] == ["a", "a#1", "#2", "label"]


OTHERS = {
    "lists of lists": pa.array([[["a"], ["b"]], [["c"]]] * 30),
    "lists of records": pa.array([[{"a": 1}], []] * 30),
    "lists of maps": pa.array([[[("k", 1)]], []] * 30, pa.list_(pa.map_(pa.string(), pa.int64()))),
    "lists of truth": pa.array([[True], [False]] * 30),
    "records": pa.array([{"a": 1}, {"a": 2}] * 30),
    "words by name": pa.array([[("k", "v")], []] * 30, pa.map_(pa.string(), pa.string())),
    "durations": pa.array([1, 2] * 30, pa.duration("s")),
    "nulls only": pa.array([None] * 60, pa.list_(pa.list_(pa.string()))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_columns_of_types_that_cannot_be_used(tmp_path, name):
    table = pa.table({"x": OTHERS[name], "n": [0.5, 1.5, 2.5] * 20, "label": ["a", "b"] * 30})
    path = str(tmp_path / "rows.arrow")
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)
    for data in (path, table):
        look = thresher.look(data)
        assert [one.kind for one in look.facts.columns] == ["other", "number", "category"]
        (finding,) = (one for one in look.findings if one.name == "type")
        assert finding.what.startswith("column x has type ")
        assert look.suggestion.reading["ignore"] == ["x"]
        assert "x" in look.html()
    source = thresher.scan(path, **look.suggestion.reading)
    assert sum(block.rows for block in source.blocks()) == 60
    with pytest.raises(ParameterError, match="column 'x' has type"):
        list(thresher.scan(path, label="label").blocks())
    named = thresher.look(path, label="x")
    assert "which cannot be used as labels" in " ".join(one.what for one in named.findings)


def test_lists_of_fixed_size_are_lists():
    rows = pa.array([[1.0, 2.0], [3.0, 4.0]] * 30, pa.list_(pa.float64(), 2))
    look = thresher.look(pa.table({"x": rows, "label": ["a", "b"] * 30}))
    assert (look.facts.columns[0].kind, look.facts.columns[0].distinct) == ("list", 4)


# ---- what is given -------------------------------------------------------------------------------


def test_a_given_label_is_used(tmp_path):
    made = KINDS["text_column"](tmp_path)
    look = thresher.look(made.path, label="stars")
    assert look.facts.label.columns == ("stars",)
    assert "--label stars" in look.command
    look = thresher.look(made.path, label="-1")
    assert look.facts.label.columns == ("label",)
    look = thresher.look(made.path, label="nothing")
    assert look.facts.label.columns == ()
    (finding,) = (one for one in look.findings if one.name == "no label")
    assert finding.what.startswith("there is no column 'nothing'; the columns are review, city")
    assert look.command == ""


def test_given_layouts_are_used(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a|b|c\n1|2|0\n3|4|1\n" * 10)
    look = thresher.look(path, delimiter="|", header=False)
    assert len(look.facts.columns) == 3
    assert not look.facts.file.layout.header
    look = thresher.look(KINDS["latin1"](tmp_path).path, encoding="cp1252")
    assert look.facts.file.encoding == "cp1252"
    assert "--encoding cp1252" in look.command


def test_reading_options_in_python(tmp_path):
    made = KINDS["text_column"](tmp_path)
    look = thresher.look(made.path, ignore=["city"])
    assert look.suggestion.reading == {"text": ["review"], "ignore": ["city"]}
    assert "--text review --ignore city" in look.command
    source = thresher.scan(made.path, **look.suggestion.reading)
    assert sum(block.rows for block in source.blocks()) == made.rows


# ---- labels that are words -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "option"),
    [
        (("no", "yes"), False),
        (("a", "b", "c"), False),
        ((1, 2), True),
        ((0, 1, 2), True),
        ((0, 1), False),
    ],
)
def test_multiclass_is_suggested_where_train_needs_it(tmp_path, labels, option):
    path = tmp_path / "rows.csv"
    rows = [f"{i * 7 % 100},{labels[i * i % 7 % len(labels)]}" for i in range(200)]
    path.write_text("size,label\n" + "\n".join(rows) + "\n")
    look = thresher.look(path)
    assert ("--multiclass" in look.command) == option
    found = [one for one in look.findings if one.name == "classes"]
    assert [one.serious for one in found] == ([] if labels == (0, 1) else [option])
    done = called("train", path, "--label", "label", "-m", tmp_path / "m", code=None)
    assert (done.returncode != 0) == option


def test_multiclass_is_suggested_for_words_in_arrow_from_a_pipe(tmp_path):
    table = pa.table({"size": list(range(100)), "label": ["no", "yes"] * 50})
    path = tmp_path / "rows.arrows"
    with pa.ipc.new_stream(path, table.schema) as file:
        file.write_table(table)
    assert "--multiclass" not in thresher.look(path).command
    told = called("look", "-", stdin=path.read_bytes()).stdout
    assert "--multiclass" in told
