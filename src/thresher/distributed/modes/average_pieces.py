"""Parts and ranges of the mode "average": they train for a round, and combine the results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.distributed.engine.encoding import (
    keys_found,
    merge_keys,
    narrow_floats,
    narrow_integers,
)
from thresher.distributed.engine.folder import CheckpointFolder
from thresher.distributed.engine.host import saved_state
from thresher.distributed.engine.messages import Question
from thresher.distributed.engine.pieces import (
    Arrays,
    ClusterJob,
    MessagesLost,
    Piece,
    StepResult,
    unknown_message,
)
from thresher.distributed.modes.average_messages import (
    AskClocks,
    AskModel,
    AskRate,
    CombineReply,
    CombineRound,
    LearnRound,
    RangeModel,
    RoundReply,
)
from thresher.errors import DivergenceError
from thresher.rules import RULES
from thresher.training.capacity import Capacity
from thresher.training.plan import TrainingPlan
from thresher.training.records import NoRecords
from thresher.training.separate_outputs import SeparateOutputs
from thresher.training.trainer import Trainer

_REPLICA = "average"  # key of the replica in the dict that all pieces of a process share

# Numbers for blocks of rows that one piece of a part, and one part, may use. Each block has a
# number of its own, so no two blocks are shuffled in the same way.
_BLOCKS_OF_A_PIECE = 2**20
_BLOCKS_OF_A_PART = 2**40


def make_outputs(plan: TrainingPlan, count: int) -> SeparateOutputs:
    """Make `count` new outputs: learners whose numbers can be averaged."""
    return SeparateOutputs(plan.factory(Capacity(plan).size), count)


def make_combiner(job: ClusterJob) -> _core.Learner:
    """Make a learner without weights, which applies the rule to weights of others."""
    plan, width = job.plan(), int(RULES[job.rule].needs_width)
    empty = replace(plan, params={**job.params, "store": "hashed"})
    return SeparateOutputs(empty.factory(width), 1)[0]


def ranges_of(keys: NDArray[np.uint64], job: ClusterJob) -> NDArray[np.int64]:
    """Return the range of each key: by equal shares of the width, or without a width by a hash."""
    if job.width:
        bounds = [-(-job.width * r // job.ranges) for r in range(1, job.ranges)]
        return np.searchsorted(np.array(bounds, np.uint64), keys, side="right")
    mixed = (keys * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return ((mixed * np.uint64(job.ranges)) >> np.uint64(32)).astype(np.int64)


class Replica:
    """The combined model in one process. All parts of the process start their rounds from it.

    Attributes
    ----------
    rounds : int
        Number of rounds that were combined.
    plan : TrainingPlan
    outputs : SeparateOutputs
    new_clocks : list of bytes
        Clocks of the outputs before their first step.
    """

    def __init__(self, job: ClusterJob, alpha: float | None) -> None:
        self.rounds = 0
        self.plan = job.plan(alpha)
        self.outputs = make_outputs(self.plan, job.labels.outputs)
        self.new_clocks = [learner.clock() for learner in self.outputs]

    def update(self, received: Sequence[Arrays]) -> None:
        """Apply what ranges sent: new numbers of features."""
        for arrays in received:
            for output, learner in enumerate(self.outputs):
                keys, numbers = arrays[f"{output}:keys"], arrays[f"{output}:numbers"]
                learner.set_numbers(keys.astype(np.uint64), numbers.astype(np.float64))


class AveragePartPiece(Piece):
    """A part: trains the combined model on its rows, one piece of a pass in a step.

    Its state has only the clock of each output.

    Parameters
    ----------
    job : ClusterJob
    number : int
    shared : dict
        The dict that all pieces of the process share.
    """

    def __init__(self, job: ClusterJob, number: int, shared: dict[str, Any]) -> None:
        self.job, self.number, self.shared = job, number, shared
        self.rounds = 0  # that it has learned
        self.rows = 0  # learned so far
        self.clocks: list[bytes] = []  # empty before the first round

    def step(self, message: LearnRound, received: Sequence[Arrays]) -> StepResult:
        """Train for a round."""
        replica = self._replica(message, received)
        try:
            return self._round(replica, message)
        except BaseException:
            del self.shared[_REPLICA]  # its weights are those of the middle of a round
            raise

    def _replica(self, message: LearnRound, received: Sequence[Arrays]) -> Replica:
        """Return the model from which the round starts.

        A new process has none. It reads the states of the ranges in the checkpoint from which this
        part was made: they are the model at that time.
        """
        replica: Replica | None = self.shared.get(_REPLICA)
        if replica is None or replica.rounds not in (self.rounds, self.rounds - bool(received)):
            replica = self.shared[_REPLICA] = Replica(self.job, message.alpha)
            if self.rounds:
                self._load(replica)
        if replica.rounds < self.rounds:
            replica.update(received)
            replica.rounds = self.rounds
        return replica

    def _load(self, replica: Replica) -> None:
        if self.job.folder is None:
            raise MessagesLost
        folder = CheckpointFolder(self.job.folder)
        for number in range(self.job.ranges):
            replica.update([saved_state(folder.read("range", number, self.rounds))])
        replica.rounds = self.rounds

    def _round(self, replica: Replica, message: LearnRound) -> StepResult:
        learners = list(replica.outputs)
        clocks = self.clocks or message.clocks or replica.new_clocks
        for output, learner in enumerate(learners):
            learner.set_clock(clocks[output])
            if message.biases:
                learner.set_intercept_numbers(np.asarray(message.biases[output], np.float64))
            if message.passes and message.piece == 0:
                learner.next_pass()
            learner.begin_round()
        before = [(learner.loss_sum, learner.weight_sum) for learner in learners]
        updates = _updates(self.job, learners)
        rows = self._learn(replica, message)
        reply = RoundReply(
            rows=rows,
            losses=[x.loss_sum - loss for x, (loss, _) in zip(learners, before, strict=True)],
            weights=[x.weight_sum - w for x, (_, w) in zip(learners, before, strict=True)],
            biases=[learner.intercept_numbers().tolist() for learner in learners],
            updates=_updates(self.job, learners) - updates,
        )
        sent = self._end_round(learners)
        if rows or self.clocks:  # a part without rows so far has no clock
            self.clocks = [learner.clock() for learner in learners]
        self.rounds, self.rows = self.rounds + 1, self.rows + rows
        return StepResult(reply, sent)

    def _learn(self, replica: Replica, message: LearnRound) -> int:
        """Learn the rows of a piece of a pass; return their number.

        There are no records here: the driver has the history of all parts, and checks it for
        divergence.
        """
        source = self.job.rows.source(self.number, message.piece, message.pieces)
        trainer = Trainer(replica.plan, source, outputs=replica.outputs, records=NoRecords())
        first = self.number * _BLOCKS_OF_A_PART + message.piece * _BLOCKS_OF_A_PIECE
        try:
            trainer.once(message.passes, first)
        except DivergenceError as error:
            block, row = trainer.last_block, re.search(r"row (\d+)", str(error))
            place = block.file if row is None else block.place(int(row[1]))
            raise DivergenceError(f"{place}: {error}") from None
        return trainer.first_row

    def _end_round(self, learners: list[_core.Learner]) -> list[Arrays]:
        """Undo the changes of the round in the weights; return the bundle of each range."""
        sent: list[Arrays] = [{} for _ in range(self.job.ranges)]
        for output, learner in enumerate(learners):
            keys, updates, numbers = learner.end_round()
            pending = np.frombuffer(learner.pending(), np.uint8)
            numbers = numbers.reshape(len(keys), learner.numbers_per_feature)
            ranges = ranges_of(keys, self.job)
            for number, arrays in enumerate(sent):
                mine = ranges == number
                arrays[f"{output}:keys"] = narrow_integers(keys[mine])
                arrays[f"{output}:updates"] = narrow_integers(updates[mine])
                arrays[f"{output}:numbers"] = narrow_floats(numbers[mine])
                arrays[f"{output}:debt"] = pending
        return sent

    def answer(self, question: Question[Any]) -> Any:
        """Return the clocks or the rate, if this is the part that the question is for."""
        match question:
            case AskClocks(part=number):
                return self.clocks if number == self.number else None
            case AskRate(part=number):
                return self._rate() if number == self.number else None
        raise unknown_message(self, question)

    def _rate(self) -> float | None:
        blocks = self.job.rows.source(self.number).blocks(dtype=str(self.job.params["dtype"]))
        plan = self.job.plan()
        return next((plan.rate_for(block) for block in blocks if block.rows), None)

    def state(self) -> Arrays:
        """Return the clocks."""
        content = {f"clock:{o}": np.frombuffer(c, np.uint8) for o, c in enumerate(self.clocks)}
        return {"counts": np.array([self.rounds, self.rows]), **content}

    def restore(self, state: Arrays) -> None:
        """Continue from a state."""
        self.rounds, self.rows = state["counts"].tolist()
        self.clocks = [state[f"clock:{o}"].tobytes() for o in range(len(state) - 1)]


def _updates(job: ClusterJob, learners: list[_core.Learner]) -> int:
    """Return the number of updates so far; 0 for rules that do not stop by it."""
    if not RULES[job.rule].ends_by_itself:
        return 0
    return int(sum(learner.facts()["updates"] for learner in learners))


class AverageRangePiece(Piece):
    """A range: combines the numbers of its features, and has their model.

    Parameters
    ----------
    job : ClusterJob
    """

    def __init__(self, job: ClusterJob) -> None:
        self.job = job
        self.learner = make_combiner(job)
        shape = (0, self.learner.numbers_per_feature)
        outputs = job.labels.outputs
        self.model: RangeModel = [(np.zeros(0, np.uint64), np.zeros(shape)) for _ in range(outputs)]

    def step(self, message: CombineRound, received: Sequence[Arrays]) -> StepResult:
        """Combine a round; send the features that have changed."""
        sent: Arrays = {}
        nonzeros = 0
        average = bool(self.job.params.get("average", False))
        for output in range(self.job.labels.outputs):
            keys, numbers = self._combine(output, message.weights[output], received)
            sent[f"{output}:keys"] = narrow_integers(keys)
            sent[f"{output}:numbers"] = narrow_floats(numbers.reshape(-1))
            flat = self.model[output][1].reshape(-1)
            if message.clocks:
                nonzeros += self.learner.nonzeros_at(message.clocks[output], flat, average)
        return StepResult(CombineReply(nonzeros), [sent])

    def _combine(
        self, output: int, weights: Sequence[float], received: Sequence[Arrays]
    ) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Combine the round of an output; return the features whose numbers are new."""
        names = ("keys", "updates", "numbers")
        given = [tuple(arrays[f"{output}:{name}"] for name in names) for arrays in received]
        updated = merge_keys([keys.astype(np.uint64) for keys, _, _ in given])
        means = WeightedMeans((len(updated), self.learner.numbers_per_feature))
        for keys, updates, numbers in given:
            means.add(np.searchsorted(updated, keys.astype(np.uint64)), updates, numbers)
        old, before = self.model[output]
        rest = ~keys_found(old, updated)
        pending = [arrays[f"{output}:debt"].tobytes() for arrays in received]
        shrunk = self._shrunk(before[rest], weights, pending)
        keys = np.concatenate([updated, old[rest]])
        numbers = self._rounded(np.concatenate([means.value(), shrunk]))
        new = np.concatenate([np.ones(len(updated), bool), (shrunk != before[rest]).any(axis=1)])
        order = np.argsort(keys, kind="stable")
        keys, numbers, new = keys[order], numbers[order], new[order]
        nonzero = numbers.any(axis=1)
        self.model[output] = keys[nonzero], numbers[nonzero]
        return keys[new], numbers[new]

    def _shrunk(
        self, numbers: NDArray[np.float64], weights: Sequence[float], pending: Sequence[bytes]
    ) -> NDArray[np.float64]:
        """Return the new numbers of features that no part has updated.

        `pending` has the pending events of each part, which shrink these features.
        """
        mean = WeightedMeans(numbers.shape)
        everywhere = np.arange(len(numbers))
        for weight, events in zip(weights, pending, strict=True):
            if weight and events:
                shrunk = self.learner.apply_pending(events, numbers.reshape(-1)).reshape(
                    numbers.shape
                )
                mean.add(everywhere, np.full(len(numbers), weight), shrunk)
        return mean.value() if mean.added else numbers

    def _rounded(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers as weights store them: rounded, in single precision."""
        return self.learner.apply_pending(b"", numbers.reshape(-1)).reshape(numbers.shape)

    def answer(self, question: Question[Any]) -> RangeModel:
        """Return the model."""
        if not isinstance(question, AskModel):
            raise unknown_message(self, question)
        return self.model

    def state(self) -> Arrays:
        """Return the model."""
        found: Arrays = {}
        for output, (keys, numbers) in enumerate(self.model):
            found[f"{output}:keys"], found[f"{output}:numbers"] = keys, numbers.reshape(-1)
        return found

    def restore(self, state: Arrays) -> None:
        """Continue from a state."""
        for output in range(len(self.model)):
            numbers = state[f"{output}:numbers"].reshape(-1, self.learner.numbers_per_feature)
            self.model[output] = state[f"{output}:keys"], numbers


class WeightedMeans:
    """Weighted means, one for each row of an array, summed in double precision and in order.

    A mean of a single entry is that entry, to the last bit.

    Parameters
    ----------
    shape : pair of int
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._sums, self._weights = np.zeros(shape), np.zeros(shape[0])
        self._counts = np.zeros(shape[0], np.int64)
        self._last = np.zeros(shape)
        self.added = False

    def add(
        self, places: NDArray[np.int64], weights: NDArray[Any], numbers: NDArray[np.float64]
    ) -> None:
        """Add numbers at these places, which are all different."""
        weight, numbers = weights.astype(np.float64), numbers.astype(np.float64)
        self._sums[places] += weight[:, None] * numbers
        self._weights[places] += weight
        self._counts[places] += 1
        self._last[places] = numbers
        self.added = True

    def value(self) -> NDArray[np.float64]:
        """Return the means."""
        with np.errstate(invalid="ignore"):
            means = self._sums / self._weights[:, None]
        return np.where(self._counts[:, None] == 1, self._last, means)
