"""Lanes on several cores, and how much memory they take."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.errors import ParameterError

_UNEVEN = 1.1  # a part may be so much larger than its share, where that keeps a clock in one part
_SAMPLED = 240  # lanes of which the memory is measured; more are taken to be like them
_INDEX = 64.0  # bytes a feature costs in a hashed store, beside lines with room for as many again
_TABLE = 88.0  # bytes it costs in the table of a lane that stands alone, at most
_PROBED = 1024  # features of the lanes that are measured


@dataclass(frozen=True)
class Lane:
    """One model among many: its parameters, which rows it sees, and what it is told of them.

    Parameters
    ----------
    numbers, words : mapping
        Its parameters, as `core_args.core_parameters` gives them.
    clock : int
        Its column of `seen`.
    target : int
        The number of its class, or -1 for the labels themselves.
    """

    numbers: Mapping[str, float]
    words: Mapping[str, str]
    clock: int = 0
    target: int = -1


def make_lanes(
    rule: str, store: str, dtype: str, width: int, lanes: Sequence[Lane], level: str = "auto"
) -> _core.Lanes:
    """Make lanes of the core's `rule`; the other parameters are those of `_core.make_lanes`."""
    return _core.make_lanes(
        rule,
        store,
        dtype,
        width,
        [lane.numbers for lane in lanes],
        [lane.words for lane in lanes],
        [lane.clock for lane in lanes],
        [lane.target for lane in lanes],
        level,
    )


