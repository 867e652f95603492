"""Checks of the arguments of `fit` that depend on the rule and on the kind of rows."""

from __future__ import annotations

from typing import Any

from thresher.data import is_source
from thresher.errors import ParameterError, setting
from thresher.rules import RULES

__all__ = ["check_fit_arguments", "check_source_alone"]


def check_source_alone(estimator: Any, y: Any, sample_weight: Any) -> None:
    """Raise ParameterError if labels or weights are given in addition to a source."""
    if y is not None or sample_weight is not None:
        raise ParameterError(
            "a source has its own labels and weights; do not pass y or sample_weight",
            owner=type(estimator).__name__,
        )


def check_fit_arguments(estimator: Any, X: Any, classes: Any, seed: Any, metric: Any) -> None:
    """Raise ParameterError if an argument has no effect for this rule or these rows.

    Parameters
    ----------
    estimator : estimator
    X : rows or source
    classes, seed, metric
        As for `fit`.
    """
    streams = RULES[estimator.rule].streams
    if classes is not None and (not is_source(X) or estimator.task == "regressor"):
        why = "a regression has no classes" if estimator.task == "regressor" else "y has them"
        raise ParameterError(
            f"classes= is for classifiers on sources; {why}",
            owner=type(estimator).__name__,
            parameter="classes",
            value=classes,
        )
    if seed is not None and not (is_source(X) and streams):
        raise ParameterError(
            ("seed= is for training on sources with rules that learn row by row; use ",
             setting("random_state")),
            owner=type(estimator).__name__,
            parameter="seed",
            value=seed,
        )  # fmt: skip
    if metric is not None and not streams:
        raise ParameterError(
            (setting("metric"), " is for rules that learn row by row; this one has no early "
             "stopping by validation rows"),
            owner=type(estimator).__name__,
            parameter="metric",
            value=metric,
        )  # fmt: skip
