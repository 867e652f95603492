"""Files that change while they are read, or between two passes."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from thresher import Observer

FORMATS = ("svm", "vw", "csv", "svm.gz", "parquet", "arrow")


def some_rows(count: int, seed: int = 0) -> tuple[Any, Any]:
    """Return features and labels."""
    rng = np.random.default_rng(seed)
    return rng.integers(1, 1000, (count, 12)), rng.integers(0, 2, count)


def write_rows(path: Path, count: int, seed: int = 0) -> None:
    """Write rows in the format of the suffix, with an old time of change."""
    path.write_bytes(_written(path.suffix, count, seed))
    os.utime(path, (1e9, 1e9))


@cache
def _written(suffix: str, count: int, seed: int) -> bytes:
    """Return the bytes of a file of rows."""
    with tempfile.TemporaryDirectory() as folder:
        return _in_folder(Path(folder, f"first{suffix}"), *some_rows(count, seed))


def _in_folder(path: Path, X: Any, y: Any) -> bytes:
    table = pa.table({**{f"x{k}": X[:, k] for k in range(12)}, "label": y})
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as out:
            out.write_table(table)
    else:
        text = rows_as_text(path, X, y)
        return gzip.compress(text, 1) if path.suffix == ".gz" else text
    return path.read_bytes()


def rows_as_text(path: Path, X: Any, y: Any) -> bytes:
    """Return rows as text in the format of the suffix."""
    if path.suffix == ".csv":
        lines = [",".join([*(f"x{k}" for k in range(12)), "label"])]
        lines += [",".join(map(str, [*row, label])) for row, label in zip(X, y, strict=True)]
    elif path.suffix == ".vw":
        lines = [
            f"{2 * label - 1} |f " + " ".join(f"x{k}:{v}" for k, v in enumerate(row))
            for row, label in zip(X, y, strict=True)
        ]
    else:
        lines = [
            f"{label} " + " ".join(f"{k + 1}:{v}" for k, v in enumerate(row))
            for row, label in zip(X, y, strict=True)
        ]
    return ("\n".join(lines) + "\n").encode()


def replaced(path: Path, count: int, seed: int = 0) -> None:
    """Put another file in the place of a file, as editors do."""
    other = path.with_name("other" + "".join(path.suffixes))
    write_rows(other, count, seed)
    os.replace(other, path)


def rewritten(path: Path, count: int, seed: int = 0) -> None:
    """Write other rows into the same file."""
    other = path.with_name("other" + "".join(path.suffixes))
    write_rows(other, count, seed)
    path.write_bytes(other.read_bytes())


class Once(Observer):
    """Calls a function once: after a number of blocks, or after the first pass."""

    def __init__(self, change: Callable[[], None], blocks: int | None = None) -> None:
        self.change, self.blocks, self.seen, self.done = change, blocks, 0, False

    def progress(self, trainer: Any) -> None:
        self.seen += 1
        if self.seen == self.blocks:
            self.change()
            self.done = True

    def tell(self, event: str, **facts: Any) -> None:
        if self.blocks is None and event == "pass" and facts["number"] == 1:
            self.change()
            self.done = True
