"""The data sets of `benchmarks/defaults.py`: rows, targets, and a split that never changes.

Newsgroups and other sparse sets have rows of norm 1, as text usually has. Tables of the UCI
repository are scaled to [0, 1] by their loader. Columns of scikit-learn's and statsmodels' sets are
standardised by the training rows. Sets with published test rows keep them; others are split 70/30
with one fixed seed, so that choices made on training rows never see a test row.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from folder import DATA

from thresher import datasets

CLASSIFICATION, REGRESSION = "classification", "regression"
_SPLIT_SEED = 20_000
_PUBLISHED = (
    "comp_vs_rec", "comp_vs_sci", "comp_vs_talk", "rec_vs_talk", "sci_vs_rec", "sci_vs_talk",
    "a9a", "agaricus", "arcene", "dexter_scaled", "dorothea", "rcv1_small",
)  # fmt: skip
_SPARSE = ("basehock", "pcmac", "relathe", "dexter")
_TABLES = ("crx", "krvskp", "magic04", "mushroom", "spambase", "wbc", "wdbc", "wpbc")


@dataclass(frozen=True, eq=False)
class Rows:
    """A data set: training and test rows, in the order of the files."""

    name: str
    task: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray

    def ordered(self, seed: int) -> Rows:
        """Return the training rows in the order of this seed."""
        order = np.random.default_rng(seed).permutation(len(self.y))
        return replace(self, X=self.X[order], y=self.y[order])

    def fold(self, k: int, folds: int, seed: int = 0) -> Rows:
        """Return fold k of the training rows as test rows, and the others as training rows."""
        at = np.random.default_rng(1000 + seed).permutation(len(self.y)) % folds == k
        return replace(self, X=self.X[~at], y=self.y[~at], X_test=self.X[at], y_test=self.y[at])

    def capped(self, rows: int) -> Rows:
        """Return the set with at most this number of training rows."""
        return replace(self, X=self.X[:rows], y=self.y[:rows])


# ---- sets from the data folder -------------------------------------------------------------------


def _from_folder(name: str) -> Rows:
    published = name in _PUBLISHED
    data = datasets.load(name, DATA, unit_norm=published or name in _SPARSE)
    task = REGRESSION if data.task == "regression" else CLASSIFICATION
    if published:
        return Rows(name, task, data.X_train, data.y_train, data.X_test, data.y_test)
    X = sp.vstack([data.X_train, data.X_test], format="csr")
    return _split(name, task, X, np.concatenate([data.y_train, data.y_test]))


# ---- sets of scikit-learn and statsmodels --------------------------------------------------------


def _toy(name: str) -> Any:
    return getattr(importlib.import_module("sklearn.datasets"), f"load_{name}")()


def _against(name: str, label: int) -> tuple[Any, Any]:
    data = _toy(name)
    return data.data, np.where(data.target == label, 1.0, -1.0)


def _column(name: str, column: int) -> tuple[Any, Any]:
    X = _toy(name).data
    return np.delete(X, column, axis=1), X[:, column]


def _table(name: str, target: str, without: tuple[str, ...] = ()) -> tuple[Any, Any]:
    data = importlib.import_module(f"statsmodels.datasets.{name}").load_pandas().data
    frame = data.drop(columns=[target, *without]).astype(float)
    return frame.to_numpy(), data[target].to_numpy(float)


def _fair() -> tuple[Any, Any]:
    X, y = _table("fair", "affairs")
    return X, np.where(y > 0, 1.0, -1.0)


def _star98() -> tuple[Any, Any]:
    X, above = _table("star98", "NABOVE", ("NBELOW",))
    return X, above / (above + _table("star98", "NBELOW")[1])


def _sign(pair: tuple[Any, Any], threshold: float) -> tuple[Any, Any]:
    return pair[0], np.where(pair[1] > threshold, 1.0, -1.0)


_MADE: dict[str, tuple[str, Callable[[], tuple[Any, Any]]]] = {
    "breast_cancer": (CLASSIFICATION, lambda: _against("breast_cancer", 1)),
    "digits_8": (CLASSIFICATION, lambda: _against("digits", 8)),
    "digits_1": (CLASSIFICATION, lambda: _against("digits", 1)),
    "wine_1": (CLASSIFICATION, lambda: _against("wine", 1)),
    "iris_1": (CLASSIFICATION, lambda: _against("iris", 1)),
    "fair": (CLASSIFICATION, _fair),
    "anes96": (CLASSIFICATION, lambda: _sign(_table("anes96", "vote"), 0.5)),
    "modechoice": (
        CLASSIFICATION,
        lambda: _sign(_table("modechoice", "choice", ("individual",)), 0.5),
    ),
    "diabetes": (REGRESSION, lambda: (_toy("diabetes").data, _toy("diabetes").target)),
    "wine_proline": (REGRESSION, lambda: _column("wine", 12)),
    "iris_width": (REGRESSION, lambda: _column("iris", 3)),
    "cancer_symmetry": (REGRESSION, lambda: _column("breast_cancer", 8)),
    "digits_value": (REGRESSION, lambda: (_toy("digits").data, _toy("digits").target * 1.0)),
    "affairs": (REGRESSION, lambda: _table("fair", "affairs")),
    "star98": (REGRESSION, _star98),
    "randhie": (REGRESSION, lambda: _table("randhie", "mdvis")),
    "grunfeld": (REGRESSION, lambda: _table("grunfeld", "invest", ("firm", "year"))),
    "engel": (REGRESSION, lambda: _table("engel", "foodexp")),
    "ideology": (REGRESSION, lambda: _table("anes96", "selfLR")),
}
_OF_STATSMODELS = (
    "fair", "anes96", "modechoice", "affairs", "star98", "randhie", "grunfeld", "engel", "ideology",
)  # fmt: skip


def _from_package(name: str) -> Rows:
    task, make = _MADE[name]
    X, y = make()
    rows = _split(name, task, np.asarray(X, np.float64), np.asarray(y, np.float64))
    mean, sd = rows.X.mean(0), rows.X.std(0)
    sd[sd == 0] = 1.0
    return replace(rows, X=(rows.X - mean) / sd, X_test=(rows.X_test - mean) / sd)


def _split(name: str, task: str, X: Any, y: np.ndarray) -> Rows:
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(y))
    train, test = np.split(order, [round(0.7 * len(y))])
    return Rows(name, task, X[train], y[train], X[test], y[test])


# ---- scalings ------------------------------------------------------------------------------------


def _columns(rows: Rows) -> Rows:
    """Multiply columns by 1000, 1 and 0.001 in turn."""
    factors = 10.0 ** (3 * (1 - np.arange(rows.X.shape[1]) % 3))
    scale = sp.diags_array(factors) if sp.issparse(rows.X) else np.diag(factors)
    return replace(rows, X=_plain(rows.X @ scale), X_test=_plain(rows.X_test @ scale))


def _plain(X: Any) -> Any:
    return sp.csr_matrix(X) if sp.issparse(X) else X


SCALINGS: dict[str, Callable[[Rows], Rows]] = {
    "y x 1000": lambda rows: replace(rows, y=rows.y * 1e3, y_test=rows.y_test * 1e3),
    "y x 0.001": lambda rows: replace(rows, y=rows.y * 1e-3, y_test=rows.y_test * 1e-3),
    "y + 100 sd": lambda rows: replace(
        rows, y=rows.y + 100 * rows.y.std(), y_test=rows.y_test + 100 * rows.y.std()
    ),
    "X x 1000": lambda rows: replace(rows, X=rows.X * 1e3, X_test=rows.X_test * 1e3),
    "columns x 1000, 1, 0.001": _columns,
}
SCALED = {
    REGRESSION: ("diabetes", "housing", "star98", "wine_proline"),
    CLASSIFICATION: ("spambase", "wdbc", "crx", "pcmac"),
}


# ---- all sets ------------------------------------------------------------------------------------


@cache
def names(task: str) -> tuple[str, ...]:
    """Return the names of the sets of a task whose files or packages are there."""
    present = datasets.names(DATA) if DATA.is_dir() else []
    folder = ("housing",) if task == REGRESSION else (*_PUBLISHED, *_SPARSE, *_TABLES)
    statsmodels = importlib.util.find_spec("statsmodels") is not None
    made = [
        name
        for name, (kind, _) in _MADE.items()
        if kind == task and (statsmodels or name not in _OF_STATSMODELS)
    ]
    return (*(name for name in folder if name in present), *made)


def scaled_names(task: str) -> tuple[str, ...]:
    """Return the names of scaled sets: the name of a set, "@", and the scaling."""
    scalings = [name for name in SCALINGS if task == REGRESSION or not name.startswith("y")]
    there = [name for name in SCALED[task] if name in names(task)]
    return tuple(f"{name}@{scaling}" for name in there for scaling in scalings)


@lru_cache(maxsize=3)
def load(name: str) -> Rows:
    """Return a data set, scaled if its name says so."""
    base, _, scaling = name.partition("@")
    rows = _from_package(base) if base in _MADE else _from_folder(base)
    return replace(SCALINGS[scaling](rows), name=name) if scaling else rows
