"""One line of the table of speeds: our call, the peer's call, and the ratio to reach."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

LEAST, MOST = 0.5, 1000  # seconds of all repeats of a line, and repeats to reach them


@dataclass(frozen=True)
class Timed:
    """What a call returns that measures its own seconds, for example those of a process."""

    seconds: float
    value: Any = None


@dataclass
class Line:
    """One line of the table.

    Attributes
    ----------
    name : str
        What a user calls, with the size of the data.
    ours, peer : function without arguments
        The timed calls. They return a result for `check`, or `Timed`.
    peer_name : str
        The peer and its version, or the call of ours that is the unit.
    must : float
        The ratio to reach.
    unit : bool
        False: the ratio is peer / ours and must be at least `must`. True: the peer is the unit,
        the ratio is ours / peer and must be at most `must`.
    check : function
        Takes both results; returns the losses that both reached, or whatever shows that both did
        the same work. Raises AssertionError if they did not.
    """

    name: str
    ours: Callable[[], Any]
    peer: Callable[[], Any]
    peer_name: str
    must: float
    unit: bool = False
    check: Callable[[Any, Any], str] = field(default=lambda ours, peer: "")


@dataclass(frozen=True)
class Skipped:
    """A line that cannot be measured here; `lines` yields it in place of a `Line`.

    Attributes
    ----------
    name : str
        What a user calls.
    reason : str
        Why, for example "celer is not installed; make bench-peers".
    """

    name: str
    reason: str


@dataclass(frozen=True)
class Measured:
    """Best seconds of both calls, their ratio, and what `check` said."""

    line: Line
    ours: float
    peer: float
    checked: str

    @property
    def ratio(self) -> float:
        """Peer / ours; ours / peer if the peer is the unit."""
        return self.ours / self.peer if self.line.unit else self.peer / self.ours

    @property
    def reached(self) -> bool:
        """Whether the ratio is as good as it must be."""
        return self.ratio <= self.line.must if self.line.unit else self.ratio >= self.line.must


def timed(call: Callable[[], Any]) -> Timed:
    """Run a call once; return its seconds and its result."""
    began = time.perf_counter()
    value = call()
    seconds = time.perf_counter() - began
    return value if isinstance(value, Timed) else Timed(seconds, value)


def measure(line: Line, repeats: int = 5, limit: float = float("inf")) -> Measured:
    """Run both calls in turn, `repeats` times; keep the best seconds of each.

    Fast calls are repeated more often, until all together took `LEAST` seconds. After `limit`
    seconds no further repeat begins, except that there are always two.
    """
    began, total, done = time.perf_counter(), 0.0, 0
    ours = peer = Timed(float("inf"))
    while done < repeats or (total < LEAST and done < MOST):
        took = time.perf_counter() - began
        if done > 1 and took > (limit if done < repeats else min(limit, LEAST)):
            break
        runs = timed(line.peer), timed(line.ours)
        peer, ours = (min(pair, key=_seconds) for pair in zip((peer, ours), runs, strict=True))
        total, done = total + sum(map(_seconds, runs)), done + 1
    return Measured(line, ours.seconds, peer.seconds, line.check(ours.value, peer.value))


def _seconds(run: Timed) -> float:
    return run.seconds
