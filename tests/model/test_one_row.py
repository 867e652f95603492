"""Models that were trained on something else answer dicts."""

from __future__ import annotations

import copy
import csv
import json
import pickle

import numpy as np
import pytest

import thresher
from thresher import (
    CoordinateDescentClassifier,
    CoordinateDescentRegressor,
    FTRLClassifier,
    OnePassClassifier,
    StabilizedClassifier,
    TruncatedGradientClassifier,
    scan,
)

pd = pytest.importorskip("pandas")


def test_model_trained_on_vw_text(tmp_path):
    rng = np.random.default_rng(0)
    lines, rows = [], []
    for _ in range(200):
        ad, size, number = int(rng.integers(5)), float(rng.integers(1, 9)), float(rng.integers(3))
        label = 1 if ad < 2 else -1
        lines.append(f"{label} |a ad_{ad} |user size:{size} 12:1 | 7:{number} word\n")
        rows.append({f"a^ad_{ad}": 1.0, "user^size": size, "user^12": 1, "7": number, "word": True})
    (tmp_path / "ads.vw").write_text("".join(lines))
    for options in ({}, {"bits": 12}):
        source = scan(str(tmp_path / "ads.vw"), **options)
        model = OnePassClassifier(store="hashed").fit(source).model_
        model.save(tmp_path / "model")
        model = thresher.load(tmp_path / "model")
        wanted = model.predict(source).tolist()
        assert [model.predict_one(row) for row in rows] == wanted
        assert model.predict(rows).tolist() == wanted
        assert model.decision_function(rows).tolist() == model.decision_function(source).tolist()
        words = [{"a": f"ad_{next(iter(row))[-1]}", **dict(list(row.items())[1:])} for row in rows]
        assert [model.predict_one(row) for row in words] == wanted
        for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert copied.predict_one(rows[0]) == wanted[0]


def test_interactions_are_refused(tmp_path):
    (tmp_path / "a.vw").write_text("1 |a x |b y\n-1 |a z |b y\n" * 20)
    source = scan(str(tmp_path / "a.vw"), interactions=["ab"])
    estimator = TruncatedGradientClassifier(store="hashed").fit(source)
    for answer in (estimator.predict_one, estimator.model_.predict_one):
        with pytest.raises(thresher.ParameterError, match="trained with interactions"):
            answer({"a": "x"})


def test_model_trained_on_a_table_reads_rows_of_csv(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "table.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["y", "age", "zip", "member", "review", "id"])
        for i in range(300):
            good = bool(rng.integers(2))
            review = "Great, großes Buch!" if good else "bad book; BAD_idea"
            age = "" if i % 10 == 0 else str(rng.integers(20, 60))
            code = ["00123", "x45"][rng.integers(2)]
            writer.writerow([int(good), age, code, ["true", "false"][i % 2], review, i])
    source = scan(str(path), label="y", text=["review"], ngrams=2, ignore=["id"])
    estimator = FTRLClassifier(store="hashed", l1=0.0, random_state=0).fit(source)
    model = estimator.model_
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    wanted = model.decision_function(source)
    assert model.decision_function(rows).tolist() == wanted.tolist()
    assert [model.predict_one(row) for row in rows] == model.predict(source).tolist()
    assert [estimator.predict_one(row) for row in rows] == model.predict(source).tolist()
    with pytest.raises(thresher.DataError, match="feature 'age': expected a number; found 'old'"):
        model.predict_one({"age": "old"})
    with pytest.raises(thresher.DataError, match="feature 'member': expected true or false"):
        model.predict_one({"member": "maybe"})
    before = dict(estimator.state_.reading)
    estimator.learn_one(rows[0], 1)
    estimator.learn_one(rows[1], 0)
    estimator.partial_fit(rows[2:4], [1, 0])
    assert estimator.state_.reading == before
    other = FTRLClassifier(store="hashed", l1=0.0, random_state=0).fit(source)
    with path.open() as file:
        head = [next(file) for _ in range(5)]
    labels = ("1", "0", "1", "0")
    part = [head[0]] + [
        f"{y},{line.split(',', 1)[1]}" for y, line in zip(labels, head[1:], strict=True)
    ]
    (tmp_path / "part.csv").write_text("".join(part))
    options = {"label": "y", "text": ["review"], "ngrams": 2, "ignore": ["id"]}
    other.partial_fit(scan(str(tmp_path / "part.csv"), **options))
    assert estimator.state_.outputs.states() == other.state_.outputs.states()


def test_model_trained_on_a_frame_finds_columns_by_name():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["age", "price", "size"])
    y = np.where(frame["age"] - frame["size"] > 0, "big", "small")
    for Estimator in (FTRLClassifier, CoordinateDescentClassifier, StabilizedClassifier):
        estimator = Estimator(random_state=0).fit(frame, y)
        rows = frame.to_dict("records")
        wanted = estimator.model_.predict(frame).tolist()
        assert [estimator.predict_one(row) for row in rows] == wanted
        assert [estimator.model_.predict_one({**row, "new": 1.0}) for row in rows] == wanted
        assert estimator.model_.predict(rows).tolist() == wanted


