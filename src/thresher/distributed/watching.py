"""Stages that are watched for divergence, as rows are on one machine."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.distributed.driving import StageReport
from thresher.distributed.pieces import Job
from thresher.health.watch import DivergenceWarning, DivergenceWatch
from thresher.model import Progress
from thresher.rules import RULES

Watch = Callable[[StageReport], Any]


def for_divergence(estimator: Any, job: Job, watch: Watch | None) -> Watch | None:
    """Return a watcher that also warns where training diverges; the same where none can tell.

    Parameters
    ----------
    estimator : LinearEstimator
    job : Job
        What it learns.
    watch : callable or None
        Of the user.
    """
    if not (RULES[job.rule].streams and RULES[job.rule].diverges):
        return watch
    eye, rows = DivergenceWatch(_zero_loss(job)), 0

    def see(report: StageReport) -> Any:
        nonlocal rows
        if report.loss is not None and report.rows > 0:
            rows += report.rows
            message = eye.see(Progress(rows, report.loss, None, 0.0, 0.0))
            if message is not None:
                warnings.warn(message, DivergenceWarning, stacklevel=2)
        return None if watch is None else watch(report)

    return see


def _zero_loss(job: Job) -> float | None:
    """Return the mean loss of predicting zero, on the first rows."""
    params = job.params
    name = str(params.get("loss", RULES[job.rule].losses[0]))
    shape = float(params.get("epsilon", 0.0)), float(params.get("quantile", 0.5))

    def losses(
        predictions: NDArray[np.float64], labels: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return _core.loss_values(name, *shape, predictions, labels)[0]

    for block in job.rows.source(0).blocks():
        if block.rows:
            return job.labels.targets(block).zero_loss(losses, None)
    return None
