"""`thresher predict --explain`."""

from __future__ import annotations

import json

import numpy as np
import pytest

import thresher
from support.files import called, svmlight, vw
from support.training_cases import trained
from thresher import scan


def test_lines_of_text(tmp_path):
    vw(tmp_path / "rows.vw", rows=100)
    model, _ = trained(tmp_path, "rows.vw")
    plain = called("predict", model, tmp_path / "rows.vw", "--as", "raw").stdout.splitlines()
    done = called("predict", model, tmp_path / "rows.vw", "--as", "raw", "--explain", "3")
    found = thresher.load(model)
    lines = done.stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == plain
    with (tmp_path / "rows.vw").open() as file:
        texts = [next(file) for _ in range(5)]
    for text, line in zip(texts, lines, strict=False):
        (tmp_path / "one.vw").write_text(text)
        why = found.explain(scan(tmp_path / "one.vw"))
        expected = [f"{one.name}:{one.contribution:+.6g}" for one in why.top(3)]
        assert line.split("\t")[1:] == expected


@pytest.mark.parametrize("classes", [(-1, 1), (1, 2, 3)])
def test_objects_of_json(tmp_path, classes):
    svmlight(tmp_path / "rows.svm", rows=80, classes=classes)
    several = ["--multiclass"] if len(classes) > 2 else []
    model, _ = trained(tmp_path, "rows.svm", *several)
    rows = scan(tmp_path / "rows.svm")
    done = called("predict", model, tmp_path / "rows.svm", "--explain", "100", "--json")
    facts = [json.loads(line) for line in done.stdout.splitlines()]
    found = thresher.load(model)
    assert [fact["prediction"] for fact in facts] == found.predict(rows).tolist()
    scores = found.decision_function(rows)
    assert [fact["score"] for fact in facts] == scores.reshape(80, -1).max(axis=1).tolist()
    for fact in facts:
        terms = [fact["intercept"], *(one["contribution"] for one in fact["contributions"])]
        assert np.isclose(sum(terms), fact["score"], rtol=0, atol=1e-12)
        assert fact["label"] == (fact["prediction"] if several else 1)
    first = [int(pair.split(":")[0]) for pair in (tmp_path / "rows.svm").read_text().split()[1:3]]
    assert set(first) <= {one["name"] for one in facts[0]["contributions"]}  # counted from 1


def test_names_cannot_break_a_line(tmp_path):
    (tmp_path / "a.csv").write_text("colour,y\n" + '"red\tor\nblue",1\ngreen,-1\n' * 30)
    model, _ = trained(tmp_path, "a.csv", "--header", "--label", "y")
    done = called("predict", model, tmp_path / "a.csv", "--header", "--explain", "2")
    assert len(done.stdout.splitlines()) == 60
    assert "colour=red\\tor\\nblue:+" in done.stdout


def test_json_needs_explain(tmp_path):
    told = called("predict", tmp_path / "a", tmp_path / "b", "--json", code=2).stderr
    assert told == "--json needs --explain\n"


def test_a_regression_and_rows_with_sets_of_labels(tmp_path):
    (tmp_path / "a.svm").write_text("1.5 1:1 2:3\n0.5 1:2\n" * 30)
    model, _ = trained(tmp_path, "a.svm", "--loss", "squared")
    line = called("predict", model, tmp_path / "a.svm", "--explain", "1", "--json").stdout
    fact = json.loads(line.splitlines()[0])
    assert fact["label"] is None
    assert fact["prediction"] == fact["score"]
    (tmp_path / "b.svm").write_text("1,2 1:1 2:3\n2 1:2\n" * 30)
    model, _ = trained(tmp_path, "b.svm", "--multilabel")
    done = called("predict", model, tmp_path / "b.svm", "--explain", "1", "--json")
    fact = json.loads(done.stdout.splitlines()[0])
    assert sorted(fact["prediction"]) == [1, 2]
    assert fact["label"] in (1, 2)