def test_model_trained_on_a_matrix_has_numbered_features():
    X = np.array([[1.0, 0.0], [0.0, 1.0]] * 30)
    model = TruncatedGradientClassifier(random_state=0).fit(X, [1, 0] * 30).model_
    assert [model.predict_one({0: 1.0}), model.predict_one({"1": 1.0})] == [1, 0]
    estimator = TruncatedGradientClassifier(random_state=0).fit(X, [1, 0] * 30)
    assert estimator.predict_one({0: 1.0}) == 1
    with pytest.raises(thresher.ParameterError, match="trained on a matrix"):
        estimator.learn_one({"a": 1.0}, 1)


def test_several_labels_and_many_classes():
    X = np.eye(6).repeat(20, axis=0)
    Y = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0], [1, 0, 1]]).repeat(20, 0)
    estimator = TruncatedGradientClassifier(random_state=0).fit(X, Y)
    found = [estimator.predict_one({i: 1.0}) for i in range(6)]
    table = estimator.predict(np.eye(6))
    assert found == [np.flatnonzero(row).tolist() for row in table]
    p = estimator.predict_proba([{2: 1.0}])[0].tolist()
    assert estimator.predict_proba_one({2: 1.0}) == dict(zip([0, 1, 2], p, strict=True))
    assert estimator.predict([{2: 1.0}]).tolist() == [table[2].tolist()]
    y = np.arange(100).repeat(3)
    many = TruncatedGradientClassifier(random_state=0).fit(np.eye(100)[y], y).model_
    rows = [{i: 1.0, (i + 1) % 100: 0.5} for i in range(100)]
    assert [many.predict_one(row) for row in rows] == many.predict(rows).tolist()
    found = [list(many.predict_proba_one(row).values()) for row in rows[:5]]
    assert found == many.predict_proba(rows[:5]).tolist()


def test_rules_without_rows_say_what_they_can_do():
    for estimator, ways in [
        (CoordinateDescentRegressor(), "it learns with fit;"),
        (StabilizedClassifier(), "it learns with fit and partial_fit;"),
    ]:
        with pytest.raises(thresher.ParameterError, match=f"{ways}.* truncated-gradient, "):
            estimator.learn_one({"a": 1.0}, 1)
        assert estimator.predict_one({"a": 1.0}) in (None, 0.0)


def test_probabilities_need_a_loss_that_has_them():
    X = [[1.0, 0.0], [0.0, 1.0]] * 20
    hinge = TruncatedGradientClassifier(loss="hinge").fit(X, [1, 0] * 20)
    assert not hasattr(hinge, "predict_proba_one")
    with pytest.raises(ValueError, match="probabilities need a classifier"):
        hinge.model_.predict_proba_one({0: 1.0})


@pytest.mark.data
@pytest.mark.parametrize("missing", ["indicator", "zero", None])
@pytest.mark.parametrize("nan", [False, True])
def test_missing_cells_of_a_table_are_none_in_dicts(data_dir, missing, nan):
    if nan and missing is None:
        pytest.skip("NaN is an error without the option missing")
    path = data_dir / "uci" / "crx.data"
    source = scan(str(path), label="a16", missing=missing, ignore=["a15"])
    estimator = FTRLClassifier(store="hashed", l1=0.0, random_state=0).fit(source)
    model = estimator.model_
    kinds = json.loads(model.parameters["kinds"])
    empty = float("nan") if nan else None
    with path.open(newline="") as file:
        words = list(csv.DictReader(file))
    rows = [
        {
            name: cell if kinds[name] != "number" else empty if cell == "?" else float(cell)
            for name, cell in row.items()
        }
        for row in words
    ]
    assert sum("?" in (row["a2"], row["a14"]) for row in words) > 10
    wanted, labels = model.decision_function(source).tolist(), model.predict(source).tolist()
    assert ("a14=missing" in model.names.values()) == (missing == "indicator")
    for given in (rows, words):
        assert model.decision_function(given).tolist() == wanted
        assert [model.decision_function([row])[0] for row in given] == wanted
        assert [model.predict_one(row) for row in given] == labels
        assert [estimator.predict_one(row) for row in given] == labels
        assert [model.explain(row).score for row in given] == wanted


def test_missing_cells_of_frames_and_absent_names():
    frame = pd.DataFrame({
        "a": [1.0, np.nan, 2.0, 3.0] * 20, "b": [0.5, 1.0, np.nan, 3.0] * 20,
        "c": ["x", "y", None, "z"] * 20,
    })  # fmt: skip
    reading = {"missing": "indicator"}
    model = FTRLClassifier(l1=0.0).fit(frame, [0, 1, 0, 1] * 20, reading=reading).model_
    rows = frame.to_dict("records")
    wanted = model.decision_function(frame).tolist()
    assert model.decision_function(rows).tolist() == wanted
    assert [model.decision_function([row])[0] for row in rows] == wanted
    assert [part.name for part in model.explain({"a": None}).contributions] == ["a=missing"]
    assert model.explain({}).contributions == ()
