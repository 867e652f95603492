"""Outputs that learn together: each feature of a row is looked up once for all outputs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.targets import Targets
from thresher.model.model import Output
from thresher.rules import RULES
from thresher.training.outputs import Order, Outputs, Paused

if TYPE_CHECKING:
    from thresher.training.outputs_factory import OutputsFactory

_GROUP = 240  # lanes of a group: 16 lines of 15 lanes in float32


class SharedOutputs(Outputs):
    """Outputs that learn together, one lane for each class.

    Each feature of a row is looked up once for a group of lanes; groups are small enough for the
    processor's cache. Outputs can be added during training: a new one learns from then on, and
    equals a model that has not seen the earlier rows. Lanes are numbered in the order in which
    they were added, outputs in the order of their classes: output k is lane ``lane_of[k]``.

    Parameters
    ----------
    factory : OutputsFactory
    count : int
        Number of outputs at the start.
    """

    def __init__(self, factory: OutputsFactory, count: int) -> None:
        self.factory, self.full = factory, set()
        self._sizes: list[int] = []  # numbers of lanes added by each call of `add`
        self._groups: list[_core.Lanes] = []
        self.lane_of = np.arange(count)
        if count:
            self.add(count)

    @property
    def groups(self) -> list[_core.Lanes]:
        """The groups of lanes, in the order in which they were added."""
        return list(self._groups)

    @property
    def lane_count(self) -> int:
        """Number of lanes added so far."""
        return sum(self._sizes)

    def add(self, count: int = 1) -> None:
        """Add lanes, which learn from now on."""
        numbers, words = self.factory.parameters()
        factory, core = self.factory, RULES[self.factory.rule].core
        for first in range(self.lane_count, self.lane_count + count, _GROUP):
            n = min(_GROUP, self.lane_count + count - first)
            targets = list(range(first, first + n))
            lanes = [numbers] * n, [words] * n, [0] * n, targets
            self._groups.append(
                _core.make_lanes(core, factory.store, factory.dtype, factory.width, *lanes)
            )
        self._sizes.append(count)

    def renumber(self, lane_of: NDArray[np.int64]) -> None:
        """Set the lane of each output; lanes that do not exist yet are added later by `add`."""
        self.lane_of = lane_of

    def drop_missing(self) -> NDArray[np.bool_]:
        """Remove outputs whose lane was not added; return which outputs remain."""
        present = self.lane_of < self.lane_count
        self.lane_of = self.lane_of[present]
        return present

    def __len__(self) -> int:
        return len(self.lane_of)

    @property
    def steps(self) -> int:
        """Number of rows learned by the first lane."""
        return int(self._groups[0].steps().max()) if self._groups else 0

    @property
    def tally(self) -> tuple[float, float]:
        """Sums of losses and weights."""
        return (
            float(sum(group.loss_sums().sum() for group in self._groups)),
            float(sum(group.weight_sums().sum() for group in self._groups)),
        )

    @property
    def rate(self) -> float:
        """Learning rate of the last step of the first lane."""
        return float(self._groups[0].rates()[0])

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
        """Learn, one group after the other; on Ctrl-C, all groups finish these rows first."""
        batch.set_targets(None, weights)
        classes = targets.starts, self.lane_of.astype(np.int32)[targets.numbers]
        stopped: _core.DataError | KeyboardInterrupt | None = None
        for group in self._groups:
            before = int(group.steps().max())
            try:
                group.learn(batch, order, first, last, classes=classes, low=targets.low)
            except _core.DataError as error:
                last, stopped = first + int(group.steps().max()) - before, error
            except KeyboardInterrupt as error:
                stopped = error
        if stopped is not None:
            raise stopped
        for group in self._groups:
            for message in filter(None, group.divergences):
                raise _core.DivergenceError(message)

    def predict(
        self, batch: _core.Batch, average: bool = False, rows: Order = None
    ) -> NDArray[np.float64]:
        """Return raw predictions."""
        parts = [group.predict(batch, None, rows, average) for group in self._groups]
        found = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        in_order = (self.lane_of == np.arange(len(self.lane_of))).all()
        return found if in_order else np.ascontiguousarray(found[:, self.lane_of])

    def output(self, number: int, average: bool = False) -> Output:
        """Return the weights and the intercept of an output."""
        return self.outputs(average)[number]

    def outputs(self, average: bool = False, target: int | None = None) -> list[Output]:
        """Return the weights and the intercept of each output."""
        found = [
            Output(*group.weights(lane, average), float(intercept)).largest(target)
            for group in self._groups
            for lane, intercept in enumerate(group.intercepts(average))
        ]
        return [found[lane] for lane in self.lane_of.tolist() if lane < len(found)]

    def nonzeros(self, average: bool = False) -> NDArray[np.int64]:
        """Count the nonzero weights of each output that has a lane."""
        found = np.concatenate([group.nonzeros(average) for group in self._groups])
        return np.asarray(found[self.lane_of[self.lane_of < len(found)]])

    def next_pass(self) -> None:
        """Let the rates decay."""
        for group in self._groups:
            group.next_pass()

    def widen(self, width: int) -> None:
        """Accept more features."""
        self.factory = replace(self.factory, width=width)
        for group in self._groups:
            group.widen(width)

    def states(self) -> list[bytes]:
        """Return the order of the lanes, and the state of each group."""
        about = {"sizes": self._sizes, "lane_of": self.lane_of.tolist()}
        return [json.dumps(about).encode(), *(group.state() for group in self._groups)]

    def restore(self, states: Sequence[bytes]) -> None:
        """Continue from states."""
        try:
            about = json.loads(states[0])
            sizes, lane_of = list(about["sizes"]), np.array(about["lane_of"], np.int64)
        except (IndexError, KeyError, TypeError, ValueError):
            raise ValueError("its outputs were not trained together") from None
        if sizes != self._sizes:
            self._groups, self._sizes = [], []
            for size in sizes:
                self.add(size)
        self.lane_of = lane_of
        for group, state in zip(self._groups, states[1:], strict=True):
            group.restore(state)


class SparseOutputs(SharedOutputs):
    """Outputs that store only nonzero (feature, class) weights, for many classes.

    All classes have the same clock. A class that is added later starts without weights; its
    intercept is the log-odds of one row among all rows so far. With a loss that is zero beyond the
    margin, the earlier rows would have changed little else.

    Parameters
    ----------
    factory : OutputsFactory
    count : int
        Number of outputs at the start.
    """

    _lists: _core.LabelLists

    def add(self, count: int = 1) -> None:
        """Add classes, which learn from now on."""
        factory, first = self.factory, self.lane_count
        if first == 0:
            core = RULES[factory.rule].core
            self._lists = _core.make_labels(
                core, factory.dtype, factory.width, *factory.parameters(), count
            )
            self._groups, known = [self._lists], np.zeros(0)
        else:
            known = self._lists.intercepts()
            self._lists.grow(first + count)
        self._sizes.append(count)
        if factory.params.get("fit_intercept", True):
            # Until `plant` is called, the first classes count as equally frequent.
            rows = self.steps + 1 if first or count == 1 else count
            new = np.full(count, _log_odds(1, rows))
            self._lists.plant_intercepts(np.concatenate([known, new]))

    def plant(self, counts: NDArray[np.int64], rows: int) -> None:
        """Set the intercepts to the log-odds of the classes, from their numbers of rows."""
        if self.factory.params.get("fit_intercept", True):
            planted = np.empty(len(counts))
            planted[self.lane_of] = _log_odds(counts, rows)
            self._lists.plant_intercepts(planted)

    def outputs(self, average: bool = False, target: int | None = None) -> list[Output]:
        """Return the weights and the intercept of each output."""
        if self.lane_count == 0:
            return []
        classes, keys, weights = self._lists.class_weights()
        intercepts = self._lists.intercepts()
        ends = np.searchsorted(classes, np.arange(len(intercepts) + 1)).tolist()
        return [
            Output(
                keys[ends[lane] : ends[lane + 1]],
                weights[ends[lane] : ends[lane + 1]],
                float(intercepts[lane]),
            )
            for lane in self.lane_of.tolist()
            if lane < len(intercepts)
        ]


def group_count(sizes: Sequence[int], store: str) -> int:
    """Return the number of groups of lanes that were added in these numbers.

    Examples
    --------
    >>> group_count([241, 3], "dense")
    3
    """
    return 1 if store == "nonzero" else sum(-(-size // _GROUP) for size in sizes)


def _log_odds(counts: NDArray[np.int64] | int, rows: int) -> NDArray[np.float64]:
    """Return the log-odds of classes with these counts, smoothed so that they are finite."""
    share = (np.asarray(counts) + 0.5) / (rows + 1.0)
    return np.asarray(np.log(share / (1.0 - share)))
