"""Stages of the robust stabilized rule: parts train, ranges of features judge.

It does the same as ``StabilizedClassifier(variant="robust")``, and with one part the result is
bit-identical:

- The paths are assigned to the parts in pairs. The paths of a part use random halves of that part's
  rows, with as many passes as if there were no other rows. At the end they use all of its rows.
- With several parts, the weights of the features that are left are trained in `passes` rounds; each
  starts from the mean of all paths. A path makes as many steps as if it had the rows of all parts.
  (Without rounds, the weights become worse as the number of parts grows. The choice of features is
  as good as with one part.)
- Before the first stage, ranges add up how many rows have each feature, and admit the features that
  enough rows of all parts have. Norms of rows are means over the rows of all parts.
- If `target_nnz` is not given, each part measures models of different numbers of features on
  halves of its own rows. The driver adds up the losses of all parts and chooses the number; it is
  doubled as for one part. With several parts, models of fewer rows are compared: the number can be
  lower than that of one process, and a weak signal can be missed.
- After each stage, parts send what their paths found about each feature, and ranges add it up in
  the order of the parts. Means are over the paths of the parts whose rows have the feature: so a
  feature of a single part is not diluted by other parts, which could not learn it. (The intercept
  is the mean over the paths of all parts that have rows.)
- Which features stay is decided over all ranges. The driver finds the lowest score that stays, bit
  by bit, from counts of scores. The scores themselves are not sent.

Every stage starts from weights of 0, or from weights that ranges send. So the state of a part is
only which features are left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.distributed.engine.encoding import pack_keys, unpack_keys
from thresher.distributed.engine.pieces import (
    Arrays,
    ClusterJob,
    Coordinator,
    Learned,
    Mode,
    Piece,
)
from thresher.distributed.modes.ranking import LAST_KEY, find_cutoff
from thresher.distributed.modes.robust_messages import (
    AdmitFeatures,
    AskResult,
    AverageWeights,
    CountFeatures,
    LearnAllRows,
    LearnHalves,
    MeasureSizes,
    PurgeFeatures,
    ScoreFeatures,
    Totals,
)
from thresher.distributed.modes.robust_pieces import RobustPartPiece, RobustRangePiece
from thresher.errors import ParameterError, setting
from thresher.model.evidence import Evidence
from thresher.model.history import Output
from thresher.rules import core_args

if TYPE_CHECKING:
    from thresher.distributed.engine.executor import Executor


class RobustStagesMode(Mode):
    """The robust variant of the stabilized rule, distributed over parts and ranges of features.

    Parameters
    ----------
    job : ClusterJob
        A job of the rule "stabilized", with at least one pair of paths for each part.

    Attributes
    ----------
    rounds : int
        Number of rounds in which the weights of the features that are left are trained.
    """

    threaded = True

    def __init__(self, job: ClusterJob) -> None:
        self.job = job
        self.parts, self.ranges = job.rows.parts, job.ranges
        self.numbers, self.words = core_args.stabilized_parameters(
            job.params, job.seed, sum(job.counts)
        )
        paths = int(self.numbers["paths"])
        if 2 * self.parts > paths:
            raise ParameterError(
                (setting("paths"), " must be at least two for each part of the rows, which is "
                 f"{2 * self.parts}; got {paths}: raise ", setting("paths"), ", or cut the rows "
                 f"into at most {paths // 2} ", setting("parts")),
                parameter="paths",
                value=paths,
            )  # fmt: skip
        self.rounds = 1 if self.parts == 1 else int(job.params["passes"])
        if not isinstance(job.params["class_weight"], Mapping | None):
            raise ParameterError(
                (setting("class_weight"), " must be a dict or None with ",
                 setting("mode", "stages"), f"; got {job.params['class_weight']!r}"),
                parameter="class_weight",
                value=job.params["class_weight"],
            )  # fmt: skip

    def paths(self, part: int) -> tuple[int, int]:
        """Return the first path of a part, and its number of paths: pairs, distributed evenly."""
        pairs = int(self.numbers["paths"]) // 2
        first, end = pairs * part // self.parts, pairs * (part + 1) // self.parts
        return 2 * first, 2 * (end - first)

    def part(self, number: int, threads: int, shared: dict[str, Any]) -> Piece:
        """Make a part as it is before the first step."""
        return RobustPartPiece(self, number, threads)

    def range(self, number: int, shared: dict[str, Any]) -> Piece:
        """Make a range as it is before the first step."""
        return RobustRangePiece(self, number)

    def coordinator(self) -> Coordinator:
        """Make the coordinator as it is before the first stage."""
        return RobustCoordinator(self)

    # Feature j is in range j % ranges, and is sent as the number j // ranges.

    def by_range(
        self, keys: NDArray[np.uint64], columns: Mapping[str, NDArray[Any]]
    ) -> list[Arrays]:
        """Return the bundle of each range: increasing keys, and the columns of its features."""
        ranges = np.uint64(self.ranges)
        owners = keys % ranges
        sent = []
        for number in range(self.ranges):
            mine = np.flatnonzero(owners == number)
            bundle = pack_keys(keys[mine] // ranges)
            sent.append(bundle | {name: column[mine] for name, column in columns.items()})
        return sent

    def packed(self, keys: NDArray[np.uint64]) -> Arrays:
        """Return the features of one range, packed."""
        return pack_keys(keys // np.uint64(self.ranges))

    def unpacked(self, number: int, arrays: Arrays) -> NDArray[np.uint64]:
        """Return the features of a bundle that the range of this number sends or receives."""
        return unpack_keys(arrays) * np.uint64(self.ranges) + np.uint64(number)


class RobustCoordinator(Coordinator):
    """Decides from the counts of all parts and ranges.

    Parameters
    ----------
    mode : RobustStagesMode
    """

    def __init__(self, mode: RobustStagesMode) -> None:
        self.mode = mode
        self._stage = 0  # the last one
        self._round = 0  # finished rounds of the last step
        self._rows, self._paths = 0, 0  # rows of all parts; paths of the parts that have rows
        self._norm = 0.0  # mean of the squared norms of all rows, with their weights
        self._left, self._target = 0, 0
        self._first_bias, self._bias = 0.0, 0.0
        self._strength = 0.0  # of the l2 of the last step; 0: none
        self._totals: Sequence[float] = (0.0, 0.0, 0.0)

    def stage(self, executor: Executor) -> dict[str, Any]:
        """Train the paths; then purge features, or average the weights of those that are left."""
        if self._stage == 0:
            if not self._begin(executor):
                self.done = True
                return {"rows": 0, "loss": None, "nonzeros": 0}
            if self.mode.numbers["target"] == 0 and (ended := self._choose_size(executor)):
                return ended
        features_are_chosen = self._stage > 0 and self._left <= self._target
        self._stage += 1
        if features_are_chosen:
            replies = executor.step_parts(
                LearnAllRows(
                    stage=self._stage,
                    round=self._round,
                    rows=self._rows,
                    norm=self._norm,
                    bias=self._bias,
                    strength=self._strength,
                    weight=self._totals[0],
                )
            )
            self._round += 1
            self.done = self._round == self.mode.rounds
            found = executor.step_ranges(AverageWeights(self.done))
            nonzeros = sum(reply.nonzeros for reply in found)
            self._bias = _total([reply.bias for reply in replies]) / self._paths
        else:
            retained = self.mode.numbers["target"] == 0
            replies = executor.step_parts(
                LearnHalves(self._stage, self._norm, self._first_bias, retained)
            )
            self._purge(executor)
            nonzeros = self._left
        weight = _total([reply.weight for reply in replies])
        loss = _total([reply.loss for reply in replies])
        return {
            "rows": sum(reply.rows for reply in replies),
            "loss": loss / weight if weight > 0 else 0.0,
            "nonzeros": nonzeros,
        }

    def _begin(self, executor: Executor) -> bool:
        """Count rows and features; return whether there are any rows."""
        replies = executor.step_parts(CountFeatures())
        self._left = sum(reply.left for reply in executor.step_ranges(AdmitFeatures()))
        self._rows = sum(reply.rows for reply in replies)
        if self._rows == 0:
            return False
        self._paths = sum(reply.paths for reply in replies)
        self._totals = [_total(sums) for sums in zip(*(r.totals for r in replies), strict=True)]
        self._norm = _total([reply.norms for reply in replies]) / self._totals[0]
        self._target = int(self.mode.numbers["target"])
        return True

    def _choose_size(self, executor: Executor) -> dict[str, Any] | None:
        """Choose the number of features; return the report of the last stage if there is none."""
        weight, _, positive = self._totals
        self._first_bias = self._bias = _core.log_odds(positive, weight, float(self._rows))
        table = _core.SizeTable()
        for reply in executor.step_parts(MeasureSizes(self._norm, self._left)):
            table.add(reply.table)
        self._target, self._strength = table.chosen(self._left)
        if self._target > 0:
            return None
        self._stage, self._left, self.done = 1, 0, True
        loss = table.means[0] if table.sizes else None
        return {"rows": self._rows * self._paths, "loss": loss, "nonzeros": 0}

    def _purge(self, executor: Executor) -> None:
        """Keep the features with the highest scores; if scores are equal, those of lowest keys."""
        replies = executor.step_ranges(ScoreFeatures(float(self._rows)))
        rejection = self.mode.numbers["rejection"]
        size = _core.robust_size_after(self._left, self._target, rejection)
        rank, last = 1, LAST_KEY  # all that may stay
        if sum(reply.may_stay for reply in replies) > size:
            rank, last = find_cutoff(executor, size)
        purged = executor.step_ranges(PurgeFeatures(self._stage, rank, last))
        self._left = sum(reply.left for reply in purged)

    # These names are keys in checkpoint files. Version 0.1.0 wrote `done` only after it was set,
    # and the mean weight of rows, which is not used any more.
    _SAVED = (
        "_stage", "_round", "_rows", "_paths", "_norm", "_left", "_target", "_bias", "done",
        "_first_bias", "_strength", "_totals",
    )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return the state between two stages."""
        return {name: getattr(self, name) for name in self._SAVED}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        vars(self).update(state)

    def _sums(self) -> Totals:
        weight, squares, positive = self._totals
        return weight, squares, positive

    def result(self, executor: Executor) -> Learned:
        """Return the weights of all ranges, and the evidence."""
        weights, findings = zip(*executor.ask_ranges(AskResult(self._sums())), strict=True)
        keys, values = _sorted(weights)
        weight, _, positive = self._totals
        features, probability, updates, purged, documents, z = _sorted(findings)
        evidence = Evidence(
            indptr=np.array([0, len(features)], np.int64),
            features=features,
            probability=probability,
            updates=updates,
            purged=purged,
            documents=documents,
            z=z,
            shares=np.array([positive / weight if weight else np.nan]),
            signal=np.array([self._target > 0], np.uint8),
        )
        return Learned([Output(keys, values, self._bias)], evidence)


def _total(numbers: Sequence[float]) -> float:
    """Return a plain sum, in order. The bits of `sum` depend on the version of Python."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def _sorted(found: Sequence[Sequence[NDArray[Any]]]) -> list[NDArray[Any]]:
    """Join the arrays of several ranges; sort all by features, which are the first array."""
    joined = [np.concatenate(arrays) for arrays in zip(*found, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return [array[order] for array in joined]
