"""The coordinator for stages of the published stabilized rule."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.distributed.engine.pieces import ClusterJob, Coordinator, Learned
from thresher.distributed.modes.paper_messages import (
    AskDistance,
    AskFindings,
    AskHistogram,
    AskRatios,
    AveragePaths,
    JudgePaperStage,
    PaperStageReply,
    RunPaperStage,
    SendPathSums,
)
from thresher.errors import ModelFileError
from thresher.model.evidence import Evidence
from thresher.model.history import Output
from thresher.sums import ordered_sum

if TYPE_CHECKING:
    from thresher.distributed.engine.executor import Executor

_FEW = 4096  # ratios that all parts together may send to the driver


@dataclass
class PaperState:
    """The state between two stages; gravity, beta and burst are those of the next stage.

    The names of the fields are keys in checkpoint files.

    Attributes
    ----------
    stage : int
        Stages done.
    taken : int
        Rows learned by each path.
    d : float
        Share of the features seen that are stable.
    seen, purged : int
        Numbers of features.
    sieve, reach : float
        Parts report ratios from ``sieve * (1 - reach)`` to ``sieve * (1 + reach)`` with a stage, as
        the next gravity is expected among them. The interval changes how many questions are needed,
        not the gravity found.
    loss, weight : float
        Sums over all paths.
    passes, purged_before : int
        With `tol`: the pass after which the model is compared next, and the number of purged
        features at the last comparison.
    """

    burst: int
    beta: float
    stage: int = 0
    taken: int = 0
    gravity: float = 0.0
    d: float = 1.0
    seen: int = 0
    purged: int = 0
    sieve: float = 0.0
    reach: float = 0.1
    loss: float = 0.0
    weight: float = 0.0
    passes: int = 1
    purged_before: int = -1
    warned: bool = False
    done: bool = False


class PaperCoordinator(Coordinator):
    """Schedules, gravity, and the decision to stop.

    Parameters
    ----------
    job : ClusterJob
    numbers, words : mappings
        Parameters of the core's learner.
    """

    def __init__(
        self, job: ClusterJob, numbers: Mapping[str, float], words: Mapping[str, str]
    ) -> None:
        self.job, self.numbers, self.words = job, numbers, words
        self.rows = max(job.counts)  # rows of a path in a pass; smaller parts are read again
        self.bits = 8 * np.dtype(job.params["dtype"]).itemsize
        self.at = PaperState(int(numbers["burst"]), numbers["rejection"])

    @property
    def done(self) -> bool:  # type: ignore[override]
        """Whether all passes are done, or the model has stopped changing."""
        return self.at.done or self.at.taken >= self.job.params["passes"] * self.rows

    # ---- a stage ---------------------------------------------------------------------------------

    def stage(self, executor: Executor) -> dict[str, Any]:
        """Run the bursts of all paths, judge all features, and find the next gravity."""
        at, numbers = self.at, self.numbers
        low, high = self._interval()
        replies = executor.step_parts(
            RunPaperStage(at.stage, at.burst, at.gravity, at.beta, low, high)
        )
        judged = executor.step_ranges(JudgePaperStage(at.stage))
        at.taken += at.burst * int(numbers["bursts"])
        rows = at.burst * int(numbers["bursts"] * numbers["paths"])
        at.seen += sum(reply.seen for reply in judged)
        at.purged += sum(reply.purged for reply in judged)
        stable = at.seen - at.purged
        if at.stage > 0:
            at.d = stable / at.seen if at.seen else 0.0
            at.beta = _core.rejection_rate(at.d, numbers["rejection"], numbers["annealing"])
            if numbers["burst_growth"] > 0:
                at.burst = _core.burst_size(int(numbers["burst"]), numbers["burst_growth"], at.d)
        if self.words["gravity_rule"] == "update-quantile":
            at.gravity = self._quantile(executor, replies)
        at.stage += 1
        self._warn()
        loss = ordered_sum(r.loss for r in replies)
        weight = ordered_sum(r.weight for r in replies)
        mean = (loss - at.loss) / (weight - at.weight) if weight > at.weight else 0.0
        at.loss, at.weight = loss, weight
        self._check_tol(executor)
        record = {"rows": rows, "loss": mean, "nonzeros": stable}
        return record | {"gravity": at.gravity, "beta": at.beta, "d": at.d, "burst": at.burst}

    def _warn(self) -> None:
        """Warn if no update is rejected although the rejection rate is positive (A-36)."""
        at = self.at
        if at.warned or at.stage < 2 or at.gravity > 0 or at.beta <= 0:
            return
        if self.words["gravity_rule"] == "update-quantile":
            from thresher.estimators.stages import without_gravity

            at.warned = True
            warnings.warn(without_gravity(self.words["loss"], at.stage, at.beta), stacklevel=2)

    def _check_tol(self, executor: Executor) -> None:
        """Stop if the model hardly changed in a pass and no feature was purged (R-13.14)."""
        at, tol = self.at, self.job.params["tol"] or 0.0
        if tol <= 0 or at.taken < at.passes * self.rows:
            return
        at.passes = at.taken // self.rows + 1
        self._average_paths(executor)
        if at.purged == at.purged_before:
            sums = 0.0, 0.0
            for number in range(self.job.ranges):  # in the order of the features
                answer = executor.ask_ranges(AskDistance(number, *sums))[number]
                assert answer is not None
                sums = answer
            at.done = math.sqrt(sums[0]) <= tol * math.sqrt(sums[1])
        at.purged_before = at.purged

    @staticmethod
    def _average_paths(executor: Executor) -> None:
        executor.step_parts(SendPathSums())
        executor.step_ranges(AveragePaths())

    # ---- gravity: the exact beta-quantile of the ratios of all parts (R-13.10) -------------------

    def _quantile(self, executor: Executor, replies: list[PaperStageReply]) -> float:
        at = self.at
        total, below = sum(r.ratios for r in replies), sum(r.below for r in replies)
        within = sum(r.within for r in replies)
        if at.beta <= 0 or total == 0:
            return 0.0
        rank = _core.quantile_rank(at.beta, total)
        values = np.concatenate([r.values for r in replies])
        low, high = self._interval()
        if not below <= rank < below + within:
            at.reach = min(0.5, 2 * at.reach)
            at.sieve = self._search(executor, rank)
        elif low == high:  # all ratios in the interval are equal
            at.sieve = low
        elif len(values) < within:  # there were too many to report
            at.reach *= 0.5
            at.sieve = self._search(executor, rank)
        else:
            at.reach *= 0.8 if within > _FEW else 0.99  # a question costs more than some values
            at.sieve = _nth(values, rank - below)
        return at.sieve

    def _interval(self) -> tuple[float, float]:
        """Return the interval where gravity is expected, in the number type of ratios."""
        at, real = self.at, np.dtype(self.job.params["dtype"]).type
        return float(real(at.sieve * (1 - at.reach))), float(real(at.sieve * (1 + at.reach)))

    def _search(self, executor: Executor, rank: int) -> float:
        """Find the ratio of this rank by its bits, which have the same order as the ratios."""
        first, shift = 0, self.bits - 12
        while True:
            counts = np.sum(executor.ask_parts(AskHistogram(first, shift)), axis=0)
            ends = np.cumsum(counts)
            at = int(np.searchsorted(ends, rank, side="right"))
            rank -= int(ends[at] - counts[at])
            first += at << shift
            if shift == 0:  # all ratios that are left are equal
                return float(np.array([first], f"u{self.bits // 8}").view(f"f{self.bits // 8}")[0])
            if counts[at] <= _FEW:
                values = executor.ask_parts(AskRatios(first, shift))
                return _nth(np.concatenate(values), rank)
            shift = max(0, shift - 11)

    # ---- state and result ------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state between two stages."""
        return asdict(self.at)

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        try:
            self.at = PaperState(**state)
        except TypeError as error:
            raise ModelFileError(f"the checkpoint of the driver: {error}") from error

    def result(self, executor: Executor) -> Learned:
        """Return the mean of the paths (R-13.8), and the evidence."""
        self._average_paths(executor)
        found = executor.ask_ranges(AskFindings())
        joined = {name: np.concatenate([f[name] for f in found]) for name in found[0]}
        evidence = Evidence(
            indptr=np.array([0, len(joined["features"])], np.int64),
            **{n: joined[n] for n in ("features", "probability", "updates", "purged", "documents")},
        )
        facts = {n: getattr(self.at, n) for n in ("gravity", "beta", "d", "burst", "seen")}
        return Learned(
            [Output(joined["keys"], joined["weights"], 0.0)],
            evidence,
            facts={"stages": self.at.stage, "rows": self.at.taken} | facts,
        )


def _nth(values: NDArray[np.float64], rank: int) -> float:
    return float(np.partition(values, rank)[rank])
