"""Coordinate descent (logistic, l1) against liblinear, skglm and celer, to the same duality gap.

All solve min mean loss + l1 ||w||_1 on training rows, as CSR matrices, to a duality gap of at most
1e-4 of the objective of a model without features. `gap_of` computes the gap of every solver in the
same way. A peer gets the largest of its tolerances that reaches this gap; a peer that does not
reach it with any tolerance gets the smallest, and the line says so: its time is then too short.
The peer of a line is the fastest that reaches the gap, or the fastest of all if none does. l1 is a
share of the smallest one at which all weights are zero.

liblinear penalises the intercept, and celer has none. Lines with an intercept give liblinear an
intercept_scaling of 100. skglm and celer compile before they are timed.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, xlogy
from sklearn.linear_model import LogisticRegression

from speed.line import Line, timed
from thresher import CoordinateDescentClassifier, datasets

GOAL = 1e-4
SETS = ("news20", "rcv1_small", "a9a", "dorothea", "dexter", "pcmac")


class Fitted(NamedTuple):
    """Weights and intercept of any solver."""

    w: np.ndarray
    b: float


@dataclass(frozen=True)
class Problem:
    """Rows, labels -1 and 1, and the penalty."""

    name: str
    X: sp.csr_matrix
    y: np.ndarray
    intercept: bool
    l1: float

    @property
    def start(self) -> float:
        """The objective of a model without features."""
        share = float(np.mean(self.y > 0)) if self.intercept else 0.5
        p = np.where(self.y > 0, share, 1 - share)
        return float(-np.log(p).mean())


def gap_of(problem: Problem, found: Fitted) -> tuple[float, float]:
    """Return the duality gap, as a share of `start`, and the objective."""
    X, y, l1 = problem.X, problem.y, problem.l1
    margin = y * (X @ found.w + found.b)
    value = float(np.logaddexp(0, -margin).mean() + l1 * np.abs(found.w).sum())
    u = -y * expit(-margin) / len(y)
    if problem.intercept:
        positive, negative = u[u > 0].sum(), -u[u < 0].sum()
        u[u > 0] *= min(positive, negative) / positive
        u[u < 0] *= min(positive, negative) / negative
    u *= min(1.0, l1 / np.abs(X.T @ u).max())
    a = np.clip(-u * y * len(y), 0.0, 1.0)
    dual = float(-(xlogy(a, a) + xlogy(1 - a, 1 - a)).mean())
    return (value - dual) / problem.start, value


def problems(full: bool) -> Iterator[Problem | str]:
    """Yield the problems, or the reason why one is not available."""
    for name in SETS:
        try:
            data = datasets.load(name)
        except (OSError, ValueError) as error:
            yield f"{name}: skipped, {error}"
            continue
        X = sp.csr_matrix(data.X_train).astype(np.float64)
        y = np.asarray(data.y_train)
        y = np.where(y < 10 if name == "news20" else y > 0, 1.0, -1.0)  # news20: half of the groups
        for intercept in (False, True) if full else (False,):
            slope = y / 2 if not intercept else (y > 0) - np.mean(y > 0)
            largest = float(np.abs(X.T @ slope).max() / len(y))
            for share in (0.1, 0.01):
                yield Problem(
                    f"{name}, l1 = {share:g} of the largest{', intercept' if intercept else ''}",
                    X, y, intercept, share * largest,
                )  # fmt: skip


def _found(model: Any, problem: Problem) -> Fitted:
    b = float(np.ravel(model.intercept_)[0]) if problem.intercept else 0.0
    return Fitted(np.ravel(model.coef_), b)


def ours(problem: Problem) -> Fitted:
    """Fit by coordinate descent, with the default tolerance."""
    model = CoordinateDescentClassifier(l1=problem.l1, fit_intercept=problem.intercept)
    return _found(model.fit(problem.X, problem.y), problem)


def liblinear(problem: Problem, tol: float) -> Fitted:
    """Fit by scikit-learn's liblinear."""
    model = LogisticRegression(
        l1_ratio=1, C=1 / (problem.l1 * len(problem.y)), solver="liblinear", tol=tol,
        fit_intercept=problem.intercept, intercept_scaling=100.0, max_iter=1000, random_state=0,
    )  # fmt: skip
    return _found(model.fit(problem.X, problem.y), problem)


