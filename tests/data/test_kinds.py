"""The kind of a table column is decided once, and used in all files and by models."""

import itertools
import json

import numpy as np
import pytest

import thresher
from support.files import called
from thresher import FTRLClassifier, scan
from thresher.data import tables
from thresher.errors import DataError, ParameterError

pa = pytest.importorskip("pyarrow", reason="needs the extra arrow")
parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra arrow")

COLORS = ("1", "2", "red")


def colored(path, colors, rows=400, seed=0):
    """Write rows whose label is 1 if the color is 1 or red."""
    rng = np.random.default_rng(seed)
    lines = ["color,x,y"]
    for color in itertools.islice(itertools.cycle(colors), rows):
        lines.append(f"{color},{rng.random():.3f},{-1 if color == '2' else 1}")
    path.write_text("\n".join(lines) + "\n")
    return path


def labels_in(path):
    return [int(line.rpartition(",")[2]) for line in path.read_text().splitlines()[1:]]


def predicted(model, path):
    return [int(line) for line in called("predict", model, path).stdout.splitlines()]


def same(model, other):
    assert model.indices.tolist() == other.indices.tolist()
    assert model.weights.tobytes() == other.weights.tobytes()


@pytest.fixture
def files(tmp_path):
    colored(tmp_path / "all.csv", COLORS)
    colored(tmp_path / "numbers.csv", COLORS[:2], seed=1)
    return tmp_path


def test_a_model_keeps_the_kinds_of_columns(files):
    model = files / "model"
    called("train", files / "all.csv", "-m", model, "--passes", "5", "--quiet")
    kinds = json.loads(thresher.load(model).parameters["kinds"])
    assert kinds == {"color": "string", "x": "number", "y": "number"}
    assert predicted(model, files / "numbers.csv") == labels_in(files / "numbers.csv")
    assert "kinds" not in called("inspect", model).stdout


@pytest.mark.parametrize("rule", ["ftrl", "coordinate-descent"])
def test_validation_rows_have_the_kinds_of_training_rows(files, rule):
    # If color were a number, the rows would have no feature of the model.
    model, again = files / "model", files / "again"
    options = ["--rule", rule, "--passes", "3", "--quiet"]
    called("train", files / "all.csv", "-m", model, "--valid", files / "numbers.csv", *options)
    text = (files / "numbers.csv").read_text()
    (files / "more.csv").write_text(text + "red,0.5,1\n")
    called("train", files / "all.csv", "-m", again, "--valid", files / "more.csv", *options)
    first, second = (thresher.load(path).history[-1].valid_loss for path in (model, again))
    assert first == pytest.approx(second, rel=0.02)


def test_a_cache_keeps_the_kinds_of_columns(files):
    plain, model = files / "plain", files / "model"
    called("train", files / "all.csv", "-m", plain, "--quiet")
    for _ in range(2):  # the first run makes the cache, the second reads it
        cache = ["--cache", files / "rows.cache"]
        called("train", files / "all.csv", "-m", model, "--quiet", *cache)
        same(thresher.load(model), thresher.load(plain))
        assert predicted(model, files / "numbers.csv") == predicted(plain, files / "numbers.csv")
        assert json.loads(thresher.load(model).parameters["kinds"])["color"] == "string"


def test_a_converted_cache_keeps_the_kinds_of_columns(files):
    model, cache = files / "model", files / "rows.cache"
    called("convert", files / "all.csv", cache)
    called("train", cache, "-m", model, "--passes", "5", "--quiet")
    assert predicted(model, files / "numbers.csv") == labels_in(files / "numbers.csv")


@pytest.mark.parametrize("command", ["files", "pipe"])
def test_several_files_are_read_as_one(files, command):
    header, *rows = (files / "all.csv").read_text().splitlines(keepends=True)
    ordered = [row for row in rows if row[0] == "r"] + [row for row in rows if row[0] != "r"]
    (files / "one.csv").write_text(header + "".join(ordered))
    (files / "c1.csv").write_text(header + "".join(ordered[:200]))
    (files / "c2.csv").write_text(header + "".join(ordered[200:]))
    called("train", files / "one.csv", "-m", files / "whole", "--quiet")
    if command == "files":
        called("train", files / "c1.csv", files / "c2.csv", "-m", files / "model", "--quiet")
    else:
        text = (files / "one.csv").read_bytes()
        called("train", "-", "-m", files / "model", "--quiet", stdin=text)
    whole, model = thresher.load(files / "whole"), thresher.load(files / "model")
    assert whole.parameters["kinds"] == model.parameters["kinds"]
    same(model, whole)


