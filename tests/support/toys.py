"""A small mode whose numbers change if messages are reordered, or a step is lost or repeated."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from support.distributed_rows import untimed
from thresher.distributed.engine.loop import Driven
from thresher.distributed.engine.pieces import Arrays, Lead, Learned, Mode, Outcome, Piece


@dataclass(frozen=True)
class Toy(Mode):
    """Parts and ranges that add floats of very different sizes.

    Attributes
    ----------
    parts, ranges, stages : int
    width : int
        Length of the arrays that are sent.
    combine : bool
        Whether the parts on one machine add the arrays that they send; these are integers then.
    keep : bool
        Whether a stage sends arrays that the next stage receives.
    trouble : dict
        What happens to a part, by "part:stage" or "part:*": "sleep", "die" or an exception name.
    log : str or None
        A folder where a part writes its process id at each step.
    """

    parts: int = 5
    ranges: int = 3
    stages: int = 4
    width: int = 7
    combine: bool = False
    keep: bool = False
    trouble: dict[str, str] = field(default_factory=dict)
    log: str | None = None
    threaded: bool = False
    every: int = 1

    def part(self, number: int, threads: int, shared: dict[str, Any]) -> ToyPart:
        return ToyPart(self, number)

    def range(self, number: int, shared: dict[str, Any]) -> ToyRange:
        return ToyRange(self, number)

    def lead(self) -> ToyLead:
        return ToyLead(self)

    def combined(self, message, packet):
        if not self.combine or message["doing"] == "hear":
            return packet
        total = sum(arrays["x"] for _, arrays in packet)
        return [(packet[0][0], {"x": total})]


class ToyPart(Piece):
    def __init__(self, mode: Toy, number: int) -> None:
        self.mode, self.number = mode, number
        self.value = np.linspace(0.1, 1.7, mode.width) * (number + 1)
        self.steps = np.zeros(1, np.int64)

    def step(self, message, received) -> Outcome:
        self.steps += 1
        self._trouble(message["stage"])
        for arrays in received:  # the order matters: (a + b) + c is not a + (b + c)
            self.value = self.value * 1.1 + arrays["x"]
        if message["doing"] == "hear":
            return Outcome({"steps": int(self.steps[0])})
        sent = []
        for place in range(self.mode.ranges):
            scale = 10.0 ** ((self.number * 7 + place * 3 + message["stage"]) % 17 - 8)
            x = np.sin(self.value) * scale
            sent.append({"x": np.rint(x * 1e3).astype(np.int64) if self.mode.combine else x})
        return Outcome({"steps": int(self.steps[0]), "sum": float(self.value.sum())}, sent)

    def _trouble(self, stage: int) -> None:
        if self.mode.log:
            Path(self.mode.log, f"{self.number}-{stage}").write_text(str(os.getpid()))
        found = self.mode.trouble
        doing = found.get(f"{self.number}:{stage}", found.get(f"{self.number}:*", ""))
        if doing.startswith("sleep"):
            time.sleep(float(doing.split()[1]))
        elif doing == "die":
            os.kill(os.getpid(), 9)
        elif doing:
            import thresher.errors as errors

            kind = getattr(errors, doing, None) or {"MemoryError": MemoryError}[doing]
            raise kind(f"part {self.number}: a row is bad")

    def answer(self, question) -> Any:
        return self.value

    def state(self) -> Arrays:
        return {"value": self.value, "steps": self.steps}

    def restore(self, state: Arrays) -> None:
        self.value, self.steps = state["value"].copy(), state["steps"].copy()


class ToyRange(Piece):
    def __init__(self, mode: Toy, number: int) -> None:
        self.number = number
        self.total = np.zeros(mode.width)

    def step(self, message, received) -> Outcome:
        sums = np.zeros_like(self.total)
        for arrays in received:
            sums = sums + arrays["x"]
        self.total = self.total * 0.5 + np.tanh(sums) + self.number
        return Outcome({"total": float(self.total.sum())}, [{"x": self.total.copy()}])

    def answer(self, question) -> Any:
        return self.total

    def state(self) -> Arrays:
        return {"total": self.total}

    def restore(self, state: Arrays) -> None:
        self.total = state["total"].copy()


class ToyLead(Lead):
    def __init__(self, mode: Toy) -> None:
        self.mode = mode
        self.stages, self.seen = 0, 0.0

    @property
    def done(self) -> bool:
        return self.stages >= self.mode.stages

    def stage(self, crew) -> dict[str, Any]:
        self.stages += 1
        answers = crew.parts({"doing": "send", "stage": self.stages})
        steps = self.stages if self.mode.keep else 2 * self.stages - 1
        assert [facts["steps"] for facts in answers] == [steps] * self.mode.parts
        for facts in answers:
            self.seen = self.seen * 0.9 + facts["sum"]
        for facts in crew.ranges({}):
            self.seen = self.seen * 0.9 + facts["total"]
        if not self.mode.keep:
            crew.parts({"doing": "hear", "stage": self.stages})
        return {"rows": 10 * self.mode.parts, "loss": self.seen}

    def state(self) -> dict[str, Any]:
        return {"stages": self.stages, "seen": self.seen}

    def restore(self, state: dict[str, Any]) -> None:
        self.stages, self.seen = state["stages"], state["seen"]

    def result(self, crew) -> Learned:
        values = np.concatenate([*crew.ask_parts({}), *crew.ask_ranges({})])
        return Learned([], facts={"bits": values.tobytes().hex(), "seen": self.seen})


def bits(driven: Driven) -> tuple[dict[str, Any], int, list[dict[str, Any]]]:
    """Return the whole result of a run."""
    return driven.learned.facts, driven.stages, untimed(driven)
