"""Missing cells and dates of tables, from the shell, and frames in Python with the same model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import thresher
from support.files import called


def test_a_frame_and_a_file_have_the_same_predictions(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    seconds = pd.to_timedelta(rng.integers(0, 10**7, 500), unit="s")
    rows = pd.DataFrame({"when": pd.Timestamp("2024-01-01") + seconds})
    rows["colour"] = rng.choice(["red", "blue"], 500)
    rows["label"] = (rows["colour"] == "red").astype(int)
    rows.loc[3, "colour"] = None
    data, model, out = tmp_path / "a.parquet", tmp_path / "m", tmp_path / "out"
    rows.to_parquet(data)
    refused = called("train", data, "-m", model, code=2)
    assert "column 'when' holds dates or times" in refused.stderr
    assert "--dates parts" in refused.stderr
    called("train", data, "-m", model, "--dates", "parts", "--missing", "indicator")
    called("predict", model, data, "-o", out)
    loaded = thresher.load(model)
    assert loaded.top(1)[0].name in ("colour=red", "colour=blue")
    frame = rows[["colour", "when"]]
    assert loaded.predict(frame).astype(str).tolist() == out.read_text().split()


def test_the_error_of_a_missing_cell_names_the_option(tmp_path: Path) -> None:
    data = tmp_path / "few.csv"
    data.write_text("a,b,label\n1,2,1\n2,,0\n")
    done = called("train", data, "--missing", "error", "-m", tmp_path / "m", code=1)
    place = f"{data}:3: column 'b': the value is missing (null); "
    advice = "--missing indicator adds a feature 'b=missing', --missing zero takes such cells as 0"
    assert done.stderr.strip() == place + advice
    with pytest.raises(thresher.DataError, match="missing='indicator' in scan or reading= of fit"):
        list(thresher.scan(data, missing="error").blocks())
