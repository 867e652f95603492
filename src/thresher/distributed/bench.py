"""Where pieces work: those of one process. The same on a cluster and without one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thresher.distributed.folder import Folder
from thresher.distributed.pieces import Arrays, Behind, Kind, Mode, Outcome, Packet, Piece

_STATE, _SENT = "state:", "sent:"  # of the names of arrays in a checkpoint


@dataclass
class _Held:
    piece: Piece
    steps: int  # that it has taken
    outcome: Outcome | None = None  # of the last one


@dataclass
class Done:
    """What the pieces of a bench told in a step, and how it went.

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


class Bench:
    """Pieces in one process.

    Parameters
    ----------
    mode : Mode
    folder : Folder or None
        Of checkpoints.
    threads : int
        For each step of a piece that can use them.
    """

    def __init__(self, mode: Mode, folder: Folder | None, threads: int = 1) -> None:
        self.mode, self.folder, self.threads = mode, folder, threads
        self.shared: dict[str, Any] = {}
        self._held: dict[tuple[Kind, int], _Held] = {}

    def step(
        self,
        kind: Kind,
        numbers: Sequence[int],
        step: int,
        message: dict[str, Any],
        packets: Mapping[int, Sequence[Packet]],
    ) -> tuple[Done, list[Packet]]:
        """Let pieces take the step of this number; return what they tell, and what they send.

        `packets` are what was sent to each piece, by its number.
        A piece that has taken it already, and whose answer was lost, gives the same answer again.
        Raises Behind where pieces are not at hand, or not as far: nothing has changed then.
        """
        behind = [n for n in numbers if not self._is_ready(kind, n, step)]
        if behind:
            raise Behind(kind, behind)
        began = time.perf_counter()
        told: list[tuple[int, dict[str, Any]]] = []
        places: list[Packet] = []
        for number in numbers:
            held = self._held[kind, number]
            if held.steps < step:
                held.outcome = None
                held.steps = -1  # should it fail half way, its state is nothing to go on from
                held.outcome = held.piece.step(message, _received(packets[number]))
                held.steps = step
            assert held.outcome is not None
            told.append((number, held.outcome.told))
            for place, arrays in enumerate(held.outcome.sent):
                if place == len(places):
                    places.append([])
                places[place].append((number, arrays))
        if kind == "part":
            places = [self.mode.combined(message, packet) for packet in places]
        size = sum(array.nbytes for p in places for _, arrays in p for array in arrays.values())
        return Done(told, time.perf_counter() - began, size), places

    def ask(
        self, kind: Kind, numbers: Sequence[int], step: int, question: dict[str, Any]
    ) -> list[tuple[int, Any]]:
        """Let pieces that have taken the step of this number answer a question."""
        behind = [n for n in numbers if not self._is_at(kind, n, step)]
        if behind:
            raise Behind(kind, behind)
        return [(n, self._held[kind, n].piece.answer(question)) for n in numbers]

    def write(
        self, kind: Kind, numbers: Sequence[int], step: int, stage: int, with_sent: bool
    ) -> int:
        """Write the states of pieces that have taken the step of this number; return the bytes.

        `with_sent`: what they have sent was not received yet, and is written too.
        """
        assert self.folder is not None
        behind = [n for n in numbers if not self._is_at(kind, n, step)]
        if behind:
            raise Behind(kind, behind)
        written = 0
        for number in numbers:
            held = self._held[kind, number]
            content = {f"{_STATE}{name}": array for name, array in held.piece.state().items()}
            if with_sent and held.outcome is not None:
                for place, arrays in enumerate(held.outcome.sent):
                    content |= {f"{_SENT}{place}:{name}": a for name, a in arrays.items()}
            written += self.folder.write(kind, number, stage, content)
        return written

    def sent(self, kind: Kind, numbers: Sequence[int]) -> list[Packet]:
        """Return what pieces that were made from a checkpoint had sent before it."""
        places: list[Packet] = []
        for number in numbers:
            outcome = self._held[kind, number].outcome
            for place, arrays in enumerate(outcome.sent if outcome is not None else []):
                if place == len(places):
                    places.append([])
                places[place].append((number, arrays))
        return places

    def make(
        self,
        kind: Kind,
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
                else (self.mode.range(number, self.shared))
            )
            held = _Held(made, steps)
            if stage is not None:
                assert self.folder is not None
                content = self.folder.read(kind, number, stage)
                made.restore(
                    {k.removeprefix(_STATE): a for k, a in content.items() if k.startswith(_STATE)}
                )
                held.outcome = Outcome(sent=_sent_of(content))
            for message, packets in since:
                held.outcome = made.step(message, _received(packets))
                held.steps += 1
            self._held[kind, number] = held

    def _is_at(self, kind: Kind, number: int, step: int) -> bool:
        return (kind, number) in self._held and self._held[kind, number].steps == step

    def _is_ready(self, kind: Kind, number: int, step: int) -> bool:
        again = self._is_at(kind, number, step) and self._held[kind, number].outcome is not None
        return again or self._is_at(kind, number, step - 1)


def _sent_of(content: Arrays) -> list[Arrays]:
    """Return what a checkpoint says that a piece had sent, place by place."""
    found: dict[int, Arrays] = {}
    for key, array in content.items():
        if key.startswith(_SENT):
            place, _, name = key.removeprefix(_SENT).partition(":")
            found.setdefault(int(place), {})[name] = array
    return [found[place] for place in sorted(found)]


def _received(packets: Sequence[Packet]) -> list[Arrays]:
    """Return what pieces have sent, in the order of their numbers, whatever bench they are on."""
    flat = [entry for packet in packets for entry in packet]
    return [arrays for _, arrays in sorted(flat, key=lambda entry: entry[0])]
