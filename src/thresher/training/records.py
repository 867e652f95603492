"""Records of training: made when the number of rows has doubled, and after each pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from thresher.health.watch import DivergenceWarning, DivergenceWatch
from thresher.model.model import Progress
from thresher.rules import RULES
from thresher.training.outputs import Outputs

LossTally = tuple[float, float]  # sum of losses, sum of weights
ANY = 2**62  # a number of rows that is never reached


class Records:
    """The history of a training run, and a watch for divergence.

    Parameters
    ----------
    average : bool
        Whether nonzeros are counted in the mean of the weights over all steps.
    target : int or None
        Largest number of nonzero weights per output.
    watch : DivergenceWatch or None
        None: a rising loss is not a sign of divergence.
    callback : callable, optional
        Called with each record; if it returns true, training stops.

    Attributes
    ----------
    history : list of Progress
    steps : int
        Number of rows learned so far.
    recorded : pair of float
        The sums of losses and weights at the last record.
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
        recorded: LossTally = (0.0, 0.0),
    ) -> None:
        self.average, self.target, self.watch, self.callback = average, target, watch, callback
        self.history, self.recorded = list(history), recorded
        self.steps, self.stopped = 0, False
        self.zero_loss: float | None = None  # loss of predicting zero on the rows, if known
        self.began = time.perf_counter() - (self.history[-1].seconds if self.history else 0.0)

    @property
    def seconds(self) -> float:
        """Training time so far, over all runs."""
        return time.perf_counter() - self.began

    @property
    def last(self) -> Progress | None:
        """The last record."""
        return self.history[-1] if self.history else None

    def next_mark(self) -> int:
        """Return the next number of rows to make a record at: powers of two from 128 on.

        Rows are counted from the first one ever learned, so that the history of a stream does not
        depend on the sizes of its blocks.
        """
        return max(128, 1 << self.steps.bit_length())

    def expect(self, zero_loss: float, weight: float) -> None:
        """Give the watch the loss of predicting zero on the next rows."""
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
        """Add a record of the rows since the last one, and call the callback with it.

        Parameters
        ----------
        outputs : Outputs
        counted : bool
            Whether nonzero weights are counted, which reads every weight.
        warn : callable
            Called if training diverges, before the callback.
        valid : float, optional
            Loss on the validation rows.
        end : bool
            Whether a pass ends here; if these rows already have a record, it is completed.
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
        """Count the nonzero weights of all outputs."""
        counts = outputs.nonzeros(self.average)
        return int(counts.sum() if self.target is None else np.minimum(counts, self.target).sum())

    # ---- state ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state in types that JSON has; without times, so that equal runs are equal."""
        return {
            "history": [list(record._replace(seconds=0.0)) for record in self.history],
            "recorded": list(self.recorded),
            "watch": vars(self.watch or DivergenceWatch()),
        }

    def restore(self, saved: Mapping[str, Any], steps: int, seconds: float) -> None:
        """Continue from a state, which was reached after these steps and seconds."""
        self.history = [Progress(*record) for record in saved["history"]]
        loss, weight = saved["recorded"]
        self.recorded = (float(loss), float(weight))
        if self.watch is not None:
            vars(self.watch).update(saved["watch"])
        self.steps, self.began = steps, time.perf_counter() - seconds


class NoRecords(Records):
    """Records nothing: for models that train together, without a history of each.

    Parameters
    ----------
    at_once : int
        Largest number of rows to learn in one call; by default any number.
    """

    def __init__(self, at_once: int = ANY) -> None:
        super().__init__()
        self.at_once = at_once

    def next_mark(self) -> int:
        """Return the number of rows at which the next call ends."""
        return self.steps + self.at_once

    def add(self, *arguments: Any, **more: Any) -> None:
        """Add nothing."""


def watch_for(rule: str, examples: int = 0) -> DivergenceWatch | None:
    """Return a watch for divergence; None for rules whose loss may rise.

    Parameters
    ----------
    rule : str
        A key of ``RULES``.
    examples : int
        Number of rows learned before.
    """
    watched = RULES[rule].streams and RULES[rule].diverges
    return DivergenceWatch(examples=examples) if watched else None


def mean_since(tally: LossTally, before: LossTally = (0.0, 0.0)) -> float:
    """Return the mean progressive loss between two tallies."""
    weight = tally[1] - before[1]
    return (tally[0] - before[0]) / weight if weight > 0 else 0.0
