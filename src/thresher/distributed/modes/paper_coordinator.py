"""What the driver decides in stages of the published stabilized rule."""

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
from thresher.errors import ModelFileError
from thresher.model.evidence import Evidence
from thresher.model.history import Output

if TYPE_CHECKING:
    from thresher.distributed.engine.executor import Executor

_FEW = 4096  # ratios that all parts together may tell


@dataclass
class PaperState:
    """Where it stands between two stages; gravity, beta and burst are those of the next.

    Attributes
    ----------
    stage : int
        Stages made.
    taken : int
        Rows taken by each path.
    d : float
        Share of the features seen that are stable.
    sieve, reach : float
        Ratios from ``sieve * (1 - reach)`` to ``sieve * (1 + reach)`` are told at once: the next
        gravity is expected among them. (Which they are decides what is asked, not what is found.)
    loss, weight : float
        Sums over all paths.
    passes, purged_before : int
        With `tol`: the pass after which the model is looked at, and what was purged then.
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
    """Schedules, gravity, and the end.

    Parameters
    ----------
    job : ClusterJob
    numbers, words : mappings
        What the core is told.
    """

    def __init__(
        self, job: ClusterJob, numbers: Mapping[str, float], words: Mapping[str, str]
    ) -> None:
        self.job, self.numbers, self.words = job, numbers, words
        self.rows = max(job.counts)  # every path takes so many in a pass, or goes round again
        self.bits = 8 * np.dtype(job.params["dtype"]).itemsize
        self.at = PaperState(int(numbers["burst"]), numbers["rejection"])

    @property
    def done(self) -> bool:  # type: ignore[override]
        """Whether all passes are made, or the model stands still."""
        return self.at.done or self.at.taken >= self.job.params["passes"] * self.rows

    # ---- a stage -------------------------------------------------------------------------------

    def stage(self, executor: Executor) -> dict[str, Any]:
        """Let the paths make their bursts and ranges weigh, and find the next gravity."""
        at, numbers = self.at, self.numbers
        message = {"do": "stage", "stage": at.stage, "burst": at.burst, "gravity": at.gravity}
        low, high = self._sieve()
        told = executor.parts(message | {"beta": at.beta, "low": low, "high": high})
        weighed = executor.ranges({"do": "stage", "stage": at.stage})
        at.taken += at.burst * int(numbers["bursts"])
        rows = at.burst * int(numbers["bursts"] * numbers["paths"])
        at.seen += sum(told["seen"] for told in weighed)
        at.purged += sum(told["purged"] for told in weighed)
        stable = at.seen - at.purged
        if at.stage > 0:
            at.d = stable / at.seen if at.seen else 0.0
            at.beta = _core.rejection_rate(at.d, numbers["rejection"], numbers["annealing"])
            if numbers["burst_growth"] > 0:
                at.burst = _core.burst_size(int(numbers["burst"]), numbers["burst_growth"], at.d)
        if self.words["gravity_rule"] == "update-quantile":
            at.gravity = self._quantile(executor, told)
        at.stage += 1
        self._warn()
        loss, weight = sum(t["loss"] for t in told), sum(t["weight"] for t in told)
        mean = (loss - at.loss) / (weight - at.weight) if weight > at.weight else 0.0
        at.loss, at.weight = loss, weight
        self._look_whether_it_moves(executor)
        facts = {"rows": rows, "loss": mean, "nonzeros": stable}
        return facts | {"gravity": at.gravity, "beta": at.beta, "d": at.d, "burst": at.burst}

    def _warn(self) -> None:
        """Warn where nothing is rejected although something should be (A-36)."""
        at = self.at
        if at.warned or at.stage < 2 or at.gravity > 0 or at.beta <= 0:
            return
        if self.words["gravity_rule"] == "update-quantile":
            from thresher.estimators.stabilized import without_gravity

            at.warned = True
            warnings.warn(without_gravity(self.words["loss"], at.stage, at.beta), stacklevel=2)

    def _look_whether_it_moves(self, executor: Executor) -> None:
        """End it where the model hardly moved in a pass, and nothing was purged (R-13.14)."""
        at, tol = self.at, self.job.params["tol"] or 0.0
        if tol <= 0 or at.taken < at.passes * self.rows:
            return
        at.passes = at.taken // self.rows + 1
        self._add_up(executor)
        if at.purged == at.purged_before:
            gap = norm = 0.0
            for number in range(self.job.ranges):  # in the order of the features
                question = {"ask": "distance", "range": number, "gap": gap, "norm": norm}
                gap, norm = executor.ask_ranges(question)[number]
            at.done = math.sqrt(gap) <= tol * math.sqrt(norm)
        at.purged_before = at.purged

    @staticmethod
    def _add_up(executor: Executor) -> None:
        executor.parts({"do": "sums"})
        executor.ranges({"do": "sums"})

    # ---- gravity: the beta-quantile of the ratios of all parts, exactly (R-13.10) ----------------

    def _quantile(self, executor: Executor, told: list[dict[str, Any]]) -> float:
        at = self.at
        total, below, within = (sum(t[n] for t in told) for n in ("ratios", "below", "within"))
        if at.beta <= 0 or total == 0:
            return 0.0
        rank = _core.quantile_rank(at.beta, total)
        values = np.concatenate([t["values"] for t in told])
        low, high = self._sieve()
        if not below <= rank < below + within:
            at.reach = min(0.5, 2 * at.reach)
            at.sieve = self._search(executor, rank)
        elif low == high:  # all of these are equal
            at.sieve = low
        elif len(values) < within:  # too many to be told
            at.reach *= 0.5
            at.sieve = self._search(executor, rank)
        else:
            at.reach *= 0.8 if within > _FEW else 0.99  # a question costs more than some values
            at.sieve = _nth(values, rank - below)
        return at.sieve

    def _sieve(self) -> tuple[float, float]:
        """Return the interval where gravity is expected, as numbers that ratios can be."""
        at, real = self.at, np.dtype(self.job.params["dtype"]).type
        return float(real(at.sieve * (1 - at.reach))), float(real(at.sieve * (1 + at.reach)))

    def _search(self, executor: Executor, rank: int) -> float:
        """Find the ratio of this rank by its bits, whose order is that of the ratios."""
        first, shift = 0, self.bits - 12
        while True:
            question = {"ask": "histogram", "first": first, "shift": shift}
            counts = sum(executor.ask_parts(question))
            ends = np.cumsum(counts)
            at = int(np.searchsorted(ends, rank, side="right"))
            rank -= int(ends[at] - counts[at])
            first += at << shift
            if shift == 0:  # all of these are equal
                return float(np.array([first], f"u{self.bits // 8}").view(f"f{self.bits // 8}")[0])
            if counts[at] <= _FEW:
                values = executor.ask_parts({"ask": "values", "first": first, "shift": shift})
                return _nth(np.concatenate(values), rank)
            shift = max(0, shift - 11)

    # ---- state and result ------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return where it stands."""
        return asdict(self.at)

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        try:
            self.at = PaperState(**state)
        except TypeError as error:
            raise ModelFileError(f"the checkpoint of the driver: {error}") from error

    def result(self, executor: Executor) -> Learned:
        """Return the mean of the paths (R-13.8), and why features stayed or went."""
        self._add_up(executor)
        found = executor.ask_ranges({"ask": "learned"})
        all_of = {name: np.concatenate([f[name] for f in found]) for name in found[0]}
        evidence = Evidence(
            indptr=np.array([0, len(all_of["features"])], np.int64),
            **{n: all_of[n] for n in ("features", "probability", "updates", "purged", "documents")},
        )
        facts = {n: getattr(self.at, n) for n in ("gravity", "beta", "d", "burst", "seen")}
        return Learned(
            [Output(all_of["keys"], all_of["weights"], 0.0)],
            evidence,
            facts={"stages": self.at.stage, "rows": self.at.taken} | facts,
        )


def _nth(values: NDArray[np.float64], rank: int) -> float:
    return float(np.partition(values, rank)[rank])
