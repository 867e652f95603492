"""Outputs that learn together: one look at each feature of each row serves all."""

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
    from thresher.training.outputs_factory import Recipe

_GROUP = 240  # lanes of a group: 16 lines of 15, in single precision


class Together(Outputs):
    """All outputs learn from one look at each feature of each row, one lane for each class.

    Of thousands, as many learn a block together as the processor's cache can hold. More may come
    while learning: a new one learns from then on, and equals a model that never saw the rows
    before. Lanes are numbered as they came, outputs by the order of their classes: output k is lane
    ``lane_of[k]``.

    Parameters
    ----------
    recipe : Recipe
    count : int
        Outputs to begin with.
    """

    def __init__(self, recipe: Recipe, count: int) -> None:
        self.recipe, self.full = recipe, set()
        self._sizes: list[int] = []  # lanes that came at a time
        self._groups: list[_core.Lanes] = []
        self.lane_of = np.arange(count)
        if count:
            self.add(count)

    @property
    def there(self) -> int:
        """Number of lanes that came."""
        return sum(self._sizes)

    def add(self, count: int = 1) -> None:
        """Let so many lanes begin to learn now."""
        numbers, words = self.recipe.parameters()
        recipe, core = self.recipe, RULES[self.recipe.rule].core
        for first in range(self.there, self.there + count, _GROUP):
            n = min(_GROUP, self.there + count - first)
            targets = list(range(first, first + n))
            lanes = [numbers] * n, [words] * n, [0] * n, targets
            self._groups.append(
                _core.make_lanes(core, recipe.store, recipe.dtype, recipe.width, *lanes)
            )
        self._sizes.append(count)

    def expect(self, lane_of: NDArray[np.int64]) -> None:
        """Take a new numbering of the outputs; lanes that are not there yet come by `add`."""
        self.lane_of = lane_of

    def settle(self) -> NDArray[np.bool_]:
        """Forget the outputs that were expected and did not come; tell which are there."""
        there = self.lane_of < self.there
        self.lane_of = self.lane_of[there]
        return there

    def __len__(self) -> int:
        return len(self.lane_of)

    @property
    def steps(self) -> int:
        """Rows learned by the first lane."""
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
        """Learn, all outputs of a group row by row; Ctrl-C waits until all groups have learned."""
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
        """Return what an output has learned."""
        return self.outputs(average)[number]

    def outputs(self, average: bool = False, target: int | None = None) -> list[Output]:
        """Return what each output has learned."""
        found = [
            Output(*group.weights(lane, average), float(intercept)).largest(target)
            for group in self._groups
            for lane, intercept in enumerate(group.intercepts(average))
        ]
        return [found[lane] for lane in self.lane_of.tolist() if lane < len(found)]

    def nonzeros(self, average: bool = False) -> NDArray[np.int64]:
        """Count the nonzero weights of each output that is there."""
        found = np.concatenate([group.nonzeros(average) for group in self._groups])
        return np.asarray(found[self.lane_of[self.lane_of < len(found)]])

    def next_pass(self) -> None:
        """Let the rates decay."""
        for group in self._groups:
            group.next_pass()

    def widen(self, width: int) -> None:
        """Take more features."""
        self.recipe = replace(self.recipe, width=width)
        for group in self._groups:
            group.widen(width)

    def states(self) -> list[bytes]:
        """Return how the lanes came, and the state of each group."""
        about = {"sizes": self._sizes, "lane_of": self.lane_of.tolist()}
        return [json.dumps(about).encode(), *(group.state() for group in self._groups)]

    def restore(self, states: Sequence[bytes]) -> None:
        """Go on from states."""
        try:
            about = json.loads(states[0])
            sizes, lane_of = list(about["sizes"]), np.array(about["lane_of"], np.int64)
        except (IndexError, KeyError, TypeError, ValueError):
            raise ValueError("it is not of outputs that learned together") from None
        if sizes != self._sizes:
            self._groups, self._sizes = [], []
            for size in sizes:
                self.add(size)
        self.lane_of = lane_of
        for group, state in zip(self._groups, states[1:], strict=True):
            group.restore(state)


class OnlyNonzero(Together):
    """Outputs of which only the nonzero (feature, class) weights are kept, for many classes.

    All share a clock. A class that comes later begins with no weights, its intercept at the
    log-odds of one row of all so far: with a loss that is zero beyond the margin, the rows before
    would have taught it little.

    Parameters
    ----------
    recipe : Recipe
    count : int
        Outputs to begin with.
    """

    _lists: _core.LabelLists

    def add(self, count: int = 1) -> None:
        """Let so many classes begin now."""
        recipe, first = self.recipe, self.there
        if first == 0:
            core = RULES[recipe.rule].core
            self._lists = _core.make_labels(
                core, recipe.dtype, recipe.width, *recipe.parameters(), count
            )
            self._groups, known = [self._lists], np.zeros(0)
        else:
            known = self._lists.intercepts()
            self._lists.grow(first + count)
        self._sizes.append(count)
        if recipe.params.get("fit_intercept", True):
            # Until `plant`, classes known from the beginning count as equally frequent.
            rows = self.steps + 1 if first or count == 1 else count
            new = np.full(count, _log_odds(1, rows))
            self._lists.plant_intercepts(np.concatenate([known, new]))

    def plant(self, counts: NDArray[np.int64], rows: int) -> None:
        """Start from the log-odds of classes that so many of the rows have."""
        if self.recipe.params.get("fit_intercept", True):
            planted = np.empty(len(counts))
            planted[self.lane_of] = _log_odds(counts, rows)
            self._lists.plant_intercepts(planted)

    def outputs(self, average: bool = False, target: int | None = None) -> list[Output]:
        """Return what each output has learned."""
        if self.there == 0:
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


def _log_odds(counts: NDArray[np.int64] | int, rows: int) -> NDArray[np.float64]:
    """Return the log-odds of classes met so often; none is impossible, and none certain."""
    share = (np.asarray(counts) + 0.5) / (rows + 1.0)
    return np.asarray(np.log(share / (1.0 - share)))
