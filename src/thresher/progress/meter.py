"""The facts that a line of progress shows: rows, rate, loss, nonzeros, share done, time left."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresher.training.trainer import Trainer

EVENTS = ("record", "stage")  # events of rules that need all rows, which `ProgressMeter.see` takes


class ProgressMeter:
    """Computes the facts of a line of progress, from the start of the run on.

    Parameters
    ----------
    passes : int or None
        Passes that a rule that needs all rows makes at most, if known.
    """

    def __init__(self, passes: int | None) -> None:
        self.passes = passes
        self.began = time.monotonic()
        self._first: tuple[float, int] | None = None  # share done and steps at the start
        self._share: float | None = None  # at the first line
        self._records = 0  # of a rule that needs all rows
        self._last: Mapping[str, Any] | None = None  # the last of these records
        self._staged = False  # whether the rule has stages

    def start(self, trainer: Trainer) -> None:
        """Take the number of rows learned before; must be called after the first rows."""
        if self._first is None:
            rows = trainer.last_block.rows
            before = trainer.records.steps - rows if not trainer.plan.in_memory else 0
            self._first = 0.0, max(before, trainer.steps_before)

    def of_trainer(self, trainer: Trainer) -> dict[str, Any]:
        """Return the state of training row by row."""
        self.start(trainer)
        assert self._first is not None
        records, steps = trainer.records, trainer.records.steps
        last = records.history[-1] if records.history else None
        share = self._share_of(trainer)
        if self._share is None and share is not None:
            self._share = share
            self._first = share if self._first[1] else 0.0, self._first[1]
        seconds = time.monotonic() - self.began
        return {
            "event": "progress",
            "examples": steps,
            "pass": min(trainer.number + 1, trainer.plan.passes),
            "loss": None if last is None else last.loss,
            "mean_loss": trainer.mean_loss,
            "nonzeros": None if last is None else last.nonzeros,
            "seconds": round(seconds, 3),
            "rows_per_second": round((steps - self._first[1]) / max(seconds, 1e-9)),
            "done": share,
            "left": _left(seconds, share, self._first[0]),
        }

    def _share_of(self, trainer: Trainer) -> float | None:
        """Return the share of all passes that is done, if the size of the source is known."""
        source, block, position = trainer.source, trainer.last_block, trainer.position
        if trainer.plan.in_memory:
            size, read = source.rows, 0 if position is None else position.line
        else:
            size, read = source.size, block.raw
        return min(1.0, (trainer.number + read / size) / trainer.plan.passes) if size else None

    def see(self, event: str, facts: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the facts of a line for an event of a rule that needs all rows; None: no line.

        Parameters
        ----------
        event : {"record", "stage"}
            A rule with stages sends a stage before the first record, and after each record.
        facts : mapping
        """
        seconds = time.monotonic() - self.began
        if event == "record":
            before = 0 if self._last is None else self._last["examples"]
            self._records, self._last = self._records + 1, facts
            share = None if self.passes is None else min(1.0, self._records / self.passes)
            if facts.get("duality_gap") is not None:
                share = None  # it ends when the gap is small, long before the last pass
            if self._staged:
                return None
            return {
                "pass": self._records,
                "loss": facts["loss"],
                "nonzeros": facts["nonzeros"],
                "rows_per_second": round(max(facts["examples"], before) / max(seconds, 1e-9)),
                "done": share,
                "left": _left(seconds, share),
            }
        self._staged = True
        known = self._last or {"loss": None, "nonzeros": None}
        return {
            **{name: facts[name] for name in ("output", "outputs", "stage")},
            "loss": known["loss"],
            "nonzeros": known["nonzeros"],
            "done": facts["done"],
            "left": _left(seconds, facts["done"]),
        }


def _left(seconds: float, share: float | None, first: float = 0.0) -> float | None:
    """Return the estimated time left; `first` is the share that was done at the start."""
    done = 0.0 if share is None else share - first
    return seconds * (1 - share) / done if share is not None and done > 0 else None
