"""The outputs of a model being learned: each alone, or all together from one look at each row."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core, settings
from thresher.model import Output
from thresher.rules import RULES
from thresher.training.targets import Losses, Targets

_CELLS = 1 << 22  # predictions held at a time

Order = NDArray[np.int64] | None


@dataclass(frozen=True)
class Recipe:
    """What outputs are made of.

    Attributes
    ----------
    rule : str
        A key of ``RULES``.
    params : mapping
        Checked parameters.
    rows : int or None
        Number of rows; None where it is not known beforehand.
    width : int
        Number of features the store takes; 0 for any 64-bit key.
    columns : int
        Number of features, by which some rules go.
    """

    rule: str
    params: Mapping[str, Any]
    rows: int | None
    width: int
    columns: int

    @property
    def store(self) -> str:
        """Where the weights live."""
        return str(self.params.get("store", "dense"))

    @property
    def dtype(self) -> str:
        """Number type of the weights."""
        return str(self.params.get("dtype", "float64"))

    def parameters(self) -> tuple[dict[str, float], dict[str, str]]:
        """Return what the core is told."""
        return settings.core_parameters(self.rule, self.params, self.rows, self.columns)

    def together(self, outputs: int) -> bool:
        """Tell whether so many outputs learn together.

        Those stand alone whose rule pauses, keeps facts of its own for certificates, looks at all
        weights in each step, or is given the mean of the rows.
        """
        return (
            outputs > 1
            and self.rule not in ("margin-perceptron", "mirror-descent")
            and not any(self.params.get(name) for name in ("certify", "target_nnz", "center"))
        )

    def make(self, outputs: int, grows: bool = False) -> Outputs:
        """Make so many outputs; `grows`: more will come."""
        together = self.together(2 if grows else outputs)
        return Together(self, outputs) if together else Alone(self, outputs)

    def restore(self, states: Sequence[bytes], outputs: int) -> Outputs:
        """Make outputs of the states that ``Outputs.states`` returned."""
        made: Outputs = Together(self, 0) if self.together(outputs) else Alone(self, outputs)
        made.restore(states)
        return made


class Outputs(ABC):
    """Outputs that learn from the same rows, in step.

    Attributes
    ----------
    full : set of int
        Outputs that have stopped learning for good.
    """

    full: set[int]

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of outputs."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """Rows learned, by the output that learned the most."""

    @property
    @abstractmethod
    def tally(self) -> tuple[float, float]:
        """Sums of the progressive losses and of the weights of the rows, of all outputs."""

    @property
    @abstractmethod
    def rate(self) -> float:
        """Learning rate of the last step."""

    @abstractmethod
    def learn(
        self,
        batch: _core.Batch,
        targets: Targets,
        weights: NDArray[np.float64] | None,
        order: Order,
        first: int,
        last: int,
    ) -> None:
        """Let all outputs learn the rows order[first:last].

        A bad row stops all outputs before it, so that they stay in step. Divergence of one of
        several outputs leaves them out of step.
        """

    @abstractmethod
    def predict(
        self, batch: _core.Batch, average: bool = False, rows: Order = None
    ) -> NDArray[np.float64]:
        """Return raw predictions of these rows (None: all), one column for each output."""

    @abstractmethod
    def output(self, number: int, average: bool = False) -> Output:
        """Return what an output has learned."""

    @abstractmethod
    def nonzeros(self, average: bool = False) -> NDArray[np.int64]:
        """Count the nonzero weights of each output."""

    @abstractmethod
    def next_pass(self) -> None:
        """Let the rates decay as after a pass."""

    @abstractmethod
    def widen(self, width: int) -> None:
        """Take feature numbers below a larger width from now on; 0: all."""

    @abstractmethod
    def states(self) -> list[bytes]:
        """Return all that decides how learning goes on."""

    @abstractmethod
    def restore(self, states: Sequence[bytes]) -> None:
        """Go on from states; raise ValueError where they are not of such outputs."""

    def outputs(self, average: bool = False, target: int | None = None) -> list[Output]:
        """Return what each output has learned; of its weights the `target` largest."""
        return [self.output(i, average).largest(target) for i in range(len(self))]

    def loss_on(
        self,
        batch: _core.Batch,
        targets: Targets,
        losses: Losses,
        weights: NDArray[np.float64] | None = None,
        average: bool = False,
    ) -> float:
        """Return the sum over rows of the mean loss over outputs, each row by its weight."""
        total, step = 0.0, max(1, _CELLS // max(len(self), 1))
        for first in range(0, targets.rows, step):
            last = min(first + step, targets.rows)
            rows = None if last - first == targets.rows else np.arange(first, last)
            found = targets.row_losses(self.predict(batch, average, rows), losses, first)
            total += float(found.sum() if weights is None else found @ weights[first:last])
        return total


class Alone(Outputs):
    """Each output is a learner of its own, which looks up every feature of every row itself.

    Parameters
    ----------
    recipe : Recipe
    count : int
    """

    def __init__(self, recipe: Recipe, count: int) -> None:
        self.recipe, self.full = recipe, set()
        numbers, words = recipe.parameters()
        core = RULES[recipe.rule].core
        self.learners = [
            _core.make_learner(core, recipe.store, recipe.dtype, recipe.width, numbers, words)
            for _ in range(count)
        ]

    # Called with an output and its learner when the learner pauses: does the output stop for good?
    paused: Callable[[int, _core.Learner], bool] = staticmethod(lambda output, learner: False)

    def __len__(self) -> int:
        return len(self.learners)

    def __iter__(self) -> Iterator[_core.Learner]:
        return iter(self.learners)

    def __getitem__(self, output: int) -> _core.Learner:
        """Return the learner of an output."""
        return self.learners[output]

    @property
    def steps(self) -> int:
        """Rows learned, by the output that learned the most: others may be full."""
        return max(learner.steps for learner in self.learners)

    @property
    def tally(self) -> tuple[float, float]:
        """Sums of losses and weights."""
        return (
            sum(learner.loss_sum for learner in self.learners),
            sum(learner.weight_sum for learner in self.learners),
        )

    @property
    def rate(self) -> float:
        """Learning rate of the last step."""
        return self.learners[0].rate

    def learn(
        self,
        batch: _core.Batch,
        targets: Targets,
        weights: NDArray[np.float64] | None,
        order: Order,
        first: int,
        last: int,
    ) -> None:
        """Learn, one output after the other; Ctrl-C waits until all have learned."""
        reached = [first] * len(self)

        def advance(last: int) -> None:
            for output, learner in enumerate(self.learners):
                if reached[output] < last and output not in self.full:
                    batch.set_targets(targets[output], weights)
                while reached[output] < last and output not in self.full:
                    before = learner.steps
                    try:
                        learner.learn(batch, order, reached[output], last)
                    finally:
                        reached[output] += learner.steps - before
                    if learner.paused and self.paused(output, learner):
                        self.full.add(output)

        try:
            advance(last)
        except _core.DataError:
            advance(max(reached))
            raise
        except KeyboardInterrupt:
            advance(last)
            raise

    def predict(
        self, batch: _core.Batch, average: bool = False, rows: Order = None
    ) -> NDArray[np.float64]:
        """Return raw predictions, one output after the other."""
        found = np.column_stack([learner.predict(batch, average) for learner in self.learners])
        return found if rows is None else found[rows]

    def output(self, number: int, average: bool = False) -> Output:
        """Return what an output has learned."""
        learner = self.learners[number]
        return Output(*learner.weights(average), learner.intercept(average))

    def nonzeros(self, average: bool = False) -> NDArray[np.int64]:
        """Count the nonzero weights of each output."""
        return np.array([learner.nonzeros(average) for learner in self.learners], np.int64)

    def loss_on(
        self,
        batch: _core.Batch,
        targets: Targets,
        losses: Losses,
        weights: NDArray[np.float64] | None = None,
        average: bool = False,
    ) -> float:
        """Return the sum over rows of the mean loss, one output after the other."""
        total = 0.0
        for learner, target in zip(self.learners, targets, strict=True):
            found = losses(learner.predict(batch, average), target)
            total += float(found.sum() if weights is None else found @ weights)
        return total / len(self)

    def next_pass(self) -> None:
        """Let the rates decay."""
        for learner in self.learners:
            learner.next_pass()

    def widen(self, width: int) -> None:
        """Take more features."""
        for learner in self.learners:
            learner.widen(width)

    def states(self) -> list[bytes]:
        """Return the states of the learners."""
        return [learner.state() for learner in self.learners]

    def restore(self, states: Sequence[bytes]) -> None:
        """Go on from states."""
        if len(states) != len(self):
            raise ValueError(f"it is of {len(states)} outputs, and this is of {len(self)}")
        for learner, state in zip(self.learners, states, strict=True):
            learner.restore(state)


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
        return np.asarray(self.lanes.nonzeros(average)[self.lane_of])

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
