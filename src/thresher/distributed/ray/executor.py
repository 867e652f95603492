"""Pieces on the workers of a Ray cluster, any of which may be lost at any time.

Ray restarts a worker that died. The new process has no pieces: the worker reports them as
`PiecesMissing`, and they are made again from their checkpoint. If a worker does not come back, its
pieces are assigned to the others. Arrays that pieces send are stored on the node of the sender, and
go directly to the receiver: the driver has only references. If a node is lost with its arrays, all
pieces go back to the checkpoint.
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
from thresher.distributed.ray.helpers import first_ended
from thresher.distributed.ray.worker import Worker
from thresher.errors import ClusterError, Words, setting

_DEATHS = 3  # of one worker in the same step
_START_SECONDS = 60.0  # in which workers must start
_PAUSE = 0.2  # seconds between two checks of a lost worker
_CHECK = 2.0  # seconds between two checks of Ray's own processes


@dataclass
class PendingCall:
    """A call of a worker that has not returned yet.

    `index` is the position of the call in `HostCalls`; None if the call makes pieces again.
    `packets` are references.
    """

    host: int
    index: int | None
    packets: list[Any]


class RayExecutor(Executor):
    """All pieces on the workers of a cluster.

    Parameters
    ----------
    mode, folder
        As for `Executor`.
    cluster : Cluster
    patience : float
        Seconds to wait for a lost worker before its pieces are assigned to other workers.
    note : callable, optional
        Called with a text when a worker is lost; by default it is logged.
    """

    def __init__(
        self,
        mode: Mode,
        folder: CheckpointFolder | None,
        cluster: Cluster,
        patience: float = 60.0,
        note: Callable[[str], Any] | None = None,
    ) -> None:
        slots = cluster.worker_slots(max(mode.parts, mode.ranges))
        super().__init__(mode, folder, len(slots))
        cluster.check(folder.path if folder is not None else None)
        self.patience = patience
        if note is not None:
            self.note = note
        self._ray = imported()
        self._cluster = cluster
        cluster.executors += 1
        self._closed = False
        self._down: dict[int, float] = {}  # workers that do not answer, with the time since when
        self._deaths = [0] * len(slots)  # of each worker, since its last finished call
        self._why = "none has started; are all processors of the cluster in use?"
        self._given = self._ray.put((mode, folder))
        affinity = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        self._workers = [
            self._ray.remote(Worker)
            .options(
                num_cpus=slot.processors,
                max_restarts=-1,
                max_task_retries=0,  # a new process must make its pieces before a step
                scheduling_strategy=affinity(slot.node, soft=True)
                if cluster.threaded
                else "SPREAD",
            )
            .remote(slot.processors if cluster.threaded else 1, mode.ranges)
            for slot in slots
        ]
        try:
            self._wait_for_start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all workers."""
        if not self._closed:
            self._closed = True
            self._cluster.executors -= 1
            for worker in self._workers:
                with contextlib.suppress(Exception):  # the worker or the cluster may be dead
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

    # ---- calls -----------------------------------------------------------------------------------

    def _call(self, method: str, calls: HostCalls) -> list[Any]:
        found: list[Any] = [None] * len(calls)
        running: dict[Any, PendingCall] = {}
        later: dict[int, float] = {}  # indices of calls to repeat, and when
        for index in range(len(calls)):
            self._start(running, method, calls, index)
        while running or later:
            for index in [i for i, when in later.items() if when <= time.monotonic()]:
                del later[index]
                self._start(running, method, calls, index)
            for reference in self._finished(running, _PAUSE if self._down or later else None):
                call = running.pop(reference)
                try:
                    answer = self._ray.get(reference)
                except self._ray.exceptions.RayError as error:
                    self._lose(call.host, error)
                    if call.index is not None:
                        later[call.index] = time.monotonic() + _PAUSE
                    continue
                self._has_answered(call.host)
                if isinstance(answer, RemoteError):
                    if call.index is None or not isinstance(answer.error, PiecesMissing):
                        raise answer.error
                    for making in self._make_again(answer.error):
                        running |= self._send(call.host, None, "make", making)
                    # A worker handles its calls in order, so this one can be sent at once.
                    self._start(running, method, calls, call.index)
                elif call.index is not None:
                    self._deaths[call.host] = 0
                    found[call.index] = _with_packets(method, answer, call.packets)
            self._retire_lost(self.patience)
        return found

    def _start(
        self, running: dict[Any, PendingCall], method: str, calls: HostCalls, index: int
    ) -> None:
        host, arguments = calls[index]
        running |= self._send(host, index, method, arguments)

    def _send(
        self, host: int, index: int | None, method: str, arguments: tuple[Any, ...]
    ) -> dict[Any, PendingCall]:
        """Call a method of a worker; return the reference to its answer, and the call.

        References to packets become arguments of their own, at the end. Ray replaces such
        arguments by their objects, and starts the call when all of them are on the worker's node.
        """
        packets: dict[Any, int] = {}
        if method == "step":
            *first, by_number = arguments
            arguments = (*first, {n: _numbered(p, packets) for n, p in by_number.items()})
        elif method == "make":
            *first, since = arguments
            arguments = (self._given, *first, [(m, _numbered(p, packets)) for m, p in since])
        receivers = 0
        if method in ("step", "sent"):
            receivers = self.mode.ranges if arguments[0] == "part" else 1
        call = getattr(self._workers[host], method).options(num_returns=1 + receivers)
        given = call.remote(*arguments, *packets)
        answer, *sent = given if receivers else [given]
        return {answer: PendingCall(host, index, sent)}

    def _finished(self, running: dict[Any, PendingCall], timeout: float | None) -> list[Any]:
        """Wait until calls return, or until the timeout; return their references."""
        self._check_helpers()
        if not running:
            time.sleep(_PAUSE)
            return []
        timeout = _CHECK if timeout is None else timeout
        ready, rest = self._ray.wait(list(running), num_returns=1, timeout=timeout)
        if ready and rest:
            ready += self._ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        return list(ready)

    def _check_helpers(self) -> None:
        """Raise ClusterError if Ray has lost a process of its own; soon it ends this one."""
        if (lost := first_ended(self._cluster.helpers)) is not None:
            raise ClusterError(
                f"Ray's process {lost} has ended on this machine, for example because there was "
                "too little memory",
                hint=self._resume(),
            )

    # ---- lost workers ----------------------------------------------------------------------------

    def _wait_for_start(self) -> None:
        """Wait until all workers have started; continue without those that do not start in time."""
        began = time.monotonic()
        self._down = {host: began for host in range(len(self._workers))}
        running: dict[Any, PendingCall] = {}
        for host in self._down:
            running |= self._send(host, None, "hello", ())
        while self._down:
            for reference in self._finished(running, _PAUSE):
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
                self._retire_lost(_START_SECONDS)

    def _lose(self, host: int, error: Exception) -> None:
        """Record that a worker did not answer. Raises an error if waiting for it is useless."""
        errors = self._ray.exceptions
        if isinstance(error, errors.ObjectLostError):
            raise MessagesLost from error
        died = (
            errors.RayActorError,
            errors.NodeDiedError,
            errors.OutOfMemoryError,
            errors.WorkerCrashedError,
        )
        if not isinstance(error, died):
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
        """Assign pieces of workers that did not come back to others, and raise PiecesMoved then."""
        now = time.monotonic()
        lost = [host for host, since in self._down.items() if now - since > patience]
        if not lost:
            return
        left = [h for h in range(len(self._workers)) if h not in lost and self._has_pieces(h)]
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
            for assigned in self.assigned.values():
                for number in assigned[host]:
                    min((assigned[h] for h in left), key=len).append(number)
                assigned[host] = []
        raise PiecesMoved

    def _has_pieces(self, host: int) -> bool:
        return any(assigned[host] for assigned in self.assigned.values())

    def _resume(self) -> Words | None:
        if self._committed is None or self.folder is None:
            return None
        stage, path = self._committed.stage, self.folder.path
        return setting("resume", True), f" continues from stage {stage}, in {path}"


def _numbered(references: Sequence[Any], numbers: dict[Any, int]) -> list[int]:
    """Return the index of each reference in `numbers`; new references are added to it."""
    return [numbers.setdefault(reference, len(numbers)) for reference in references]


def _with_packets(method: str, answer: Any, packets: list[Any]) -> Any:
    """Return what `Host` would return, with references instead of packets."""
    if method == "step":
        reply, any_sent = answer
        return reply, packets if any_sent else []
    if method == "sent":
        return packets if answer else []
    return answer
