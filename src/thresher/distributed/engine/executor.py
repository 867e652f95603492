"""Executors: they assign pieces to hosts, call them for each step, and make lost pieces again."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from thresher.distributed.engine.folder import CheckpointFolder, CommittedStage
from thresher.distributed.engine.host import Host
from thresher.distributed.engine.messages import Message, Question, array_bytes
from thresher.distributed.engine.pieces import MessagesLost, Mode, PieceKind, PiecesMissing

_KINDS: tuple[PieceKind, PieceKind] = ("part", "range")
_MAX_KEPT = 1 << 30  # bytes of messages kept since a checkpoint

R = TypeVar("R")
HostCalls = list[tuple[int, tuple[Any, ...]]]  # for each call: the host and the arguments
SentPackets = list[list[Any]]  # by host, then by receiver: packets, or references to them


class PiecesMoved(Exception):
    """Pieces were assigned to other hosts."""


@dataclass
class StageCost:
    """What a stage has cost so far.

    Attributes
    ----------
    bytes : int
        Size of all arrays that pieces received, and of arrays in messages and replies.
    seconds : list of float
        Working time of each host.
    remade : list of (kind, number)
        Pieces that were lost and made again.
    """

    bytes: int = 0
    seconds: list[float] = field(default_factory=list)
    remade: list[tuple[PieceKind, int]] = field(default_factory=list)


class Executor(ABC):
    """All pieces of a mode, assigned to hosts.

    Parameters
    ----------
    mode : Mode
    folder : CheckpointFolder or None
        Without a folder, training starts from the beginning when a piece is lost.
    hosts : int
        Number of hosts. Pieces are assigned to them in turn.

    Attributes
    ----------
    note : callable
        Called with a text when something failed and was repaired; by default it is logged.
    """

    def __init__(self, mode: Mode, folder: CheckpointFolder | None, hosts: int) -> None:
        self.mode, self.folder = mode, folder
        self.assigned: dict[PieceKind, list[list[int]]] = {
            "part": [list(range(h, mode.parts, hosts)) for h in range(hosts)],
            "range": [list(range(h, mode.ranges, hosts)) for h in range(hosts)],
        }
        self.cost = StageCost(seconds=[0.0] * hosts)
        self.note: Callable[[str], Any] = logging.getLogger("thresher.distributed").warning
        self._steps: dict[PieceKind, int] = {"part": 0, "range": 0}
        self._since: dict[PieceKind, list[tuple[Message[Any], Any]]] = {"part": [], "range": []}
        self._unreceived: dict[PieceKind, SentPackets] = {"part": [], "range": []}  # by sender
        self._committed: CommittedStage | None = None
        self._kept_bytes: int | None = 0  # of messages since then; None: they are not kept

    # ---- for coordinators ------------------------------------------------------------------------

    def step_parts(self, message: Message[R]) -> list[R]:
        """Take all parts through a step, and return their replies, in the order of parts.

        Parts receive what ranges sent in their last step, if they have not received it yet.
        """
        return self._step("part", message)

    def step_ranges(self, message: Message[R]) -> list[R]:
        """Take all ranges through a step, and return their replies, in the order of ranges.

        Ranges receive what parts sent in their last step, if they have not received it yet.
        """
        return self._step("range", message)

    def ask_parts(self, question: Question[R]) -> list[R]:
        """Return the answers of all parts, in their order."""
        return self._ask("part", question)

    def ask_ranges(self, question: Question[R]) -> list[R]:
        """Return the answers of all ranges, in their order."""
        return self._ask("range", question)

    # ---- for the loop over stages ----------------------------------------------------------------

    def make_pieces(self, committed: CommittedStage | None) -> None:
        """Make all pieces: new ones, or as they were in a checkpoint."""
        self.forget_steps(committed)
        self._steps = {k: committed.steps[k] if committed else 0 for k in _KINDS}
        self._unreceived = {"part": [], "range": []}
        stage = committed.stage if committed else None
        for kind, step in self._steps.items():
            self._call_all("make", kind, stage, step, [])
        for kind in committed.unreceived if committed else []:
            found = self._call_all("sent", kind, self._steps[kind])
            self._unreceived[kind] = [packets for _, packets in found if packets]

    def write_states(self, stage: int) -> tuple[dict[PieceKind, int], list[PieceKind]]:
        """Write the states of all pieces.

        Returns the number of steps that each kind has taken, and the kinds that have sent arrays
        which were not received yet.
        """
        for kind, step in self._steps.items():
            self._call_all("write", kind, step, stage, bool(self._unreceived[kind]))
        return dict(self._steps), [kind for kind, sent in self._unreceived.items() if sent]

    def forget_steps(self, committed: CommittedStage | None) -> None:
        """Forget the steps before a committed checkpoint."""
        self._committed = committed
        self._since = {"part": [], "range": []}
        self._kept_bytes = None if self.folder is None else 0

    def limit_kept_steps(self) -> None:
        """Forget all steps if their messages have become too large to keep.

        When a piece is lost after that, all pieces go back to the checkpoint.
        """
        if self._kept_bytes is not None and self._kept_bytes > _MAX_KEPT:
            self._since, self._kept_bytes = {"part": [], "range": []}, None

    def close(self) -> None:  # noqa: B027
        """Release all pieces."""

    # ---- implementation --------------------------------------------------------------------------

    def _step(self, kind: PieceKind, message: Message[Any]) -> list[Any]:
        other: PieceKind = "range" if kind == "part" else "part"
        step, sent = self._steps[kind] + 1, self._unreceived[other]
        results = self._call_all("step", kind, step, message, sent=sent)
        replies: list[tuple[int, Any]] = []
        for host, (reply, _) in results:
            replies += reply.replies
            self.cost.seconds[host] += reply.seconds
            # The bundle of a range goes to every host that has parts.
            receivers = sum(map(bool, self.assigned["part"])) if kind == "range" else 1
            self.cost.bytes += reply.bytes * receivers
            self.cost.bytes += array_bytes(message) + sum(array_bytes(r) for _, r in reply.replies)
        self._steps[kind] = step
        self._unreceived[other] = []
        self._unreceived[kind] = [packets for _, (_, packets) in results if packets]
        if self._kept_bytes is not None:
            self._since[kind].append((message, sent))
            self._kept_bytes += sum(reply.bytes for _, (reply, _) in results)
            self._kept_bytes += array_bytes(message)
        return [reply for _, reply in sorted(replies, key=lambda entry: entry[0])]

    def _ask(self, kind: PieceKind, question: Question[Any]) -> list[Any]:
        found = self._call_all("ask", kind, self._steps[kind], question)
        answers = [entry for _, answers in found for entry in answers]
        return [answer for _, answer in sorted(answers, key=lambda entry: entry[0])]

    def _packets(
        self, kind: PieceKind, numbers: Sequence[int], sent: SentPackets
    ) -> dict[int, list[Any]]:
        """Return the packets that each of these pieces receives, by its number."""
        if kind == "part":  # all parts receive the same
            everything = [packets[0] for packets in sent]
            return dict.fromkeys(numbers, everything)
        return {number: [packets[number] for packets in sent] for number in numbers}

    def _call_all(
        self, method: str, kind: PieceKind, *arguments: Any, sent: SentPackets | None = None
    ) -> list[tuple[int, Any]]:
        """Call a method of `Host` for all pieces of a kind; return each host's result.

        Each piece gets its share of `sent`, as the last argument. Every method can be called
        twice: a piece that has already done it returns the same result again.
        """
        while True:
            calls: HostCalls = []
            for host, numbers in enumerate(self.assigned[kind]):
                if numbers:
                    packets = [] if sent is None else [self._packets(kind, numbers, sent)]
                    calls.append((host, (kind, list(numbers), *arguments, *packets)))
            try:
                results = self._call(method, calls)
            except PiecesMoved:
                continue
            return [(host, result) for (host, _), result in zip(calls, results, strict=True)]

    def _make_again(self, missing: PiecesMissing) -> list[tuple[Any, ...]]:
        """Return the arguments of `Host.make` that bring lost pieces up to date."""
        kind = missing.kind
        before = self._committed.steps[kind] if self._committed else 0
        since = self._since[kind]
        if self._steps[kind] != before + len(since):  # steps are not kept
            raise MessagesLost
        stage = self._committed.stage if self._committed else None
        self.cost.remade += [(kind, number) for number in missing.numbers]
        return [
            (kind, [n], stage, before, [(m, self._packets(kind, [n], s)[n]) for m, s in since])
            for n in missing.numbers
        ]

    @abstractmethod
    def _call(self, method: str, calls: HostCalls) -> list[Any]:
        """Call a method of `Host` on several hosts at once, and return their results.

        Pieces that a host reports as `PiecesMissing` are made again. Raises MessagesLost if that is
        impossible, because arrays sent to them are lost. Raises PiecesMoved if pieces were assigned
        to other hosts.
        """


class InProcessExecutor(Executor):
    """All pieces in this process, without a cluster.

    Parameters
    ----------
    mode, folder
        As for `Executor`.
    hosts : int
        Number of hosts, which work one after the other.
    threads : int
    """

    def __init__(
        self, mode: Mode, folder: CheckpointFolder | None, hosts: int = 1, threads: int = 1
    ) -> None:
        super().__init__(mode, folder, hosts)
        self.hosts = [Host(mode, folder, threads) for _ in range(hosts)]

    def _call(self, method: str, calls: HostCalls) -> list[Any]:
        found = []
        for number, arguments in calls:
            host = self.hosts[number]
            while True:
                try:
                    found.append(getattr(host, method)(*arguments))
                    break
                except PiecesMissing as missing:
                    for making in self._make_again(missing):
                        host.make(*making)
        return found
