"""The learners of `benchmarks/defaults.py`: ours by the table of rules, and peers, untuned.

A learner gets training rows in one order and returns predictions of the test rows. "one" means one
pass over the rows in their order, "many" the learner's own default.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from default_sets import CLASSIFICATION, REGRESSION, Rows

import thresher
from thresher.losses import LOSSES
from thresher.rules import RULES

WIDE = 20_000  # features: sets with more are too slow for rules whose steps visit all features
CAP = 5000  # training rows of peers that search a grid by cross-validation
VW_RATES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
KIND = {CLASSIFICATION: "classifier", REGRESSION: "regressor"}


@dataclass(frozen=True)
class Outcome:
    """What one training run gives."""

    error: float  # share of wrong classes, or 1 - R2
    nonzeros: float  # weights that are not zero; VW: features that occur
    seconds: float
    progressive: float | None = None  # mean loss of each row before it was learned
    warned: tuple[str, ...] = ()


@dataclass(frozen=True)
class Learner:
    """A way to learn: its name, and a function that trains it on rows with a seed."""

    name: str
    passes: str  # "one" or "many"
    ours: bool
    run: Callable[[Rows, int], Outcome]
    ordered: bool = True  # whether the result depends on the order of the rows
    narrow: bool = False  # whether its time grows with the features: sets with many are left out
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name in the file of results."""
        return f"{self.name}, one pass" if self.passes == "one" else self.name


def error_of(rows: Rows, predicted: np.ndarray) -> float:
    """Return the share of wrong classes, or 1 - R2; predictions that are not finite count as 1e6.

    R2 compares with the mean of the test rows.
    """
    if rows.task == CLASSIFICATION:
        return float(np.mean(predicted != rows.y_test))
    with np.errstate(all="ignore"):
        rest = np.sum((rows.y_test - predicted) ** 2)
        error = float(rest / np.sum((rows.y_test - rows.y_test.mean()) ** 2))
    return min(error, 1e6) if np.isfinite(error) else 1e6


# ---- ours ----------------------------------------------------------------------------------------


def ours(task: str) -> Iterator[Learner]:
    """Yield all our estimators with all defaults: those of rules, then others."""
    rules = {}
    for rule, spec in RULES.items():
        name = spec.estimators.get(KIND[task])
        if name is not None and hasattr(thresher, name):
            rules[name] = rule
            yield from of_class(rule, getattr(thresher, name), task)
    for name in (f"Sparse{KIND[task].title()}",):
        if hasattr(thresher, name) and name not in rules:
            yield from of_class(name, getattr(thresher, name), task)


def of_class(
    name: str, cls: Any, task: str, given: Mapping[str, Any] | None = None
) -> Iterator[Learner]:
    """Yield an estimator with its own number of passes, and with one pass if it learns by row."""
    given, known = dict(given or {}), inspect.signature(cls).parameters
    streams = name in RULES and RULES[name].streams
    narrow = name in RULES and RULES[name].needs_width
    if streams and "passes" in known:
        one = {"passes": 1, "shuffle": False, **given}
        yield Learner(name, "one", True, _fitting(cls, one), narrow=narrow, about=one)
    if "passes" not in known or known["passes"].default != 1:
        yield Learner(
            name, "many", True, _fitting(cls, given), "random_state" in known, narrow, given
        )


def renamed(learner: Learner, name: str) -> Learner:
    """Return a learner under another name."""
    return replace(learner, name=name)


def _fitting(cls: Any, given: Mapping[str, Any]) -> Callable[[Rows, int], Outcome]:
    def run(rows: Rows, seed: int) -> Outcome:
        seeded = (
            {"random_state": seed} if "random_state" in inspect.signature(cls).parameters else {}
        )
        return _trained(cls(**seeded, **given), rows)

    return run


