"""Parts and ranges of the averaging mode: learning a round, and combining what was learned."""

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
from thresher.distributed.engine.pieces import Arrays, ClusterJob, MessagesLost, Piece, StepResult
from thresher.errors import DivergenceError
from thresher.rules import RULES
from thresher.training.capacity import Capacity
from thresher.training.plan import TrainingPlan, alpha_for
from thresher.training.records import NoRecords
from thresher.training.separate_outputs import SeparateOutputs
from thresher.training.trainer import Trainer

_STATE = (
    "state:"  # in front of what a checkpoint's file has of a piece's state, as `Host` writes it
)
_REPLICA = "average"  # in the dict that all pieces of a process share
_PIECE = 2**20  # numbers of blocks in a piece of a part, and
_PART = 2**40  # of those in a part: no two blocks are shuffled alike


def make_outputs(plan: TrainingPlan, count: int) -> SeparateOutputs:
    """Make so many outputs, before their first step: learners whose numbers can be averaged."""
    return SeparateOutputs(plan.factory(Capacity(plan).size), count)


def make_combiner(job: ClusterJob) -> _core.Learner:
    """Make a learner that holds no weights: it tells what the rule makes of those of others."""
    plan, width = job.plan(), int(RULES[job.rule].needs_width)
    empty = replace(plan, params={**job.params, "store": "hashed"})
    return SeparateOutputs(empty.factory(width), 1)[0]


