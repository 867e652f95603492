"""A worker of a Ray cluster: a host of pieces, which may be lost with all its pieces."""

from __future__ import annotations

import os
from typing import Any

from thresher.distributed.engine.folder import CheckpointFolder
from thresher.distributed.engine.host import Host
from thresher.distributed.engine.messages import Message
from thresher.distributed.engine.pieces import Mode, Packet, PieceKind, PiecesMissing
from thresher.distributed.ray.cluster import as_result


class Worker:
    """A host as a Ray actor. It returns errors as results, and each packet as an object.

    Parameters
    ----------
    threads : int
    ranges : int
        Number of ranges: a part sends one packet to each.
    """

    def __init__(self, threads: int, ranges: int) -> None:
        self._threads, self._ranges = threads, ranges
        self._host: Host | None = None  # until the first call of `make`

    def hello(self) -> int:
        """Return the process id: the worker has started."""
        return os.getpid()

    def step(
        self,
        kind: PieceKind,
        numbers: list[int],
        step: int,
        message: Message[Any],
        packets: dict[int, list[int]],
        *objects: Packet,
    ) -> Any:
        """Take pieces through a step.

        `packets` says, for each piece, which of the `objects` it receives. Returns the host's
        reply, whether the pieces sent anything, and the packets that they sent.
        """
        given = {number: [objects[i] for i in found] for number, found in packets.items()}
        try:
            reply, sent = self._host_of(kind, numbers).step(kind, numbers, step, message, given)
        except Exception as error:
            return self._returned(kind, as_result(error), [])
        return self._returned(kind, (reply, bool(sent)), sent)

    def sent(self, kind: PieceKind, numbers: list[int], step: int) -> Any:
        """Return whether pieces had sent packets before a checkpoint, and these packets."""
        try:
            sent = self._host_of(kind, numbers).sent(kind, numbers, step)
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
        since: list[tuple[Message[Any], list[int]]],
        *objects: Packet,
    ) -> Any:
        """Make pieces. `given` is needed in the first call only."""
        taken = [(message, [objects[i] for i in found]) for message, found in since]
        try:
            if self._host is None:
                self._host = Host(*given, self._threads)
            self._host.make(kind, numbers, stage, steps, taken)
        except Exception as error:
            return as_result(error)
        return None

    def ask(self, kind: PieceKind, numbers: list[int], *arguments: Any) -> Any:
        """Return the pieces' answers to a question."""
        try:
            return self._host_of(kind, numbers).ask(kind, numbers, *arguments)
        except Exception as error:
            return as_result(error)

    def write(self, kind: PieceKind, numbers: list[int], *arguments: Any) -> Any:
        """Write the states of pieces."""
        try:
            return self._host_of(kind, numbers).write(kind, numbers, *arguments)
        except Exception as error:
            return as_result(error)

    def _host_of(self, kind: PieceKind, numbers: list[int]) -> Host:
        if self._host is None:
            raise PiecesMissing(kind, numbers)
        return self._host

    def _returned(self, kind: PieceKind, answer: Any, sent: list[Packet]) -> tuple[Any, ...]:
        """Return an answer and the packets; None for each packet if nothing was sent."""
        nothing = [None] * (self._ranges if kind == "part" else 1)
        return (answer, *sent) if sent else (answer, *nothing)