def test_resuming_in_a_later_file(files, monkeypatch):
    monkeypatch.setattr(tables, "BATCH_ROWS", 100)
    (files / "empty.csv").write_text("color,x,y\n")
    (files / "wider.csv").write_text("color,x,y,z\n" + "2,1,1,5\n" * 300)
    names = [files / name for name in ("empty.csv", "all.csv", "numbers.csv", "wider.csv")]
    source = scan(names)
    blocks = list(source.blocks())
    assert source.kinds == {"color": "string", "x": "number", "y": "number", "z": "number"}
    assert scan(names).kinds == source.kinds
    for done, block in enumerate(blocks):
        rest = list(scan(names).blocks(after=block.end))
        assert [b.native.keys.tolist() for b in rest] == [
            b.native.keys.tolist() for b in blocks[done + 1 :]
        ]


def test_estimators_keep_the_kinds_of_columns(files):
    params = {"store": "hashed", "passes": 5, "l1": 0.1}
    clf = FTRLClassifier(**params).fit(scan(files / "all.csv"))
    numbers = files / "numbers.csv"
    assert clf.predict(scan(numbers)).tolist() == labels_in(numbers)
    assert clf.model_.predict(scan(numbers)).tolist() == labels_in(numbers)
    clf.model_.save(files / "model")
    assert thresher.load(files / "model").predict(scan(numbers)).tolist() == labels_in(numbers)
    clf = FTRLClassifier(**params).partial_fit(scan(files / "all.csv"), classes=[-1, 1])
    clf.partial_fit(scan(numbers))
    assert set(clf.model_.names.values()) <= {"color=1", "color=2", "color=red", "x"}
    assert len(clf.model_.names) == clf.model_.nnz
    (files / "wider.csv").write_text("color,z,y\n" + "1,1,1\n2,-1,-1\n" * 50)
    wider = scan(files / "wider.csv")
    clf.partial_fit(wider)
    assert set(clf.model_.names.values()) <= {"color=1", "color=2", "color=red", "x", "z"}
    assert "z" in clf.model_.names.values()
    assert json.loads(clf.model_.parameters["kinds"])["z"] == "number"
    clf.fit(np.eye(2), [0, 1])
    assert "kinds" not in clf.model_.parameters


def test_parquet_and_csv_have_the_same_features(files):
    table = pa.table({"color": [1, 2], "x": [0.5, 0.5], "y": [1, -1]})
    parquet.write_table(table, files / "two.parquet")
    model = files / "model"
    called("train", files / "all.csv", "-m", model, "--passes", "5", "--quiet")
    assert predicted(model, files / "two.parquet") == [1, -1]
    words = pa.table({"color": list(COLORS) * 50, "x": ["1"] * 150, "y": [1, -1, 1] * 50})
    parquet.write_table(words, files / "words.parquet")
    called("train", files / "words.parquet", "-m", model, "--passes", "5", "--quiet")
    assert predicted(model, files / "numbers.csv") == labels_in(files / "numbers.csv")


def test_a_cell_of_another_kind(files):
    model = files / "model"
    called("train", files / "numbers.csv", "-m", model, "--quiet")
    done = called("predict", model, files / "all.csv", code=1)
    assert f"{files}/all.csv:4: column 'color': expected a number" in done.stderr
    assert done.stderr.count("\n") == 1
    # A column that the model does not use has no bad cells.
    (files / "new.csv").write_text("color,x,other\n1,1,1\n" + "1,1,a\n" * 2)
    assert len(predicted(model, files / "new.csv")) == 3
    with pytest.raises(DataError, match=r"all\.csv:4: column 'color': expected a number"):
        list(scan(files / "all.csv", kinds={"color": "number"}).blocks())


def test_kinds_may_be_given(files):
    source = scan(files / "numbers.csv", kinds={"color": "string"})
    assert source.kinds == {"color": "string", "x": "number", "y": "number"}
    (block,) = source.blocks(names=True)
    assert {name for _, name in block.names} == {"color=1", "color=2", "x"}
    with pytest.raises(ParameterError, match="the kind of column 'color' is 'word'"):
        scan(files / "numbers.csv", kinds={"color": "word"})