def ranges_of(keys: NDArray[np.uint64], job: ClusterJob) -> NDArray[np.int64]:
    """Return the range that each key is in: equal shares of a width, else by a hash."""
    if job.width:
        bounds = [-(-job.width * r // job.ranges) for r in range(1, job.ranges)]
        return np.searchsorted(np.array(bounds, np.uint64), keys, side="right")
    mixed = (keys * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return ((mixed * np.uint64(job.ranges)) >> np.uint64(32)).astype(np.int64)


class Replica:
    """The combined model in a process, from which all its parts begin their rounds.

    Attributes
    ----------
    rounds : int
        That have been combined in it.
    plan : TrainingPlan
    outputs : SeparateOutputs
    """

    def __init__(self, job: ClusterJob, alpha: float | None) -> None:
        self.rounds = 0
        self.plan = job.plan(alpha)
        self.outputs = make_outputs(self.plan, job.labels.outputs)
        self.fresh = [learner.clock() for learner in self.outputs]

    def take(self, received: Sequence[Arrays]) -> None:
        """Take what ranges have sent: features whose numbers are new."""
        for arrays in received:
            for output, learner in enumerate(self.outputs):
                keys, numbers = arrays[f"{output}:keys"], arrays[f"{output}:numbers"]
                learner.set_numbers(keys.astype(np.uint64), numbers.astype(np.float64))


class AveragePartPiece(Piece):
    """Rows that learn from the combined model, a piece of a pass at a time.

    Its own state is the clock of each output alone.

    Parameters
    ----------
    job : ClusterJob
    number : int
    shared : dict
        Of the process.
    """

    def __init__(self, job: ClusterJob, number: int, shared: dict[str, Any]) -> None:
        self.job, self.number, self.shared = job, number, shared
        self.rounds = 0  # that it has learned
        self.rows = 0  # learned so far
        self.clocks: list[bytes] = []  # none before the first round

    def step(self, message: dict[str, Any], received: Sequence[Arrays]) -> StepResult:
        """Learn a round."""
        replica = self._replica(message, received)
        try:
            return self._round(replica, message)
        except BaseException:
            del self.shared[_REPLICA]  # a round that is half learned: nobody may begin from it
            raise

    def _replica(self, message: dict[str, Any], received: Sequence[Arrays]) -> Replica:
        """Return the model that the round begins from.

        A process that has just begun has none: the ranges' states of the checkpoint that this part
        was made from are the model as it was then.
        """
        replica: Replica | None = self.shared.get(_REPLICA)
        if replica is None or replica.rounds not in (self.rounds, self.rounds - bool(received)):
            replica = self.shared[_REPLICA] = Replica(self.job, message["alpha"])
            if self.rounds:
                self._load(replica)
        if replica.rounds < self.rounds:
            replica.take(received)
            replica.rounds = self.rounds
        return replica

    def _load(self, replica: Replica) -> None:
        if self.job.folder is None:
            raise MessagesLost
        for number in range(self.job.ranges):
            content = CheckpointFolder(self.job.folder).read("range", number, self.rounds)
            replica.take([{k.removeprefix(_STATE): a for k, a in content.items()}])
        replica.rounds = self.rounds

    def _round(self, replica: Replica, message: dict[str, Any]) -> StepResult:
        learners = list(replica.outputs)
        clocks = self.clocks or message["clocks"] or replica.fresh
        for output, learner in enumerate(learners):
            learner.set_clock(clocks[output])
            if message["biases"]:
                learner.set_intercept_numbers(np.asarray(message["biases"][output], np.float64))
            if message["pass"] and message["piece"] == 0:
                learner.next_pass()
            learner.begin_round()
        before = [(learner.loss_sum, learner.weight_sum) for learner in learners]
        updates = _updates(self.job, learners)
        rows = self._learn(replica, message)
        told = {
            "rows": rows,
            "losses": [x.loss_sum - loss for x, (loss, _) in zip(learners, before, strict=True)],
            "weights": [x.weight_sum - w for x, (_, w) in zip(learners, before, strict=True)],
            "biases": [learner.intercept_numbers().tolist() for learner in learners],
            "updates": _updates(self.job, learners) - updates,
        }
        sent = self._sent(learners)
        if rows or self.clocks:  # else it is before its first row, and has no clock of its own
            self.clocks = [learner.clock() for learner in learners]
        self.rounds, self.rows = self.rounds + 1, self.rows + rows
        return StepResult(told, sent)

    def _learn(self, replica: Replica, message: dict[str, Any]) -> int:
        """Learn the rows of a piece of a pass; return how many they are.

        The driver keeps the history and watches for divergence, over all parts.
        """
        piece = message["piece"]
        source = self.job.rows.source(self.number, piece, message["pieces"])
        trainer = Trainer(replica.plan, source, outputs=replica.outputs, records=NoRecords())
        try:
            trainer.once(message["pass"], self.number * _PART + piece * _PIECE)
        except DivergenceError as error:
            block, row = trainer.last_block, re.search(r"row (\d+)", str(error))
            place = block.file if row is None else block.place(int(row[1]))
            raise DivergenceError(f"{place}: {error}") from None
        return trainer.first_row

    def _sent(self, learners: list[_core.Learner]) -> list[Arrays]:
        """Return what each range gets; the weights are put back."""
        sent: list[Arrays] = [{} for _ in range(self.job.ranges)]
        for output, learner in enumerate(learners):
            keys, updates, numbers = learner.end_round()
            debt = np.frombuffer(learner.pending(), np.uint8)
            numbers = numbers.reshape(len(keys), learner.numbers_per_feature)
            homes = ranges_of(keys, self.job)
            for number, arrays in enumerate(sent):
                mine = homes == number
                arrays[f"{output}:keys"] = narrow_integers(keys[mine])
                arrays[f"{output}:updates"] = narrow_integers(updates[mine])
                arrays[f"{output}:numbers"] = narrow_floats(numbers[mine])
                arrays[f"{output}:debt"] = debt
        return sent

    def answer(self, question: dict[str, Any]) -> Any:
        """Tell the clocks, or the rate for FTRL, where it is the one that is asked."""
        if question["part"] != self.number:
            return None
        if question["what"] == "clocks":
            return self.clocks
        blocks = self.job.rows.source(self.number).blocks(dtype=str(self.job.params["dtype"]))
        return next((alpha_for(block) for block in blocks if block.rows), None)

    def state(self) -> Arrays:
        """Return the clocks."""
        content = {f"clock:{o}": np.frombuffer(c, np.uint8) for o, c in enumerate(self.clocks)}
        return {"counts": np.array([self.rounds, self.rows]), **content}

    def restore(self, state: Arrays) -> None:
        """Go on from a state."""
        self.rounds, self.rows = state["counts"].tolist()
        self.clocks = [state[f"clock:{o}"].tobytes() for o in range(len(state) - 1)]


def _updates(job: ClusterJob, learners: list[_core.Learner]) -> int:
    """Return the number of updates so far, of a rule that can come to an end of them."""
    if not RULES[job.rule].ends_by_itself:
        return 0
    return int(sum(learner.facts()["updates"] for learner in learners))


class AverageRangePiece(Piece):
    """Features whose numbers are combined, and the model of them.

    Parameters
    ----------
    job : ClusterJob
    """

    def __init__(self, job: ClusterJob) -> None:
        self.job = job
        self.learner = make_combiner(job)
        shape = (0, self.learner.numbers_per_feature)
        outputs = job.labels.outputs
        self.model = [(np.zeros(0, np.uint64), np.zeros(shape)) for _ in range(outputs)]

    def step(self, message: dict[str, Any], received: Sequence[Arrays]) -> StepResult:
        """Combine a round; send what has changed."""
        sent: Arrays = {}
        nonzeros = 0
        average = bool(self.job.params.get("average", False))
        for output in range(self.job.labels.outputs):
            keys, numbers = self._combine(output, message["rows"], received)
            sent[f"{output}:keys"] = narrow_integers(keys)
            sent[f"{output}:numbers"] = narrow_floats(numbers.reshape(-1))
            flat = self.model[output][1].reshape(-1)
            if message["clocks"]:
                nonzeros += self.learner.nonzeros_at(message["clocks"][output], flat, average)
        return StepResult({"nonzeros": nonzeros}, [sent])

    def _combine(
        self, output: int, rows: Sequence[int], received: Sequence[Arrays]
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
        debts = [arrays[f"{output}:debt"].tobytes() for arrays in received]
        faded = self._faded(before[rest], rows, debts)
        keys = np.concatenate([updated, old[rest]])
        numbers = self._kept(np.concatenate([means.value(), faded]))
        new = np.concatenate([np.ones(len(updated), bool), (faded != before[rest]).any(axis=1)])
        order = np.argsort(keys, kind="stable")
        keys, numbers, new = keys[order], numbers[order], new[order]
        there = numbers.any(axis=1)
        self.model[output] = keys[there], numbers[there]
        return keys[new], numbers[new]

    def _faded(
        self, numbers: NDArray[np.float64], rows: Sequence[int], debts: Sequence[bytes]
    ) -> NDArray[np.float64]:
        """Return what becomes of features that no part has updated."""
        mean = WeightedMeans(numbers.shape)
        everywhere = np.arange(len(numbers))
        for count, debt in zip(rows, debts, strict=True):
            if count and debt:
                faded = self.learner.apply_pending(debt, numbers.reshape(-1)).reshape(numbers.shape)
                mean.add(everywhere, np.full(len(numbers), count), faded)
        return mean.value() if mean.added else numbers

    def _kept(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers as weights keep them: in single precision, rounded."""
        return self.learner.apply_pending(b"", numbers.reshape(-1)).reshape(numbers.shape)

    def answer(self, question: dict[str, Any]) -> Any:
        """Tell the model."""
        return self.model

    def state(self) -> Arrays:
        """Return the model."""
        found: Arrays = {}
        for output, (keys, numbers) in enumerate(self.model):
            found[f"{output}:keys"], found[f"{output}:numbers"] = keys, numbers.reshape(-1)
        return found

    def restore(self, state: Arrays) -> None:
        """Go on from a state."""
        for output in range(len(self.model)):
            numbers = state[f"{output}:numbers"].reshape(-1, self.learner.numbers_per_feature)
            self.model[output] = state[f"{output}:keys"], numbers


class WeightedMeans:
    """Weighted means, one for each row of an array, in double precision and in the order of adding.

    What was added once is the mean as it is, to the last bit.

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
        """Add numbers at these places, no two of which are the same."""
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
