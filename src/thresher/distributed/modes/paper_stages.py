"""Stages of the published stabilized rule, with its paths spread over parts of the rows.

Path m walks through the rows of part ``m * parts // paths``. In a stage each part makes the bursts
of its paths, adds up what they have counted of each feature, and sends that to the ranges; a range
weighs its features, and what it purges goes to all parts. The lead finds the gravity of the next
stage (`paper_lead`). Counts are whole numbers, so only the order of paths shows in the result.

With one part every path sees all rows, and the result is that of ``StabilizedClassifier`` alone, to
the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.distributed.engine.pieces import Arrays, Job, Lead, Mode, Outcome, Packet, Piece
from thresher.distributed.modes.paper_coordinator import PaperLead
from thresher.errors import (
    DataError,
    DivergenceError,
    ModelFileError,
    OutOfMemoryError,
    ParameterError,
    setting,
)
from thresher.rules import core_args
from thresher.training.class_weights import class_factors, row_weights

_VALUES = 1 << 14  # ratios that a part tells at most
_WRITING = 1 << 20  # rows, over all paths, that are worth a checkpoint
_AGAIN = 50  # stages that may have to be made again: what was sent in them is held
_COUNTS = {"at": ("b", "kb", "k"), "seen": ("documents",)}  # keys, and what is counted of each

Words = NDArray[np.uint32]


class PaperStages(Mode):
    """``mode="stages"`` of ``StabilizedClassifier(variant="paper")``.

    Parameters
    ----------
    job : Job
        Of rule "stabilized".

    Raises
    ------
    ParameterError
        Where there are fewer paths than parts, or too many features.
    DataError
        Where a part has no rows.
    """

    threaded = True

    def __init__(self, job: Job) -> None:
        self.job = job
        self.parts, self.ranges = job.rows.parts, job.ranges
        paths = int(job.params["paths"])
        if job.params.get("variant") != "paper":
            raise ParameterError("variant: these stages are of variant='paper'")
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
        self.every = int(min(_AGAIN, max(1.0, _WRITING // stage_rows)))
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
        """Return the paths that walk through the rows of a part."""
        paths = int(self.job.params["paths"])
        return range(-(-part * paths // self.parts), -(-(part + 1) * paths // self.parts))

    @property
    def cuts(self) -> NDArray[np.int64]:
        """The first feature of each range, and the width."""
        return np.array([self.job.width * r // self.ranges for r in range(self.ranges + 1)])

    def part(self, number: int, threads: int, shared: dict[str, Any]) -> Piece:
        """Make a part; reads its rows."""
        return _Part(self, number, threads)

    def range(self, number: int, shared: dict[str, Any]) -> Piece:
        """Make a range of features."""
        return _Range(self, number)

    def lead(self) -> Lead:
        """Make the driver's part."""
        return PaperLead(self.job, self.numbers, self.words)

    def combined(self, message: dict[str, Any], packet: Packet) -> Packet:
        """Add up the counts of several parts; weights stay apart, in their order."""
        if message["do"] != "stage" or len(packet) < 2:
            return packet
        number, sums = packet[0]
        for _, arrays in packet[1:]:
            sums = _sum(sums, arrays)
        return [(number, sums)]


class _Part(Piece):
    """Rows in memory, and the weights of the paths that walk through them."""

    def __init__(self, mode: PaperStages, number: int, threads: int) -> None:
        self.number, self.cuts, self.alone = number, mode.cuts, mode.parts == 1
        job, dtype, paths = mode.job, mode.job.params["dtype"], mode.paths_of(number)
        try:
            self.native = _core.make_paper_part(
                dtype, job.width, paths[0], len(paths), threads, mode.numbers, mode.words
            )
        except MemoryError:
            raise OutOfMemoryError(
                f"no memory for {len(paths)} paths of {job.width} weights",
                hint=("more ", setting("parts"), " on more machines need less each"),
            ) from None
        for block in job.rows.source(number).blocks(dtype=dtype):
            targets, batch = job.labels.targets(block), block.batch
            factors = class_factors(job.params.get("class_weight"), job.labels, "")
            weights = row_weights(block, targets, factors)
            batch.set_targets(targets[job.output], weights)
            try:
                self.native.add(batch)
            except _core.DataError as error:
                raise block.located(error) from None
        if self.native.rows != job.counts[number]:
            raise DataError(
                f"part {number} has {self.native.rows} rows, and had {job.counts[number]} when "
                f"they were counted: the data have changed"
            )

    def step(self, message: dict[str, Any], received: Sequence[Arrays]) -> Outcome:
        """Make a stage, and send what was counted; or send the sums of the paths' weights."""
        for arrays in received:
            self.native.freeze(arrays["purged"])
        if message["do"] == "sums":
            keys, sums = self.native.sums()
            return Outcome(sent=self._cut("at", keys, {"sums": sums}))
        try:
            ratios, below, within, values, loss, weight = self.native.stage(
                **{k: message[k] for k in ("stage", "burst", "gravity", "beta", "low", "high")},
                most=_VALUES,
            )
        except DivergenceError as error:
            where = "" if self.alone else f"part {self.number}: "
            raise DivergenceError(f"{where}{error}") from None
        keys, counts = self.native.counts()
        sent = self._cut("at", keys, _narrowed(_COUNTS["at"], counts))
        if message["stage"] == 0:
            keys, documents = self.native.documents()
            first = self._cut("seen", keys, _narrowed(_COUNTS["seen"], documents))
            sent = [more | arrays for more, arrays in zip(first, sent, strict=True)]
        told = {"ratios": ratios, "below": below, "within": within, "values": values}
        return Outcome(told | {"loss": loss, "weight": weight}, sent)

    def _cut(self, name: str, keys: Words, columns: Mapping[str, NDArray[Any]]) -> list[Arrays]:
        """Return what each range gets, with keys counted from its begin."""
        ends = np.searchsorted(keys, self.cuts).tolist()
        return [
            {name: keys[begin:end] - np.uint32(first)}
            | {column: values[begin:end] for column, values in columns.items()}
            for first, begin, end in zip(self.cuts[:-1], ends[:-1], ends[1:], strict=True)
        ]

    def answer(self, question: dict[str, Any]) -> NDArray[Any]:
        """Tell of the stage's ratios, by their bits."""
        ask = self.native.histogram if question["ask"] == "histogram" else self.native.values
        return ask(question["first"], question["shift"])

    def state(self) -> Arrays:
        """Return weights and where the walks stand."""
        return {"paths": np.frombuffer(self.native.state(), np.uint8)}

    def restore(self, state: Arrays) -> None:
        """Go on from there."""
        try:
            self.native.restore(state["paths"].tobytes())
        except (KeyError, ValueError) as error:
            raise ModelFileError(f"the checkpoint of part {self.number}: {error}") from error


