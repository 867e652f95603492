"""`thresher export`."""

from __future__ import annotations

import json

import pytest

import thresher
from support.files import called
from support.training_cases import trained
from thresher.errors import ParameterError


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    rows = "3,red,1\n1,blue,-1\n" * 50
    (folder / "rows.csv").write_text("age,colour,y\n" + rows)
    return trained(folder, "rows.csv")[0]


def test_texts_to_standard_output_and_to_files(model, tmp_path):
    known = thresher.load(model)
    for form, text in (
        ("json", known.to_json()),
        ("csv", known.to_csv()),
        ("vw", known.to_vw()),
        ("sql", known.to_sql() + "\n"),
    ):
        assert called("export", model, "--to", form).stdout == text
        path = tmp_path / f"model.{form}"
        done = called("export", model, "-o", path)
        assert (done.stdout, done.stderr) == ("", f"{form} -> {path}\n")
        assert path.read_bytes() == text.encode()
    assert json.loads(called("export", model, "--to", "json", "-o", "-").stdout)["loss"]


def test_a_query(model):
    words = ["--to", "sql", "--dialect", "mysql", "--table", "my rows"]
    expected = thresher.load(model).to_sql("mysql", table="my rows")
    assert called("export", model, *words).stdout == expected + "\n"


def test_onnx(model, tmp_path):
    onnx = pytest.importorskip("onnx")
    called("export", model, "-o", tmp_path / "model.onnx")
    graph = onnx.load(tmp_path / "model.onnx").graph
    assert [one.name for one in graph.output] == ["label", "probabilities"]
    told = called("export", model, "--inputs", "matrix", "-o", tmp_path / "b.onnx", code=2).stderr
    assert "any number of features, and a dense matrix" in told
    assert not (tmp_path / "b.onnx").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--to", "pmml"], "--to must be one of onnx, sql, json, csv, vw; got 'pmml'\n"),
        ([], "give --to, one of onnx, sql, json, csv, vw, or a file with such an end\n"),
        (["-o", "model.txt"], "give --to, one of onnx, sql, json, csv, vw, or a file with such"),
        (["--to", "onnx"], "--to onnx needs a file: --output\n"),
        (["--to", "csv", "--table", "a"], "--table needs --to sql\n"),
        (["--to", "csv", "--dialect", "mysql"], "--dialect needs --to sql\n"),
        (["--to", "sql", "--inputs", "dict"], "--inputs needs --to onnx\n"),
        (["--to", "sql", "--dialect", "oracle"], "--dialect must be one of sqlite, duckdb, "),
    ],
)
def test_refusals(model, words, message):
    assert called("export", model, *words, code=2).stderr.startswith(message)


def test_a_query_of_a_model_of_texts(tmp_path):
    rows, model = tmp_path / "rows.csv", tmp_path / "words.thresher"
    rows.write_text("y,message\n" + "1,the orbit of a moon\n0,a car for sale\n" * 20)
    called("train", rows, "--label", "y", "--text", "message", "-m", model)
    told = called("export", model, "--to", "sql", code=2).stderr
    assert told.endswith("is not an expression of SQL; --to onnx takes features by name\n")
    with pytest.raises(ParameterError, match=r"; to_onnx takes features by name$"):
        thresher.load(model).to_sql()


def test_the_model_is_not_overwritten(model):
    before = model.read_bytes()
    told = called("export", model, "--to", "json", "-o", model, code=2).stderr
    assert "is also the file of --output" in told
    assert model.read_bytes() == before
