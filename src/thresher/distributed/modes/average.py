"""Averaging: parts learn from the same model, each its own rows; what they learn is averaged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thresher.distributed.engine.executor import Executor
from thresher.distributed.engine.pieces import ClusterJob, Coordinator, Learned, Mode
from thresher.distributed.modes.average_pieces import (
    AveragePartPiece,
    AverageRangePiece,
    WeightedMeans,
    make_outputs,
)
from thresher.errors import DataError, ParameterError, setting
from thresher.model.history import Output
from thresher.rules import RULES

RULES_AVERAGED = tuple(name for name, rule in RULES.items() if "average" in rule.cluster)

# What does not go with averaging, and why.
_REFUSED = {
    "center": "centres rows by the mean of all of them",
    "certify": "keeps sums that hold for one stream of rows",
    "levels": "keeps models from the middle of a pass",
    "target_nnz": "sets gravity by the weights of one stream of rows",
    "max_density": "stops in the middle of a pass",
}


class AverageMode(Mode):
    r"""Learn parts of the rows by any streaming rule, and average.

    In a *round* every part begins from the same model and from its own clock (steps made, sums
    behind relative rates), learns its rows, or a piece of them, and gives for each feature that it
    updated numbers s of which a mean makes sense, and the number c of rows that updated it: rows
    that have the feature, and a loss with a slope. The combined model has

    .. math:: s_j = \sum_p c_{pj} s_{pj} / \sum_p c_{pj}

    in double precision, in the order of parts; where one part alone updated a feature, its numbers
    as they are. So a feature that one part saw is not diluted by those that did not.

    A feature that no part has updated in the round has the mean of what became of it in the parts
    that had rows, weighted by their rows: gravity and l2 shrink it, a mean of gradients is one
    over more steps. Rules of which nothing changes without an update leave it as it is.
    The intercept is the mean over the parts that had rows, weighted by their rows.

    The numbers are: truncated gradient and forward-backward {w}, or {w, mean of its iterates} with
    average=True; averaged SGD {v / t, (h v - u) / t}; FTRL {z, n}; dual averaging {mean gradient};
    mirror descent {theta}; margin perceptron {w}. Parts with other numbers of steps mean the same
    by them.

    A part that had no rows yet, when others had, begins with the clock of the first of those that
    have made the most steps. What is learned in the end has that clock too.

    Parameters
    ----------
    job : ClusterJob
        Its folder must be that of the checkpoint: a process that begins anew reads the model there.
    rounds : int
        Exchanges in a pass: each part learns so many pieces of its rows, and they are averaged
        after each. More cost more traffic, and bring the result closer to that of one machine.
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
                    (setting(name), " does not go with ", setting("mode", "average"),
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
                (setting("class_weight", "balanced"), " does not go with ",
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

    def lead(self) -> AverageCoordinator:
        """Make the driver's part."""
        return AverageCoordinator(self.job, self.rounds)


class AverageCoordinator(Coordinator):
    """Takes parts through rounds, and ends by `passes`, or by `tol` and `patience`.

    A stage is a round. The loss of a pass that `tol` judges is the mean progressive loss of its
    rows, each before it was learned.

    Parameters
    ----------
    job : ClusterJob
    rounds : int
        In a pass.
    """

    def __init__(self, job: ClusterJob, rounds: int) -> None:
        self.job, self.rounds = job, rounds
        self.made = 0  # rounds so far
        self.alpha: float | None = None  # of FTRL, where it is "auto"
        self.steps = [0] * job.rows.parts  # rows that each part has learned
        self.biases: list[list[float]] = []
        outputs = job.labels.outputs
        self.losses, self.weights = [0.0] * outputs, [0.0] * outputs  # sums since the beginning
        self.pass_loss, self.pass_weight, self.pass_updates = 0.0, 0.0, 0
        self.best, self.stale = float("inf"), 0

    def stage(self, executor: Executor) -> dict[str, Any]:
        """Let all parts learn a round, and average."""
        job, piece = self.job, self.made % self.rounds
        if job.plan().waits_for_rows and self.alpha is None:
            self.alpha = self._agreed_alpha(executor)
        newcomers = any(self.steps) and not all(self.steps)
        message = {
            "pass": self.made // self.rounds,
            "piece": piece,
            "pieces": self.rounds,
            "alpha": self.alpha,
            "biases": self.biases,
            "clocks": self._clocks(executor) if newcomers else [],
        }
        told = executor.parts(message)
        rows = [int(facts["rows"]) for facts in told]
        self.steps = [before + count for before, count in zip(self.steps, rows, strict=True)]
        loss, weight = self._count(told)
        if sum(rows):
            self.biases = [
                _mean([facts["biases"][output] for facts in told], rows)
                for output in range(job.labels.outputs)
            ]
        clocks = self._clocks(executor) if any(self.steps) else []
        found = executor.ranges({"rows": rows, "clocks": clocks})
        self.made += 1
        if piece == self.rounds - 1:
            self._end_pass()
        return {
            "rows": sum(rows),
            "loss": loss / weight if weight > 0 else None,
            "nonzeros": sum(int(facts["nonzeros"]) for facts in found),
        }

    def _agreed_alpha(self, executor: Executor) -> float:
        """Return the rate that the first rows of the first part ask for, which has any."""
        for number in range(self.job.rows.parts):
            found = executor.ask_parts({"what": "alpha", "part": number})[number]
            if found is not None:
                return float(found)
        return 1.0

    def _clocks(self, executor: Executor) -> list[bytes]:
        """Return the clocks of the first of the parts that have made the most steps."""
        number = self.steps.index(max(self.steps))
        found: list[bytes] = executor.ask_parts({"what": "clocks", "part": number})[number]
        return found

    def _count(self, told: Sequence[dict[str, Any]]) -> tuple[float, float]:
        """Add up what parts tell of a round; return its loss and weight."""
        losses, weights = [0.0] * len(self.losses), [0.0] * len(self.losses)
        for facts in told:
            losses = [a + b for a, b in zip(losses, facts["losses"], strict=True)]
            weights = [a + b for a, b in zip(weights, facts["weights"], strict=True)]
            self.pass_updates += int(facts["updates"])
        self.losses = [a + b for a, b in zip(self.losses, losses, strict=True)]
        self.weights = [a + b for a, b in zip(self.weights, weights, strict=True)]
        self.pass_loss += sum(losses)
        self.pass_weight += sum(weights)
        return sum(losses), sum(weights)

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

    def state(self) -> dict[str, Any]:
        """Return where it stands."""
        return {name: value for name, value in vars(self).items() if name not in ("job", "rounds")}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        vars(self).update(state)

    def result(self, executor: Executor) -> Learned:
        """Return the combined model, in learners that can go on alone."""
        clocks, models = self._clocks(executor), executor.ask_ranges({"what": "model"})
        average = bool(self.job.params.get("average", False))
        outputs, states = [], []
        plan = self.job.plan(self.alpha)
        for output, clock in enumerate(clocks):
            keys = np.concatenate([model[output][0] for model in models])
            numbers = np.concatenate([model[output][1] for model in models])
            order = np.argsort(keys)
            learner = make_outputs(plan, 1)[0]  # one at a time: each may need much memory
            learner.set_clock(clock)
            learner.set_intercept_numbers(np.asarray(self.biases[output]))
            learner.finish_rounds(
                keys[order],
                numbers[order].reshape(-1),
                sum(self.steps),
                self.weights[output],
                self.losses[output],
            )
            outputs.append(Output(*learner.weights(average), learner.intercept(average)))
            states.append(learner.state())
        facts: dict[str, Any] = {"rounds": self.made, "passes": self.made // self.rounds}
        if self.alpha is not None:
            facts["alpha"] = self.alpha
        return Learned(outputs, states=states, facts=facts)


def _mean(numbers: Sequence[Sequence[float]], rows: Sequence[int]) -> list[float]:
    """Return the mean of the numbers of parts that had rows, weighted by these."""
    mean = WeightedMeans((1, len(numbers[0])))
    for one, count in zip(numbers, rows, strict=True):
        if count:
            mean.add(np.zeros(1, np.int64), np.array([count]), np.array([one], np.float64))
    found: list[float] = mean.value()[0].tolist()
    return found
