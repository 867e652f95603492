"""Where pieces work: those of one process. The same on a cluster and without one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.distributed.engine.folder import CheckpointFolder
from thresher.distributed.engine.pieces import (
    Arrays,
    Mode,
    Packet,
    Piece,
    PieceKind,
    PiecesMissing,
    StepResult,
)

# Names of arrays in a checkpoint: of a state, of what was sent, and how many places it was sent to.
_STATE, _SENT, _PLACES = "state:", "sent:", "places"


@dataclass
class HeldPiece:
    piece: Piece
    steps: int  # that it has taken
    outcome: StepResult | None = None  # of the last one


@dataclass
class HostReply:
    """What the pieces of a host told in a step, and how it went.

    Attributes
    ----------
    told : list of (number, dict)
    seconds : float
    bytes : int
        Of arrays that were sent.
    """

    told: list[tuple[int, dict[str, Any]]]
    seconds: float
    bytes: int


class Host:
    """Pieces in one process.

    Parameters
    ----------
    mode : Mode
    folder : CheckpointFolder or None
        Of checkpoints.
    threads : int
        For each step of a piece that can use them.
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
        message: dict[str, Any],
        packets: Mapping[int, Sequence[Packet]],
    ) -> tuple[HostReply, list[Packet]]:
        """Let pieces take the step of this number; return what they tell, and what they send.

        `packets` are what was sent to each piece, by its number.
        A piece that has taken it already, and whose answer was lost, gives the same answer again.
        Raises Behind where pieces are not at hand, or not as far: nothing has changed then.
        """
        self._check(kind, [n for n in numbers if not self._is_ready(kind, n, step)])
        began = time.perf_counter()
        told: list[tuple[int, dict[str, Any]]] = []
        for number in numbers:
            held = self._held[kind, number]
            if held.steps < step:
                self._take(kind, held, step, message, packets[number])
            assert held.outcome is not None
            told.append((number, held.outcome.told))
        places = self._places(kind, numbers)
        if kind == "part":
            places = [self.mode.combined(message, packet) for packet in places]
        size = sum(array.nbytes for p in places for _, arrays in p for array in arrays.values())
        return HostReply(told, time.perf_counter() - began, size), places

    def ask(
        self, kind: PieceKind, numbers: Sequence[int], step: int, question: dict[str, Any]
    ) -> list[tuple[int, Any]]:
        """Let pieces that have taken the step of this number answer a question."""
        self._check(kind, [n for n in numbers if not self._is_at(kind, n, step)])
        return [(n, self._held[kind, n].piece.answer(question)) for n in numbers]

    def write(
        self, kind: PieceKind, numbers: Sequence[int], step: int, stage: int, with_sent: bool
    ) -> int:
        """Write the states of pieces that have taken the step of this number; return the bytes.

        `with_sent`: what they have sent was not received yet, and is written too.
        """
        assert self.folder is not None
        self._check(kind, [n for n in numbers if not self._is_at(kind, n, step)])
        written = 0
        for number in numbers:
            held = self._held[kind, number]
            content = {f"{_STATE}{name}": array for name, array in held.piece.state().items()}
            if with_sent and held.outcome is not None:
                content[_PLACES] = np.array([len(held.outcome.sent)])
                for place, arrays in enumerate(held.outcome.sent):
                    content |= {f"{_SENT}{place}:{name}": a for name, a in arrays.items()}
            written += self.folder.write(kind, number, stage, content)
        return written

    def sent(self, kind: PieceKind, numbers: Sequence[int], step: int) -> list[Packet]:
        """Return what pieces that were made from a checkpoint had sent before it."""
        self._check(kind, [n for n in numbers if not self._is_at(kind, n, step)])
        return self._places(kind, numbers)

    def make(
        self,
        kind: PieceKind,
        numbers: Sequence[int],
        stage: int | None,
        steps: int,
        since: Sequence[tuple[dict[str, Any], Sequence[Packet]]] = (),
    ) -> None:
        """Make pieces: anew, or as they were after the stage of a checkpoint.

        Parameters
        ----------
        kind, numbers
        stage : int or None
            Of the checkpoint.
        steps : int
            That the pieces had taken then.
        since : sequence of (message, packets)
            Steps to take again.
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
                made.restore(
                    {k.removeprefix(_STATE): a for k, a in content.items() if k.startswith(_STATE)}
                )
                held.outcome = StepResult(sent=_sent_of(content))
            for message, packets in since:
                self._take(kind, held, held.steps + 1, message, packets)
            self._held[kind, number] = held

    def _take(
        self,
        kind: PieceKind,
        held: HeldPiece,
        step: int,
        message: dict[str, Any],
        packets: Sequence[Packet],
    ) -> None:
        """Let a piece take a step."""
        held.outcome = None
        held.steps = -1  # should it fail half way, its state is nothing to go on from
        outcome = held.piece.step(message, _received(packets))
        allowed = self.mode.ranges if kind == "part" else 1
        if len(outcome.sent) not in (0, allowed):
            raise ValueError(f"a {kind} sends {allowed} bundles or none, not {len(outcome.sent)}")
        held.outcome, held.steps = outcome, step

    def _places(self, kind: PieceKind, numbers: Sequence[int]) -> list[Packet]:
        """Return what pieces have sent, place by place; nothing at all where no piece has."""
        places: list[Packet] = []
        for number in numbers:
            outcome = self._held[kind, number].outcome
            for place, arrays in enumerate(outcome.sent if outcome is not None else []):
                if place == len(places):
                    places.append([])
                places[place].append((number, arrays))
        return places

    @staticmethod
    def _check(kind: PieceKind, behind: list[int]) -> None:
        if behind:
            raise PiecesMissing(kind, behind)

    def _is_at(self, kind: PieceKind, number: int, step: int) -> bool:
        return (kind, number) in self._held and self._held[kind, number].steps == step

    def _is_ready(self, kind: PieceKind, number: int, step: int) -> bool:
        again = self._is_at(kind, number, step) and self._held[kind, number].outcome is not None
        return again or self._is_at(kind, number, step - 1)


def _sent_of(content: Arrays) -> list[Arrays]:
    """Return what a checkpoint says that a piece had sent, place by place."""
    found: list[Arrays] = [{} for _ in range(int(content[_PLACES][0]) if _PLACES in content else 0)]
    for key, array in content.items():
        if key.startswith(_SENT):
            place, _, name = key.removeprefix(_SENT).partition(":")
            found[int(place)][name] = array
    return found


def _received(packets: Sequence[Packet]) -> list[Arrays]:
    """Return what pieces have sent, in the order of their numbers, whatever host they are on.

    It is read-only, as what comes from another process is: a piece that writes into it fails
    everywhere alike.
    """
    flat = [entry for packet in packets for entry in packet]
    ordered = sorted(flat, key=lambda entry: entry[0])
    return [{name: _read_only(array) for name, array in arrays.items()} for _, arrays in ordered]


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
