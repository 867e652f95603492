"""Training by rules that need all rows at once: read into memory, then fitted by the estimators."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher import estimators
from thresher.cli.show import Shown
from thresher.data.gathering import gather
from thresher.data.source import Source
from thresher.errors import ParameterError
from thresher.losses import Task
from thresher.model import Model, Progress
from thresher.training.labels import Labels, tidy

if TYPE_CHECKING:
    from thresher.cli.train import Options

_ESTIMATORS = {
    ("stabilized", "classifier"): estimators.StabilizedClassifier,
    ("coordinate-descent", "classifier"): estimators.CoordinateDescentClassifier,
    ("coordinate-descent", "regressor"): estimators.CoordinateDescentRegressor,
    ("hard-threshold", "regressor"): estimators.HardThresholdRegressor,
}


def fit(
    rule: str,
    task: Task,
    params: Mapping[str, Any],
    source: Source,
    labels: Labels,
    valid: Source | None,
    watcher: Shown,
) -> tuple[Model, float]:
    """Read all rows and fit; return the model, and the seconds it took."""
    if (rule, task) not in _ESTIMATORS:
        raise ParameterError(f"the rule {rule} is not one for a {task}")
    rows = gather(source, labels.targets)
    X, seen = rows.compact() if source.named else (rows.matrix(), None)
    held_out = None
    if valid is not None:
        others = gather(valid, labels.targets, source.kinds)
        columns = np.arange(X.shape[1]) if seen is None else seen
        held_out = (others.matrix_of(columns), tidy(others.labels))
    began = time.perf_counter()

    def see(record: Progress) -> bool:
        watcher.tell("record", **record._asdict())
        return watcher.stops()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        estimator = _ESTIMATORS[rule, task](**{**params, "callback": see})
        estimator.fit(X, tidy(rows.labels), rows.weights, held_out)
    if watcher.stops():  # nothing to go on from: it would start from the beginning
        raise KeyboardInterrupt
    for warning in caught:
        watcher.tell("warning", message=str(warning.message))
    model = estimator.model_
    if seen is not None:  # columns -> features
        evidence = model.evidence
        if evidence is not None:
            evidence = replace(evidence, features=seen[evidence.features.astype(np.intp)])
        model = replace(
            model,
            indices=seen[model.indices.astype(np.intp)],
            n_features=2**64 if source.bits is None else 1 << source.bits,
            evidence=evidence,
        )
    return model, time.perf_counter() - began


def train_matrix(
    options: Options,
    source: Source,
    labels: Labels,
    task: Task,
    params: Mapping[str, Any],
    valid: Source | None,
    watcher: Shown,
) -> tuple[Model, float]:
    """Train, and give the model the names of its features."""
    if options.resume:
        watcher.tell(
            "note",
            message=f"the rule {options.rule} sees all rows at once: it starts from the beginning",
        )
    known = {name: value for name, value in params.items() if value is not None or name == "tol"}
    model, seconds = fit(options.rule, task, known, source, labels, valid, watcher)
    if options.names and source.named and source.rereadable:
        model = replace(model, names=source.names(np.unique(model.indices).tolist()) or None)
    return model, seconds