class LaneTeam:
    """Lanes split over threads: what `_core.Lanes` does, on several cores.

    Results are the same for any number of threads. Lanes that share a clock stay together where
    that does not leave a thread idle.

    Parameters
    ----------
    rule : str
        The rule's name in the core.
    store : {"dense", "hashed"}
    dtype : {"float32", "float64"}
    width : int
        Number of features; 0 for any 64-bit key.
    lanes : sequence of Lane
    n_jobs : int, optional
        Threads; None is 1, and -1 one for each processor.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import FTRLClassifier
    >>> from thresher.rules import core_args
    >>> from thresher.data import as_batch
    >>> from thresher.training.lanes import Lane, LaneTeam
    >>> points = [FTRLClassifier(l1=l1).get_params() for l1 in (0.0, 9.0)]
    >>> lanes = [Lane(*core_args.core_parameters("ftrl", params, None)) for params in points]
    >>> with LaneTeam("ftrl", "dense", "float64", 2, lanes, n_jobs=2) as team:
    ...     team.learn(as_batch(np.eye(2), np.array([1.0, -1.0])))
    ...     team.nonzeros().tolist()
    [2, 0]
    """

    def __init__(
        self,
        rule: str,
        store: str,
        dtype: str,
        width: int,
        lanes: Sequence[Lane],
        n_jobs: int | None = None,
    ) -> None:
        shares = split_by_clock([lane.clock for lane in lanes], threads_of(n_jobs))
        self._members = [np.array(share, np.int64) for share in shares]
        self._parts = [
            make_lanes(rule, store, dtype, width, [lanes[lane] for lane in share])
            for share in shares
        ]
        self._home = np.zeros((len(lanes), 2), np.int64)  # part and place of each lane
        for part, share in enumerate(shares):
            self._home[share, 0], self._home[share, 1] = part, np.arange(len(share))
        self._pool = ThreadPoolExecutor(len(shares)) if len(shares) > 1 else None

    # ---- learning ------------------------------------------------------------------------------

    def learn(
        self,
        batch: _core.Batch,
        order: NDArray[np.int64] | None = None,
        first: int = 0,
        last: int | None = None,
        seen: NDArray[np.uint8] | None = None,
        classes: tuple[NDArray[np.int64], NDArray[np.int32]] | None = None,
        low: float = -1.0,
        before: bool = False,
    ) -> NDArray[np.float64] | None:
        """Make a step of each lane for each of the rows order[first:last] that its clock sees.

        Parameters are those of `_core.Lanes.learn`.
        """
        found = self._each(
            lambda part: part.learn(batch, order, first, last, seen, classes, low, before)
        )
        return self._columns(found) if before else None

    def next_pass(self) -> None:
        """Let the rates decay as after a pass over the data."""
        self._each(lambda part: part.next_pass())

    def widen(self, width: int) -> None:
        """Take feature numbers below a larger width from now on."""
        self._each(lambda part: part.widen(width))

    def states(self) -> list[bytes]:
        """Return the state of each part."""
        return [part.state() for part in self._parts]

    def restore(self, states: Sequence[bytes]) -> None:
        """Continue from states of as many parts; raise ValueError where they are of others."""
        for part, state in zip(self._parts, states, strict=True):
            part.restore(state)

    # ---- answers -------------------------------------------------------------------------------

    def predict(
        self,
        batch: _core.Batch,
        lanes: NDArray[np.int64] | None = None,
        order: NDArray[np.int64] | None = None,
        average: bool = False,
        finite: bool = True,
    ) -> NDArray[np.float64]:
        """Return raw predictions of these lanes (None: all) for these rows: rows x lanes.

        One that is not finite is an error, unless `finite` is False.
        """
        wanted = np.arange(len(self)) if lanes is None else np.asarray(lanes, np.int64)
        parts, places = self._home[wanted].T
        asked = [np.flatnonzero(parts == part) for part in range(len(self._parts))]

        def answer(number: int) -> NDArray[np.float64]:
            own = np.ascontiguousarray(places[asked[number]])
            return self._parts[number].predict(batch, own, order, average, finite)

        busy = [number for number, own in enumerate(asked) if len(own)]
        if self._pool is None or len(busy) == 1:
            found = [answer(number) for number in busy]
        else:
            found = list(self._pool.map(answer, busy))
        rows = len(order) if order is not None else batch.rows
        out = np.empty((rows, len(wanted)))
        for number, values in zip(busy, found, strict=True):
            out[:, asked[number]] = values
        return out

    def weights(
        self, lane: int, average: bool = False
    ) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Return keys in increasing order and weights of a lane, those that are not zero."""
        part, place = self._home[lane].tolist()
        keys, weights = self._parts[part].weights(place, average)
        return keys, weights

    def nonzeros(self, average: bool = False) -> NDArray[np.int64]:
        """Count the weights of each lane that are not zero."""
        return self._values(lambda part: part.nonzeros(average))

    def intercepts(self, average: bool = False) -> NDArray[np.float64]:
        """Return the intercept of each lane."""
        return self._values(lambda part: part.intercepts(average))

    def steps(self) -> NDArray[np.int64]:
        """Return how many rows each lane has learned from."""
        return self._values(lambda part: part.steps())

    def loss_sums(self) -> NDArray[np.float64]:
        """Return sums of the progressive losses of each lane, each times its sample weight."""
        return self._values(lambda part: part.loss_sums())

    def weight_sums(self) -> NDArray[np.float64]:
        """Return sums of the sample weights of each lane."""
        return self._values(lambda part: part.weight_sums())

    def rates(self) -> NDArray[np.float64]:
        """Return the learning rate of each lane's last step."""
        return self._values(lambda part: part.rates())

    @property
    def divergences(self) -> list[str]:
        """What made a lane stop; empty for those that did not."""
        found = [part.divergences for part in self._parts]
        return [found[part][place] for part, place in self._home.tolist()]

    @property
    def store_bytes(self) -> int:
        """Memory of the stores."""
        return sum(part.store_bytes for part in self._parts)

    def __len__(self) -> int:
        return len(self._home)

    # ---- threads -------------------------------------------------------------------------------

    def close(self) -> None:
        """End the threads. Lanes can still be asked, and go on in the caller's thread."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _each(self, act: Callable[[_core.Lanes], Any]) -> list[Any]:
        if self._pool is None:
            return [act(part) for part in self._parts]
        futures = [self._pool.submit(act, part) for part in self._parts]
        wait(futures)  # an error in one thread leaves none of the others behind
        return [future.result() for future in futures]

    def _values(self, ask: Callable[[_core.Lanes], NDArray[Any]]) -> NDArray[Any]:
        found = self._each(ask)
        out = np.empty(len(self), found[0].dtype if found else np.float64)
        for values, share in zip(found, self._members, strict=True):
            out[share] = values
        return out

    def _columns(self, found: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        if len(found) == 1 and np.array_equal(self._members[0], np.arange(len(self))):
            return found[0]
        out = np.empty((len(found[0]), len(self)))
        for values, share in zip(found, self._members, strict=True):
            out[:, share] = values
        return out


def threads_of(n_jobs: int | None, owner: str | None = None) -> int:
    """Return a number of threads: of None 1, of -1 that of the processors at hand.

    `owner` is the function that takes `n_jobs`, where an error should name it.
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ParameterError(
            owner=owner,
            parameter="n_jobs",
            value=n_jobs,
            allowed="None, at least 1, or -1 for all",
        )
    processors = len(os.sched_getaffinity(0))
    return int(n_jobs) if n_jobs > 0 else max(1, processors + 1 + int(n_jobs))


