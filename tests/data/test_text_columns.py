"""Columns of text and of ids are told from categories, with a warning or by `text="auto"`."""

import warnings

import pytest

from thresher import FTRLClassifier, scan
from thresher.data.text_columns import IdColumnWarning, TextColumnWarning

pa = pytest.importorskip("pyarrow", reason="needs the extra arrow")

from support.tables import csv_file, table_file  # noqa: E402

WORDS = ["red", "green", "blue", "round", "square", "large", "small"]


def sentence(i):
    return f"the {WORDS[i % 7]} one is {WORDS[i % 5]} and number {i}"


def rows(count=60):
    return {
        "review": [sentence(i) for i in range(count)],
        "id": [f"u{i * 7919 % 1000:04}x" for i in range(count)],
        "colour": [WORDS[i % 3] for i in range(count)],
        "degree": [
            "some college, no degree" if i % 2 else "high school or less" for i in range(count)
        ],
        "size": [i / 2 for i in range(count)],
        "label": [i % 2 for i in range(count)],
    }


def file(tmp_path, kind, **options):
    table = rows(**options)
    if kind == "parquet":
        return table_file(tmp_path, table)
    lines = [",".join(table)]
    lines += [",".join(f'"{cell}"' for cell in row) for row in zip(*table.values(), strict=True)]
    return csv_file(tmp_path, "\n".join(lines))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_warnings(tmp_path, kind):
    path = file(tmp_path, kind)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FTRLClassifier(store="hashed", passes=2).fit(scan(path))
    found = [one for one in caught if issubclass(one.category, TextColumnWarning | IdColumnWarning)]
    assert [one.category for one in found] == [TextColumnWarning, IdColumnWarning]
    assert str(found[0].message) == (
        f"{path}: column 'review' has 60 different values in its first 60 rows, of 8.0 words in "
        f"the mean, and each value is one feature; if it is text, make each word a feature with "
        f"text='review'"
    )
    assert "column 'id' has 60 different values" in str(found[1].message)
    assert "leave it out with ignore='id'" in str(found[1].message)


@pytest.mark.parametrize(
    "options",
    [
        {"text": "review", "ignore": "id"},
        {"kinds": {"review": "string", "id": "string"}},
        {"labelled": False},
    ],
)
def test_no_warnings(tmp_path, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(scan(file(tmp_path, "csv"), **options).blocks())
        list(scan(file(tmp_path, "csv", count=10)).blocks())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("count", [6, 60])
def test_auto(tmp_path, kind, count):
    path = file(tmp_path, kind, count=count)
    source = scan(path, text="auto", ignore="id")
    names = {name for block in source.blocks(names=True) for _, name in block.names}
    assert {"review^red", "colour=red", "size"} <= names
    if count == 60:
        assert "degree=high school or less" in names
    assert source.kinds["review"] == "text"
    assert source.kinds["colour"] == "string"
    model = FTRLClassifier(store="hashed").fit(source).model_
    one = csv_file(tmp_path, "review,colour\nred red red,red\n", "one.csv")
    (block,) = scan(one, labelled=False).blocks(names=True, kinds=source.kinds)
    assert {name for _, name in block.names} == {"review^red", "colour=red"}
    assert '"review": "text"' in model.parameters["kinds"]


def test_a_column_named_auto_is_a_column(tmp_path):
    path = csv_file(tmp_path, "auto,y\nVW Golf,1\nFiat Uno,0\n")
    (block,) = scan(path, text="auto").blocks(names=True)
    assert {name for _, name in block.names} == {"auto^vw", "auto^golf", "auto^fiat", "auto^uno"}
