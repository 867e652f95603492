"""`thresher train` and `predict` on tables as people have them."""

import numpy as np
import pytest

import thresher
from support.files import called
from support.training_cases import lines, trained

pa = pytest.importorskip("pyarrow", reason="needs the extra arrow")

from support.tables import csv_file, table_file  # noqa: E402

FLOWERS = "".join(
    f"{5 + i % 3 + i / 1000},{3 - i % 3},{('setosa', 'virginica', 'versicolor')[i % 3]}\n"
    for i in range(120)
)
TEXTS = [
    (
        "ham" if i % 3 else "spam",
        f"{'meet me at noon' if i % 3 else 'win a free prize'}, number {i}",
    )
    for i in range(90)
]


def test_a_file_without_a_header(tmp_path):
    csv_file(tmp_path, FLOWERS, "iris.data")
    model, done = trained(tmp_path, "iris.data", "--label", "-1", "--passes", "5")
    notes = done.stderr.splitlines()
    assert any("no header; the columns are named 0 to 2, and -1 is the last" in n for n in notes)
    assert any("labels are words, such as setosa, virginica, versicolor" in n for n in notes)
    truth = [line.split(",")[2] for line in FLOWERS.splitlines()]
    predicted = lines(called("predict", model, tmp_path / "iris.data"))
    assert np.mean(np.array(predicted) == truth) > 0.9
    csv_file(tmp_path, "".join(f"{line.rsplit(',', 1)[0]}\n" for line in FLOWERS.splitlines()))
    assert lines(called("predict", model, tmp_path / "data.csv")) == predicted
    one = csv_file(tmp_path, FLOWERS.splitlines()[0] + "\n", "one.csv")
    assert lines(called("predict", model, one)) == predicted[:1]
    wrong = csv_file(tmp_path, "1,2,3,4,5\n1,2,3,4,5\n", "wrong.csv")
    done = called("predict", model, wrong, code=2)
    assert "the first line has 5 cells, but there are 3 names of columns: 0, 1, 2" in done.stderr


def test_one_step_from_an_error_to_the_model(tmp_path):
    csv_file(tmp_path, FLOWERS, "iris.data")
    done = called("train", tmp_path / "iris.data", "-m", tmp_path / "m", code=1)
    assert "--label -1 for the last column" in done.stderr
    assert "0 (5.0), 1 (3), 2 (setosa)" in done.stderr
    csv_file(tmp_path, "1.5,x,7\n2.5,x,8\n", "numbers.csv")
    done = called("train", tmp_path / "numbers.csv", "-m", tmp_path / "m", "--label", "2", code=1)
    assert "use --multiclass for other classes, or --loss squared for numbers" in done.stderr
    csv_file(tmp_path, "unknown,0.5,1\n3,0.25,0\n4,0.75,1\n", "odd.csv")
    done = called("train", tmp_path / "odd.csv", "-m", tmp_path / "m", "--label", "2", code=1)
    assert "use --no-header for a file without a header, or --header" in done.stderr
    trained(tmp_path, "odd.csv", "--label", "2", "--no-header", "--quiet")
    csv_file(tmp_path, "x,y\ncaf\xe9,1\nthe,0\n".encode("latin-1"), "latin.csv")
    done = called("train", tmp_path / "latin.csv", "-m", tmp_path / "m", code=1)
    assert "latin.csv:2: column 'x'" in done.stderr
    assert "--encoding latin-1" in done.stderr
    trained(tmp_path, "latin.csv", "--encoding", "latin-1", "--quiet")
    csv_file(tmp_path, 'x,y\n"a,1\n' + "b,0\n" * 300_000, "quote.csv")
    done = called("train", tmp_path / "quote.csv", "-m", tmp_path / "m", code=1)
    assert "if quotes are part of the cells, use --no-quotes" in done.stderr


def test_names_for_a_file_without_a_header(tmp_path):
    csv_file(tmp_path, FLOWERS, "iris.data")
    options = ["--columns", "length,width,kind", "--label", "kind", "--ignore", "-2"]
    model, _ = trained(tmp_path, "iris.data", *options)
    assert {f.name for f in thresher.load(model).top(3)} == {"length"}
    csv_file(tmp_path, "width,kind,length\n3,setosa,5.0\n", "named.csv")
    csv_file(tmp_path, "5.0,3,setosa\n", "plain.csv")
    found = [lines(called("predict", model, tmp_path / n)) for n in ("named.csv", "plain.csv")]
    assert found[0] == found[1]


def test_a_model_of_named_columns_refuses_a_file_without_names(tmp_path):
    csv_file(tmp_path, "length,width,label\n" + FLOWERS, "iris.csv")
    model, _ = trained(tmp_path, "iris.csv", "--quiet")
    bare = csv_file(tmp_path, FLOWERS, "bare.csv")
    done = called("predict", model, bare, code=1)
    assert "use --columns length,width,label" not in done.stderr
    assert "name them with --columns length,width,label" in done.stderr
    done = called("predict", model, bare, "--columns", "length,width,label")
    assert lines(done) == lines(called("predict", model, tmp_path / "iris.csv"))