def _trained(estimator: Any, rows: Rows) -> Outcome:
    """Train an estimator of ours or of scikit-learn, and measure it on the test rows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.perf_counter()
        try:
            estimator.fit(rows.X, rows.y)
        except (ValueError, ArithmeticError) as error:  # for example, numbers that overflow
            seconds = time.perf_counter() - began
            return Outcome(_failed(rows), 0.0, seconds, None, (f"error: {error}",))
        seconds = time.perf_counter() - began
        error = error_of(rows, estimator.predict(rows.X_test))
    texts = tuple(dict.fromkeys(str(w.message)[:200] for w in caught))
    return Outcome(
        error, float(np.count_nonzero(estimator.coef_)), seconds, _progressive(estimator), texts
    )


def _failed(rows: Rows) -> float:
    return 1.0 if rows.task == CLASSIFICATION else 1e6


def _progressive(estimator: Any) -> float | None:
    """Return the mean loss before learning, of one pass with the logistic or squared loss."""
    loss = getattr(estimator, "loss", None)
    if getattr(estimator, "passes", None) != 1 or not hasattr(estimator, "history_"):
        return None
    if loss not in ("logistic", "squared") or loss not in LOSSES:
        return None
    before, total = 0, 0.0
    for record in estimator.history_:
        total += (record.examples - before) * record.loss
        before = record.examples
    return total / max(before, 1)


# ---- peers ---------------------------------------------------------------------------------------


def peers(task: str) -> Iterator[Learner]:
    """Yield the peers that are installed."""
    if importlib.util.find_spec("pylibvw") is None:
        print("VW is not installed (pip install vowpalwabbit): it is skipped", flush=True)
    else:
        yield Learner("VW", "one", False, lambda rows, seed: vw(rows, 0.5))
        for rate in VW_RATES:
            if rate != 0.5:  # the default
                yield Learner(f"VW -l {rate:g}", "one", False, _vw_with(rate))
    yield from _sklearn(task)


def _sklearn(task: str) -> Iterator[Learner]:
    from sklearn import linear_model, svm

    if task == CLASSIFICATION:
        plain: dict[str, tuple[Any, bool]] = {
            "LogisticRegression": (linear_model.LogisticRegression, False),
            "LinearSVC": (svm.LinearSVC, False),
            "SGDClassifier": (linear_model.SGDClassifier, True),
        }
        search = ("LogisticRegressionCV, l1", _l1_logistic)
    else:
        plain = {
            "Ridge": (linear_model.Ridge, False),
            "RidgeCV": (linear_model.RidgeCV, False),
            "SGDRegressor": (linear_model.SGDRegressor, True),
        }
        search = ("LassoCV", linear_model.LassoCV)
    for name, (cls, ordered) in plain.items():
        yield Learner(name, "many", False, _peer(cls, ordered), ordered)
    yield Learner(search[0], "many", False, _peer(search[1], False, CAP), False)


def _peer(make: Callable[..., Any], seeded: bool, cap: int = 0) -> Callable[[Rows, int], Outcome]:
    def run(rows: Rows, seed: int) -> Outcome:
        estimator = make(random_state=seed) if seeded else make()
        return _trained(estimator, rows.capped(cap) if cap else rows)

    return run


def _l1_logistic() -> Any:
    from sklearn.linear_model import LogisticRegressionCV

    known = inspect.signature(LogisticRegressionCV).parameters
    penalty = {"l1_ratios": (1.0,)} if "use_legacy_attributes" in known else {"penalty": "l1"}
    legacy = {"use_legacy_attributes": False} if "use_legacy_attributes" in known else {}
    return LogisticRegressionCV(
        Cs=10, cv=3, solver="liblinear", scoring="accuracy", random_state=0, **penalty, **legacy
    )


# ---- Vowpal Wabbit -------------------------------------------------------------------------------


def _vw_with(rate: float) -> Callable[[Rows, int], Outcome]:
    return lambda rows, seed: vw(rows, rate)


def vw(rows: Rows, rate: float) -> Outcome:
    """Train VW by one pass over the rows in their order, from a file.

    Its predictions are those before each row was learned, without a link; the losses are computed
    from them here.
    """
    import pylibvw

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, text in _vw_texts(rows).items():
            (folder / part).write_text(text)
        loss = "logistic" if rows.task == CLASSIFICATION else "squared"
        common = ["--quiet", "--no_stdin"]
        learn = [*common, "-d", str(folder / "train"), "-f", str(folder / "model")]
        learn += ["--loss_function", loss, "-l", str(rate), "-p", str(folder / "before")]
        began = time.perf_counter()
        _vw_run(pylibvw, [*learn, "--link", "identity"])
        seconds = time.perf_counter() - began
        test = [*common, "-t", "-i", str(folder / "model"), "-d", str(folder / "test")]
        _vw_run(pylibvw, [*test, "-p", str(folder / "after")])
        before, after = (_numbers(folder / part) for part in ("before", "after"))
    if rows.task == CLASSIFICATION:
        progressive = np.mean(np.logaddexp(0, -rows.y * before))
        after = np.where(after > 0, 1.0, -1.0)
    else:
        progressive = np.mean((rows.y - before) ** 2) / 2
    seen = np.count_nonzero(np.asarray(abs(rows.X).sum(axis=0)))
    return Outcome(error_of(rows, after), float(seen), seconds, float(progressive))


def _vw_run(pylibvw: Any, arguments: list[str]) -> None:
    driver = pylibvw.vw(arguments)
    driver.run_parser()
    driver.finish()


def _numbers(path: Path) -> np.ndarray:
    return np.array([float(line.split()[0]) for line in path.read_text().splitlines()])


@lru_cache(maxsize=1)
def _vw_texts(rows: Rows) -> dict[str, str]:
    return {"train": vw_text(rows.X, rows.y), "test": vw_text(rows.X_test, rows.y_test)}


def vw_text(X: Any, y: np.ndarray) -> str:
    """Return rows in the format of VW, with column numbers as names."""
    X = sp.csr_matrix(X)
    lines = []
    for row, label in enumerate(y):
        part = slice(X.indptr[row], X.indptr[row + 1])
        pairs = zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)
        lines.append(f"{label:.17g} | " + " ".join(f"{i}:{v:.9g}" for i, v in pairs))
    return os.linesep.join(lines) + os.linesep
