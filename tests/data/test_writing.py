"""Files that `write` refuses to write: an error, and no file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from thresher import DataError, ParameterError, scan
from thresher.data.writing import write


def pipe() -> Any:
    return scan(iter([(np.eye(3), np.array([0, 1, 0]))]))


@pytest.mark.parametrize("format", ["cache", "parquet"])
@pytest.mark.parametrize("suffix", ["gz", "zst", "xz", "bz2"])
def test_formats_that_are_not_compressed(tmp_path: Path, format: str, suffix: str) -> None:
    path = tmp_path / f"rows.{format}.{suffix}"
    with pytest.raises(ParameterError, match=rf"{path}: a {format} file cannot be compressed"):
        write(pipe(), str(path), format)
    assert not list(tmp_path.iterdir())


def test_no_rows(tmp_path: Path) -> None:
    (tmp_path / "none.svm").touch()
    with pytest.raises(DataError, match=r"none\.svm: no rows to write"):
        write(scan(tmp_path / "none.svm"), str(tmp_path / "rows.parquet"), "parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["none.svm"]


def test_csv_needs_two_readings_and_few_columns(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    with pytest.raises(ParameterError, match="a pipe can be read only once"):
        write(pipe(), str(out), "csv")
    (path := tmp_path / "wide.svm").write_text("1 1:1\n0 99999999:2\n")
    with pytest.raises(ParameterError, match=r"99,?999,?999"):
        write(scan(path), str(out), "csv")
    assert not out.exists()
    path.write_text("1 1:1 3:2.5\n0 2:2\n")
    assert write(scan(path), str(out), "csv") == 2
    assert out.read_text().splitlines()[1:] == ["1,1,,2.5", "0,,2,"]
