"""A metric: its value, its interval, or the reason why there is no value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.errors import ParameterError
from thresher.evaluation.bootstrap import interval

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Metric:
    """The value of a metric.

    Attributes
    ----------
    value : float or None
        None: the metric is undefined for these rows or this model; `reason` says why.
    low, high : float or None
        The bootstrap interval.
    reason : str
        Why there is no value.
    bound : float
        The largest possible difference between `value` and the exact metric; 0: it is exact.
    replicates : array or None
        Values in the bootstrap replicates; NaN where undefined.

    Examples
    --------
    >>> from thresher.evaluation.metric import Metric
    >>> Metric(None, reason="all rows have the same label").value is None
    True
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    bound: float = 0.0
    replicates: Floats | None = None

    @classmethod
    def of(
        cls,
        value: Any,
        replicates: Floats | None,
        level: float,
        reason: str = "it is not defined for these rows",
        bound: float = 0.0,
    ) -> Metric:
        """Return a metric with the interval of its replicates.

        Parameters
        ----------
        value : float
            NaN: undefined.
        replicates : array of float64 or None
        level : float
        reason : str
            Why the value is undefined, if it is.
        bound : float
        """
        if not np.isfinite(value):
            return cls(None, reason=reason)
        ends = interval(replicates, level)
        low, high = (None, None) if ends is None else ends
        return cls(float(value), low, high, "", float(bound), replicates)


class About(NamedTuple):
    """What a metric is called, and which values are better."""

    text: str
    larger: bool  # whether larger values are better


NAMES = {
    "accuracy": About("accuracy", True),
    "balanced_accuracy": About("balanced accuracy", True),
    "roc_auc": About("ROC AUC", True),
    "average_precision": About("average precision", True),
    "log_loss": About("log loss", False),
    "brier_score": About("Brier score", False),
    "f1": About("F1", True),
    "precision": About("precision", True),
    "recall": About("recall", True),
    "f1_macro": About("F1, macro", True),
    "f1_weighted": About("F1, weighted", True),
    "f1_micro": About("F1, micro", True),
    "precision_micro": About("precision, micro", True),
    "recall_micro": About("recall, micro", True),
    "hamming_loss": About("Hamming loss", False),
    "ece": About("calibration error (ECE)", False),
    "r2": About("R2", True),
    "rmse": About("root mean squared error", False),
    "mae": About("mean absolute error", False),
    "quantile_loss": About("quantile loss", False),
    "loss": About("loss", False),
}


def about(name: str) -> About:
    """Return what a metric is called; `precision_at_5` and `lift_at_0.1` have a number.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> about("precision_at_5").text, about("lift_at_0.05").text, about("ndcg_at_3").text
    ('precision at 5', 'lift at 5 %', 'nDCG at 3')
    """
    if name in NAMES:
        return NAMES[name]
    kind, _, number = name.partition("_at_")
    if kind == "lift":
        return About(f"lift at {100 * float(number):g} %", True)
    return About(f"{'nDCG' if kind == 'ndcg' else kind} at {number}", True)


TASKS = {
    "binary": (
        "accuracy", "balanced_accuracy", "roc_auc", "average_precision", "f1", "precision",
        "recall", "log_loss", "brier_score", "ece", "loss", "lift_at_S",
    ),
    "multiclass": (
        "accuracy", "balanced_accuracy", "roc_auc", "average_precision", "f1_macro",
        "f1_weighted", "log_loss", "brier_score", "ece", "loss",
    ),
    "multilabel": (
        "f1_micro", "f1_macro", "precision_micro", "recall_micro", "precision_at_K", "ndcg_at_K",
        "accuracy", "hamming_loss", "loss",
    ),
    "regression": ("r2", "rmse", "mae", "quantile_loss", "loss"),
}  # fmt: skip
_SHORT = {"auc": "roc_auc"}


def number_in(name: str) -> float | None:
    """Return the number in the name of a metric, as in "lift_at_0.1"; None: it has none.

    Parameters
    ----------
    name : str
    """
    kind, _, number = name.partition("_at_")
    whole = kind in ("precision", "ndcg")
    if not number or not (whole or kind == "lift"):
        return None
    if not re.fullmatch(r"[1-9]\d*" if whole else r"0\.\d+|1(\.0*)?", number):
        return None
    return float(number)


def full_name(name: str) -> str:
    """Return the key of a metric whose name may be short or scikit-learn's.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> full_name("auc"), full_name("neg_log_loss"), full_name("balanced-accuracy")
    ('roc_auc', 'log_loss', 'balanced_accuracy')
    """
    word = name.replace("-", "_").removeprefix("neg_")
    word = _SHORT.get(word, word)
    number = number_in(word)
    return f"{word.partition('_at_')[0]}_at_{number:g}" if number else word


def check_metric(name: str, tasks: Sequence[str]) -> None:
    """Raise ParameterError if no task has a metric.

    Parameters
    ----------
    name : str
    tasks : sequence of str
        Keys of `TASKS`.
    """
    allowed = list(dict.fromkeys(one for task in tasks for one in TASKS[task]))
    kind, at, _ = name.partition("_at_")
    pattern = f"{kind}_at_{'S' if kind == 'lift' else 'K'}" if at else name
    if pattern not in allowed or (at and not number_in(name)):
        raise ParameterError(parameter="metric", value=name, allowed=f"one of {', '.join(allowed)}")


def ratio(part: Any, whole: Any) -> Any:
    """Return quotients; NaN where the denominator is 0.

    Parameters
    ----------
    part, whole : array or float

    Examples
    --------
    >>> ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0])).tolist()
    [0.5, nan]
    """
    part, whole = np.broadcast_arrays(np.asarray(part, np.float64), np.asarray(whole, np.float64))
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole != 0)


def mean_of_known(values: Floats) -> Any:
    """Return means over the first axis of the values that are not NaN; NaN if there is none."""
    known = ~np.isnan(values)
    return ratio(np.where(known, values, 0.0).sum(axis=0), known.sum(axis=0))


def listed(words: Sequence[Any], most: int = 5) -> str:
    """Return the first of some words for a message.

    Parameters
    ----------
    words : sequence
    most : int

    Examples
    --------
    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    shown = ", ".join(str(word) for word in words[:most])
    return f"{shown} and {len(words) - most:,} more" if len(words) > most else shown