@pytest.mark.parametrize("form", ["tsv", "csv", "fasttext", "pipe"])
def test_labels_and_texts(tmp_path, form):
    rows = {
        "tsv": "".join(f"{label}\t{text}\n" for label, text in TEXTS),
        "pipe": "".join(f"{label}\t{text}\n" for label, text in TEXTS),
        "csv": "".join(f'"{text}",{label}\n' for label, text in TEXTS),
        "fasttext": "".join(f"__label__{label} {text}\n" for label, text in TEXTS),
    }[form]
    path = csv_file(tmp_path, rows, "rows.txt")
    data, stdin = ("-", rows.encode()) if form == "pipe" else ("rows.txt", b"")
    model, _ = trained(tmp_path, data, stdin=stdin)
    assert thresher.load(model).classes.tolist() == ["ham", "spam"]
    predicted = lines(called("predict", model, path))
    assert predicted == [label for label, _ in TEXTS]
    new = csv_file(tmp_path, "".join(f"{text}\n" for _, text in TEXTS), "new.txt")
    if form != "csv":  # there, texts are quoted
        assert lines(called("predict", model, new)) == predicted


def test_text_as_a_category(tmp_path):
    rows = "label,review\n" + "".join(f'{label},"{text}"\n' for label, text in TEXTS)
    csv_file(tmp_path, rows, "reviews.csv")
    _, done = trained(tmp_path, "reviews.csv")
    assert done.stderr.count("warning: ") == 1
    assert "make each word a feature with --text review" in done.stderr
    exact, done = trained(tmp_path, "reviews.csv", "--text", "review", name="exact")
    assert "warning" not in done.stderr
    auto, done = trained(tmp_path, "reviews.csv", "--text", "auto", name="auto")
    assert "warning" not in done.stderr
    assert thresher.load(auto).weights.tolist() == thresher.load(exact).weights.tolist()
    found = lines(called("predict", auto, tmp_path / "reviews.csv"))
    assert found == [label for label, _ in TEXTS]


@pytest.mark.parametrize("command", ["tune", "compare", "convert"])
def test_other_commands_warn_too(tmp_path, command):
    rows = "label,review\n" + "".join(f'{label},"{text}"\n' for label, text in TEXTS)
    path = csv_file(tmp_path, rows, "reviews.csv")
    own = {
        "tune": [path, "-m", tmp_path / "m", "--grid", "l1=0,0.1", "--folds", "2"],
        "compare": [path, "--rules", "ftrl", "--orders", "1", "--folds", "2", "--bits", "8"],
        "convert": [path, tmp_path / "out.parquet"],
    }[command]
    done = called(command, *own)
    assert done.stderr.count("warning: ") == 1
    assert "with --text review" in done.stderr


def test_several_labels(tmp_path):
    sets = [["sport"], ["sport", "war, cold"], [], ["war, cold"]] * 30
    words = {"sport": "ball", "war, cold": "tank"}
    rows = "".join(f"{';'.join(s)}\t{' '.join(words[k] for k in s)} x y z\n" for s in sets)
    csv_file(tmp_path, "topics\ttext\n" + rows, "topics.tsv")
    options = ["--multilabel", "--label", "topics", "--text", "text", "--passes", "5"]
    model, _ = trained(tmp_path, "topics.tsv", *options)
    assert thresher.load(model).classes.tolist() == ["sport", "war, cold"]
    found = lines(called("predict", model, tmp_path / "topics.tsv"))
    assert [set(filter(None, line.split(";"))) for line in found] == [set(s) for s in sets]
    words = pa.array([[label.replace("war, cold", "a,b") for label in s] for s in sets])
    table_file(tmp_path, {"label": words, "x": [len(s) + 0.5 for s in sets]}, "lists.parquet")
    model, _ = trained(tmp_path, "lists.parquet", "--multilabel", "--passes", "20")
    found = lines(called("predict", model, tmp_path / "lists.parquet"))
    assert set(found) <= {"", "sport", '"a,b"', 'sport,"a,b"', '"a,b",sport'}
    assert '"a,b"' in "".join(found)


def test_rows_without_a_label(tmp_path):
    csv_file(tmp_path, "x,y\n" + "1,1\n2,\n3,0\n4,\n" * 10, "holes.csv")
    called("train", tmp_path / "holes.csv", "-m", tmp_path / "m", code=1)
    _, done = trained(tmp_path, "holes.csv", "--on-bad-line", "skip")
    assert "warning: 20 bad lines left out; the first: " in done.stderr
    assert "holes.csv:3: column 'y': the row has no label" in done.stderr
    assert "20 examples" in done.stdout
    cache = tmp_path / "holes.cache"
    _, done = trained(tmp_path, "holes.csv", "--on-bad-line", "skip", "--cache", cache)
    assert "20 examples" in done.stdout
