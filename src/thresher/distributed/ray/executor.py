"""Pieces on the workers of a Ray cluster, any of which may be lost at any time.

A worker that dies is started again by Ray, empty; its pieces are `PiecesMissing` then, and are made again
from their checkpoint. A worker that does not come back gives its pieces to the others. What pieces
send is stored where it was made, and goes from there to whom it is for: the driver has references
alone. If that is lost together with its node, all pieces go back to the checkpoint.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from thresher.distributed.engine.executor import Executor, HostCalls, PiecesMoved
from thresher.distributed.engine.folder import CheckpointFolder
from thresher.distributed.engine.pieces import MessagesLost, Mode, PiecesMissing
from thresher.distributed.ray.cluster import Cluster, RemoteError, brief, imported
from thresher.distributed.ray.worker import Worker
from thresher.errors import ClusterError, Words, setting

_DEATHS = 3  # of one worker, in one and the same step
_START = 60.0  # seconds in which workers must start
_PAUSE = 0.2  # seconds between two looks at a worker that is lost


@dataclass
class PendingCall:
    """What a worker was asked to do, and for which entry of the work; None: to make pieces."""

    host: int
    entry: int | None
    packets: list[Any]  # references


class RayExecutor(Executor):
    """All pieces on the workers of a cluster.

    Parameters
    ----------
    mode, folder
        As of `Executor`.
    cluster : Cluster
    patience : float
        Seconds to wait for a worker that was lost, before its pieces move to the others.
    note : callable, optional
        Is told in words of workers that are lost; by default they are logged.
    """

    def __init__(
        self,
        mode: Mode,
        folder: CheckpointFolder | None,
        cluster: Cluster,
        patience: float = 60.0,
        note: Callable[[str], Any] | None = None,
    ) -> None:
        places = cluster.places(max(mode.parts, mode.ranges))
        super().__init__(mode, folder, len(places))
        cluster.check(folder.path if folder is not None else None)
        self.patience = patience
        if note is not None:
            self.note = note
        self._ray = imported()
        self._cluster = cluster
        cluster.holders += 1
        self._closed = False
        self._down: dict[int, float] = {}  # since when a worker does not answer
        self._deaths = [0] * len(places)  # since it last finished what it was asked for
        self._why = "none has started; are all processors of the cluster in use?"
        self._given = self._ray.put((mode, folder))
        affinity = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        self._workers = [
            self._ray.remote(Worker)
            .options(
                num_cpus=place.processors,
                max_restarts=-1,
                max_task_retries=0,  # a step that is taken again needs the one before
                scheduling_strategy=affinity(place.node, soft=True)
                if cluster.threaded
                else "SPREAD",
            )
            .remote(place.processors if cluster.threaded else 1, mode.ranges)
            for place in places
        ]
        try:
            self._gather()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all workers."""
        if not self._closed:
            self._closed = True
            self._cluster.holders -= 1
            for worker in self._workers:
                with contextlib.suppress(Exception):  # it may be dead, or the whole cluster
                    self._ray.kill(worker)

    def __enter__(self) -> RayExecutor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    # ---- calls ---------------------------------------------------------------------------------

    def _call(self, method: str, work: HostCalls) -> list[Any]:
        found: list[Any] = [None] * len(work)
        running: dict[Any, PendingCall] = {}
        later: dict[int, float] = {}  # entries to be tried again, and when
        for entry in range(len(work)):
            self._ask_for(running, method, work, entry)
        while running or later:
            for entry in [e for e, when in later.items() if when <= time.monotonic()]:
                del later[entry]
                self._ask_for(running, method, work, entry)
            for reference in self._answered(running, _PAUSE if self._down or later else None):
                call = running.pop(reference)
                try:
                    answer = self._ray.get(reference)
                except self._ray.exceptions.RayError as error:
                    self._lose(call.host, error)
                    if call.entry is not None:
                        later[call.entry] = time.monotonic() + _PAUSE
                    continue
                self._has_answered(call.host)
                if isinstance(answer, RemoteError):
                    if call.entry is None or not isinstance(answer.error, PiecesMissing):
                        raise answer.error
                    for making in self._again(answer.error):
                        running |= self._send(call.host, None, "make", making)
                    # A worker does one thing after the other, so this need not wait.
                    self._ask_for(running, method, work, call.entry)
                elif call.entry is not None:
                    self._deaths[call.host] = 0
                    found[call.entry] = _with_packets(method, answer, call.packets)
            self._retire_lost(self.patience)
        return found

    def _ask_for(
        self, running: dict[Any, PendingCall], method: str, work: HostCalls, entry: int
    ) -> None:
        host, arguments = work[entry]
        running |= self._send(host, entry, method, arguments)

    def _send(
        self, host: int, entry: int | None, method: str, arguments: tuple[Any, ...]
    ) -> dict[Any, PendingCall]:
        """Call a method of a worker; return the reference of its answer, and what it is for.

        References among the arguments are put at their end, where Ray looks for them: it sees to it
        that what they refer to is there when the call begins.
        """
        packets: dict[Any, int] = {}
        if method == "step":
            *first, by_number = arguments
            arguments = (*first, {n: _numbered(p, packets) for n, p in by_number.items()})
        elif method == "make":
            *first, since = arguments
            arguments = (self._given, *first, [(m, _numbered(p, packets)) for m, p in since])
        places = 0
        if method in ("step", "sent"):
            places = self.mode.ranges if arguments[0] == "part" else 1
        call = getattr(self._workers[host], method).options(num_returns=1 + places)
        given = call.remote(*arguments, *packets)
        answer, *sent = given if places else [given]
        return {answer: PendingCall(host, entry, sent)}

    def _answered(self, running: dict[Any, PendingCall], timeout: float | None) -> list[Any]:
        """Wait for answers; not for ever, where there are workers to be looked after."""
        if not running:
            time.sleep(_PAUSE)
            return []
        ready, rest = self._ray.wait(list(running), num_returns=1, timeout=timeout)
        if ready and rest:
            ready += self._ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        return list(ready)

    # ---- workers that are lost -----------------------------------------------------------------

    def _gather(self) -> None:
        """Wait for the workers to start; those that do not are done without."""
        began = time.monotonic()
        self._down = {host: began for host in range(len(self._workers))}
        running: dict[Any, PendingCall] = {}
        for host in self._down:
            running |= self._send(host, None, "hello", ())
        while self._down:
            for reference in self._answered(running, _PAUSE):
                call = running.pop(reference)
                try:
                    self._ray.get(reference)
                except self._ray.exceptions.RayError as error:
                    self._check_start(error)
                    self._why = brief(error)
                    running |= self._send(call.host, None, "hello", ())
                    time.sleep(_PAUSE)
                else:
                    self._down.pop(call.host, None)
            with contextlib.suppress(PiecesMoved):
                self._retire_lost(_START)

    def _lose(self, host: int, error: Exception) -> None:
        """Take note of a worker that could not answer. Raises what it cannot be mended by."""
        errors = self._ray.exceptions
        if isinstance(error, errors.ObjectLostError):
            raise MessagesLost from error
        gone = (
            errors.RayActorError,
            errors.NodeDiedError,
            errors.OutOfMemoryError,
            errors.WorkerCrashedError,
        )
        if not isinstance(error, gone):
            raise ClusterError(f"Ray failed: {brief(error)}", hint=self._resume()) from error
        self._check_start(error)
        self._why = brief(error)
        if host in self._down:
            return
        self._down[host] = time.monotonic()
        self._deaths[host] += 1
        if self._deaths[host] >= _DEATHS:
            raise ClusterError(
                f"worker {host} died {_DEATHS} times in the same step, which may need more memory "
                f"than there is: {self._why}",
                hint=self._resume(),
            ) from error
        self.note(f"worker {host} was lost; waiting for it ({self._why})")

    def _check_start(self, error: Exception) -> None:
        if getattr(error, "actor_init_failed", False):  # it would fail again
            raise ClusterError(f"a worker cannot be started: {brief(error)}") from error

    def _has_answered(self, host: int) -> None:
        if self._down.pop(host, None) is not None:
            self.note(f"worker {host} is back")

    def _retire_lost(self, patience: float) -> None:
        """Give pieces of workers that do not come back to the others. Raises Moved if any has."""
        now = time.monotonic()
        lost = [host for host, since in self._down.items() if now - since > patience]
        if not lost:
            return
        left = [b for b in range(len(self._workers)) if b not in lost and self._at_home(b)]
        if not left:
            raise ClusterError(
                f"no worker is left, and none came back within {patience:g} s: {self._why}",
                hint=self._resume(),
            )
        for host in lost:
            self.note(f"worker {host} did not come back; its pieces move to other workers")
            del self._down[host]
            with contextlib.suppress(Exception):
                self._ray.kill(self._workers[host])
            for homes in self.homes.values():
                for number in homes[host]:
                    min((homes[b] for b in left), key=len).append(number)
                homes[host] = []
        raise PiecesMoved

    def _at_home(self, host: int) -> bool:
        return any(homes[host] for homes in self.homes.values())

    def _resume(self) -> Words | None:
        if self._committed is None or self.folder is None:
            return None
        stage, path = self._committed.stage, self.folder.path
        return setting("resume", True), f" goes on from stage {stage}, in {path}"


def _numbered(references: Sequence[Any], numbers: dict[Any, int]) -> list[int]:
    """Return the numbers of references; those that have none yet get the next."""
    return [numbers.setdefault(reference, len(numbers)) for reference in references]


def _with_packets(method: str, answer: Any, packets: list[Any]) -> Any:
    """Return what `Host` would, with references to packets in their place."""
    if method == "step":
        done, any_sent = answer
        return done, packets if any_sent else []
    if method == "sent":
        return packets if answer else []
    return answer
