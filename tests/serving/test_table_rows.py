"""Answers of the application for a model of a table: missing cells, names, and the class."""

import asyncio
import json

import pytest

from thresher import FTRLClassifier, scan
from thresher.serving import app

pytest.importorskip("pyarrow")

LINES = ["y,age,colour", "+,3.1,red", "-,,blue", "+,2.8,", "-,?,red", "+,3.5,blue", "-,,"]
ROWS = [
    {"age": 3.1, "colour": "red"},
    {"age": None, "colour": "blue"},
    {"age": 2.8, "colour": None},
    {"age": None, "colour": "red"},
    {"age": 3.5, "colour": "blue"},
    {"age": None, "colour": None},
]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "a.csv"
    path.write_text("\n".join([LINES[0], *LINES[1:] * 20]) + "\n")
    return scan(str(path), label="y", missing="indicator")


@pytest.fixture(scope="module")
def model(source):
    return FTRLClassifier(store="hashed", l1=0.0, random_state=0).fit(source).model_


def asked(model, path, **body):
    application = app({"one": model})
    reply = asyncio.run(application.answer("POST", path, json.dumps(body).encode()))
    return reply.status, json.loads(reply.body)


def test_null_is_a_missing_cell(model, source):
    scores = model.decision_function(source)[: len(ROWS)].tolist()
    status, answer = asked(model, "/predict", rows=ROWS, raw=True)
    assert status == 200
    assert [row["raw"] for row in answer["rows"]] == scores
    assert not any("unknown_features" in row for row in answer["rows"])
    assert [
        asked(model, "/predict", rows=[row], raw=True)[1]["rows"][0]["raw"] for row in ROWS
    ] == (scores)
    absent = asked(model, "/predict", rows=[{"colour": "blue"}], raw=True)[1]["rows"][0]["raw"]
    assert absent != scores[1]
    rows = asked(model, "/explain", rows=ROWS)[1]["rows"]
    assert [row["raw"] for row in rows] == scores
    assert {part["feature"] for part in rows[1]["contributions"]} == {"age=missing", "colour=blue"}


@pytest.mark.parametrize("label", ["-", "+", None])
def test_the_class_of_two_is_the_second_or_the_given_one(model, label):
    status, answer = asked(model, "/explain", rows=ROWS, **({"label": label} if label else {}))
    assert status == 200
    assert [row["prediction"] for row in answer["rows"]] == model.predict(ROWS).tolist()
    assert {row["prediction"] for row in answer["rows"]} == {"-", "+"}
    for row, found in zip(ROWS, answer["rows"], strict=True):
        why = model.explain(row, label=label)
        assert (found["label"], found["raw"], found["intercept"]) == (
            label or "-", why.score, why.intercept,
        )  # fmt: skip
        assert [
            (part["feature"], part["weight"], part["value"], part["contribution"])
            for part in found["contributions"]
        ] == [tuple(part) for part in why.contributions]


def test_null_in_a_column_without_missing_cells_is_not_unknown(tmp_path):
    (tmp_path / "a.csv").write_text("y,a\n" + "1,0.5\n0,2.5\n" * 30)
    source = scan(str(tmp_path / "a.csv"), label="y", missing="indicator")
    model = FTRLClassifier(store="hashed", random_state=0).fit(source).model_
    rows = asked(model, "/predict", rows=[{"a": None, "b": None}])[1]["rows"]
    assert rows[0]["unknown_features"] == ["b^missing"]


def test_a_label_that_the_model_does_not_have(model):
    status, answer = asked(model, "/explain", rows=ROWS, label="perhaps")
    assert status == 422
    assert answer["error"]["option"] == "label"
    assert "no class 'perhaps'" in answer["error"]["message"]


@pytest.mark.parametrize("path", ["/predict", "/explain"])
def test_a_sentence_for_a_model_of_texts_names_the_column(tmp_path, path):
    table = tmp_path / "a.csv"
    table.write_text("y,message\n" + "1,the orbit of a moon\n0,a car for sale\n" * 20)
    model = FTRLClassifier(store="hashed", random_state=0)
    model = model.fit(scan(str(table), label="y", text=["message"])).model_
    application, head = app({"one": model}), {b"content-type": b"text/plain"}
    for body in (b"the orbit of a planet", b"The orbit, and a car."):
        reply = asyncio.run(application.answer("POST", path, body, head))
        assert reply.status == 422
        said = json.loads(reply.body)["error"]["message"]
        assert "give format=svmlight or vw; for a model with a text column send JSON: " in said
    body = said.partition("send JSON: ")[2].encode()
    assert json.loads(body) == {"rows": [{"message": "..."}]}
    assert asyncio.run(application.answer("POST", path, body)).status == 200


def test_a_sentence_for_a_model_without_texts(model):
    head = {b"content-type": b"text/plain"}
    reply = asyncio.run(app({"one": model}).answer("POST", "/predict", b"some words", head))
    assert json.loads(reply.body)["error"]["message"].endswith("give format=svmlight or vw")
