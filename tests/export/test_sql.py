"""`Model.to_sql`: names, strings, missing cells and limits."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher
from support.exports import DIALECT, answers, in_duckdb, in_sqlite
from support.linear_models import made
from thresher import FTRLClassifier, scan

pd = pytest.importorskip("pandas")
ENGINES = (in_sqlite, in_duckdb)
pytestmark = pytest.mark.filterwarnings("ignore::thresher.errors.DataWarning")
HOSTILE = ["it's", 'say "hi"', "a\\'b", "'; DROP TABLE x; --", "ä 漢", "", " ", "a\nb", "a`b"]


@pytest.fixture(scope="module")
def table():
    """Return rows with words, numbers and booleans, some missing, and odd names."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            'the "age"': np.where(rng.random(200) < 0.1, np.nan, rng.normal(size=200)),
            "it's a word": [None if k % 11 == 0 else HOSTILE[k % len(HOSTILE)] for k in range(200)],
            "yes=no": [None if k % 7 == 0 else bool(k % 3) for k in range(200)],
            "yes": rng.choice(["no=1", "x"], 200),
        }
    )


def rows_of(frame):
    return [
        [None if cell is None or cell != cell else cell for cell in row]
        for row in frame.astype(object).to_numpy().tolist()
    ]


@pytest.mark.parametrize("missing", ["zero", "indicator"])
@pytest.mark.parametrize("engine", ENGINES)
def test_odd_names_words_and_missing_cells(table, engine, missing):
    y = np.arange(200) % 2
    rows = scan((table, y), missing=missing)
    model = FTRLClassifier(store="hashed", l1=0.0, random_state=0).fit(rows).model_
    assert len(model.names) >= 12
    made_by_sql = answers(engine, model, rows_of(table), list(table.columns))
    wanted = model.decision_function(table)
    assert np.abs(made_by_sql["predicted_score"] - wanted).max() < 1e-13
    assert made_by_sql["predicted_label"].tolist() == model.predict(table).tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_missing_cell_that_training_refused_has_no_score(engine):
    frame = pd.DataFrame({"age": [1.0, 2.0] * 20, "word": ["a", "b"] * 20})
    rows = scan((frame, [0, 1] * 20), missing="error")
    model = FTRLClassifier(store="hashed", l1=0.0).fit(rows).model_
    found = answers(engine, model, [[1.0, "a"], [None, "a"], [1.0, None]], ["age", "word"])
    assert found["predicted_score"][0] == model.decision_function(frame)[0]
    assert [found[name][1] for name in found if name.startswith("predicted")] == [None] * 3
    assert found["predicted_label"][2] is None


numbers = st.floats(-1e3, 1e3, allow_subnormal=False)


