"""The driver's view of all pieces: steps, questions, checkpoints, and pieces that must catch up."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from thresher.distributed.engine.folder import CheckpointFolder, CommittedStage
from thresher.distributed.engine.host import Host
from thresher.distributed.engine.pieces import MessagesLost, Mode, PieceKind, PiecesMissing

_KINDS: tuple[PieceKind, PieceKind] = ("part", "range")
_KEPT = 1 << 30  # bytes of steps since a checkpoint

HostCalls = list[tuple[int, tuple[Any, ...]]]  # for hosts: which, and with what arguments
Sent = list[list[Any]]  # by host, then by place: packets, or references to them


class PiecesMoved(Exception):
    """Pieces have got another home."""


@dataclass
class StageCost:
    """What a stage has cost so far.

    Attributes
    ----------
    bytes : int
        Of arrays that pieces sent, as often as they were received; and those that the driver was
        told, or told them.
    seconds : list of float
        That each host has worked.
    remade : list of (kind, number)
        Pieces that were lost and made again.
    """

    bytes: int = 0
    seconds: list[float] = field(default_factory=list)
    remade: list[tuple[PieceKind, int]] = field(default_factory=list)


class Executor(ABC):
    """All pieces of a mode, on hosts.

    Parameters
    ----------
    mode : Mode
    folder : CheckpointFolder or None
        Of checkpoints; without one, lost pieces begin the whole task again.
    hosts : int
        Pieces are dealt out to so many.

    Attributes
    ----------
    note : callable
        Is told in words of what went wrong and was mended; a logger's, by default.
    """

    def __init__(self, mode: Mode, folder: CheckpointFolder | None, hosts: int) -> None:
        self.mode, self.folder = mode, folder
        self.homes: dict[PieceKind, list[list[int]]] = {
            "part": [list(range(b, mode.parts, hosts)) for b in range(hosts)],
            "range": [list(range(b, mode.ranges, hosts)) for b in range(hosts)],
        }
        self.account = StageCost(seconds=[0.0] * hosts)
        self.note: Callable[[str], Any] = logging.getLogger("thresher.distributed").warning
        self._steps: dict[PieceKind, int] = {"part": 0, "range": 0}
        self._since: dict[PieceKind, list[tuple[dict[str, Any], Any]]] = {"part": [], "range": []}
        self._mail: dict[PieceKind, Sent] = {
            "part": [],
            "range": [],
        }  # sent by these, not yet received
        self._committed: CommittedStage | None = None
        self._kept: int | None = 0  # bytes of steps since then; None: they are not kept

    # ---- what a lead asks for ------------------------------------------------------------------

    def parts(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """Let all parts take a step, and return what they tell, in their order.

        They get what ranges have sent in their last step, where they have not got it yet.
        """
        return self._step("part", message)

    def ranges(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """Let all ranges take a step, and return what they tell, in their order.

        They get what parts have sent in their last step, where they have not got it yet.
        """
        return self._step("range", message)

    def ask_parts(self, question: dict[str, Any]) -> list[Any]:
        """Return the answers of all parts, in their order."""
        return self._ask("part", question)

    def ask_ranges(self, question: dict[str, Any]) -> list[Any]:
        """Return the answers of all ranges, in their order."""
        return self._ask("range", question)

    # ---- what the driver asks for --------------------------------------------------------------

    def begin(self, committed: CommittedStage | None) -> None:
        """Make all pieces: anew, or as they were in a checkpoint."""
        self.let_go(committed)
        self._steps = {k: committed.steps[k] if committed else 0 for k in _KINDS}
        self._mail = {"part": [], "range": []}
        stage = committed.stage if committed else None
        for kind, step in self._steps.items():
            self._all("make", kind, stage, step, [])
        for kind in committed.mail if committed else []:
            found = self._all("sent", kind, self._steps[kind])
            self._mail[kind] = [places for _, places in found if places]

    def write(self, stage: int) -> tuple[dict[PieceKind, int], list[PieceKind]]:
        """Write the states of all pieces.

        Returns the steps that the kinds have taken, and which of them have sent what was not
        received yet.
        """
        for kind, step in self._steps.items():
            kept = bool(self._mail[kind])
            self._all("write", kind, step, stage, kept)
        return dict(self._steps.items()), [kind for kind, sent in self._mail.items() if sent]

    def let_go(self, committed: CommittedStage | None) -> None:
        """Forget the steps before a checkpoint that counts."""
        self._committed = committed
        self._since = {"part": [], "range": []}
        self._kept = None if self.folder is None else 0

    def bound(self) -> None:
        """Forget all steps where they have become too much to keep.

        A piece that is lost then takes all others back to the checkpoint.
        """
        if self._kept is not None and self._kept > _KEPT:
            self._since, self._kept = {"part": [], "range": []}, None

    def close(self) -> None:  # noqa: B027
        """Let all pieces go."""

    # ---- how -----------------------------------------------------------------------------------

    def _step(self, kind: PieceKind, message: dict[str, Any]) -> list[dict[str, Any]]:
        other: PieceKind = "range" if kind == "part" else "part"
        step, sent = self._steps[kind] + 1, self._mail[other]
        results = self._all("step", kind, step, message, sent=sent)
        told: list[tuple[int, dict[str, Any]]] = []
        for host, (done, _) in results:
            told += done.told
            self.account.seconds[host] += done.seconds
            # A range's one bundle goes to every host that has parts.
            receivers = sum(map(bool, self.homes["part"])) if kind == "range" else 1
            self.account.bytes += done.bytes * receivers
            self.account.bytes += _bytes_of(message) + sum(_bytes_of(f) for _, f in done.told)
        self._steps[kind] = step
        self._mail[other] = []
        self._mail[kind] = [places for _, (_, places) in results if places]
        if self._kept is not None:
            self._since[kind].append((message, sent))
            self._kept += sum(done.bytes for _, (done, _) in results)
            self._kept += _bytes_of(message)
        return [facts for _, facts in sorted(told, key=lambda entry: entry[0])]

    def _ask(self, kind: PieceKind, question: dict[str, Any]) -> list[Any]:
        found = self._all("ask", kind, self._steps[kind], question)
        answers = [entry for _, answers in found for entry in answers]
        return [answer for _, answer in sorted(answers, key=lambda entry: entry[0])]

    def _packets(self, kind: PieceKind, numbers: Sequence[int], sent: Sent) -> dict[int, list[Any]]:
        """Return what each of these pieces is to be given, by its number."""
        if kind == "part":  # all get the same
            everything = [places[0] for places in sent]
            return dict.fromkeys(numbers, everything)
        return {number: [places[number] for places in sent] for number in numbers}

    def _all(
        self, method: str, kind: PieceKind, *arguments: Any, sent: Sent | None = None
    ) -> list[tuple[int, Any]]:
        """Call a method of `Host` for all pieces of a kind; return what each host returns.

        `sent` is given to the pieces it is for, as the last argument. Every method can be called
        twice: a piece that has done it gives the same answer again.
        """
        while True:
            work: HostCalls = []
            for host, numbers in enumerate(self.homes[kind]):
                if numbers:
                    mail = [] if sent is None else [self._packets(kind, numbers, sent)]
                    work.append((host, (kind, list(numbers), *arguments, *mail)))
            try:
                results = self._call(method, work)
            except PiecesMoved:
                continue
            return [(host, result) for (host, _), result in zip(work, results, strict=True)]

    def _again(self, behind: PiecesMissing) -> list[tuple[Any, ...]]:
        """Return what `Host.make` is to be told, so that pieces which were lost catch up."""
        kind = behind.kind
        before = self._committed.steps[kind] if self._committed else 0
        since = self._since[kind]
        if self._steps[kind] != before + len(since):  # steps are not kept
            raise MessagesLost
        stage = self._committed.stage if self._committed else None
        self.account.remade += [(kind, number) for number in behind.numbers]
        return [
            (kind, [n], stage, before, [(m, self._packets(kind, [n], s)[n]) for m, s in since])
            for n in behind.numbers
        ]

    @abstractmethod
    def _call(self, method: str, work: HostCalls) -> list[Any]:
        """Call a method of `Host` on hosts, all at once, and return what they return.

        Pieces that are `PiecesMissing` are made again. Raises Lost where they cannot be, because what was
        sent to them is gone; Moved where pieces have got another home meanwhile.
        """


def _bytes_of(facts: dict[str, Any]) -> int:
    """Return the bytes of arrays, which are all that may be large, in a message."""
    return sum(getattr(value, "nbytes", 0) for value in facts.values())


class InProcessExecutor(Executor):
    """All pieces in this process, without a cluster.

    Parameters
    ----------
    mode, folder
        As of `Executor`.
    hosts : int
        Pieces are dealt out to so many, as to workers; one after the other they work all the same.
    threads : int
    """

    def __init__(
        self, mode: Mode, folder: CheckpointFolder | None, hosts: int = 1, threads: int = 1
    ) -> None:
        super().__init__(mode, folder, hosts)
        self.hosts = [Host(mode, folder, threads) for _ in range(hosts)]

    def _call(self, method: str, work: HostCalls) -> list[Any]:
        found = []
        for number, arguments in work:
            host = self.hosts[number]
            while True:
                try:
                    found.append(getattr(host, method)(*arguments))
                    break
                except PiecesMissing as behind:
                    for making in self._again(behind):
                        host.make(*making)
        return found
