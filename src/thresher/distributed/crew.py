"""The driver's view of all pieces: steps, questions, checkpoints, and pieces that must catch up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from thresher.distributed.bench import Bench
from thresher.distributed.folder import Committed, Folder
from thresher.distributed.pieces import Behind, Kind, Lost, Mode

Work = list[tuple[int, tuple[Any, ...]]]  # for benches: which, and with what arguments
Sent = list[list[Any]]  # by bench, then by place: packets, or references to them


@dataclass
class Account:
    """What a stage has cost so far.

    Attributes
    ----------
    bytes : int
        Of arrays that pieces sent, as often as they were received.
    seconds : list of float
        That each bench has worked.
    remade : list of (kind, number)
        Pieces that were lost and made again.
    """

    bytes: int = 0
    seconds: list[float] = field(default_factory=list)
    remade: list[tuple[Kind, int]] = field(default_factory=list)


class Crew(ABC):
    """All pieces of a mode, on benches.

    Parameters
    ----------
    mode : Mode
    folder : Folder or None
        Of checkpoints; without one, lost pieces begin the whole task again.
    benches : int
        Pieces are dealt out to so many.
    """

    def __init__(self, mode: Mode, folder: Folder | None, benches: int) -> None:
        self.mode, self.folder = mode, folder
        self.homes: dict[Kind, list[list[int]]] = {
            "part": [list(range(b, mode.parts, benches)) for b in range(benches)],
            "range": [list(range(b, mode.ranges, benches)) for b in range(benches)],
        }
        self.account = Account(seconds=[0.0] * benches)
        self._steps: dict[Kind, int] = {"part": 0, "range": 0}
        self._since: dict[Kind, list[tuple[dict[str, Any], Any]]] = {"part": [], "range": []}
        self._mail: dict[Kind, Sent] = {"part": [], "range": []}  # sent by these, not yet received
        self._committed: Committed | None = None

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

    def begin(self, committed: Committed | None) -> None:
        """Make all pieces: anew, or as they were in a checkpoint."""
        self._committed = committed
        for kind in self._steps:
            self._steps[kind] = committed.steps[kind] if committed else 0
            self._since[kind] = []
            stage = committed.stage if committed else None
            work: Work = [
                (b, (kind, homes, stage, self._steps[kind], [])) for b, homes in self._at(kind)
            ]
            self._call("make", work)
            self._mail[kind] = []
            if committed is not None and kind in committed.mail:
                self._mail[kind] = self._call(
                    "sent", [(b, (kind, homes)) for b, homes in self._at(kind)]
                )

    def write(self, stage: int) -> tuple[dict[str, int], list[str]]:
        """Write the states of all pieces.

        Returns the steps that the kinds have taken, and which of them have sent what was not
        received yet.
        """
        for kind, step in self._steps.items():
            kept = bool(self._mail[kind])
            self._call("write", [(b, (kind, n, step, stage, kept)) for b, n in self._at(kind)])
        return dict(self._steps.items()), [kind for kind, sent in self._mail.items() if sent]

    def let_go(self, committed: Committed) -> None:
        """Forget the steps before a checkpoint that counts."""
        self._committed = committed
        self._since = {"part": [], "range": []}

    def close(self) -> None:  # noqa: B027
        """Let all pieces go."""

    # ---- how -----------------------------------------------------------------------------------

    def _at(self, kind: Kind) -> list[tuple[int, list[int]]]:
        return [(bench, numbers) for bench, numbers in enumerate(self.homes[kind]) if numbers]

    def _step(self, kind: Kind, message: dict[str, Any]) -> list[dict[str, Any]]:
        step = self._steps[kind] + 1
        sent = self._mail["range" if kind == "part" else "part"]
        work: Work = [
            (bench, (kind, numbers, step, message, self._packets(kind, numbers, sent)))
            for bench, numbers in self._at(kind)
        ]
        results = self._call("step", work)
        told: list[tuple[int, dict[str, Any]]] = []
        for (bench, _), (done, _) in zip(work, results, strict=True):
            told += done.told
            self.account.seconds[bench] += done.seconds
            # A range's one bundle goes to every bench that has parts.
            self.account.bytes += done.bytes * (len(self._at("part")) if kind == "range" else 1)
        self._steps[kind] = step
        self._mail["range" if kind == "part" else "part"] = []
        if any(places for _, places in results):
            self._mail[kind] = [places for _, places in results]
        if self.folder is not None:
            self._since[kind].append((message, sent))
        return [facts for _, facts in sorted(told, key=lambda entry: entry[0])]

    def _ask(self, kind: Kind, question: dict[str, Any]) -> list[Any]:
        step = self._steps[kind]
        found = self._call(
            "ask", [(b, (kind, numbers, step, question)) for b, numbers in self._at(kind)]
        )
        answers = [entry for answers in found for entry in answers]
        return [answer for _, answer in sorted(answers, key=lambda entry: entry[0])]

    def _packets(self, kind: Kind, numbers: Sequence[int], sent: Sent) -> dict[int, list[Any]]:
        """Return what each of these pieces is to be given, by its number."""
        if kind == "part":  # all get the same
            everything = [places[0] for places in sent if places]
            return dict.fromkeys(numbers, everything)
        return {number: [places[number] for places in sent if places] for number in numbers}

    def _catch_up(self, bench: int, behind: Behind) -> None:
        """Make lost pieces again, where they are to work."""
        if self._committed is None and self._steps[behind.kind] > 0:
            raise Lost
        stage = self._committed.stage if self._committed else None
        steps = self._committed.steps[behind.kind] if self._committed else 0
        self.account.remade += [(behind.kind, number) for number in behind.numbers]
        for number in behind.numbers:
            since = [
                (message, self._packets(behind.kind, [number], sent)[number])
                for message, sent in self._since[behind.kind]
            ]
            self._call("make", [(bench, (behind.kind, [number], stage, steps, since))])

    @abstractmethod
    def _call(self, method: str, work: Work) -> list[Any]:
        """Call a method of `Bench` on benches, all at once, and return what they return.

        Pieces that are `Behind` are made again. Raises Lost where they cannot be, because what was
        sent to them is gone.
        """


class InProcess(Crew):
    """All pieces in this process, without a cluster.

    Parameters
    ----------
    mode, folder
        As of `Crew`.
    benches : int
        Pieces are dealt out to so many, as to workers; one after the other they work all the same.
    threads : int
    """

    def __init__(
        self, mode: Mode, folder: Folder | None, benches: int = 1, threads: int = 1
    ) -> None:
        super().__init__(mode, folder, benches)
        self.benches = [Bench(mode, folder, threads) for _ in range(benches)]

    def _call(self, method: str, work: Work) -> list[Any]:
        found = []
        for bench, arguments in work:
            while True:
                try:
                    found.append(getattr(self.benches[bench], method)(*arguments))
                    break
                except Behind as behind:
                    self._catch_up(bench, behind)
        return found
