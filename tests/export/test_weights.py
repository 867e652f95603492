"""The weights of a model as tables, JSON, CSV, and lines like those of VW."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import thresher
from support.linear_models import made

HOSTILE = 'a,"b"\n\x1b'
MODEL = made(
    [[1.5, 0.0, -1e-300], [0.0, 0.1, 0.0], [0.0, 0.0, 0.0]],
    classes=np.array(["x", "y", "z"]),
    names={0: "age", 1: HOSTILE},
    parameters={"rule": "ftrl", "l1": float("inf"), "class_weight": {"x": 2}, "other": [1]},
)


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_frames(kind):
    pytest.importorskip({"arrow": "pyarrow"}.get(kind, kind))
    table = MODEL.to_frame(kind)
    columns = table.to_pydict() if kind == "arrow" else table.to_dict()
    if kind != "arrow":
        columns = {name: list(table[name]) for name in columns}
    assert list(columns) == ["feature", "name", "label", "weight"]
    assert columns["feature"] == [0, 2, 1]
    assert columns["weight"] == [1.5, -1e-300, 0.1]
    assert columns["label"] == ["x", "x", "y"]
    assert columns["name"][::2] == ["age", HOSTILE]
    assert columns["name"][1] is None or columns["name"][1] != columns["name"][1]
    assert "uint64" in str(table["feature"].to_numpy().dtype)
    two = made([1.0, 0.0], n_features=2**64).to_frame(kind)
    assert len(two) == 1
    assert len(made([0.0]).to_frame(kind)) == 0


def test_json_has_all_of_the_model():
    facts = json.loads(MODEL.to_json())
    assert (facts["format"], facts["schema"]) == ("thresher-model", 1)
    assert (facts["task"], facts["loss"], facts["link"]) == (
        "classification", "logistic", "sigmoid",
    )  # fmt: skip
    assert facts["classes"] == ["x", "y", "z"]
    first = facts["outputs"][0]
    assert first == {
        "label": "x", "intercept": 0.25, "features": [0, 2], "names": ["age", None],
        "weights": [1.5, -1e-300],
    }  # fmt: skip
    assert facts["parameters"] == {"rule": "ftrl", "l1": "inf", "class_weight": {"x": 2.0}}
    wide = json.loads(made([1.0], n_features=2**64, classes=None, loss="poisson").to_json())
    assert wide["n_features"] == str(2**64)
    assert wide["outputs"][0]["features"] == ["0"]
    assert (wide["task"], wide["link"], wide["decision_at"]) == ("regression", "exp", 0.0)
    several = made(np.eye(2), 0.5, parameters={"multilabel": True})
    assert json.loads(several.to_json())["task"] == "multilabel"
    scaled = json.loads(made([1.0], loss="clipped_square").to_json())
    assert (scaled["scales_rows"], scaled["decision_at"], scaled["link_low"]) == (True, 0.5, 0.0)


def test_a_prediction_by_the_json_alone():
    """The recipe of docs/export.md."""
    facts = json.loads(MODEL.to_json())
    row = {"age": 2.0, HOSTILE: -3.0}
    scores = [
        output["intercept"] - facts["decision_at"]
        + sum(
            weight * row.get(name, 0.0)
            for name, weight in zip(output["names"], output["weights"], strict=True)
        )
        for output in facts["outputs"]
    ]  # fmt: skip
    assert np.allclose(scores, MODEL.decision_function([[2.0, -3.0, 0.0]])[0])


def test_csv():
    lines = list(csv.reader(MODEL.to_csv().splitlines(keepends=True)))
    assert lines[0] == ["feature", "name", "label", "weight"]
    assert lines[1] == ["", "(intercept)", "x", "0.25"]
    assert lines[3] == ["2", "", "x", "-1e-300"]
    assert lines[5] == ["1", HOSTILE, "y", "0.1"]
    assert len(lines) == 7
    assert list(csv.reader(made([1.0]).to_csv().splitlines()))[1][2] == ""


def test_lines_like_those_of_vw():
    lines = MODEL.to_vw().splitlines()
    assert lines[1].startswith("Id for reading")
    assert "age[x]:0:1.5" in lines
    assert 'a,"b"\\n\\x1b[y]:1:0.1' in lines
    assert "Constant:0.25" in made([1.0]).to_vw().splitlines()


def test_unknown_kinds_are_refused():
    with pytest.raises(thresher.ParameterError, match="kind must be one of arrow, pandas, polars"):
        MODEL.to_frame("excel")
