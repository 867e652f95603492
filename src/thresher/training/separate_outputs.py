"""Outputs with one learner each, which threads can share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.targets import Losses, Targets
from thresher.losses import LOSSES
from thresher.model.model import Output
from thresher.rules import RULES, core_args
from thresher.sums import dot, ordered_sum
from thresher.threads import threads_of
from thresher.training.in_threads import in_threads
from thresher.training.outputs import Order, Outputs, Paused

if TYPE_CHECKING:
    from thresher.training.outputs_factory import OutputsFactory


_MUCH = 5000  # rows times outputs; with fewer, starting threads takes longer than learning


class SeparateOutputs(Outputs):
    """Outputs with one learner each; every learner looks up the features of a row itself.

    Parameters
    ----------
    factory : OutputsFactory
    count : int

    Attributes
    ----------
    n_jobs : int or None
        Number of threads that learn, as `n_jobs` of estimators.
    """

    def __init__(self, factory: OutputsFactory, count: int) -> None:
        self.factory, self.full, self.scale = factory, set(), factory.scale()
        self.n_jobs: int | None = factory.params.get("n_jobs")
        numbers, words = factory.parameters()
        core = RULES[factory.rule].core
        self.learners = [
            _core.make_learner(core, factory.store, factory.dtype, factory.width, numbers, words)
            for _ in range(count)
        ]

    def __len__(self) -> int:
        return len(self.learners)

    def __iter__(self) -> Iterator[_core.Learner]:
        return iter(self.learners)

    def __getitem__(self, output: int) -> _core.Learner:
        """Return the learner of an output."""
        return self.learners[output]

    @property
    def steps(self) -> int:
        """Number of rows learned by the output that learned the most; others may be full."""
        return max(learner.steps for learner in self.learners)

    @property
    def tally(self) -> tuple[float, float]:
        """Sums of losses and weights."""
        return (
            ordered_sum(learner.loss_sum for learner in self.learners),
            ordered_sum(learner.weight_sum for learner in self.learners),
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
        paused: Paused = None,
        row: int = 0,
    ) -> None:
        """Learn, `n_jobs` outputs at a time; on Ctrl-C, all outputs finish these rows first.

        If outputs diverge, the others finish the rows; then the error of the first one is raised.
        """
        much = self.scale is None and (last - first) * len(self) >= _MUCH
        threads = min(threads_of(self.n_jobs), len(self)) if much else 1
        reached, lock = [first] * len(self), Lock()
        diverged: dict[int, _core.DivergenceError] = {}

        def advance(output: int, last: int) -> None:
            learner, rows = self.learners[output], batch if threads < 2 else batch.copy()

            def goes_on() -> bool:
                return reached[output] < last and output not in self.full | diverged.keys()

            if goes_on():
                rows.set_targets(targets[output], weights)
            while goes_on():
                begin, before = reached[output], learner.steps
                scale, end = self.scale, last
                if scale is not None:
                    given = targets[output], weights, order, begin
                    kept, made = scale.table.copy(), scale.standardise(*given, last)
                    end = made.end
                    rows.set_targets(made.labels.ravel(), weights, made.units.ravel())
                try:
                    learner.learn(rows, order, begin, end)
                except _core.DivergenceError as error:
                    diverged[output] = error
                finally:
                    reached[output] += learner.steps - before
                    if scale is not None and reached[output] < end:  # only rows learned count
                        scale.table = kept
                        scale.standardise(*given, reached[output])
                if output not in diverged and learner.paused and paused is not None:
                    with lock:
                        if paused(output, learner):
                            self.full.add(output)

        def all_to(last: int) -> None:
            in_threads(lambda output: advance(output, last), range(len(self)), threads)

        try:
            all_to(last)
        except _core.DataError:
            all_to(max(reached))
            raise
        except KeyboardInterrupt:
            all_to(last)
            raise
        if diverged:
            raise diverged[min(diverged)]

    def predict(
        self, batch: _core.Batch, average: bool = False, rows: Order = None
    ) -> NDArray[np.float64]:
        """Return raw predictions, one column for each output."""
        found = np.column_stack([learner.predict(batch, average) for learner in self.learners])
        found = found if self.scale is None else self.scale.restored(found)
        return found if rows is None else found[rows]

    def output(self, number: int, average: bool = False) -> Output:
        """Return the weights and the intercept of an output."""
        learner = self.learners[number]
        found = Output(*learner.weights(average), learner.intercept(average))
        return found if self.scale is None else self.scale.output(found)

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
        """Return the weighted sum over rows of the mean loss over outputs."""
        total = 0.0
        for learner, target in zip(self.learners, targets, strict=True):
            raw = learner.predict(batch, average)
            found = losses(raw if self.scale is None else self.scale.restored(raw), target)
            total += float(found.sum()) if weights is None else dot(found, weights)
        return total / len(self)

    def losses(self, losses: Losses) -> Losses:
        """Return losses for predictions and targets in the user's units.

        A rule that standardises targets in the core has its automatic epsilon in units of their sd.
        """
        rule = RULES[self.factory.rule]
        if not rule.standardises_in_core or self.factory.params.get("epsilon") != "auto":
            return super().losses(losses)
        unit = self.learners[0].facts()["unit"] or 1.0
        degree = LOSSES[core_args.loss_of(self.factory.rule, self.factory.params)].degree
        return lambda raw, targets: unit**degree * losses(raw / unit, targets / unit)

    def next_pass(self) -> None:
        """Let the rates decay."""
        for learner in self.learners:
            learner.next_pass()

    def widen(self, width: int) -> None:
        """Accept more features."""
        for learner in self.learners:
            learner.widen(width)

    def states(self) -> list[bytes]:
        """Return the states of the learners, and the scale of the targets, if there is one."""
        scale = [] if self.scale is None else [self.scale.state()]
        return [*(learner.state() for learner in self.learners), *scale]

    def restore(self, states: Sequence[bytes]) -> None:
        """Continue from states."""
        if self.scale is not None:
            *states, scale = states
            self.scale.restore(scale)
        if len(states) != len(self):
            raise ValueError(f"it has {len(states)} outputs, and this model has {len(self)}")
        for learner, state in zip(self.learners, states, strict=True):
            learner.restore(state)
