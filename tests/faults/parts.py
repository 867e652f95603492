"""What `make faults` has tried: a file for each operation and fault. A later run goes on there."""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SECONDS = 5.0  # between two writings of a file


class Part:
    """The points of one operation and one fault.

    Parameters
    ----------
    folder : Path
        Where the file is. If it is there, this part goes on.
    operation, fault : str
        Their names.
    few : tuple of int
        If given, only these calls fail.
    """

    def __init__(self, folder: Path, operation: str, fault: str, few: tuple[int, ...] = ()) -> None:
        name = f"{operation}; {fault}.json".replace(" ", "_")
        self.file, self.operation, self.fault, self.few = folder / name, operation, fault, few
        self.next, self.ended = 1, False
        self.points: dict[int, dict[str, Any] | None] = {}  # what was wrong, by number
        self._written = time.monotonic()
        self.read()

    def read(self) -> None:
        """Read the file, if there is one."""
        if self.file.exists():
            facts = json.loads(self.file.read_text())
            self.next, self.ended = facts["next"], facts["ended"]
            self.points = dict.fromkeys(facts["right"])
            self.points |= {point["n"]: point for point in facts["wrong"]}

    def numbers(self) -> Iterable[int]:
        """Return the calls that are due: those that were wrong, and those that were not tried."""
        again = [point["n"] for point in self.wrong() if not is_known(point)]
        new = self.few or range(self.next, sys.maxsize)
        return itertools.chain(again, () if self.ended else new)

    def is_due(self) -> bool:
        """Whether calls are due."""
        return next(iter(self.numbers()), None) is not None

    def add(self, point: dict[str, Any]) -> bool:
        """Keep what was found; return whether more calls can follow."""
        number, is_next = point["n"], point["n"] >= self.next
        if point["hit"] or point["wrong"]:  # a run without a fault may be wrong, too
            self.points[number] = point if point["wrong"] else None
        else:  # there are fewer calls than before
            self.points.pop(number, None)
        self.ended = self.ended or (is_next and not point["hit"])
        self.next = max(self.next, number + 1 if point["hit"] else number)
        if self.ended or time.monotonic() > self._written + SECONDS:
            self.write()
        return point["hit"] or not is_next

    def write(self) -> None:
        """Write the file, as a whole."""
        self._written = time.monotonic()
        self.file.parent.mkdir(parents=True, exist_ok=True)
        new = self.file.with_suffix(".new")
        right = [number for number, point in self.points.items() if not point]
        facts = {"next": self.next, "ended": self.ended, "right": right, "wrong": self.wrong()}
        new.write_text(json.dumps(facts) + "\n")
        os.replace(new, self.file)

    def wrong(self) -> list[dict[str, Any]]:
        """Return the points at which something was wrong."""
        return [point for _, point in sorted(self.points.items()) if point]

    def counts(self) -> dict[str, int]:
        """Return how many points were tried, were wrong, and are known; and whether it ended."""
        wrong = self.wrong()
        return {
            "points": len(self.points),
            "wrong": len(wrong),
            "known": sum(map(is_known, wrong)),
            "unfinished": int(not self.ended),
        }


def is_known(point: dict[str, Any]) -> bool:
    """Return whether nanobind ended the process: it has no memory for its table of objects.

    Its functions that fill the table may not throw; that cannot be changed from outside.
    """
    return point["wrong"] == ["crash: SIGABRT"] and "std::bad_alloc" in point["message"]
