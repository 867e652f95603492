"""Taking a executor from the first stage to the last, with checkpoints on the way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thresher.distributed.engine.executor import Executor, StageCost
from thresher.distributed.engine.folder import CheckpointFolder, CommittedStage
from thresher.distributed.engine.pieces import Coordinator, Learned, MessagesLost, Mode, PieceKind
from thresher.errors import ClusterError

_ATTEMPTS = 10  # to get past one stage


@dataclass(frozen=True)
class StageReport:
    """What is shown of a stage.

    Attributes
    ----------
    stage : int
        From 1.
    rows : int
        Taken in this stage, over all parts or paths.
    loss : float or None
        Mean progressive loss of these rows.
    nonzeros : int or None
        Weights, or features, that are left.
    seconds : float
        That the stage took.
    bytes : int
        Sent between pieces.
    slowest : int
        The worker that worked longest.
    wait : float
        Seconds that the others waited for it, on average.
    remade : tuple of (kind, number)
        Pieces that were lost, and made again from their checkpoints.
    checkpoint : bool
        Whether one was written.
    trouble : str or None
        Why one was not, where it should have been. The run goes on; the one before is whole.
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
    """What a run came to.

    Attributes
    ----------
    learned : Learned
    stages : int
    shown : list of dict
        What leads told of stages 1 to 64, 128, 256, ... and the last; with the rows ("examples")
        and the seconds up to there.
    """

    learned: Learned
    stages: int
    shown: list[dict[str, Any]]


class ContinueLater(Exception):
    """The watcher asked to stop; a checkpoint holds what was done, where there is a folder."""


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
        The checkpoint to go on from. Without one, those that are in the folder are removed.
    watch : callable, optional
        Is told of every stage; where it returns True, the run stops, behind a checkpoint.
    """
    if folder is not None and committed is None:
        folder.forget()  # files of another run would be mixed with those of this one
    elif folder is not None:
        folder.clear()
    failed, reached = 0, -1
    while True:
        try:
            return _from(mode, executor, folder, every, committed, watch)
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
                f"what workers had sent was lost; all go on from the end of stage {stage}"
            )


def _from(
    mode: Mode,
    executor: Executor,
    folder: CheckpointFolder | None,
    every: int,
    committed: CommittedStage | None,
    watch: StageCallback | None,
) -> ClusterRun:
    lead = mode.lead()
    stage, shown = 0, list[dict[str, Any]]()
    last: dict[str, Any] = {"examples": 0, "seconds": 0.0}
    if committed is not None:
        stage, *shown = committed.stage, *committed.shown
        last = shown[-1]
        lead.restore(committed.lead)
    executor.begin(committed)
    while not lead.done:
        began = time.perf_counter()
        executor.account = StageCost(seconds=[0.0] * len(executor.account.seconds))
        facts = lead.stage(executor)
        stage += 1
        if shown and not _is_marked(int(last["stage"])):  # it was but the last so far
            shown.pop()
        last = {
            "stage": stage,
            "examples": last["examples"] + int(facts.get("rows", 0)),
            "seconds": last["seconds"] + time.perf_counter() - began,
            **facts,
        }
        shown.append(last)
        trouble = None
        due = folder is not None and (lead.done or stage % every == 0)
        if due:
            trouble = _tried(executor, folder, stage, lead, shown)
        if not due or trouble:
            executor.bound()
        report = _report(stage, facts, time.perf_counter() - began, executor.account, due, trouble)
        if watch is not None and watch(report):
            if folder is not None and not report.checkpoint:
                _commit(executor, folder, stage, lead, shown)
            kept = f"; {folder.path} holds what was learned" if folder is not None else ""
            raise ContinueLater(f"stopped after stage {stage}{kept}")
    return ClusterRun(lead.result(executor), stage, shown)


def _is_marked(stage: int) -> bool:
    """Tell whether a stage stays in the record of a run."""
    return stage <= 64 or stage & (stage - 1) == 0


def _tried(
    executor: Executor,
    folder: CheckpointFolder | None,
    stage: int,
    lead: Coordinator,
    shown: list[dict[str, Any]],
) -> str | None:
    """Write a checkpoint, or return why it cannot be: no reason to give up what was learned."""
    try:
        _commit(executor, folder, stage, lead, shown)
    except OSError as error:
        assert folder is not None
        folder.clear()
        executor.note(f"no checkpoint of stage {stage} could be written: {error}")
        return str(error)
    return None


def _commit(
    executor: Executor,
    folder: CheckpointFolder | None,
    stage: int,
    lead: Coordinator,
    shown: list[dict[str, Any]],
) -> None:
    assert folder is not None
    committed = CommittedStage(stage, *executor.write(stage), lead.state(), shown)
    folder.commit(committed)
    executor.let_go(committed)


def _report(
    stage: int,
    facts: dict[str, Any],
    seconds: float,
    account: StageCost,
    due: bool,
    trouble: str | None,
) -> StageReport:
    busy = account.seconds
    slowest = max(range(len(busy)), key=busy.__getitem__)
    others = [busy[slowest] - s for i, s in enumerate(busy) if i != slowest]
    return StageReport(
        stage=stage,
        rows=int(facts.get("rows", 0)),
        loss=facts.get("loss"),
        nonzeros=facts.get("nonzeros"),
        seconds=seconds,
        bytes=account.bytes,
        slowest=slowest,
        wait=sum(others) / len(others) if others else 0.0,
        remade=tuple(account.remade),
        checkpoint=due and trouble is None,
        trouble=trouble,
    )
