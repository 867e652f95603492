"""The parts of a look: counting, order, layout of cells, choice of the label."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import thresher
from thresher.data.csv_layout import CsvOptions, layout_of
from thresher.data.row_folds import mixed
from thresher.data.text_columns import IdColumnWarning, TextColumnWarning
from thresher.errors import DataWarning, InputError
from thresher.health.label_order import LabelOrder
from thresher.overview.distinct import DistinctCount
from thresher.overview.label_choice import separator_of, task_of
from thresher.overview.row_order import ClassOrder, NumberOrder, SetOrder
from thresher.overview.sniff import sniff
from thresher.overview.table_batches import _unique


@pytest.mark.parametrize("different", [10, 999, 1000, 20_000])
def test_distinct_values(different):
    rng = np.random.default_rng(different)
    count = DistinctCount(bound=1000)
    for _ in range(20):
        count.add(mixed(rng.integers(0, different, 5000).astype(np.uint64)))
    if different <= 1000:
        assert (count.count, count.exact) == (different, True)
    else:
        assert not count.exact
        assert abs(count.count / different - 1) < 0.15


@pytest.mark.parametrize("pieces", [1, 7, 1000])
def test_runs_do_not_depend_on_batches(pieces):
    codes = np.repeat([0, 1, 0, 2, 1], [5, 300, 2, 400, 293])
    order = ClassOrder()
    for part in np.array_split(codes, pieces):
        order.add(part)
    found = order.facts("abc")
    assert (found.runs, found.longest_run, found.longest_run_label) == (5, 400, "c")
    assert found.ordered
    assert sum(value for _, value in found.series) > 0


def test_shuffled_rows_are_not_ordered():
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y = rng.choice(3, 2000, p=[0.7, 0.2, 0.1])
        order = ClassOrder()
        order.add(y)
        found = order.facts("abc")
        alarms += found.ordered
        assert 0.4 < found.longest_run / found.expected_longest_run < 2.5
        number = NumberOrder()
        number.add(rng.normal(size=2000) + 1e6)
        alarms += number.facts().ordered
        sets = SetOrder()
        sets.add([set(rng.choice(50, 3, replace=False).tolist()) for _ in range(500)])
        alarms += sets.facts().ordered
    assert alarms == 0


@pytest.mark.parametrize("run", [1, 2, 5, 25, 40, 100, 500])
def test_classes_are_ordered_if_training_warns(run):
    y = np.resize(np.repeat([0, 1], run), 1000)
    order, watch = ClassOrder(), LabelOrder(classes=True)
    order.add(y)
    found = order.facts("ab")
    assert found.ordered == ((watch.see(y) or watch.conclude()) is not None) == (run > 30)
    assert found.longest_run_text == ("1 row" if run == 1 else f"{run} rows")


@pytest.mark.parametrize("noise", [0.1, 10.0])
def test_numbers_are_ordered_if_training_warns(noise):
    y = np.linspace(0, 5, 2000) + noise * np.random.default_rng(3).normal(size=2000)
    order, watch = NumberOrder(), LabelOrder(classes=False)
    order.add(y)
    alarm = watch.see(y) or watch.conclude()
    assert order.facts().ordered == (alarm is not None) == (noise < 1)


def test_order_of_numbers_in_batches():
    y = np.concatenate([np.linspace(0, 1, 500), np.linspace(5, 6, 500)])
    whole, parts = NumberOrder(), NumberOrder()
    whole.add(y)
    for part in np.array_split(y, 13):
        parts.add(part)
    assert parts.facts().similarity == pytest.approx(whole.facts().similarity)
    assert whole.facts().drift == pytest.approx(np.corrcoef(y, np.arange(1000))[0, 1])
    flat = NumberOrder()
    flat.add(np.ones(100))
    assert flat.facts() is None


@pytest.mark.parametrize(
    ("head", "delimiter", "names"),
    [
        ("a,b\n1,2\n3,4\n", ",", ("a", "b")),
        ("1,2\n3,4\n", ",", ("0", "1")),
        ("a;b\n1,5;2\n2,5;3\n", ";", ("a", "b")),
        ("a|b|c\n1|2|3\n4|5|6\n", "|", ("a", "b", "c")),
        ("ham\tsee you there, my friend\nspam\twin a large prize, now\n" * 5,
         "\t", ("label", "text")),
        ("  1   2.5 3\n 4 5   6\n", " ", ("0", "1", "2")),
        ("\n\na,b\r\n1,2\r\n", ",", ("a", "b")),
    ],
)  # fmt: skip
def test_layouts_are_those_of_the_reader(tmp_path, head, delimiter, names):
    path = tmp_path / "rows.csv"
    path.write_bytes(head.encode())
    layout = sniff(str(path)).layout
    assert (layout.delimiter, layout.names) == (delimiter, names)
    assert replace(layout_of(str(path), CsvOptions()), rows=(), note="") == layout


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("__label__a some words\n__label__b other words of text\n", []),
        ("__label__a __label__b some words\n__label__b other words\n", ["--multilabel"]),
    ],
)
def test_lines_of_fasttext(tmp_path, text, options):
    path = tmp_path / "rows.txt"
    path.write_text(text * 30)
    look = thresher.look(path)
    assert look.facts.rows.read == 60
    assert look.facts.label.columns == ("label",)
    assert [one.kind for one in look.facts.columns][1] == "text"
    assert [word for word in look.command.split() if word.startswith("--")] == options
    assert "lines of fastText" in " ".join(str(look).split())


def test_what_the_first_line_leaves_open(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("1.5,name,y\n" + "2.5,3,0\n1.5,4,1\n" * 10)
    with pytest.raises(InputError, match="is the first line a header"):
        layout_of(str(path), CsvOptions())
    assert "--no-header" in thresher.look(path).command
    path.write_text("Some words.\n\nA sentence, with commas, and more.\nAnd an end\n" * 5)
    assert thresher.look(path).facts.files[0].format == "lines"


def test_many_names_are_not_compared_with_each_other():
    tables = pytest.importorskip("support.tables", reason="needs the extra arrow")
    names = [tables.CountedName(f"column {place}") for place in range(300)]
    tables.CountedName.compared = 0
    assert _unique(tuple(names)) == names
    assert tables.CountedName.compared <= len(names)  # the assertion compares all of them once
    assert _unique(("a", "", "a", "b")) == ["a", "#1", "a#2", "b"]
    assert _unique(("a", "a#2", "a")) == ["a", "a#2", "a#2#"]
    assert _unique(("#1", "", "b")) == ["#1", "#1#", "b"]


def test_separators_of_labels():
    assert separator_of(["a,b", "a", "b,c", "c"] * 20) == ","
    assert separator_of(["a|b", "a", "", "c"] * 20) == "|"
    assert separator_of(["great, really", "bad, so bad it hurts me", "fine"] * 2) == ""
    assert separator_of(["a", "b", "c"] * 20) == ""
    assert separator_of([f"text {i}, and more {i}" for i in range(50)]) == ""


def test_tasks():
    assert task_of(Counter({1.0: 5, 2.0: 5, 3.0: 2}), 12)[0] == "classes"
    assert task_of(Counter({float(i): 1 for i in range(60)}), 60)[0] == "regression"
    assert task_of(Counter({float(i): 100 for i in range(60)}), 6000)[0] == "classes"
    assert task_of(Counter({float(i): 100 for i in range(60)}), 6000, "age")[0] == "regression"
    assert task_of(Counter({0.5: 5, 1.5: 5, 2.5: 1}), 11, whole=False)[0] == "regression"
    assert task_of(Counter({"a": 3}), 3)[0] == "one class"
    assert task_of(Counter(), 0) == ("", "")


def test_text_or_category_as_the_readers_decide(tmp_path):
    rng = np.random.default_rng(1)
    words = np.array(["tea", "milk", "bread", "salt", "rice", "oil", "corn", "figs"])
    path = tmp_path / "rows.csv"
    texts = [" ".join(rng.choice(words, 6)) for _ in range(300)]
    lines = [f"{i % 2},{text},s{i}x,{words[i % 8]}" for i, text in enumerate(texts)]
    path.write_text("\n".join(["label,review,session,food", *lines]) + "\n")
    kinds = {one.name: one.kind for one in thresher.look(path).facts.columns}
    assert (kinds["review"], kinds["session"], kinds["food"]) == ("text", "id", "category")
    with pytest.warns(DataWarning) as told:
        thresher.FTRLClassifier(store="hashed", passes=1).fit(thresher.scan(path))
    found = {type(one.message) for one in told}
    assert {TextColumnWarning, IdColumnWarning} <= found
