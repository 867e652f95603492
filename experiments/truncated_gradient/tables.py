"""UCI tables, prepared for the experiments of this paper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold, StratifiedKFold

from experiments.record import Record
from thresher import UnitVarianceScaler, datasets

WHOLE_BURSTS = 10  # rows are a multiple: 10 passes end with a truncation for K = 1, 10, 100


@dataclass(frozen=True)
class Table:
    """Rows whose original columns have variance 1, and targets: -1/+1, or numbers in [0, 1]."""

    name: str
    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any
    is_classes: bool

    def folds(self, number: int, seed: int) -> Iterator[tuple[Any, Any]]:
        """Return folds whose training rows are a multiple of `WHOLE_BURSTS`."""
        cut = StratifiedKFold if self.is_classes else KFold
        splits = cut(number, shuffle=True, random_state=seed).split(self.X_train, self.y_train)
        return ((train[: whole(train.size)], test) for train, test in splits)


def whole(rows: int) -> int:
    """Return the number of rows, rounded down to a multiple of `WHOLE_BURSTS`."""
    return rows - rows % WHOLE_BURSTS


def present(record: Record) -> tuple[list[str], str]:
    """Return the names of the tables whose files are available, and a sentence on the others."""
    names, here = record.parameters["sets"], datasets.names()
    absent = [name for name in names if name not in here]
    there = [name for name in names if name in here]
    return there, f" Not available: {', '.join(absent)}." if absent else ""


def load(record: Record, name: str, random: int = 0, rows: int | None = None) -> Table:
    """Load a table; add `random` binary columns of noise, each 1 in 5 of 100 rows."""
    data = datasets.load(name, unit_norm=False)
    record.uses(name, data.X_train, data.y_train, data.X_test, data.y_test)
    count = whole(min(rows or data.y_train.size, data.y_train.size))
    scaler = UnitVarianceScaler().fit(data.X_train[:count])
    train, test = scaler.transform(data.X_train[:count]), scaler.transform(data.X_test)
    y_train, y_test = data.y_train[:count], data.y_test
    if data.task == "regression":
        low, high = y_train.min(), y_train.max()
        y_train, y_test = (y_train - low) / (high - low), (y_test - low) / (high - low)
    if random:
        rng = np.random.default_rng(record.seed)
        train, test = (
            sp.hstack([x, sp.csr_matrix(rng.random((x.shape[0], random)) < 0.05)], format="csr")
            for x in (train, test)
        )
    train, test = train.astype(np.float32), test.astype(np.float32)
    return Table(name, train, y_train, test, y_test, data.task == "binary")
