"""The loop over stages, with checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thresher.distributed.engine.executor import Executor, StageCost
from thresher.distributed.engine.folder import CheckpointFolder, CommittedStage
from thresher.distributed.engine.pieces import (
    Coordinator,
    Learned,
    MessagesLost,
    Mode,
    PieceKind,
)
from thresher.errors import ClusterError

_ATTEMPTS = 10  # for one stage


@dataclass(frozen=True)
class StageReport:
    """A finished stage.

    Attributes
    ----------
    stage : int
        Number of the stage, from 1.
    rows : int
        Rows learned in this stage, summed over all parts or paths.
    loss : float or None
        Mean progressive loss of these rows.
    nonzeros : int or None
        Nonzero weights, or features that are left.
    seconds : float
        Duration of the stage.
    bytes : int
        Size of all arrays sent between pieces.
    slowest : int
        The worker with the longest working time.
    wait : float
        Mean time, in seconds, that the other workers waited for it.
    remade : tuple of (kind, number)
        Pieces that were lost and made again.
    checkpoint : bool
        Whether a checkpoint was written.
    trouble : str or None
        Why a checkpoint that was due could not be written. Training continues; the checkpoint
        before it is still valid.
    """

    stage: int
    rows: int
    loss: float | None
    nonzeros: int | None
    seconds: float
    bytes: int
    slowest: int
    wait: float
    remade: tuple[tuple[PieceKind, int], ...] = ()
    checkpoint: bool = False
    trouble: str | None = None


StageCallback = Callable[[StageReport], Any]


@dataclass(frozen=True)
class ClusterRun:
    """The result of a run.

    Attributes
    ----------
    learned : Learned
    stages : int
        Number of stages.
    history : list of dict
        Records of stages 1 to 64, 128, 256, ... and of the last one. Each also has the number of
        rows ("examples") and of seconds since the beginning.
    """

    learned: Learned
    stages: int
    history: list[dict[str, Any]]


class ContinueLater(Exception):
    """The callback stopped the run. If there is a checkpoint folder, the run can be resumed."""


def run_stages(
    mode: Mode,
    executor: Executor,
    folder: CheckpointFolder | None,
    every: int,
    committed: CommittedStage | None = None,
    watch: StageCallback | None = None,
) -> ClusterRun:
    """Run all stages that are left.

    Parameters
    ----------
    mode : Mode
    executor : Executor
    folder : CheckpointFolder or None
    every : int
        Stages between two checkpoints.
    committed : CommittedStage, optional
        The checkpoint to continue from. Without one, checkpoints in the folder are removed.
    watch : callable, optional
        Called after every stage. If it returns True, a checkpoint is written and the run stops.
    """
    if folder is not None and committed is None:
        folder.remove_stages()  # files of another run must not be mixed with those of this one
    elif folder is not None:
        folder.remove_leftovers()
    failed, reached = 0, -1
    while True:
        try:
            return _run_from(mode, executor, folder, every, committed, watch)
        except MessagesLost as lost:
            committed = None if folder is None else folder.committed()
            stage = 0 if committed is None else committed.stage
            failed, reached = (failed + 1, reached) if stage <= reached else (1, stage)
            if failed >= _ATTEMPTS:
                raise ClusterError(
                    f"workers were lost {failed} times before stage {stage + 1} was done"
                    + (f"; {folder.path} has all stages before it" if folder else "")
                ) from lost
            executor.note(
                f"arrays sent by workers were lost; training goes back to the end of stage {stage}"
            )


def _run_from(
    mode: Mode,
    executor: Executor,
    folder: CheckpointFolder | None,
    every: int,
    committed: CommittedStage | None,
    watch: StageCallback | None,
) -> ClusterRun:
    coordinator = mode.coordinator()
    stage, history = 0, list[dict[str, Any]]()
    last: dict[str, Any] = {"examples": 0, "seconds": 0.0}
    if committed is not None:
        stage, *history = committed.stage, *committed.history
        last = history[-1]
        coordinator.restore(committed.coordinator)
    executor.make_pieces(committed)
    while not coordinator.done:
        began = time.perf_counter()
        executor.cost = StageCost(seconds=[0.0] * len(executor.cost.seconds))
        record = coordinator.stage(executor)
        stage += 1
        if history and not _is_recorded(int(last["stage"])):
            history.pop()  # the latest stage is always in the history; it is no longer the latest
        last = {
            "stage": stage,
            "examples": last["examples"] + int(record.get("rows", 0)),
            "seconds": last["seconds"] + time.perf_counter() - began,
            **record,
        }
        history.append(last)
        trouble = None
        due = folder is not None and (coordinator.done or stage % every == 0)
        if due:
            trouble = _try_commit(executor, folder, stage, coordinator, history)
        if not due or trouble:
            executor.limit_kept_steps()
        report = _report(stage, record, time.perf_counter() - began, executor.cost, due, trouble)
        if watch is not None and watch(report):
            if folder is not None and not report.checkpoint:
                _commit(executor, folder, stage, coordinator, history)
            where = f"; the checkpoint is {folder.path}" if folder is not None else ""
            raise ContinueLater(f"stopped after stage {stage}{where}")
    return ClusterRun(coordinator.result(executor), stage, history)


def _is_recorded(stage: int) -> bool:
    """Return whether a stage stays in the history."""
    return stage <= 64 or stage & (stage - 1) == 0


def _try_commit(
    executor: Executor,
    folder: CheckpointFolder | None,
    stage: int,
    coordinator: Coordinator,
    history: list[dict[str, Any]],
) -> str | None:
    """Write a checkpoint, or return why it is impossible: training continues without it."""
    try:
        _commit(executor, folder, stage, coordinator, history)
    except OSError as error:
        assert folder is not None
        folder.remove_leftovers()
        executor.note(f"no checkpoint of stage {stage} could be written: {error}")
        return str(error)
    return None


def _commit(
    executor: Executor,
    folder: CheckpointFolder | None,
    stage: int,
    coordinator: Coordinator,
    history: list[dict[str, Any]],
) -> None:
    assert folder is not None
    committed = CommittedStage(stage, *executor.write_states(stage), coordinator.state(), history)
    folder.commit(committed)
    executor.forget_steps(committed)


def _report(
    stage: int,
    record: dict[str, Any],
    seconds: float,
    cost: StageCost,
    due: bool,
    trouble: str | None,
) -> StageReport:
    busy = cost.seconds
    slowest = max(range(len(busy)), key=busy.__getitem__)
    waits = [busy[slowest] - s for i, s in enumerate(busy) if i != slowest]
    return StageReport(
        stage=stage,
        rows=int(record.get("rows", 0)),
        loss=record.get("loss"),
        nonzeros=record.get("nonzeros"),
        seconds=seconds,
        bytes=cost.bytes,
        slowest=slowest,
        wait=sum(waits) / len(waits) if waits else 0.0,
        remade=tuple(cost.remade),
        checkpoint=due and trouble is None,
        trouble=trouble,
    )
