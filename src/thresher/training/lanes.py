"""Lanes on several threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.threads import threads_of
from thresher.training.lane_turns import Turns

_READ = 0.1  # work of reading a row that a lane does not learn, in units of learning it
_SCORED = 1 << 12  # rows that a thread scores at a time

ScoreCall = tuple[
    _core.Batch, NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], str, float, int, bool
]


@dataclass(frozen=True)
class Lane:
    """One of several models that train together: its parameters, its rows and its targets.

    Parameters
    ----------
    numbers, words : mapping
        Its parameters, from `core_args.core_parameters`.
    clock : int
        Its column of `seen`: lanes with the same clock learn the same rows.
    target : int
        The number of its class; -1: it learns the labels themselves.
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
    """Lanes split over threads, with the methods of `_core.Lanes`.

    Results are the same for any number of threads. `Turns` describes who works on which lanes.

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
        Number of threads; None is 1, -1 is one for each processor.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import FTRLClassifier
    >>> from thresher.rules import core_args
    >>> from thresher.data import as_batch
    >>> from thresher.training.lanes import Lane, LaneTeam
    >>> points = [FTRLClassifier(l1=l1, alpha=1.0).get_params() for l1 in (0.0, 9.0)]
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
        self._turns = Turns.of([lane.clock for lane in lanes], threads_of(n_jobs))
        shares, threads = self._turns.parts, self._turns.threads
        self._clocks = np.array([lane.clock for lane in lanes], np.int64)
        self._members = [np.array(share, np.int64) for share in shares]
        self._parts = [
            make_lanes(rule, store, dtype, width, [lanes[lane] for lane in share])
            for share in shares
        ]
        self._home = np.zeros((len(lanes), 2), np.int64)  # part of each lane, and number in it
        for part, share in enumerate(shares):
            self._home[share, 0], self._home[share, 1] = part, np.arange(len(share))
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

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
        scaled: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    ) -> NDArray[np.float64] | None:
        """Let each lane learn the rows of order[first:last] that its clock sees.

        Parameters are those of `_core.Lanes.learn`.
        """
        if last is None:
            last = len(order) if order is not None else batch.rows

        def learn_rows(part: int, a: int, b: int) -> Any:
            call = batch, order, a, b, seen, classes, low, before, scaled
            return self._parts[part].learn(*call)

        if self._pool is None:
            found = [[learn_rows(part, first, last)] for part in range(len(self._parts))]
        else:
            rows = slice(first, last) if order is None else order[first:last]
            work = self._work(None if seen is None else seen[rows], last - first)
            found = self._turns.run(self._pool, learn_rows, first, last, work)
        return self._columns([np.concatenate(rows) for rows in found]) if before else None

    def next_pass(self) -> None:
        """Let the rates decay as after a pass over the data."""
        for part in self._parts:
            part.next_pass()

    def widen(self, width: int) -> None:
        """Accept feature numbers below a larger width from now on."""
        self._each(lambda part: part.widen(width))

    def states(self) -> list[bytes]:
        """Return the state of each part."""
        return [part.state() for part in self._parts]

    def restore(self, states: Sequence[bytes]) -> None:
        """Continue from the states of the parts; raise ValueError if they are of other lanes."""
        for part, state in zip(self._parts, states, strict=True):
            part.restore(state)

    # ---- results -------------------------------------------------------------------------------

    def predict(
        self,
        batch: _core.Batch,
        lanes: NDArray[np.int64] | None = None,
        order: NDArray[np.int64] | None = None,
        average: bool = False,
        finite: bool = True,
    ) -> NDArray[np.float64]:
        """Return raw predictions of these lanes (None: all) for these rows: rows x lanes.

        A prediction that is not finite is an error, unless `finite` is False.
        """
        wanted = np.arange(len(self)) if lanes is None else np.asarray(lanes, np.int64)
        parts, numbers = self._home[wanted].T
        columns = [np.flatnonzero(parts == part) for part in range(len(self._parts))]

        def predict_part(part: int) -> NDArray[np.float64]:
            own = np.ascontiguousarray(numbers[columns[part]])
            return self._parts[part].predict(batch, own, order, average, finite)

        used = [part for part, own in enumerate(columns) if len(own)]
        if self._pool is None or len(used) == 1:
            found = [predict_part(part) for part in used]
        else:
            found = list(self._pool.map(predict_part, used))
        rows = len(order) if order is not None else batch.rows
        out = np.empty((rows, len(wanted)))
        for part, values in zip(used, found, strict=True):
            out[:, columns[part]] = values
        return out

    def scores(self, asked: Sequence[ScoreCall]) -> list[NDArray[np.float64]]:
        """Return the sums of `_core.Lanes.score` for each of some calls.

        All threads work on all calls at the same time. The lanes of a model must be in one part,
        unless it has only one.

        Parameters
        ----------
        asked : sequence of tuple
            Batch, lanes, rows, truth, kind, middle, outputs and average of each call.
        """
        found, tasks = [np.zeros(len(call[1]) // call[6]) for call in asked], []
        for sums, call in zip(found, asked, strict=True):
            parts, numbers = self._home[call[1]].T
            for part in np.unique(parts).tolist():
                own = np.flatnonzero(parts[:: call[6]] == part)
                chosen = np.ascontiguousarray(numbers.reshape(-1, call[6])[own].ravel())
                for first in range(0, len(call[2]), _SCORED):
                    tasks.append((sums, call, part, own, chosen, slice(first, first + _SCORED)))

        def score_rows(task: Any) -> Any:
            _, (batch, _, rows, truth, *how), part, _, chosen, some = task
            return self._parts[part].score(batch, chosen, rows[some], truth[some], *how)

        # The sums of the same rows are added in the same order for any number of threads.
        each = map if self._pool is None else self._pool.map
        for (sums, _, _, own, _, _), added in zip(tasks, each(score_rows, tasks), strict=True):
            sums[own] += added
        return found

    def weights(
        self, lane: int, average: bool = False
    ) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Return the nonzero weights of a lane: keys in increasing order, and values."""
        part, number = self._home[lane].tolist()
        keys, weights = self._parts[part].weights(number, average)
        return keys, weights

    def nonzeros(self, average: bool = False) -> NDArray[np.int64]:
        """Count the nonzero weights of each lane."""
        return self._values(lambda part: part.nonzeros(average), threads=True)

    def intercepts(self, average: bool = False) -> NDArray[np.float64]:
        """Return the intercept of each lane."""
        return self._values(lambda part: part.intercepts(average))

    def steps(self) -> NDArray[np.int64]:
        """Return the number of rows that each lane has learned."""
        return self._values(lambda part: part.steps())

    def loss_sums(self) -> NDArray[np.float64]:
        """Return the sum of the progressive losses times sample weights, for each lane."""
        return self._values(lambda part: part.loss_sums())

    def weight_sums(self) -> NDArray[np.float64]:
        """Return the sum of the sample weights, for each lane."""
        return self._values(lambda part: part.weight_sums())

    def rates(self) -> NDArray[np.float64]:
        """Return the learning rate of each lane's last step."""
        return self._values(lambda part: part.rates())

    @property
    def divergences(self) -> list[str]:
        """For each lane, the message of the divergence that stopped it; empty: none did."""
        found = [part.divergences for part in self._parts]
        return [found[part][number] for part, number in self._home.tolist()]

    @property
    def store_bytes(self) -> int:
        """Memory of the stores."""
        return sum(part.store_bytes for part in self._parts)

    def __len__(self) -> int:
        return len(self._home)

    def in_one_part(self, lanes: NDArray[np.int64]) -> bool:
        """Tell whether one thread has all of these lanes."""
        parts = self._home[lanes, 0]
        return bool((parts == parts[0]).all())

    # ---- threads -------------------------------------------------------------------------------

    def close(self) -> None:
        """End the threads. All methods still work, in the caller's thread."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _work(self, seen: NDArray[np.uint8] | None, rows: int) -> list[float]:
        """Return the amount of work of each part: lanes times rows, of which few are only read."""
        counts = np.full(1 + self._clocks.max(initial=0), rows)
        if seen is not None and seen.shape[1] >= len(counts):  # the core refuses fewer columns
            counts = np.count_nonzero(seen, axis=0)
        each = _READ * rows + counts[self._clocks]
        return [float(each[share].sum()) for share in self._members]

    def _each(self, act: Callable[[_core.Lanes], Any]) -> list[Any]:
        if self._pool is None:
            return [act(part) for part in self._parts]
        futures = [self._pool.submit(act, part) for part in self._parts]
        wait(futures)  # if one thread fails, the others finish first
        return [future.result() for future in futures]

    def _values(
        self, ask: Callable[[_core.Lanes], NDArray[Any]], threads: bool = False
    ) -> NDArray[Any]:
        """Return a value for each lane; with threads only if `ask` is much work."""
        found = self._each(ask) if threads else [ask(part) for part in self._parts]
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