def split_by_clock(clocks: Sequence[int], parts: int) -> list[list[int]]:
    """Split lanes into parts of about the same size, cutting as few clocks as that allows.

    Examples
    --------
    >>> split_by_clock([0, 1, 0, 1], 2)
    [[0, 2], [1, 3]]
    >>> split_by_clock([0, 0, 0, 0], 2)
    [[0, 1], [2, 3]]
    """
    order = np.argsort(np.asarray(clocks, np.int64), kind="stable")
    lanes = len(order)
    parts = max(1, min(parts, lanes))
    sorted_clocks = np.asarray(clocks, np.int64)[order]
    borders = np.flatnonzero(np.diff(sorted_clocks)) + 1
    cuts = [0]
    for part in range(1, parts):
        cut = round(part * lanes / parts)
        near = borders[np.abs(borders - cut) <= (_UNEVEN - 1) * lanes / parts]
        if len(near):
            cut = int(near[np.abs(near - cut).argmin()])
        cuts.append(max(cut, cuts[-1]))
    cuts.append(lanes)
    shares = [order[a:b].tolist() for a, b in itertools.pairwise(cuts)]
    return [share for share in shares if share] or [[]]


def bytes_per_feature(rule: str, store: str, dtype: str, lanes: Sequence[Lane]) -> float:
    """Estimate the memory that lanes take for each feature, by making a few of them.

    Lanes that share lines take less together than alone. A hashed store also keeps the features'
    numbers, and room for more.

    Examples
    --------
    >>> from thresher import AveragedSGDClassifier
    >>> from thresher.rules import core_args
    >>> params = AveragedSGDClassifier().get_params()
    >>> lane = Lane(*core_args.core_parameters("averaged-sgd", params, None))
    >>> 8 <= bytes_per_feature("averaged_sgd", "dense", "float32", [lane]) <= 64
    True
    """
    sample = list(lanes[:_SAMPLED])
    if not sample:
        return 0.0
    scale = len(lanes) / len(sample)
    small, large = (make_lanes(rule, "dense", dtype, _PROBED * k, sample) for k in (1, 2))
    dense = (large.store_bytes - small.store_bytes) / _PROBED * scale
    if store == "dense":
        return dense
    alone = small.layouts.count("alone")
    return 2.0 * dense + _INDEX * (alone < len(sample)) + _TABLE * alone * scale


def bytes_of(
    rule: str,
    store: str,
    dtype: str,
    lanes: Sequence[Lane],
    features: int,
    n_jobs: int | None = None,
) -> int:
    """Estimate the memory of a team of lanes.

    Parameters
    ----------
    rule, store, dtype, lanes, n_jobs
        As of `LaneTeam`.
    features : int
        Features that will have a place.
    """
    shares = split_by_clock([lane.clock for lane in lanes], threads_of(n_jobs))
    each = (
        bytes_per_feature(rule, store, dtype, [lanes[lane] for lane in share]) for share in shares
    )
    return math.ceil(sum(each) * max(features, 1))
