"""Models of complementary halves as lanes: all of them learn from one reading of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.errors import DivergenceError, ParameterError
from thresher.model import Output
from thresher.rules import RULES
from thresher.search.grid import OF_THE_RUN, Point, check_searchable, lanes_of, point_of
from thresher.stability.dealing import Dealer
from thresher.training.lanes import LaneTeam, bytes_per_feature
from thresher.training.targets import Targets

# Parameters that all models of a reading have in common, or that none of them has.
_SHARED = frozenset((*OF_THE_RUN, "loss", "tol", "patience", "warm_start", "callback"))


def checked_lanes(
    owner: str, estimator: Any, varied: str | None, values: Sequence[Mapping[str, Any]]
) -> list[Point]:
    """Return the estimator with each value of the parameter that is varied.

    Raises ParameterError where they cannot be trained as lanes.
    """
    check_searchable(estimator)
    if varied in _SHARED:
        able = sorted(set(RULES[estimator.rule].parameters) - _SHARED)
        raise ParameterError(
            f"{owner}: param_name must be a parameter that models of one reading may differ in, "
            f"one of {', '.join(able)}; got {varied!r}"
        )
    points = [point_of(estimator, number, value) for number, value in enumerate(values)]
    if points[0].params.get("class_weight") == "balanced":
        raise ParameterError(
            f"{owner}: class_weight='balanced' depends on all rows of a half; give a dict of "
            f"weights"
        )
    return points


class LanedHalves:
    """A model for each half, value of a parameter and output, all learned at once.

    Parameters
    ----------
    estimator : estimator
    points : sequence of Point
        The estimator with each value of the parameter, checked.
    dealer : Dealer
        Tells which rows a half has.
    classes : int
        Number of classes; 1 for a regression.
    width : int
        Number of features; 0: not known yet.
    rows : int or None
        Rows of a half, where that is known beforehand.
    limit : int
        Bytes that models may take.
    n_jobs : int or None
        Threads.
    """

    def __init__(
        self,
        estimator: Any,
        points: Sequence[Point],
        dealer: Dealer,
        classes: int,
        width: int,
        rows: int | None,
        limit: int,
        n_jobs: int | None,
    ) -> None:
        self.dealer, self.points, self.limit = dealer, points, limit
        self.outputs = classes if classes > 2 else 1
        params = points[0].params
        self.core = RULES[estimator.rule].core
        self.store = str(params.get("store", "dense"))
        self.dtype = str(params.get("dtype", "float64"))
        self.room = max(width, 1) if self.store == "dense" else width
        self._lanes = [
            lane
            for point in points
            for half in range(2 * dealer.pairs)
            for lane in lanes_of(estimator.rule, point.params, rows, max(width, 1), half, classes)
        ]
        if self.store == "dense":
            self._check_room()
        self._team = LaneTeam(self.core, self.store, self.dtype, self.room, self._lanes, n_jobs)

    def _check_room(self) -> None:
        """Raise MemoryError where a dense store of so many features is beyond the limit."""
        each = bytes_per_feature(self.core, self.store, self.dtype, self._lanes)
        self._check_bytes(each * self.room)

    def _check_bytes(self, needed: float) -> None:
        if needed > self.limit:
            raise MemoryError(
                f"{len(self._lanes)} models take {needed:,.0f} bytes, and memory_limit is "
                f"{self.limit:,}; fewer pairs or values, or store='hashed', need less"
            )

    def learn(
        self,
        batch: _core.Batch,
        targets: Targets,
        weights: NDArray[np.float64] | None,
        halves: NDArray[np.uint8],
        width: int,
        order: NDArray[np.int64] | None = None,
    ) -> None:
        """Let each half learn those rows that it has."""
        if self.room and width > self.room:
            self.room = 1 << (width - 1).bit_length()
            if self.store == "dense":
                self._check_room()
            self._team.widen(self.room)
        batch.set_targets(targets[0], weights)
        classes = None
        if self.outputs > 1:
            starts = np.arange(len(halves) + 1, dtype=np.int64)
            classes = starts, targets.single().astype(np.int32)
        self._team.learn(batch, order, seen=halves, classes=classes, low=self.points[0].low)
        self._check_bytes(self._team.store_bytes)
        for lane, what in enumerate(self._team.divergences):
            if what:
                half = lane // self.outputs % (2 * self.dealer.pairs)
                raise DivergenceError(f"half {half % 2 + 1} of pair {half // 2 + 1}: {what}")

    def close(self) -> None:
        """End the threads."""
        self._team.close()

    def next_pass(self) -> None:
        """Let the rates decay as after a pass."""
        self._team.next_pass()

    def support(self, half: int, value: int) -> NDArray[np.int64]:
        """Return the features that a half selects with a value of the parameter."""
        first = (value * 2 * self.dealer.pairs + half) * self.outputs
        average = self.points[value].average
        target = self.points[value].params.get("target_nnz")
        found = [
            Output(*self._team.weights(lane, average), 0.0).largest(target).keys
            for lane in range(first, first + self.outputs)
        ]
        return np.unique(np.concatenate(found)).astype(np.int64)