@settings(max_examples=15)
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=90), numbers)
def test_the_expression_is_the_score_of_any_row(pairs, intercept):
    """Sums of sums: also for many terms."""
    weights, row = np.array(pairs).T
    model = made(weights, intercept)
    names = [f"column {k}" for k in range(len(row))]
    bound = 1e-15 * len(row) * (np.abs(weights) @ np.abs(row) + abs(intercept) + 1)
    for engine in ENGINES:
        expression = model.to_sql(DIALECT[engine], names=names)
        (cells,) = engine([row.tolist()], names, f'SELECT {expression} FROM "the rows"')[1]
        assert abs(cells[0] - model.decision_function(row[None, :])[0]) <= bound


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("loss", ["logistic", "modified_huber", "hinge", "squared"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_labels_and_probabilities(engine, loss, outputs):
    rng = np.random.default_rng(0)
    classes = np.array(["it's", "b", "c"][: max(outputs, 2)])
    weights = rng.normal(size=(outputs, 3)) * (1000 if loss == "logistic" else 1)
    model = made(weights, 0.0, loss, classes=classes)
    X = rng.normal(size=(50, 3))
    X[0] = 0  # all scores are equal, and exactly 0
    found = answers(engine, model, X.tolist(), ["a", "b", "c"], given=True)
    assert found["predicted_label"].tolist() == model.predict(X).tolist()
    if model.loss in ("logistic", "modified_huber"):
        wanted = model.predict_proba(X)
        if outputs == 1:
            assert np.abs(found["predicted_probability"] - wanted[:, 1]).max() < 1e-13
        for k in range(outputs if outputs > 1 else 0):
            share = found[f"predicted_probability_{k}"]
            assert np.abs(share - wanted[:, k]).max() < 1e-13
    else:
        assert not any("probability" in name for name in found)


@pytest.mark.parametrize("engine", ENGINES)
def test_of_several_classes_a_missing_score_is_no_label(engine):
    parameters = {"missing": "error", "kinds": '{"a": "number", "b": "number"}'}
    model = made(
        [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], 0.0, classes=np.arange(3), parameters=parameters,
        names={0: "a", 1: "b"},
    )  # fmt: skip
    found = answers(engine, model, [[1.0, 2.0], [None, 1.0]], ["a", "b"])
    assert found["predicted_label"].tolist() == [2, None]
    assert found["predicted_probability_1"][1] is None


@pytest.mark.parametrize("engine", ENGINES)
def test_many_classes(engine):
    rng = np.random.default_rng(0)
    model = made(rng.normal(size=(30, 2)), classes=np.arange(30))
    X = rng.normal(size=(20, 2))
    found = answers(engine, model, X.tolist(), ["a", "b"], given=True)
    assert found["predicted_label"].tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_labels_that_are_numbers(engine):
    for classes in ([-1.0, 1.0], [0.5, 1.5], [3, 4], [False, True]):
        model = made([1.0], 0.0, classes=np.array(classes))
        found = answers(engine, model, [[-1.0], [1.0]], ["a"], given=True)
        assert found["predicted_label"].tolist() == classes


def test_dialects_quote_as_they_need():
    model = made([1.0], 0.0, classes=np.array(["a\\b'", "no"]))
    for dialect, name, label in (
        ("sqlite", '"a""b`"', "'a\\b'''"),
        ("postgres", '"a""b`"', "'a\\b'''"),
        ("mysql", '`a"b```', "'a\\\\b'''"),
    ):
        query = model.to_sql(dialect, table=["main", "rows"], names=['a"b`'])
        assert name in query
        assert label in query
        assert ".".join(re.findall(r"FROM (.)main\1\.\1rows\1", query)) in ('"', "`")
    with pytest.raises(thresher.ParameterError, match="dialect must be one of sqlite, duckdb, "):
        model.to_sql("oracle")
    with pytest.raises(thresher.ParameterError, match="the character NUL"):
        model.to_sql(names=["a\0b"])


def test_unnamed_features_are_numbered_as_in_the_file():
    assert 'CAST("x0" AS REAL)' in made([1.0, 0.0]).to_sql()
    assert 'CAST("x1" AS REAL)' in made([1.0, 0.0], parameters={"first": 1}).to_sql()


def refused(model, message, **options):
    with pytest.raises(thresher.ParameterError, match=message):
        model.to_sql(**options)


def test_refusals():
    two, hashed = made([1.0, 2.0]), {"n_features": 2**64}
    refused(made(np.ones(2000)), "weights for 2,000 columns, and a table of sqlite has at most")
    refused(made(np.ones((3, 2)), classes=np.arange(3)), "a score for each of 3 classes")
    refused(made(np.ones((101, 2)), classes=np.arange(101)), "101 classes, and SQL is written for")
    refused(made([1.0, 2.0], **hashed), "feature 0 has no name")
    refused(made([1.0], loss="clipped_square"), "divides each row")
    labels = {"classes": np.arange(2), "parameters": {"multilabel": True}}
    refused(made(np.ones((2, 2)), **labels), "any number of labels, which SQL cannot")
    refused(two, "'A' and 'a' differ only in upper and lower case", names=["a", "A"])
    refused(two, "'Predicted_score' has a name like", names=["a", "Predicted_score"], table="t")
    refused(two, "two features are named 'a'", names=["a", "a"])
    refused(two, "names must be 2", names=["a"])
    parameters = {"kinds": json.dumps({"a": "string"}), "text": '["a"]'}
    word = made([1.0], names={0: "a^word"}, parameters=parameters)
    refused(word, "'a.word' is a word of the text column 'a'")
    word = made([1.0], names={0: "a.year=2024"}, parameters={"kinds": '{"a": "string"}'})
    refused(word, "'a.year=2024' is not a cell of a column")
    folded = made([1.0], names={0: "a"}, parameters={"kinds": '{"a": "number"}', "bits": 12})
    refused(folded, "hashed to 12 bits")
    refused(made([1.0], parameters={"interactions": '["ab"]'}), "interactions")
    refused(made([1.0], classes=np.array(["a"])), "only the class 'a'")