def skglm(problem: Problem, tol: float) -> Fitted:
    """Fit by skglm."""
    cls = importlib.import_module("skglm").SparseLogisticRegression
    model = cls(alpha=problem.l1, tol=tol, fit_intercept=problem.intercept)
    return _found(model.fit(problem.X, problem.y), problem)


def celer(problem: Problem, tol: float) -> Fitted:
    """Fit by celer's prox-Newton."""
    cls = importlib.import_module("celer").LogisticRegression
    model = cls(C=1 / (problem.l1 * len(problem.y)), tol=tol, fit_intercept=False)
    return _found(model.fit(problem.X, problem.y), problem)


PEERS: dict[str, tuple[Callable[[Problem, float], Fitted], tuple[float, ...]]] = {
    "liblinear": (liblinear, (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)),
    "skglm": (skglm, (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)),
    "celer": (celer, (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)),
}


def _fastest(problem: Problem, names: list[str]) -> tuple[str, Callable[[], Fitted]]:
    """Return the fastest peer that reaches the gap, with its tolerance, and its call."""
    small = replace(problem, X=problem.X[:50], y=problem.y[:50], l1=10 * problem.l1)
    found: list[tuple[bool, float, str, Callable[[], Fitted]]] = []
    for name in names:
        if name == "celer" and problem.intercept:
            continue
        fit, tolerances = PEERS[name]
        fit(small, 1.0)  # compiles
        for tol in tolerances:
            call = partial(fit, problem, tol)
            ran = timed(call)
            gap = gap_of(problem, ran.value)[0]
            if gap <= GOAL or any(not poor and ran.seconds > 2 * s for poor, s, *_ in found):
                break  # a smaller tolerance takes longer
        seconds = min(ran.seconds, *(timed(call).seconds for _ in range(2)))
        package = version("scikit-learn" if name == "liblinear" else name)
        text = f"{name} {package}, tol {tol:g}" + (f", gap only {gap:.1e}" if gap > GOAL else "")
        found.append((gap > GOAL, seconds, text, call))
    best = min(found, key=lambda each: each[:2])
    return best[2], best[3]


def _available() -> list[str]:
    names = ["liblinear"]
    for name in ("skglm", "celer"):
        try:
            importlib.import_module(name)
            names.append(name)
        except ImportError:
            print(f"{name} is not installed: coordinate descent is compared without it")
    return names


def _checked(problem: Problem) -> Callable[[Fitted, Fitted], str]:
    def check(mine: Fitted, theirs: Fitted) -> str:
        (gap, value), (other, reached) = gap_of(problem, mine), gap_of(problem, theirs)
        assert gap <= GOAL, f"{problem.name}: the gap is {gap:.2e}"
        return f"objective {value:.6f} / {reached:.6f}, gap {gap:.1e} / {other:.1e}"

    return check


def lines(full: bool) -> Iterator[Line]:
    """Yield the lines: without intercept, and with one if `full`."""
    if "THRESHER_DATA" not in os.environ:
        print("coordinate descent: skipped, THRESHER_DATA is not set")
        return
    names = _available()
    warnings.simplefilter("ignore")  # peers warn if a tolerance is too small for them
    for problem in problems(full):
        if isinstance(problem, str):
            print(problem)
            continue
        peer, call = _fastest(problem, names)
        yield Line(
            f"CoordinateDescentClassifier.fit, {problem.name}",
            lambda problem=problem: ours(problem), call, peer, must=1.0, check=_checked(problem),
        )  # fmt: skip
