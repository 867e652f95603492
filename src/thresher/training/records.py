"""The record of training: progressive losses at every doubling of the rows, and after each pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from thresher.health.watch import DivergenceWarning, DivergenceWatch
from thresher.model.model import Progress
from thresher.rules import RULES
from thresher.training.outputs import Outputs

Tally = tuple[float, float]  # sums of losses and of weights
ANY = 2**62  # rows at once: no limit


class Records:
    """The history of outputs that learn, and a watch for divergence.

    Parameters
    ----------
    average : bool
        Whether the weights counted are means.
    target : int or None
        Weights that each output keeps at most.
    watch : DivergenceWatch or None
        None: a rising loss is no bad sign.
    callback : callable, optional
        Is told of each record; a true answer stops training.

    Attributes
    ----------
    history : list of Progress
    steps : int
        Rows learned so far.
    recorded : pair of float
        The tally at the last record.
    stopped : bool
        Whether the callback has stopped training.
    """

    def __init__(
        self,
        average: bool = False,
        target: int | None = None,
        watch: DivergenceWatch | None = None,
        callback: Callable[[Progress], Any] | None = None,
        history: Sequence[Progress] = (),
        recorded: Tally = (0.0, 0.0),
    ) -> None:
        self.average, self.target, self.watch, self.callback = average, target, watch, callback
        self.history, self.recorded = list(history), recorded
        self.steps, self.stopped = 0, False
        self.zero_loss: float | None = None  # of the rows that are learned, where it is known
        self.began = time.perf_counter() - (self.history[-1].seconds if self.history else 0.0)

    @property
    def seconds(self) -> float:
        """Time spent so far, over all runs."""
        return time.perf_counter() - self.began

    @property
    def last(self) -> Progress | None:
        """The last record."""
        return self.history[-1] if self.history else None

    def next_mark(self) -> int:
        """Return the next number of rows to record at: the powers of two from 128 on.

        Counted from the first row ever learned, so that the history of a stream does not depend on
        how it was cut into blocks.
        """
        return max(128, 1 << self.steps.bit_length())

    def expect(self, zero_loss: float, weight: float) -> None:
        """Tell the watch what predicting zero would cost on the rows that come."""
        self.zero_loss = zero_loss
        if self.watch is not None:
            self.watch.expect(zero_loss, weight)

    def add(
        self,
        outputs: Outputs,
        counted: bool,
        warn: Callable[[str, type[Warning]], None],
        valid: float | None = None,
        end: bool = False,
    ) -> None:
        """Add a record of the rows since the one before, and tell the callback of it.

        Parameters
        ----------
        outputs : Outputs
        counted : bool
            Whether nonzero weights are counted, which looks at every weight.
        warn : callable
            Is told where training diverges, before the callback.
        valid : float, optional
            Loss on the validation rows.
        end : bool
            Whether a pass ends here: it has one record, however many rows were recorded before.
        """
        record = Progress(
            examples=self.steps,
            loss=mean_since(outputs.tally, self.recorded),
            nonzeros=self.nonzeros(outputs) if counted else None,
            rate=outputs.rate,
            seconds=self.seconds,
            valid_loss=valid,
        )
        if end and self.history and self.history[-1].examples == self.steps:
            self.history[-1] = self.history[-1]._replace(nonzeros=record.nonzeros, valid_loss=valid)
            return
        self.recorded = outputs.tally
        self.history.append(record)
        message = None if self.watch is None else self.watch.see(record, self.zero_loss)
        if message is not None:
            warn(message, DivergenceWarning)
        if self.callback is not None and self.callback(record):
            self.stopped = True

    def nonzeros(self, outputs: Outputs) -> int:
        """Count the weights that are not zero, of all outputs."""
        counts = outputs.nonzeros(self.average)
        return int(counts.sum() if self.target is None else np.minimum(counts, self.target).sum())

    # ---- state ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return it as JSON can carry it; without times, so that equal runs have equal states."""
        return {
            "history": [list(record._replace(seconds=0.0)) for record in self.history],
            "recorded": list(self.recorded),
            "watch": vars(self.watch or DivergenceWatch()),
        }

    def restore(self, saved: Mapping[str, Any], steps: int, seconds: float) -> None:
        """Continue from a state, after so many rows and seconds."""
        self.history = [Progress(*record) for record in saved["history"]]
        loss, weight = saved["recorded"]
        self.recorded = (float(loss), float(weight))
        if self.watch is not None:
            vars(self.watch).update(saved["watch"])
        self.steps, self.began = steps, time.perf_counter() - seconds


class NoRecords(Records):
    """Records nothing: of models that train together, none has a history of its own.

    Parameters
    ----------
    at_once : int
        Rows that are learned at once, at most; by default any number.
    """

    def __init__(self, at_once: int = ANY) -> None:
        super().__init__()
        self.at_once = at_once

    def next_mark(self) -> int:
        """Return up to how many rows models learn at once."""
        return self.steps + self.at_once

    def add(self, *asked: Any, **more: Any) -> None:
        """Add nothing."""


def watch_for(rule: str, examples: int = 0) -> DivergenceWatch | None:
    """Return a watch for divergence; None for a rule of which a rising loss is no bad sign.

    Parameters
    ----------
    rule : str
        A key of ``RULES``.
    examples : int
        Rows that were learned before.
    """
    watched = RULES[rule].streams and RULES[rule].diverges
    return DivergenceWatch(examples=examples) if watched else None


def mean_since(tally: Tally, before: Tally = (0.0, 0.0)) -> float:
    """Return the mean progressive loss between two tallies."""
    weight = tally[1] - before[1]
    return (tally[0] - before[0]) / weight if weight > 0 else 0.0
