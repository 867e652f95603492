"""The pieces of one process: a worker of a cluster, or the driver's own process."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.distributed.engine.folder import CheckpointFolder
from thresher.distributed.engine.messages import Message, Question
from thresher.distributed.engine.pieces import (
    Arrays,
    Mode,
    Packet,
    Piece,
    PieceKind,
    PiecesMissing,
    StepResult,
)

# Names of arrays in a checkpoint file: the piece's state, the bundles that it sent and that were
# not received yet, and the number of these bundles.
STATE_PREFIX, _SENT, _BUNDLES = "state:", "sent:", "places"


@dataclass
class HeldPiece:
    """A piece, the number of steps it has taken, and the result of the last one."""

    piece: Piece
    steps: int
    result: StepResult | None = None


@dataclass
class HostReply:
    """The replies of the pieces of one host in a step, and what the step cost.

    Attributes
    ----------
    replies : list of (number, reply)
        By the numbers of pieces.
    seconds : float
    bytes : int
        Size of the arrays that were sent.
    """

    replies: list[tuple[int, Any]]
    seconds: float
    bytes: int


class Host:
    """Pieces in one process.

    Parameters
    ----------
    mode : Mode
    folder : CheckpointFolder or None
    threads : int
        Threads for a step of a piece that can use them.
    """

    def __init__(self, mode: Mode, folder: CheckpointFolder | None, threads: int = 1) -> None:
        self.mode, self.folder, self.threads = mode, folder, threads
        self.shared: dict[str, Any] = {}
        self._held: dict[tuple[PieceKind, int], HeldPiece] = {}

    def step(
        self,
        kind: PieceKind,
        numbers: Sequence[int],
        step: int,
        message: Message[Any],
        packets: Mapping[int, Sequence[Packet]],
    ) -> tuple[HostReply, list[Packet]]:
        """Take pieces through the step with this number; return their replies and their arrays.

        `packets` has the arrays that each piece receives, by its number. A piece that has already
        taken this step, because its reply was lost, returns the same reply again. Raises
        PiecesMissing, before any change, if pieces are missing or have missed earlier steps.
        """
        self._check(kind, [n for n in numbers if not self._is_ready(kind, n, step)])
        began = time.perf_counter()
        replies: list[tuple[int, Any]] = []
        for number in numbers:
            held = self._held[kind, number]
            if held.steps < step:
                self._take_step(kind, held, step, message, packets[number])
            assert held.result is not None
            replies.append((number, held.result.reply))
        sent = self._packets(kind, numbers)
        if kind == "part":
            sent = [self.mode.combined(message, packet) for packet in sent]
        size = sum(array.nbytes for p in sent for _, arrays in p for array in arrays.values())
        return HostReply(replies, time.perf_counter() - began, size), sent

    def ask(
        self, kind: PieceKind, numbers: Sequence[int], step: int, question: Question[Any]
    ) -> list[tuple[int, Any]]:
        """Return the answers of pieces that have taken the step with this number."""
        self._check(kind, [n for n in numbers if not self._is_at(kind, n, step)])
        return [(n, self._held[kind, n].piece.answer(question)) for n in numbers]

    def write(
        self, kind: PieceKind, numbers: Sequence[int], step: int, stage: int, with_sent: bool
    ) -> int:
        """Write the states of pieces that have taken the step with this number; return the bytes.

        `with_sent`: also write the arrays that they have sent, which were not received yet.
        """
        assert self.folder is not None
        self._check(kind, [n for n in numbers if not self._is_at(kind, n, step)])
        written = 0
        for number in numbers:
            held = self._held[kind, number]
            state = held.piece.state()
            content = {f"{STATE_PREFIX}{name}": array for name, array in state.items()}
            if with_sent and held.result is not None:
                content[_BUNDLES] = np.array([len(held.result.sent)])
                for place, arrays in enumerate(held.result.sent):
                    content |= {f"{_SENT}{place}:{name}": a for name, a in arrays.items()}
            written += self.folder.write(kind, number, stage, content)
        return written

    def sent(self, kind: PieceKind, numbers: Sequence[int], step: int) -> list[Packet]:
        """Return the arrays that restored pieces had sent before their checkpoint."""
        self._check(kind, [n for n in numbers if not self._is_at(kind, n, step)])
        return self._packets(kind, numbers)

    def make(
        self,
        kind: PieceKind,
        numbers: Sequence[int],
        stage: int | None,
        steps: int,
        since: Sequence[tuple[Message[Any], Sequence[Packet]]] = (),
    ) -> None:
        """Make pieces: new ones, or as they were after the stage of a checkpoint.

        Parameters
        ----------
        kind, numbers
        stage : int or None
            Stage of the checkpoint.
        steps : int
            Number of steps that the pieces had taken then.
        since : sequence of (message, packets)
            Steps to take again after that.
        """
        for number in numbers:
            made = (
                self.mode.part(number, self.threads, self.shared)
                if kind == "part"
                else self.mode.range(number, self.shared)
            )
            held = HeldPiece(made, steps)
            if stage is not None:
                assert self.folder is not None
                content = self.folder.read(kind, number, stage)
                made.restore(saved_state(content))
                held.result = StepResult(sent=_saved_bundles(content))
            for message, packets in since:
                self._take_step(kind, held, held.steps + 1, message, packets)
            self._held[kind, number] = held

    def _take_step(
        self,
        kind: PieceKind,
        held: HeldPiece,
        step: int,
        message: Message[Any],
        packets: Sequence[Packet],
    ) -> None:
        held.result = None
        held.steps = -1  # after an error in the middle of a step, the state cannot be used
        result = held.piece.step(message, _received(packets))
        allowed = self.mode.ranges if kind == "part" else 1
        if len(result.sent) not in (0, allowed):
            raise ValueError(f"a {kind} sends {allowed} bundles or none, not {len(result.sent)}")
        held.result, held.steps = result, step

    def _packets(self, kind: PieceKind, numbers: Sequence[int]) -> list[Packet]:
        """Return one packet for each receiver; an empty list if no piece has sent anything."""
        packets: list[Packet] = []
        for number in numbers:
            result = self._held[kind, number].result
            for place, arrays in enumerate(result.sent if result is not None else []):
                if place == len(packets):
                    packets.append([])
                packets[place].append((number, arrays))
        return packets

    @staticmethod
    def _check(kind: PieceKind, missing: list[int]) -> None:
        if missing:
            raise PiecesMissing(kind, missing)

    def _is_at(self, kind: PieceKind, number: int, step: int) -> bool:
        return (kind, number) in self._held and self._held[kind, number].steps == step

    def _is_ready(self, kind: PieceKind, number: int, step: int) -> bool:
        repeated = self._is_at(kind, number, step) and self._held[kind, number].result is not None
        return repeated or self._is_at(kind, number, step - 1)


def saved_state(content: Arrays) -> Arrays:
    """Return the piece's state from the content of a checkpoint file."""
    return {
        name.removeprefix(STATE_PREFIX): array
        for name, array in content.items()
        if name.startswith(STATE_PREFIX)
    }


def _saved_bundles(content: Arrays) -> list[Arrays]:
    """Return the bundles from the content of a checkpoint file, in the order of receivers."""
    count = int(content[_BUNDLES][0]) if _BUNDLES in content else 0
    found: list[Arrays] = [{} for _ in range(count)]
    for key, array in content.items():
        if key.startswith(_SENT):
            place, _, name = key.removeprefix(_SENT).partition(":")
            found[int(place)][name] = array
    return found


def _received(packets: Sequence[Packet]) -> list[Arrays]:
    """Return the bundles in the order of their senders' numbers, from all hosts.

    They are read-only, like arrays from another process. So a piece that writes into them fails in
    one process, too.
    """
    bundles = sorted((entry for packet in packets for entry in packet), key=lambda entry: entry[0])
    return [{name: _read_only(array) for name, array in arrays.items()} for _, arrays in bundles]


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
