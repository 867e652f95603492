"""Stages of the published stabilized rule, with its paths distributed over parts of the rows.

Path m uses the rows of part ``m * parts // paths``. In a stage, each part runs the bursts of its
paths, adds up their counts of each feature, and sends the sums to the ranges. A range judges its
features, and sends the purged ones to all parts. The coordinator finds the gravity of the next
stage (`paper_coordinator`). Counts are whole numbers, so their sums do not depend on the order of
the parts; sums of weights are computed in the order of the paths.

With one part every path uses all rows, and the result is bit-identical to that of
``StabilizedClassifier`` on one machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.distributed.engine.messages import Message
from thresher.distributed.engine.pieces import ClusterJob, Coordinator, Mode, Packet, Piece
from thresher.distributed.modes.paper_coordinator import PaperCoordinator
from thresher.distributed.modes.paper_messages import RunPaperStage
from thresher.distributed.modes.paper_pieces import PaperPartPiece, PaperRangePiece, add_counts
from thresher.errors import DataError, ParameterError, setting
from thresher.rules import core_args

_CHECKPOINT_ROWS = 1 << 20  # rows, summed over all paths, between two checkpoints
_MAX_STAGES = 50  # between two checkpoints, as the messages of these stages are kept


class PaperStagesMode(Mode):
    """``mode="stages"`` of ``StabilizedClassifier(variant="paper")``.

    Parameters
    ----------
    job : ClusterJob
        A job of the rule "stabilized".

    Raises
    ------
    ParameterError
        There are fewer paths than parts, or too many features.
    DataError
        A part has no rows.
    """

    threaded = True

    def __init__(self, job: ClusterJob) -> None:
        self.job = job
        self.parts, self.ranges = job.rows.parts, job.ranges
        paths = int(job.params["paths"])
        if job.params.get("variant") != "paper":
            raise ParameterError("variant: these stages are for variant='paper'")
        if self.parts > paths:
            raise ParameterError(
                (setting("paths", paths), f" are too few for {self.parts} parts of the rows: each "
                 "needs one"),
                parameter="paths",
                value=paths,
                hint=("raise ", setting("paths"), ", or set ", setting("parts"), f" to {paths} or "
                      "less"),
            )  # fmt: skip
        if not 0 < job.width <= 2**31:
            raise ParameterError(
                (setting("mode", "stages"), " takes features with numbers below 2^31: set ",
                 setting("bits"), " to 31 or less"),
                parameter="bits",
            )  # fmt: skip
        for number, count in enumerate(job.counts):
            if count == 0:
                raise DataError(f"part {number} of {self.parts} has no rows to learn from")
        self.numbers, self.words = core_args.stabilized_parameters(
            job.params, job.seed, sum(job.counts)
        )
        stage_rows = self.numbers["burst"] * self.numbers["bursts"] * paths
        self.every = int(min(_MAX_STAGES, max(1.0, _CHECKPOINT_ROWS // stage_rows)))
        growth, burst = self.numbers["burst_growth"], int(self.numbers["burst"])
        longest = max(burst, _core.burst_size(burst, growth, 0.0)) if growth > 0 else burst
        if longest * self.numbers["bursts"] * paths >= 2**32:
            raise ParameterError(
                (setting("burst", burst), " with ", setting("bursts", int(self.numbers["bursts"])),
                 " and ", setting("paths", paths), ": the rows of a stage, over all paths, must be "
                 "below 2^32"),
                parameter="burst",
                value=burst,
            )  # fmt: skip

    def paths_of(self, part: int) -> range:
        """Return the paths that use the rows of a part."""
        paths = int(self.job.params["paths"])
        return range(-(-part * paths // self.parts), -(-(part + 1) * paths // self.parts))

    @property
    def cuts(self) -> NDArray[np.int64]:
        """The first feature of each range, and the number of features."""
        return np.array([self.job.width * r // self.ranges for r in range(self.ranges + 1)])

    def part(self, number: int, threads: int, shared: dict[str, Any]) -> Piece:
        """Make a part; reads its rows."""
        return PaperPartPiece(self, number, threads)

    def range(self, number: int, shared: dict[str, Any]) -> Piece:
        """Make a range of features."""
        return PaperRangePiece(self, number)

    def coordinator(self) -> Coordinator:
        """Make the coordinator."""
        return PaperCoordinator(self.job, self.numbers, self.words)

    def combined(self, message: Message[Any], packet: Packet) -> Packet:
        """Add up the counts of several parts. Sums of weights stay separate, in their order."""
        if not isinstance(message, RunPaperStage) or len(packet) < 2:
            return packet
        number, sums = packet[0]
        for _, arrays in packet[1:]:
            sums = add_counts(sums, arrays)
        return [(number, sums)]
