"""A small mode whose numbers change with any wrong order of sums, or lost or repeated step."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from support.distributed_rows import untimed
from thresher.distributed.engine.loop import ClusterRun
from thresher.distributed.engine.messages import Message, Question
from thresher.distributed.engine.pieces import (
    Arrays,
    Coordinator,
    Learned,
    Mode,
    Packet,
    Piece,
    StepResult,
)


@dataclass(frozen=True)
class PartReply:
    """Steps of a part, and the sum of its numbers."""

    steps: int
    sum: float = 0.0


@dataclass(frozen=True)
class Send(Message[PartReply]):
    """To parts: send numbers to all ranges."""

    stage: int


@dataclass(frozen=True)
class Receive(Message[PartReply]):
    """To parts: add what ranges have sent, and send nothing."""

    stage: int


@dataclass(frozen=True)
class RangeReply:
    """The sum of a range's numbers."""

    total: float


@dataclass(frozen=True)
class Add(Message[RangeReply]):
    """To ranges: add what parts have sent, and send the sums to all parts."""


@dataclass(frozen=True)
class AskNumbers(Question[np.ndarray]):
    """To parts and ranges: their numbers."""


@dataclass(frozen=True)
class Toy(Mode):
    """Parts and ranges that add floats of very different sizes.

    Attributes
    ----------
    parts, ranges, stages : int
    width : int
        Length of the arrays that are sent.
    combine : bool
        Whether bundles from parts of one host are added up; then they have whole numbers.
    keep : bool
        Whether parts receive the arrays of a stage only in the next stage.
    trouble : dict
        What happens to a part, by "part:stage" or "part:*": "sleep SECONDS", "die", or the name of
        an exception.
    log : str or None
        A folder to which a part writes its process id in each step.
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

    def coordinator(self) -> ToyCoordinator:
        return ToyCoordinator(self)

    def combined(self, message: Message[Any], packet: Packet) -> Packet:
        if not self.combine or isinstance(message, Receive):
            return packet
        total = sum(arrays["x"] for _, arrays in packet)
        return [(packet[0][0], {"x": total})]


class ToyPart(Piece):
    def __init__(self, mode: Toy, number: int) -> None:
        self.mode, self.number = mode, number
        self.value = np.linspace(0.1, 1.7, mode.width) * (number + 1)
        self.steps = np.zeros(1, np.int64)

    def step(self, message: Send | Receive, received) -> StepResult:
        self.steps += 1
        self._trouble(message.stage)
        for arrays in received:  # in order: (a + b) + c is not a + (b + c)
            self.value = self.value * 1.1 + arrays["x"]
        if isinstance(message, Receive):
            return StepResult(PartReply(int(self.steps[0])))
        sent = []
        for place in range(self.mode.ranges):
            scale = 10.0 ** ((self.number * 7 + place * 3 + message.stage) % 17 - 8)
            x = np.sin(self.value) * scale
            sent.append({"x": np.rint(x * 1e3).astype(np.int64) if self.mode.combine else x})
        return StepResult(PartReply(int(self.steps[0]), float(self.value.sum())), sent)

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

    def answer(self, question: AskNumbers) -> np.ndarray:
        return self.value

    def state(self) -> Arrays:
        return {"value": self.value, "steps": self.steps}

    def restore(self, state: Arrays) -> None:
        self.value, self.steps = state["value"].copy(), state["steps"].copy()


class ToyRange(Piece):
    def __init__(self, mode: Toy, number: int) -> None:
        self.number = number
        self.total = np.zeros(mode.width)

    def step(self, message: Add, received) -> StepResult:
        sums = np.zeros_like(self.total)
        for arrays in received:
            sums = sums + arrays["x"]
        self.total = self.total * 0.5 + np.tanh(sums) + self.number
        return StepResult(RangeReply(float(self.total.sum())), [{"x": self.total.copy()}])

    def answer(self, question: AskNumbers) -> np.ndarray:
        return self.total

    def state(self) -> Arrays:
        return {"total": self.total}

    def restore(self, state: Arrays) -> None:
        self.total = state["total"].copy()


class ToyCoordinator(Coordinator):
    def __init__(self, mode: Toy) -> None:
        self.mode = mode
        self.stages, self.seen = 0, 0.0

    @property
    def done(self) -> bool:
        return self.stages >= self.mode.stages

    def stage(self, executor) -> dict[str, Any]:
        self.stages += 1
        replies = executor.step_parts(Send(self.stages))
        steps = self.stages if self.mode.keep else 2 * self.stages - 1
        assert [reply.steps for reply in replies] == [steps] * self.mode.parts
        for reply in replies:
            self.seen = self.seen * 0.9 + reply.sum
        for reply in executor.step_ranges(Add()):
            self.seen = self.seen * 0.9 + reply.total
        if not self.mode.keep:
            executor.step_parts(Receive(self.stages))
        return {"rows": 10 * self.mode.parts, "loss": self.seen}

    def state(self) -> dict[str, Any]:
        return {"stages": self.stages, "seen": self.seen}

    def restore(self, state: dict[str, Any]) -> None:
        self.stages, self.seen = state["stages"], state["seen"]

    def result(self, executor) -> Learned:
        question = AskNumbers()
        values = np.concatenate([*executor.ask_parts(question), *executor.ask_ranges(question)])
        return Learned([], facts={"bits": values.tobytes().hex(), "seen": self.seen})


def bits(run: ClusterRun) -> tuple[dict[str, Any], int, list[dict[str, Any]]]:
    """Return everything in a run's result except times."""
    return run.learned.facts, run.stages, untimed(run)
