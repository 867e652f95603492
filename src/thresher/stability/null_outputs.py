"""Models that learn labels without signal, from the same reading as the models of the halves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.targets import Targets
from thresher.stability.no_signal import RandomLabels
from thresher.training.lane_outputs import LaneOutputs, LanePlan, Seen
from thresher.training.outputs import Order, Paused


class NullLabels:
    """Targets that have nothing to do with the rows, and the halves of these rows.

    Rows in memory get a permutation of their labels. Rows of a source get labels of random earlier
    rows, as in `RandomLabels`.

    Parameters
    ----------
    seed : int
    membership : callable
        Returns the halves of each row, as for `LanePlan.seen`; its own.
    in_memory : bool
        Whether the rows are one block in memory.
    """

    def __init__(self, seed: int, membership: Seen, in_memory: bool) -> None:
        self.seed, self.membership, self.in_memory = seed, membership, in_memory
        self._random = RandomLabels(seed)
        self._of: Targets | None = None
        self._made: Targets | None = None

    def targets(self, targets: Targets, row: int) -> Targets:
        """Return other targets of a block.

        Parameters
        ----------
        targets : Targets
        row : int
            Number of its first row; 0 starts a pass.
        """
        if targets is not self._of or self._made is None:
            self._of, self._made = targets, self._drawn(targets, row)
        return self._made

    def _drawn(self, targets: Targets, row: int) -> Targets:
        if self.in_memory:
            order = np.random.default_rng(self.seed).permutation(targets.rows)
            return targets.of_rows(order.astype(np.int64))
        if row == 0:
            self._random.begin()
        if targets.values is not None:
            return Targets.of_values(self._random.drawn(targets.values))
        return Targets.of_classes(
            self._random.drawn(targets.single()), targets.outputs, targets.low
        )


class NullOutputs(LaneOutputs):
    """Lanes that learn the labels, and for each of some `NullLabels` the same lanes.

    If there is not enough memory for all, those of the last labels are dropped.

    Attributes
    ----------
    nulls : list of LaneOutputs
        The lanes of each of the labels.
    """

    plan: NullPlan

    def __init__(self, made: LaneOutputs, plan: NullPlan, nulls: list[LaneOutputs]) -> None:
        super().__init__(made.team, made.averages, plan, scale=made.scale)
        self.nulls = nulls

    def learn(
        self,
        batch: _core.Batch,
        targets: Targets,
        weights: NDArray[np.float64] | None,
        order: Order,
        first: int,
        last: int,
        paused: Paused = None,
        row: int = 0,
    ) -> None:
        """Let the lanes learn rows with the labels, then with all others."""
        super().learn(batch, targets, weights, order, first, last, paused, row)
        factors = self.plan.class_factors()
        for labels, null in zip(self.plan.labels_without_signal, self.nulls, strict=False):
            other, own = labels.targets(targets, row), weights
            if factors is not None and weights is not None:  # of the other class
                before = factors[targets.single()]
                base = np.divide(weights, before, out=np.ones_like(weights), where=before > 0)
                own = base * factors[other.single()]
            null.learn(batch, other, own, order, first, last, paused, row)
        if self.plan.store == "hashed" and self.nulls:
            sizes = [null.team.store_bytes for null in self.nulls]
            self._drop(self.team.store_bytes, max(sizes))

    def widen(self, width: int) -> None:
        """Accept more features, if the memory limit allows it."""
        super().widen(width)
        needed = self.plan.bytes_of(width)
        self._drop(needed, needed)
        for null in self.nulls:
            null.widen(width)

    def next_pass(self) -> None:
        """Let the rates decay."""
        super().next_pass()
        for null in self.nulls:
            if null.scale is not None:
                null.scale.fixed = True
            null.next_pass()

    def close(self) -> None:
        """End all threads."""
        for outputs in (self, *self.nulls):
            outputs.team.close()

    def _drop(self, own: float, each: float) -> None:
        while self.nulls and own + each * len(self.nulls) > self.plan.limit:
            self.nulls.pop().team.close()


@dataclass(frozen=True)
class NullPlan(LanePlan):
    """A plan of lanes that also learn labels without signal.

    Attributes
    ----------
    labels_without_signal : tuple of NullLabels
        Each is learned by its own copy of all lanes. The other attributes are those of `LanePlan`.
    """

    labels_without_signal: tuple[NullLabels, ...] = ()

    def make(self, features: int) -> NullOutputs:
        """Make the lanes; their stores can hold this number of features."""
        own: dict[str, Any] = {k: v for k, v in vars(self).items() if k != "labels_without_signal"}
        fitting = self._fitting(features)
        nulls = [
            LanePlan(**{**own, "seen": labels.membership}).make(features) for labels in fitting
        ]
        return NullOutputs(super().make(features), self, nulls)

    def _fitting(self, features: int) -> Sequence[NullLabels]:
        """Return as many labels as there is memory for."""
        if self.store != "dense" or not self.labels_without_signal:
            return self.labels_without_signal
        fitting = self.limit / max(1, self.bytes_of(max(features, 1))) - 1
        return self.labels_without_signal[: int(max(0, min(fitting, 1e6)))]
