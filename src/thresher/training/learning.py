"""Outputs taken through blocks of rows, in step, and a record of it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.errors import DataError
from thresher.health.watch import DivergenceWatch
from thresher.losses import Task
from thresher.model import Progress
from thresher.rules import core_args
from thresher.training.alone import Alone
from thresher.training.labels import Arriving, Labels
from thresher.training.outputs import Outputs
from thresher.training.recipe import Recipe
from thresher.training.targets import Targets
from thresher.training.together import OnlyNonzero, Together
from thresher.training.weights import row_weights

if TYPE_CHECKING:
    from thresher.data.block import Block

_FIRST_ROWS = 100  # that tell how large rows are
_NEVER = 2**62  # nonzeros that no learner reaches


class Learning:
    """A model being learned from a stream of blocks.

    What is learned is a function of the rows alone, not of how they are cut into blocks, and not of
    whether learning was interrupted and went on from `state`.

    Parameters
    ----------
    rule : str
        A key of ``RULES``, of a rule that learns row by row.
    task : {"classifier", "regressor"}
    params : mapping
        Checked parameters of the rule.
    labels : Labels
    width : int
        Number of features; 0 for any 64-bit key.
    grows : bool
        Whether features at or above `width` may come; the dense store then grows.
    """

    def __init__(
        self,
        rule: str,
        task: Task,
        params: Mapping[str, Any],
        labels: Labels,
        width: int,
        grows: bool = False,
    ) -> None:
        self.rule, self.task, self.params, self.labels = rule, task, dict(params), labels
        self.grows = grows
        self.made_of = core_args.learner_parameters(rule, self.params)
        self.average = bool(self.made_of.get("average", False))
        self.target: int | None = self.made_of.get("target_nnz")
        self.store = str(self.made_of.get("store", "dense"))
        self.dtype = str(self.made_of.get("dtype", "float64"))
        self._room = max(width, 1) if self.store == "dense" else width
        self.width = 0 if grows else width  # of the rows seen, where it is not known beforehand
        self._columns = max(width, 1)
        self._make_learners()
        self._limit = _NEVER
        if self.params.get("max_density") is not None:
            self._limit = math.ceil(self.params["max_density"] * width)
        if rule == "margin-perceptron":
            for learner in self.alone():
                learner.pause_at(self._limit)
        self.history: list[Progress] = []
        self.watch = DivergenceWatch()
        self.warnings: list[str] = []
        self.steps = 0
        self.recorded = (0.0, 0.0)
        self._began = time.perf_counter()

    def _make_learners(self) -> None:
        known = self.params | ({"alpha": 1.0} if self.params.get("alpha") == "auto" else {})
        recipe = Recipe(self.rule, known, None, self._room, self._columns)
        self.numbers, self.words = recipe.parameters()
        outputs = self.labels.outputs
        try:
            self.learners = recipe.make(outputs, grows=isinstance(self.labels, Arriving))
        except MemoryError:
            raise MemoryError(
                f"no memory for {outputs} x {self._room} weights in a dense store; "
                f"a hashed store needs memory for the features seen alone, and bits bound the width"
            ) from None
        if isinstance(self.learners, OnlyNonzero) and self.labels.counted is not None:
            self.learners.plant(*self.labels.counted)

    def alone(self) -> Alone:
        """Return the learners, of a rule whose outputs each stand alone."""
        assert isinstance(self.learners, Alone)
        return self.learners

    def _set_alpha(self, alpha: float) -> None:
        """Make the learners anew, with FTRL's rate as it is known now."""
        self.params["alpha"] = self.made_of["alpha"] = alpha
        self._make_learners()

    # ---- learning ------------------------------------------------------------------------------

    def learn(self, block: Block, order: NDArray[np.int64] | None = None) -> None:
        """Learn the rows of a block, in this order or as they lie.

        A bad row stops all outputs before it; the error names its place.
        """
        if self.params.get("alpha") == "auto" and block.rows:
            self._set_alpha(alpha_for(block))
        arrivals = self._arrivals(block, order)
        targets = self.labels.targets(block)
        self.make_room(block)
        weights = row_weights(block, targets, self.labels, self.params.get("class_weight"))
        self._expect(targets, weights)
        batch, position, rows, learners = block.batch, 0, block.rows, self.learners
        try:
            while position < rows and len(learners.full) < max(len(learners), 1):
                if arrivals and arrivals[-1] == position:
                    self._begin_outputs(arrivals.count(position))
                    arrivals = [later for later in arrivals if later != position]
                mark = max(128, 1 << self.steps.bit_length())
                end = min(arrivals[-1] if arrivals else rows, position + mark - self.steps)
                try:
                    learners.learn(batch, targets, weights, order, position, end, self._is_full)
                finally:
                    self.steps = learners.steps
                position = end
                if self.steps == mark:
                    self.record()
        except _core.DataError as error:
            raise block.located(error) from None
        finally:
            self._settle()

    def _begin_outputs(self, count: int) -> None:
        assert isinstance(self.learners, Together)
        try:
            self.learners.add(count)
        except MemoryError:
            raise MemoryError(
                "no memory for the weights of another class in a dense store; a hashed store "
                "needs memory for the features seen alone, and bits bound the width"
            ) from None

    def _arrivals(self, block: Block, order: NDArray[np.int64] | None) -> list[int]:
        """Take new classes; return when each comes, the last first."""
        if not isinstance(self.labels, Arriving):
            return []
        found = self.labels.arrivals(block, order)
        if found:
            assert isinstance(self.learners, Together)
            self.learners.expect(self.labels.lane_of)
        return found[::-1]

    def _settle(self) -> None:
        """Forget classes whose first row was not reached."""
        if isinstance(self.labels, Arriving):
            assert isinstance(self.learners, Together)
            self.learners.settle()
            self.labels.keep(len(self.learners))

    def _is_full(self, output: int, learner: _core.Learner) -> bool:
        return learner.facts()["nonzeros"] >= self._limit

    def make_room(self, block: Block) -> None:
        """Let the learners take the block's largest feature number."""
        if not self.grows:
            return
        width = block.width or 2**64
        self.width = max(self.width, width)
        if self._room and width > self._room:
            if self.store == "dense" and width > 2**33:
                raise DataError(
                    f"{block.place(0)}: here or soon after, a feature has a number of 2^33 or "
                    f"more, too many for a dense store; --store hashed takes it, --bits folds it"
                )
            self._widen(width)

    def _widen(self, width: int) -> None:
        if self.grows and self._room and width > self._room:
            self._room = 1 << (width - 1).bit_length()
            try:
                self.learners.widen(self._room)
            except MemoryError:
                raise MemoryError(
                    f"a feature is numbered {width - 1}: no memory for so many weights in a dense "
                    f"store; --store hashed needs memory for the features seen alone, and --bits "
                    f"folds their numbers"
                ) from None

    # ---- the record ----------------------------------------------------------------------------

    @property
    def tally(self) -> tuple[float, float]:
        """Sums of losses and weights so far."""
        return self.learners.tally

    def mean_since(self, before: tuple[float, float] = (0.0, 0.0)) -> float:
        """Return the mean progressive loss since a tally; without one, of all rows so far."""
        loss, weight = self.tally
        return (loss - before[0]) / (weight - before[1]) if weight > before[1] else 0.0

    def nonzeros(self) -> int:
        """Count the weights that are not zero, of all outputs."""
        counts = self.learners.nonzeros(self.average)
        return int(counts.sum() if self.target is None else np.minimum(counts, self.target).sum())

    def record(self, valid: float | None = None, end: bool = False) -> Progress:
        """Add a record of the rows since the one before."""
        # Counting looks at every weight: not before the steps so far have cost more than that.
        counted = end or self.steps >= (self._room if self.store == "dense" else 0) // 16
        record = Progress(
            examples=self.steps,
            loss=self.mean_since(self.recorded),
            nonzeros=self.nonzeros() if counted else None,
            rate=self.learners.rate,
            seconds=self.seconds,
            valid_loss=valid,
        )
        if end and self.history and self.history[-1].examples == self.steps:
            self.history[-1] = self.history[-1]._replace(nonzeros=record.nonzeros, valid_loss=valid)
            return self.history[-1]
        self.recorded = self.tally
        self.history.append(record)
        if self.rule != "margin-perceptron":  # its weights grow as they will
            message = self.watch.see(record)
            if message is not None:
                self.warnings.append(message)
        return record

    def losses(
        self, predictions: NDArray[np.float64], labels: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the losses at raw predictions."""
        loss = self.words["loss"], self.numbers["epsilon"], self.numbers["quantile"]
        return _core.loss_values(*loss, predictions, labels)[0]

    def _expect(self, targets: Targets, weights: NDArray[np.float64] | None) -> None:
        """Tell the watch what predicting zero would cost on these rows."""
        if self.watch.zero_loss is None and targets.rows and len(targets):
            self.watch.expect(
                targets.zero_loss(self.losses, None),
                float(targets.rows if weights is None else weights.sum()),
            )

    def center(self, keys: NDArray[np.uint64], means: NDArray[np.float64]) -> None:
        """Set the mean of the rows, before the first."""
        self._widen(int(keys[-1]) + 1 if len(keys) else 0)
        for learner in self.alone():
            learner.center(keys, means)

    def next_pass(self) -> None:
        """Let the rates decay as after a pass."""
        self.learners.next_pass()

    def adopt(
        self,
        learners: Outputs,
        history: Sequence[Progress],
        recorded: tuple[float, float],
        watch: DivergenceWatch,
    ) -> None:
        """Go on with learners that have learned before."""
        self.learners, self.history, self.recorded = learners, list(history), recorded
        if self.store != "dense" and self._room == 0:
            learners.widen(0)  # those of a matrix took its columns alone
        self.watch = watch
        self.steps = learners.steps
        if self.history:
            self._began = time.perf_counter() - self.history[-1].seconds

    # ---- state ---------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], list[bytes]]:
        """Return all that decides how learning goes on: as JSON, and the learners' own states.

        No times are in it: equal runs have equal states.
        """
        about = {
            "alpha": self.params.get("alpha"),
            "room": self._room,
            "width": self.width,
            "full": sorted(self.learners.full),
            "history": [list(record._replace(seconds=0.0)) for record in self.history],
            "recorded": list(self.recorded),
            "watch": vars(self.watch),
            "labels": self.labels.state,
        }
        return about, self.learners.states()

    def restore(self, about: Mapping[str, Any], states: Sequence[bytes], seconds: float) -> None:
        """Go on from a state, after so many seconds.

        Raises ValueError where it is not one of this learning.
        """
        if self.params.get("alpha") == "auto" and about["alpha"] != "auto":
            self._set_alpha(about["alpha"])
        if about["room"] > self._room:
            self.learners.widen(int(about["room"]))
        self.learners.restore(states)
        self._room, self.width = int(about["room"]), int(about["width"])
        self.learners.full = set(about["full"])
        self.history = [Progress(*record) for record in about["history"]]
        loss, weight = about["recorded"]
        self.recorded = (float(loss), float(weight))
        vars(self.watch).update(about["watch"])
        self.labels.state = about["labels"]
        self.steps = self.learners.steps
        self._began = time.perf_counter() - seconds

    @property
    def seconds(self) -> float:
        """Time spent so far, over all runs."""
        return time.perf_counter() - self._began


def alpha_for(block: Block) -> float:
    """Return a rate for FTRL that fits the size of the rows: 1 for rows of norm 1.

    A first step moves each weight of a row by about alpha, and so the prediction by alpha times the
    squared norm: rows of many features need less. The first rows decide, by the median of their
    norms, so that neither the format nor a few huge rows matter.
    """
    starts = np.asarray(block.native.starts)[: _FIRST_ROWS + 1].astype(np.int64)
    values = np.asarray(block.native.values, np.float64)[: starts[-1]]
    sums = np.concatenate([[0.0], np.cumsum(values * values)])[starts]
    norm = math.sqrt(float(np.median(np.diff(sums))))
    return float(f"{1 / norm:.2g}") if norm > 0 else 1.0
