"""Outputs that learn together: one look at each feature of each row serves all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.model import Output
from thresher.rules import RULES
from thresher.training.outputs import Order, Outputs, Paused
from thresher.training.targets import Targets

if TYPE_CHECKING:
    from thresher.training.recipe import Recipe


class Together(Outputs):
    """All outputs learn from one look at each feature of each row, one lane for each class.

    More may come while learning: a new one learns from then on, and equals a model that never saw
    the rows before. Lanes are numbered as they came, outputs by the order of their classes:
    output k is lane ``lane_of[k]``.

    Parameters
    ----------
    recipe : Recipe
    count : int
        Outputs to begin with.
    """

    def __init__(self, recipe: Recipe, count: int) -> None:
        self.recipe, self.full = recipe, set()
        self._sizes: list[int] = []  # lanes that came at a time
        self._lanes: _core.Lanes | None = None
        self.lane_of = np.arange(count)
        if count:
            self.add(count)

    def add(self, count: int = 1) -> None:
        """Let so many lanes begin to learn now."""
        numbers, words = self.recipe.parameters()
        first = sum(self._sizes)
        targets, recipe = list(range(first, first + count)), self.recipe
        lanes = [numbers] * count, [words] * count, [0] * count, targets
        if self._lanes is None:
            core = RULES[recipe.rule].core
            self._lanes = _core.make_lanes(core, recipe.store, recipe.dtype, recipe.width, *lanes)
        else:
            self._lanes.add(*lanes)
        self._sizes.append(count)

    def expect(self, lane_of: NDArray[np.int64]) -> None:
        """Take a new numbering of the outputs; lanes that are not there yet come by `add`."""
        self.lane_of = lane_of

    def settle(self) -> NDArray[np.bool_]:
        """Forget the outputs that were expected and did not come; tell which are there."""
        there = self.lane_of < sum(self._sizes)
        self.lane_of = self.lane_of[there]
        return there

    @property
    def lanes(self) -> _core.Lanes:
        """The lanes themselves."""
        if self._lanes is None:
            raise ValueError("no output has come yet")
        return self._lanes

    def __len__(self) -> int:
        return len(self.lane_of)

    @property
    def steps(self) -> int:
        """Rows learned by the first lane."""
        return 0 if self._lanes is None else int(self._lanes.steps().max())

    @property
    def tally(self) -> tuple[float, float]:
        """Sums of losses and weights."""
        if self._lanes is None:
            return 0.0, 0.0
        return float(self._lanes.loss_sums().sum()), float(self._lanes.weight_sums().sum())

    @property
    def rate(self) -> float:
        """Learning rate of the last step of the first lane."""
        return float(self.lanes.rates()[0])

    def learn(
        self,
        batch: _core.Batch,
        targets: Targets,
        weights: NDArray[np.float64] | None,
        order: Order,
        first: int,
        last: int,
        paused: Paused = None,
    ) -> None:
        """Learn, all outputs row by row."""
        if self._lanes is None:  # rows before the first that has a class
            return
        batch.set_targets(None, weights)
        numbers = self.lane_of.astype(np.int32)[targets.numbers]
        classes = targets.starts, numbers
        self.lanes.learn(batch, order, first, last, classes=classes, low=targets.low)
        for message in filter(None, self.lanes.divergences):
            raise _core.DivergenceError(message)

    def predict(
        self, batch: _core.Batch, average: bool = False, rows: Order = None
    ) -> NDArray[np.float64]:
        """Return raw predictions."""
        return self.lanes.predict(batch, self.lane_of, rows, average)

    def output(self, number: int, average: bool = False) -> Output:
        """Return what an output has learned."""
        lane = int(self.lane_of[number])
        return Output(
            *self.lanes.weights(lane, average), float(self.lanes.intercepts(average)[lane])
        )

    def outputs(self, average: bool = False, target: int | None = None) -> list[Output]:
        """Return what each output has learned."""
        if self._lanes is None:
            return []
        intercepts = self.lanes.intercepts(average)
        return [
            Output(*self.lanes.weights(lane, average), float(intercepts[lane])).largest(target)
            for lane in self.lane_of.tolist()
        ]

    def nonzeros(self, average: bool = False) -> NDArray[np.int64]:
        """Count the nonzero weights of each output."""
        found = self.lanes.nonzeros(average)
        return np.asarray(found[self.lane_of[self.lane_of < len(found)]])

    def next_pass(self) -> None:
        """Let the rates decay."""
        self.lanes.next_pass()

    def widen(self, width: int) -> None:
        """Take more features."""
        self.recipe = replace(self.recipe, width=width)
        if self._lanes is not None:
            self._lanes.widen(width)

    def states(self) -> list[bytes]:
        """Return how the lanes came, and their common state."""
        about = {"sizes": self._sizes, "lane_of": self.lane_of.tolist()}
        state = b"" if self._lanes is None else self._lanes.state()
        return [json.dumps(about).encode(), state]

    def restore(self, states: Sequence[bytes]) -> None:
        """Go on from a state."""
        if len(states) != 2:
            raise ValueError("it is not of outputs that learned together")
        about = json.loads(states[0])
        if about["sizes"] != self._sizes:
            self._lanes, self._sizes = None, []
            for size in about["sizes"]:
                self.add(size)
        self.lane_of = np.array(about["lane_of"], np.int64)
        if self._lanes is not None:
            self._lanes.restore(states[1])


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

    _lanes: _core.LabelLists | None

    def add(self, count: int = 1) -> None:
        """Let so many classes begin now."""
        recipe, first = self.recipe, sum(self._sizes)
        if self._lanes is None:
            core = RULES[recipe.rule].core
            self._lanes = _core.make_labels(
                core, recipe.dtype, recipe.width, *recipe.parameters(), count
            )
            known = np.zeros(0)
        else:
            known = self._lanes.intercepts()
            self._lanes.grow(first + count)
        self._sizes.append(count)
        if recipe.params.get("fit_intercept", True):
            # Until `plant`, classes known from the beginning count as equally frequent.
            rows = self.steps + 1 if first or count == 1 else count
            new = np.full(count, _log_odds(1, rows))
            self._lanes.plant_intercepts(np.concatenate([known, new]))

    def plant(self, counts: NDArray[np.int64], rows: int) -> None:
        """Start from the log-odds of classes that so many of the rows have."""
        if self.recipe.params.get("fit_intercept", True):
            planted = np.empty(len(counts))
            planted[self.lane_of] = _log_odds(counts, rows)
            self.lanes.plant_intercepts(planted)

    def outputs(self, average: bool = False, target: int | None = None) -> list[Output]:
        """Return what each output has learned."""
        if self._lanes is None:
            return []
        classes, keys, weights = self._lanes.class_weights()
        intercepts = self._lanes.intercepts()
        ends = np.searchsorted(classes, np.arange(len(intercepts) + 1)).tolist()
        return [
            Output(
                keys[ends[lane] : ends[lane + 1]],
                weights[ends[lane] : ends[lane + 1]],
                float(intercepts[lane]),
            )
            for lane in self.lane_of.tolist()
        ]


def _log_odds(counts: NDArray[np.int64] | int, rows: int) -> NDArray[np.float64]:
    """Return the log-odds of classes met so often; none is impossible, and none certain."""
    share = (np.asarray(counts) + 0.5) / (rows + 1.0)
    return np.asarray(np.log(share / (1.0 - share)))
