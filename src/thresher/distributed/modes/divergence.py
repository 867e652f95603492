"""Stages that are watched for divergence, as rows are on one machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thresher.distributed.engine.loop import StageReport
from thresher.distributed.engine.pieces import ClusterJob
from thresher.health.watch import DivergenceWarning, DivergenceWatch
from thresher.model.model import Progress
from thresher.training.class_weights import row_weights
from thresher.training.observer import Observer
from thresher.training.records import watch_for

StageCallback = Callable[[StageReport], Any]


def watching_divergence(job: ClusterJob, watch: StageCallback | None) -> StageCallback | None:
    """Return a watcher that also warns where training diverges; the same where none can tell.

    Parameters
    ----------
    job : ClusterJob
        What is learned.
    watch : callable or None
        Of the user.
    """
    eye, rows = watch_for(job.rule), 0
    if eye is None:
        return watch
    _expect(eye, job)

    def see(report: StageReport) -> Any:
        nonlocal rows
        if report.loss is not None and report.rows > 0:
            rows += report.rows
            message = eye.see(Progress(rows, report.loss, None, 0.0, 0.0))
            if message is not None:
                Observer().warn(message, DivergenceWarning)
        return None if watch is None else watch(report)

    return see


def _expect(eye: DivergenceWatch, job: ClusterJob) -> None:
    """Tell a watch what predicting zero would cost on the first rows."""
    plan = job.plan()
    for block in job.rows.source(0).blocks(dtype=plan.dtype):
        if block.rows:
            targets = plan.labels.targets(block)
            eye.expect(*plan.zero_loss(targets, row_weights(block, targets, plan.class_factors())))
            return
