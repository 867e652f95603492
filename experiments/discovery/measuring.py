"""How many of the selected features are false, at several stated errors."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from experiments.discovery.rows import Drawn
from thresher import FeatureDiscovery
from thresher.discovery.joint_fit import MOST, JointFit

LEVELS = (0.05, 0.1, 0.2)  # of the false discovery rate
NUMBERS = (1.0, 5.0)  # of expected false features

Found = dict[str, Any]


def measured(drawn: Drawn, form: str, seed: int) -> Found:
    """Return the numbers of selected and of false features, and the checks that failed.

    One fit gives the selections at all stated errors: they are thresholds of the same evidence.

    Parameters
    ----------
    drawn : Drawn
    form : {"crossfit", "stream"}
        A crossfit also gives the numbers of the form "joint".
    seed : int
    """
    discovery = FeatureDiscovery(fdr=0.2, form=form, random_state=seed, **drawn.options)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        discovery.fit(drawn.X, drawn.y, **drawn.fit)
    seconds = time.perf_counter() - began
    decision = discovery._decision
    assert decision is not None
    rates = decision.rates
    names = decision.keys.astype(np.intp)
    if decision.groups is not None:
        names = decision.groups.labels.astype(np.intp)
    chosen = {f"fdr {level:g}": rates.by_fdr(level) for level in LEVELS}
    chosen |= {f"number {number:g}": rates.by_number(number) for number in NUMBERS}
    counts = {key: _counts(names[at], drawn.true) for key, at in chosen.items()}
    joint = {}
    if form == "crossfit" and decision.groups is None:
        joint = {key: _counts(_joint(drawn, names[at]), drawn.true) for key, at in chosen.items()}
    checks = {check.name: [float(check.value), bool(check.fine)] for check in discovery.checks_}
    return {
        "form": form,
        "seed": seed,
        "true": int(drawn.true.sum()),
        "counts": counts,
        "joint": joint,
        "checks": checks,
        "seconds": round(seconds, 2),
    }


def _counts(selected: NDArray[np.intp], true: NDArray[np.bool_]) -> list[int]:
    """Return the numbers of selected and of false features."""
    return [len(selected), int((~true[selected]).sum())]


def _joint(drawn: Drawn, selected: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the features that stay in a joint fit."""
    if not 0 < len(selected) <= MOST:
        return selected
    X = drawn.X[:, selected]
    X = X if sp.issparse(X) else sp.csr_matrix(X)
    regression = drawn.options.get("task") == "regression"
    kinds = np.unique(drawn.y) if not regression else []
    if regression:
        y = drawn.y[None].astype(float)
    elif len(kinds) == 2:
        y = (drawn.y == kinds[1])[None].astype(float)
    else:
        y = np.stack([drawn.y == kind for kind in kinds]).astype(float)
    fit = JointFit.of(X, y, drawn.fit.get("sample_weight"), classifies=not regression)
    return selected[fit.stands()]


# ---- summaries -----------------------------------------------------------------------------------


def shares(runs: list[Found], key: str, counts: str = "counts") -> tuple[float, float, float]:
    """Return the mean share of false features, its standard error, and the power.

    Parameters
    ----------
    runs : list of dict
    key : str
        "fdr 0.1", for example.
    counts : {"counts", "joint"}
    """
    share = np.array([run[counts][key][1] / max(1, run[counts][key][0]) for run in runs])
    power = [(run[counts][key][0] - run[counts][key][1]) / max(1, run["true"]) for run in runs]
    return float(share.mean()), _error(share), float(np.mean(power))


def numbers(runs: list[Found], key: str, counts: str = "counts") -> tuple[float, float]:
    """Return the mean number of false features, and its standard error."""
    false = np.array([float(run[counts][key][1]) for run in runs])
    return float(false.mean()), _error(false)


def _error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
