"""Mode "average": parts train the same model on their own rows; the results are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thresher.distributed.engine.executor import Executor
from thresher.distributed.engine.pieces import ClusterJob, Coordinator, Learned, Mode
from thresher.distributed.modes.average_messages import (
    AskClocks,
    AskModel,
    AskRate,
    CombineRound,
    LearnRound,
    RoundReply,
)
from thresher.distributed.modes.average_pieces import (
    AveragePartPiece,
    AverageRangePiece,
    WeightedMeans,
    make_outputs,
)
from thresher.errors import DataError, ParameterError, setting
from thresher.rules import RULES
from thresher.sums import ordered_sum

RULES_AVERAGED = tuple(name for name, rule in RULES.items() if "average" in rule.cluster)

# Parameters that averaging does not support, and why.
_REFUSED = {
    "center": "centers rows by the mean of all of them",
    "certify": "keeps sums that hold for one stream of rows",
    "levels": "keeps models from the middle of a pass",
    "target_nnz": "sets gravity by the weights of one stream of rows",
    "max_density": "stops in the middle of a pass",
}


class AverageMode(Mode):
    r"""Train any streaming rule on parts of the rows, and average.

    In a *round* every part starts from the same model and from its own clock (the number of steps,
    and the sums that relative rates use). It learns its rows, or a piece of them. For each feature
    that it updated, it sends numbers s that can be averaged, and the number c of steps that updated
    the feature: steps whose row has the feature, and a loss with a nonzero slope (a row makes as
    many steps as its weight says). The combined model has

    .. math:: s_j = \sum_p c_{pj} s_{pj} / \sum_p c_{pj}

    in double precision, summed in the order of parts. If only one part updated a feature, its
    numbers are taken unchanged. So parts without a feature do not dilute it.

    If no part updated a feature in the round, its numbers can still change in each part: gravity
    and l2 shrink it, and a mean of gradients covers more steps. The combined model has the mean of
    these numbers over the parts, weighted by the sums of the weights of their rows. With rules that
    change nothing without an update, they stay the same. The intercept is averaged with the same
    weights.

    The numbers are: truncated gradient and forward-backward {w}, or {w, mean of its iterates} with
    average=True; averaged SGD {v / t, (h v - u) / t}; FTRL {z, n}; dual averaging {mean gradient};
    mirror descent {theta}; margin perceptron {w}. Their meaning does not depend on the number of
    steps of a part.

    A part without rows so far takes, when it gets its first rows, the clock of the part with the
    most steps (the first of them). The final model has that clock, too.

    Parameters
    ----------
    job : ClusterJob
        Its folder must be the checkpoint folder: a new process reads the model from there.
    rounds : int
        Rounds in a pass: the rows of each part are divided into this number of pieces, and the
        model is averaged after each piece. With more rounds, more data are sent, and the result is
        closer to the result on one machine.
    """

    every = 1

    def __init__(self, job: ClusterJob, rounds: int = 1) -> None:
        if job.rule not in RULES_AVERAGED:
            raise ParameterError(
                (setting("mode", "average"), " takes rules that learn row by row: "
                 f"{', '.join(RULES_AVERAGED)}; got {job.rule}"),
                parameter="mode",
                value="average",
            )  # fmt: skip
        for name, does in _REFUSED.items():
            if job.params.get(name) not in (None, False, (), []):
                raise ParameterError(
                    (setting(name), " cannot be used with ", setting("mode", "average"),
                     f": it {does}"),
                    parameter=name,
                    value=job.params[name],
                )  # fmt: skip
        if job.params.get("store") == "nonzero":
            raise ParameterError(
                (setting("mode", "average"), " takes ", setting("store"), " 'dense' and 'hashed', "
                 "not 'nonzero'"),
                parameter="store",
                value="nonzero",
            )  # fmt: skip
        if job.params.get("class_weight") == "balanced":
            raise ParameterError(
                (setting("class_weight", "balanced"), " cannot be used with ",
                 setting("mode", "average")),
                parameter="class_weight",
                value="balanced",
                hint="give a dict of weights",
            )  # fmt: skip
        if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
            raise ParameterError(parameter="rounds", value=rounds, allowed="a whole number >= 1")
        self.job, self.rounds = job, rounds
        self.parts, self.ranges = job.rows.parts, job.ranges

    def part(self, number: int, threads: int, shared: dict[str, Any]) -> AveragePartPiece:
        """Make a part."""
        return AveragePartPiece(self.job, number, shared)

    def range(self, number: int, shared: dict[str, Any]) -> AverageRangePiece:
        """Make a range."""
        return AverageRangePiece(self.job)

    def coordinator(self) -> AverageCoordinator:
        """Make the coordinator."""
        return AverageCoordinator(self.job, self.rounds)


class AverageCoordinator(Coordinator):
    """Takes parts through rounds, and stops by `passes`, or by `tol` and `patience`.

    A stage is a round. `tol` compares mean progressive losses of passes: the loss of each row
    before it was learned.

    Parameters
    ----------
    job : ClusterJob
    rounds : int
        Rounds in a pass.
    """

    def __init__(self, job: ClusterJob, rounds: int) -> None:
        self.job, self.rounds = job, rounds
        self.made = 0  # rounds so far
        self.alpha: float | None = None  # of FTRL, where it is "auto"
        self.steps = [0] * job.rows.parts  # rows that each part has learned
        self.biases: list[list[float]] = []
        outputs = job.labels.outputs
        self.losses, self.weights = [0.0] * outputs, [0.0] * outputs  # sums over all rounds
        self.pass_loss, self.pass_weight, self.pass_updates = 0.0, 0.0, 0
        self.best, self.stale = float("inf"), 0

    def stage(self, executor: Executor) -> dict[str, Any]:
        """Train all parts for a round, and average."""
        job, piece = self.job, self.made % self.rounds
        if job.plan().waits_for_rows and self.alpha is None:
            self.alpha = self._find_rate(executor)
        some_parts_are_new = any(self.steps) and not all(self.steps)
        replies = executor.step_parts(
            LearnRound(
                passes=self.made // self.rounds,
                piece=piece,
                pieces=self.rounds,
                alpha=self.alpha,
                biases=self.biases,
                clocks=self._clocks(executor) if some_parts_are_new else [],
            )
        )
        rows = [reply.rows for reply in replies]
        self.steps = [before + count for before, count in zip(self.steps, rows, strict=True)]
        loss, weight = self._add_losses(replies)
        outputs = range(job.labels.outputs)
        weights = [[reply.weights[output] for reply in replies] for output in outputs]
        if sum(rows):
            self.biases = [
                _mean([reply.biases[output] for reply in replies], weights[output])
                for output in outputs
            ]
        clocks = self._clocks(executor) if any(self.steps) else []
        combined = executor.step_ranges(CombineRound(weights, clocks))
        self.made += 1
        if piece == self.rounds - 1:
            self._end_pass()
        return {
            "rows": sum(rows),
            "loss": loss / weight if weight > 0 else None,
            "nonzeros": sum(reply.nonzeros for reply in combined),
        }

    def _find_rate(self, executor: Executor) -> float:
        """Return the rate for the first rows of the first part that has rows."""
        for number in range(self.job.rows.parts):
            found = executor.ask_parts(AskRate(number))[number]
            if found is not None:
                return float(found)
        return 1.0

    def _clocks(self, executor: Executor) -> list[bytes]:
        """Return the clocks of the part with the most steps; the first one if several have them."""
        number = self.steps.index(max(self.steps))
        found = executor.ask_parts(AskClocks(number))[number]
        assert found is not None
        return found

    def _add_losses(self, replies: Sequence[RoundReply]) -> tuple[float, float]:
        """Add the losses of a round to all sums; return the round's loss and weight."""
        losses, weights = [0.0] * len(self.losses), [0.0] * len(self.losses)
        for reply in replies:
            losses = [a + b for a, b in zip(losses, reply.losses, strict=True)]
            weights = [a + b for a, b in zip(weights, reply.weights, strict=True)]
            self.pass_updates += reply.updates
        self.losses = [a + b for a, b in zip(self.losses, losses, strict=True)]
        self.weights = [a + b for a, b in zip(self.weights, weights, strict=True)]
        self.pass_loss += ordered_sum(losses)
        self.pass_weight += ordered_sum(weights)
        return ordered_sum(losses), ordered_sum(weights)

    def _end_pass(self) -> None:
        if not any(self.steps):
            raise DataError("no rows to learn from in any part")
        params = self.job.params
        loss = self.pass_loss / self.pass_weight if self.pass_weight > 0 else 0.0
        self.done = self.made >= self.rounds * int(params.get("passes", 1))
        if params.get("tol") is not None:
            self.stale = 0 if loss < self.best - params["tol"] else self.stale + 1
            self.best = min(self.best, loss)
            self.done |= self.stale >= params["patience"]
        if RULES[self.job.rule].ends_by_itself and self.pass_updates == 0:
            self.done = True  # another pass would change nothing
        self.pass_loss, self.pass_weight, self.pass_updates = 0.0, 0.0, 0

    _SAVED = (
        "made", "alpha", "steps", "biases", "losses", "weights", "pass_loss", "pass_weight",
        "pass_updates", "best", "stale", "done",
    )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return the state between two stages."""
        return {name: getattr(self, name) for name in self._SAVED}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state. Version 0.1.0 wrote `done` only after the first pass."""
        vars(self).update(state)

    def result(self, executor: Executor) -> Learned:
        """Return the combined model, as learners that can be trained further."""
        clocks, models = self._clocks(executor), executor.ask_ranges(AskModel())
        average = bool(self.job.params.get("average", False))
        outputs, states = [], []
        plan = self.job.plan(self.alpha)
        for output, clock in enumerate(clocks):
            keys = np.concatenate([model[output][0] for model in models])
            numbers = np.concatenate([model[output][1] for model in models])
            order = np.argsort(keys)
            made = make_outputs(plan, 1)  # one at a time, as each may need much memory
            learner = made[0]
            learner.set_clock(clock)
            learner.set_intercept_numbers(np.asarray(self.biases[output]))
            learner.finish_rounds(
                keys[order],
                numbers[order].reshape(-1),
                sum(self.steps),
                self.weights[output],
                self.losses[output],
            )
            outputs.append(made.output(0, average))
            states += made.states()
        facts: dict[str, Any] = {"rounds": self.made, "passes": self.made // self.rounds}
        if self.alpha is not None:
            facts["alpha"] = self.alpha
        return Learned(outputs, states=states, facts=facts)


def _mean(numbers: Sequence[Sequence[float]], weights: Sequence[float]) -> list[float]:
    """Return the mean over the parts; if all weights are 0, the parts have changed nothing."""
    mean = WeightedMeans((1, len(numbers[0])))
    for one, weight in zip(numbers, weights, strict=True):
        if weight:
            mean.add(np.zeros(1, np.int64), np.array([weight]), np.array([one], np.float64))
    if not mean.added:
        return list(numbers[0])
    found: list[float] = mean.value()[0].tolist()
    return found
