"""What a worker of a Ray cluster does: a host, which can be lost with all that is on it."""

from __future__ import annotations

import os
from typing import Any

from thresher.distributed.engine.folder import CheckpointFolder
from thresher.distributed.engine.host import Host
from thresher.distributed.engine.pieces import Mode, Packet, PieceKind, PiecesMissing
from thresher.distributed.ray.cluster import as_result


class Worker:
    """A host, as an actor: errors are results, and packets are objects of their own.

    Parameters
    ----------
    threads : int
    ranges : int
        Places that a part sends to.
    """

    def __init__(self, threads: int, ranges: int) -> None:
        self._threads, self._ranges = threads, ranges
        self._bench: Host | None = None  # until it is told what to make

    def hello(self) -> int:
        """Say that it is there: return the process id."""
        return os.getpid()

    def step(
        self,
        kind: PieceKind,
        numbers: list[int],
        step: int,
        message: dict[str, Any],
        packets: dict[int, list[int]],
        *objects: Packet,
    ) -> Any:
        """Let pieces take a step; packets that they get are among the objects.

        Returns what is known of it, with whether anything was sent, and packets of that.
        """
        given = {number: [objects[i] for i in found] for number, found in packets.items()}
        try:
            done, sent = self._at(kind, numbers).step(kind, numbers, step, message, given)
        except Exception as error:
            return self._returned(kind, as_result(error), [])
        return self._returned(kind, (done, bool(sent)), sent)

    def sent(self, kind: PieceKind, numbers: list[int], step: int) -> Any:
        """Return whether pieces had sent anything before a checkpoint, and packets of it."""
        try:
            sent = self._at(kind, numbers).sent(kind, numbers, step)
        except Exception as error:
            return self._returned(kind, as_result(error), [])
        return self._returned(kind, bool(sent), sent)

    def make(
        self,
        given: tuple[Mode, CheckpointFolder | None],
        kind: PieceKind,
        numbers: list[int],
        stage: int | None,
        steps: int,
        since: list[tuple[dict[str, Any], list[int]]],
        *objects: Packet,
    ) -> Any:
        """Make pieces, after which it has all that the mode gives."""
        taken = [(message, [objects[i] for i in found]) for message, found in since]
        try:
            if self._bench is None:
                self._bench = Host(*given, self._threads)
            self._bench.make(kind, numbers, stage, steps, taken)
        except Exception as error:
            return as_result(error)
        return None

    def ask(self, kind: PieceKind, numbers: list[int], *arguments: Any) -> Any:
        """Let pieces answer a question."""
        try:
            return self._at(kind, numbers).ask(kind, numbers, *arguments)
        except Exception as error:
            return as_result(error)

    def write(self, kind: PieceKind, numbers: list[int], *arguments: Any) -> Any:
        """Write the states of pieces."""
        try:
            return self._at(kind, numbers).write(kind, numbers, *arguments)
        except Exception as error:
            return as_result(error)

    def _at(self, kind: PieceKind, numbers: list[int]) -> Host:
        if self._bench is None:
            raise PiecesMissing(kind, numbers)
        return self._bench

    def _returned(self, kind: PieceKind, answer: Any, sent: list[Packet]) -> tuple[Any, ...]:
        """Return an answer and packets; where nothing was sent, so many times nothing."""
        nothing = [None] * (self._ranges if kind == "part" else 1)
        return (answer, *sent) if sent else (answer, *nothing)
