"""Warnings about divergence from the losses of stages, as for training on one machine."""

from __future__ import annotations

from typing import Any

from thresher.distributed.engine.loop import StageCallback, StageReport
from thresher.distributed.engine.pieces import ClusterJob
from thresher.health.watch import DivergenceWarning, DivergenceWatch
from thresher.model.model import Progress
from thresher.training.class_weights import row_weights
from thresher.training.observer import Observer
from thresher.training.records import watch_for


def watching_divergence(job: ClusterJob, callback: StageCallback | None) -> StageCallback | None:
    """Return a callback that also warns if training diverges.

    For a rule that cannot diverge, the same callback is returned.

    Parameters
    ----------
    job : ClusterJob
    callback : callable or None
        The callback that the user gave.
    """
    watch, rows = watch_for(job.rule), 0
    if watch is None:
        return callback
    _set_expected_loss(watch, job)

    def see(report: StageReport) -> Any:
        nonlocal rows
        if report.loss is not None and report.rows > 0:
            rows += report.rows
            message = watch.see(Progress(rows, report.loss, None, 0.0, 0.0))
            if message is not None:
                Observer().warn(message, DivergenceWarning)
        return None if callback is None else callback(report)

    return see


def _set_expected_loss(watch: DivergenceWatch, job: ClusterJob) -> None:
    """Give the watch the loss of predicting zero for the first rows."""
    plan = job.plan()
    for block in job.rows.source(0).blocks(dtype=plan.dtype):
        if block.rows:
            targets = plan.labels.targets(block)
            weights = row_weights(block, targets, plan.class_factors())
            watch.expect(*plan.zero_loss(targets, weights))
            return
