"""Labels of tables: several per row in strings, in lists, or in columns of 0 and 1."""

import datetime
import itertools

import numpy as np
import pytest

from thresher import FTRLClassifier, scan
from thresher.data.writing import write
from thresher.errors import DataError, InputError, ParameterError

pa = pytest.importorskip("pyarrow", reason="needs the extra arrow")

from support.tables import csv_file, table_file  # noqa: E402

ROWS = [
    (1.0, ["sport"]),
    (2.0, ["sport", "war"]),
    (0.5, []),
    (0.25, ["art", "war"]),
    (3.0, ["sport"]),
]


def fresh():
    return FTRLClassifier(passes=2, random_state=0, store="dense", shuffle=False)


def sets(source):
    """Return the labels of each row."""
    found = []
    for block in source.blocks():
        starts, labels = block.label_sets()
        found += [labels[a:b].tolist() for a, b in itertools.pairwise(starts)]
    return found


@pytest.mark.parametrize("separator", [",", ";", "|", ", ", " ; "])
def test_separators(tmp_path, separator):
    lines = [f'{x},"{separator.join(labels)}"' for x, labels in ROWS]
    path = csv_file(tmp_path, "x,label\n" + "\n".join(lines) + "\n")
    source = scan(path, multilabel=True)
    assert sets(source) == [labels for _, labels in ROWS]
    assert source.settled().label_separator == separator.strip()
    assert next(scan(path).blocks()).labels[1] == separator.join(["sport", "war"])


def test_a_given_separator(tmp_path):
    path = csv_file(tmp_path, "x,label\n1,a/b\n2,a; b\n")
    assert sets(scan(path, multilabel=True, label_separator="/")) == [["a", "b"], ["a; b"]]


def test_labels_twice_and_empty_ones(tmp_path):
    path = csv_file(tmp_path, "x;label\n1;b,a,b,\n2;\n3;, ,a\n")
    assert sets(scan(path, multilabel=True)) == [["b", "a"], [], ["a"]]


def test_numbers_stay_numbers(tmp_path):
    path = csv_file(tmp_path, "x;label\n1;3,17\n2;\n3;5\n")
    source = scan(path, multilabel=True)
    assert sets(source) == [[3, 17], [], [5]]
    assert source.kinds["label"] == "number"
    csv_file(tmp_path, "x;label\n1;3,x\n")
    with pytest.raises(DataError, match=r"data.csv:2: column 'label': expected a number"):
        sets(scan(path, multilabel=True, kinds={"label": "number", "x": "number"}))