class _Range(Piece):
    """What is known of some features, and the mean of the paths when it was last asked for."""

    def __init__(self, mode: PaperStages, number: int) -> None:
        self.number, self.paths = number, mode.job.params["paths"]
        self.first, end = mode.cuts[number : number + 2].tolist()
        self.native = _core.PaperRange(
            end - self.first, mode.numbers["keep"], mode.numbers["min_updates"]
        )
        self.documents = np.zeros(end - self.first, np.int64)
        self.mean = np.zeros(end - self.first)
        self.before = self.mean  # the mean of the time before that

    def step(self, message: dict[str, Any], received: Sequence[Arrays]) -> Outcome:
        """Add up counts, weigh, and send what is purged; or add up the paths."""
        if message["do"] == "sums":
            self.before, self.mean = self.mean, np.zeros(len(self.mean))
            for arrays in received:
                self.mean[arrays["at"]] += arrays["sums"]
            self.mean /= self.paths
            return Outcome()
        seen, stage = 0, message["stage"]
        for arrays in received:
            if "seen" in arrays:
                seen += self.native.see(arrays["seen"])
                self.documents[arrays["seen"]] += arrays["documents"]
            self.native.add(stage, arrays["at"], *map(_wide, (arrays[c] for c in _COUNTS["at"])))
        purged = [self.native.evaluate(stage, arrays["at"]) for arrays in received]
        gone = np.sort(np.concatenate([*purged, np.zeros(0, np.uint32)]))
        sent = [{"purged": gone + np.uint32(self.first)}] if len(gone) else []
        return Outcome({"seen": seen, "purged": len(gone)}, sent)

    def answer(self, question: dict[str, Any]) -> Any:
        """Return what was learned, or add to sums of squares, feature after feature."""
        if question["ask"] == "learned":
            return self._learned()
        if question["range"] != self.number:
            return None
        gap = self.mean - self.before
        return _added(question["gap"], gap), _added(question["norm"], self.before)

    def _learned(self) -> Arrays:
        keys, probability, updates, purged = self.native.findings()
        nonzero = np.flatnonzero(self.mean)
        return {
            "keys": nonzero.astype(np.uint64) + np.uint64(self.first),
            "weights": self.mean[nonzero],
            "features": keys + np.uint64(self.first),
            "probability": probability,
            "updates": updates,
            "purged": purged,
            "documents": self.documents[keys.astype(np.intp)],
        }

    def state(self) -> Arrays:
        """Return the evidence, and the last mean."""
        seen, nonzero = np.flatnonzero(self.documents), np.flatnonzero(self.mean)
        return {
            "evidence": np.frombuffer(self.native.state(), np.uint8),
            "seen": seen.astype(np.uint32),
            "documents": self.documents[seen],
            "keys": nonzero.astype(np.uint32),
            "mean": self.mean[nonzero],
        }

    def restore(self, state: Arrays) -> None:
        """Go on from there."""
        try:
            self.native.restore(state["evidence"].tobytes())
            self.documents[state["seen"]] = state["documents"]
            self.mean[state["keys"]] = state["mean"]
        except (IndexError, KeyError, ValueError) as error:
            raise ModelFileError(f"the checkpoint of range {self.number}: {error}") from error


def _narrowed(names: Sequence[str], columns: Sequence[Words]) -> dict[str, NDArray[Any]]:
    """Return counts by name, in the smallest type that has room for them."""
    return {
        name: column.astype(np.min_scalar_type(int(column.max(initial=0))), copy=False)
        for name, column in zip(names, columns, strict=True)
    }


def _wide(counts: NDArray[Any]) -> Words:
    return counts.astype(np.uint32, copy=False)


def _sum(one: Arrays, two: Arrays) -> Arrays:
    """Add up what two parts have counted."""
    found: Arrays = {}
    for keys, names in _COUNTS.items():
        if keys in one:
            found[keys], sums = _core.sum_counts(
                one[keys],
                [_wide(one[name]) for name in names],
                two[keys],
                [_wide(two[name]) for name in names],
            )
            found |= _narrowed(names, sums)
    return found


def _added(start: float, values: NDArray[np.float64]) -> float:
    """Add squares to a sum one after the other, as the rule does on one machine."""
    return float(np.cumsum(np.concatenate([[start], values * values]))[-1])
