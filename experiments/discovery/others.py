"""Other ways to select features, on the same rows."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.linear_model import LogisticRegressionCV

from experiments.discovery.rows import Drawn, counts_of
from thresher import FTRLClassifier
from thresher.stability import StabilitySelection

DESIGNS = ("zipf", "topics", "gaussian", "gaussian_ar", "rcv1_small_own", "basehock_binary")
LEVEL = 0.1
KNOCKOFFS = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from knockpy import KnockoffFilter
data = np.load(sys.argv[2])
found = KnockoffFilter(ksampler="gaussian", fstat="lsm")
kept = found.forward(data["X"], data["y"], fdr=float(sys.argv[4]), shrinkage="ledoitwolf")
np.save(sys.argv[3], np.flatnonzero(kept))
"""


def univariate(drawn: Drawn, level: float) -> NDArray[np.intp]:
    """Return the features of Benjamini and Hochberg's rule on univariate score tests."""
    X = sp.csc_matrix(drawn.X)
    e = drawn.y - drawn.y.mean()
    n = X.shape[0]
    mean = np.asarray(X.mean(axis=0)).ravel()
    variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
    z = (X.T @ e) / np.sqrt(np.maximum(n * variance * e.var(), 1e-300))
    z[variance <= 0] = 0.0
    p = 2 * norm.sf(np.abs(z))
    known = np.flatnonzero(variance > 0)
    order = known[np.argsort(p[known])]
    under = np.flatnonzero(p[order] <= level * np.arange(1, len(order) + 1) / len(order))
    return order[: under[-1] + 1] if len(under) else order[:0]


def l1(drawn: Drawn) -> NDArray[np.intp]:
    """Return the features of a logistic regression with l1, its penalty by cross-validation."""
    model = LogisticRegressionCV(
        Cs=8, cv=3, l1_ratios=(1.0,), solver="liblinear", scoring="neg_log_loss", max_iter=200,
        use_legacy_attributes=False,
    )  # fmt: skip
    return np.flatnonzero(model.fit(drawn.X, drawn.y).coef_.ravel())


def stability(drawn: Drawn) -> NDArray[np.intp]:
    """Return the features of stability selection: 25 pairs, threshold 0.6, at most 5 false stated.

    A fit selects its q largest weights, in units of the features' values; q is such that the bound
    of Meinshausen and Buehlmann, q^2 / (0.2 p), is 5.
    """
    rows = counts_of(drawn.X)
    q = int(np.sqrt((rows > 0).sum()))
    squares = drawn.X.multiply(drawn.X) if sp.issparse(drawn.X) else drawn.X**2
    size = np.sqrt(np.asarray(squares.sum(axis=0)).ravel())

    def largest(fitted: Any) -> NDArray[np.intp]:
        found = np.abs(np.asarray(fitted.coef_).ravel()) * size
        return np.argsort(-found, kind="stable")[:q]

    selection = StabilitySelection(
        FTRLClassifier(passes=5), pairs=25, support_of=largest, refit=False, random_state=0
    )
    return selection.fit(drawn.X, drawn.y).selected_


def knockoffs(drawn: Drawn, level: float, folder: str) -> NDArray[np.intp] | None:
    """Return the features of Gaussian knockoffs (knockpy); None where they cannot run.

    Parameters
    ----------
    drawn : Drawn
        At most 1,500 features: knockoffs need their covariance.
    level : float
    folder : str
        Where knockpy is installed.
    """
    if drawn.X.shape[1] > 1500:
        return None
    with tempfile.TemporaryDirectory() as place:
        given, found = Path(place) / "given.npz", Path(place) / "found.npy"
        X = drawn.X.toarray() if sp.issparse(drawn.X) else drawn.X
        np.savez(given, X=X, y=drawn.y)
        command = [sys.executable, "-c", KNOCKOFFS, folder, str(given), str(found), str(level)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return np.asarray(np.load(found), dtype=np.intp)


def compared(drawn: Drawn, knockpy: str | None) -> dict[str, list[int]]:
    """Return the numbers of selected and of false features of each method.

    Parameters
    ----------
    drawn : Drawn
    knockpy : str or None
        Folder of the package; None: knockoffs are left out.
    """
    methods: Mapping[str, Callable[[], Any]] = {
        "Benjamini-Hochberg": lambda: univariate(drawn, LEVEL),
        "l1, cross-validation": lambda: l1(drawn),
        "stability selection": lambda: stability(drawn),
        "knockoffs": lambda: knockoffs(drawn, LEVEL, knockpy) if knockpy else None,
    }
    counts = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, method in methods.items():
            found = method()
            if found is not None:
                counts[name] = [len(found), int((~drawn.true[found]).sum())]
    return counts