@pytest.mark.parametrize(
    "type",
    [
        pa.list_(pa.string()),
        pa.large_list(pa.large_string()),
        pa.list_(pa.dictionary(pa.int32(), pa.string())),
    ],
)
@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_lists_of_words(tmp_path, type, format):
    words = [labels for _, labels in ROWS]
    words[2] = None
    made = pa.array(words, pa.list_(pa.string())).cast(type)
    table = pa.table({"x": [x for x, _ in ROWS], "label": made})
    if format == "parquet":
        path = table_file(tmp_path, table)
    else:
        path = str(tmp_path / "data.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    assert sets(scan(path, multilabel=True)) == [labels for _, labels in ROWS]
    with pytest.raises(InputError, match="rows have lists of labels; set multilabel=True"):
        FTRLClassifier(store="hashed").fit(scan(path), classes="binary")


def test_bad_lists(tmp_path):
    path = table_file(tmp_path, {"x": [1, 2], "label": [["a"], ["b", None]]})
    with pytest.raises(DataError, match=r"parquet:2: column 'label': a label in the list is null"):
        sets(scan(path, multilabel=True))


def test_lists_of_numbers_and_categories(tmp_path):
    path = table_file(tmp_path, {"x": [1, 2, 3], "label": [[1], [3, 2], None]})
    assert sets(scan(path, multilabel=True)) == [[1], [3, 2], []]
    path = table_file(tmp_path, {"x": [1, 2], "label": [[1.5], [2, np.nan]]})
    with pytest.raises(DataError, match=r"parquet:2: column 'label': nan is not a finite number"):
        sets(scan(path, multilabel=True))
    words = pa.array(["a;b", "b", None, "a;b"]).dictionary_encode()
    path = table_file(tmp_path, {"x": [1, 2, 3, 4], "label": words})
    assert sets(scan(path, multilabel=True)) == [["a", "b"], ["b"], [], ["a", "b"]]


def test_labels_of_other_types(tmp_path):
    day = datetime.date(2024, 1, 1)
    for labels, options in (([day, day], {}), ([[day], [day]], {"multilabel": True})):
        path = table_file(tmp_path, {"x": [1, 2], "label": labels})
        with pytest.raises(ParameterError, match="must be numbers or strings; column 'label' has"):
            sets(scan(path, **options))


@pytest.mark.parametrize("options", [{}, {"multilabel": True}])
def test_a_column_without_any_label(tmp_path, options):
    path = table_file(tmp_path, {"x": [1, 2], "label": pa.nulls(2)})
    assert sets(scan(path, **options)) == [[], []]
    with pytest.raises(DataError, match=r"data\.parquet: no row has a label"):
        FTRLClassifier(store="hashed").fit(scan(path, **options))


def test_columns_of_labels_of_other_types(tmp_path):
    path = table_file(tmp_path, {"a": pa.nulls(2), "b": [1, 0], "x": [1, 2]})
    assert sets(scan(path, multilabel=True, label="a,b")) == [["b"], []]
    path = table_file(tmp_path, {"a": ["1", "0"], "b": [1, 0], "x": [1, 2]})
    with pytest.raises(ParameterError, match="column 'a' of labels must hold 0 and 1: string"):
        sets(scan(path, multilabel=True, label="a,b"))


@pytest.mark.parametrize("label", [["art", "sport", "war"], "art,sport,war", "0,1,-1"])
def test_one_column_per_label(tmp_path, label):
    names = ["art", "sport", "war"]
    lines = [
        ",".join(str(int(name in labels)) for name in names[:2]) + f",{x},{int('war' in labels)}"
        for x, labels in ROWS
    ]
    path = csv_file(tmp_path, "art,sport,x,war\n" + "\n".join(lines) + "\n")
    source = scan(path, multilabel=True, label=label)
    assert sets(source) == [labels for _, labels in ROWS]
    (block,) = source.blocks(names=True)
    assert {name for _, name in block.names} == {"x"}
    assert source.settled().label == "art,sport,war"


def test_a_pattern_of_columns(tmp_path):
    table = {"topic_a": [True, False], "x": [1.5, 2.5], "topic_b": [True, None]}
    path = table_file(tmp_path, table)
    assert sets(scan(path, multilabel=True, label="topic_*")) == [["topic_a", "topic_b"], []]
    with pytest.raises(InputError, match=r"'topic_\*' names several columns; .*multilabel=True"):
        sets(scan(path, label="topic_*"))
    with pytest.raises(DataError, match="there is no column 'topics'"):
        sets(scan(path, multilabel=True, label="topics"))
    path = table_file(tmp_path, {"a": [0, 2], "b": [1, 1], "x": [1, 2]})
    with pytest.raises(DataError, match=r"parquet:2: column 'a': expected 0 or 1; found 2"):
        sets(scan(path, multilabel=True, label="a,b"))
    with pytest.raises(ParameterError, match="without commas"):
        scan(path, multilabel=True, label=["a,b", "x"])


def test_the_same_model_as_in_python(tmp_path):
    """All ways to give the same rows and labels give the same bits."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)).round(3)
    marks = np.column_stack([X[:, 0] > 0, X[:, 1] > 0.5, X[:, 0] + X[:, 2] > 1])
    names = np.array(["art", "sport", "war"])
    words = [names[row].tolist() for row in marks]
    columns = {str(k): X[:, k] for k in range(4)}
    expected = fresh().fit(X, marks.astype(int))
    cells = ["|".join(labels) for labels in words]
    head = "0,1,2,3,label\n"
    text = head + "".join(
        ",".join(map(str, row)) + f",{cell}\n" for row, cell in zip(X.tolist(), cells, strict=True)
    )
    flags = {name: marks[:, k].astype(int) for k, name in enumerate(names)}
    files = [
        (csv_file(tmp_path, text, "a.csv"), {}),
        (csv_file(tmp_path, text.removeprefix(head), "b.csv"), {"label": -1}),
        (table_file(tmp_path, {**columns, "label": pa.array(words)}, "c.parquet"), {}),
        (table_file(tmp_path, {**columns, **flags}, "d.parquet"), {"label": "art,sport,war"}),
    ]
    for path, options in files:
        source = scan(path, multilabel=True, bits=2, **options)
        fitted = fresh().fit(source)
        assert fitted.classes_.tolist() == names.tolist()
        np.testing.assert_array_equal(fitted.coef_, expected.coef_)
        predicted = fitted.predict(scan(path, multilabel=True, bits=2, **options))
        np.testing.assert_array_equal(predicted.toarray(), expected.predict(X))


@pytest.mark.parametrize("multilabel", [False, True])
def test_words_in_a_cache(tmp_path, multilabel):
    cells = ["b;a", "", "a", "c;b"] if multilabel else ["b", "a", "c", "a"]
    path = csv_file(
        tmp_path, "x,label\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))
    )
    source = scan(path, multilabel=multilabel)
    write(source, str(tmp_path / "rows.cache"), "cache")
    again = scan(tmp_path / "rows.cache", multilabel=multilabel)
    assert sets(again) == sets(source)
    assert again.labels().tolist() == ["a", "b", "c"]
    (other,) = again.blocks()
    if not multilabel:
        assert other.labels.tolist() == cells
        assert again.label_words() == ("a", "b", "c")


def test_words_of_a_pipe_cannot_be_cached(tmp_path):
    with pytest.raises(DataError, match="labels are words; a cache of rows that can be read only"):
        write(scan(iter([({"x": 1}, "a"), ({"x": 2}, "b")])), str(tmp_path / "x.cache"), "cache")
