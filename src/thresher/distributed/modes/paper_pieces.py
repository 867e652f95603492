"""Parts and ranges of the stages of the published stabilized rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.distributed.engine.messages import Message, Question
from thresher.distributed.engine.pieces import Arrays, Piece, StepResult, unknown_message
from thresher.distributed.modes.paper_messages import (
    AskDistance,
    AskFindings,
    AskHistogram,
    AskRatios,
    AveragePaths,
    JudgePaperStage,
    PaperJudgeReply,
    PaperStageReply,
    RunPaperStage,
    SendPathSums,
)
from thresher.errors import DataError, DivergenceError, ModelFileError, OutOfMemoryError, setting
from thresher.training.class_weights import class_factors, row_weights

if TYPE_CHECKING:
    from thresher.distributed.modes.paper_stages import PaperStagesMode

_MAX_VALUES = 1 << 14  # ratios in a part's reply
_COUNTS = {"at": ("b", "kb", "k"), "seen": ("documents",)}  # arrays of keys, and of their counts

Words = NDArray[np.uint32]


class PaperPartPiece(Piece):
    """A part: its rows, in memory, and the weights of the paths that use them."""

    def __init__(self, mode: PaperStagesMode, number: int, threads: int) -> None:
        self.number, self.cuts, self.is_only_part = number, mode.cuts, mode.parts == 1
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

    def step(self, message: Message[Any], received: Sequence[Arrays]) -> StepResult:
        """Run a stage and send its counts; or send the sums of the paths' weights."""
        for arrays in received:
            self.native.freeze(arrays["purged"])
        match message:
            case RunPaperStage():
                return self._run_stage(message)
            case SendPathSums():
                keys, sums = self.native.sums()
                return StepResult(sent=self._by_range("at", keys, {"sums": sums}))
        raise unknown_message(self, message)

    def _run_stage(self, message: RunPaperStage) -> StepResult:
        try:
            reply = PaperStageReply(
                *self.native.stage(
                    stage=message.stage,
                    burst=message.burst,
                    gravity=message.gravity,
                    beta=message.beta,
                    low=message.low,
                    high=message.high,
                    most=_MAX_VALUES,
                )
            )
        except DivergenceError as error:
            where = "" if self.is_only_part else f"part {self.number}: "
            raise DivergenceError(f"{where}{error}") from None
        keys, counts = self.native.counts()
        sent = self._by_range("at", keys, _narrowed(_COUNTS["at"], counts))
        if message.stage == 0:
            keys, documents = self.native.documents()
            first = self._by_range("seen", keys, _narrowed(_COUNTS["seen"], documents))
            sent = [more | arrays for more, arrays in zip(first, sent, strict=True)]
        return StepResult(reply, sent)

    def _by_range(
        self, name: str, keys: Words, columns: Mapping[str, NDArray[Any]]
    ) -> list[Arrays]:
        """Return the bundle of each range, with keys relative to the range's first feature."""
        ends = np.searchsorted(keys, self.cuts).tolist()
        return [
            {name: keys[begin:end] - np.uint32(first)}
            | {column: values[begin:end] for column, values in columns.items()}
            for first, begin, end in zip(self.cuts[:-1], ends[:-1], ends[1:], strict=True)
        ]

    def answer(self, question: Question[Any]) -> NDArray[Any]:
        """Return counts of the stage's ratios, or the ratios, by their bits."""
        match question:
            case AskHistogram(first, shift):
                return self.native.histogram(first, shift)
            case AskRatios(first, shift):
                return self.native.values(first, shift)
        raise unknown_message(self, question)

    def state(self) -> Arrays:
        """Return the weights, and the positions of the paths in their rows."""
        return {"paths": np.frombuffer(self.native.state(), np.uint8)}

    def restore(self, state: Arrays) -> None:
        """Continue from a state."""
        try:
            self.native.restore(state["paths"].tobytes())
        except (KeyError, ValueError) as error:
            raise ModelFileError(f"the checkpoint of part {self.number}: {error}") from error


class PaperRangePiece(Piece):
    """A range: the evidence of its features, and the last two means of the paths."""

    def __init__(self, mode: PaperStagesMode, number: int) -> None:
        self.number, self.paths = number, mode.job.params["paths"]
        self.first, end = mode.cuts[number : number + 2].tolist()
        self.native = _core.PaperRange(
            end - self.first, mode.numbers["keep"], mode.numbers["min_updates"]
        )
        self.documents = np.zeros(end - self.first, np.int64)
        self.mean = np.zeros(end - self.first)
        self.previous_mean = self.mean

    def step(self, message: Message[Any], received: Sequence[Arrays]) -> StepResult:
        """Add up the counts, and send the features to purge; or average the paths."""
        match message:
            case JudgePaperStage(stage):
                return self._judge(stage, received)
            case AveragePaths():
                self.previous_mean, self.mean = self.mean, np.zeros(len(self.mean))
                for arrays in received:
                    self.mean[arrays["at"]] += arrays["sums"]
                self.mean /= self.paths
                return StepResult()
        raise unknown_message(self, message)

    def _judge(self, stage: int, received: Sequence[Arrays]) -> StepResult:
        seen = 0
        for arrays in received:
            if "seen" in arrays:
                seen += self.native.see(arrays["seen"])
                self.documents[arrays["seen"]] += arrays["documents"]
            self.native.add(stage, arrays["at"], *map(_wide, (arrays[c] for c in _COUNTS["at"])))
        purged = [self.native.evaluate(stage, arrays["at"]) for arrays in received]
        keys = np.sort(np.concatenate([*purged, np.zeros(0, np.uint32)]))
        sent = [{"purged": keys + np.uint32(self.first)}] if len(keys) else []
        return StepResult(PaperJudgeReply(seen, len(keys)), sent)

    def answer(self, question: Question[Any]) -> Any:
        """Return weights and evidence, or add squares of this range to two sums."""
        match question:
            case AskFindings():
                return self._findings()
            case AskDistance(number, gap, norm):
                if number != self.number:
                    return None
                change = self.mean - self.previous_mean
                return _add_squares(gap, change), _add_squares(norm, self.previous_mean)
        raise unknown_message(self, question)

    def _findings(self) -> Arrays:
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
        """Continue from a state."""
        try:
            self.native.restore(state["evidence"].tobytes())
            self.documents[state["seen"]] = state["documents"]
            self.mean[state["keys"]] = state["mean"]
        except (IndexError, KeyError, ValueError) as error:
            raise ModelFileError(f"the checkpoint of range {self.number}: {error}") from error


def add_counts(one: Arrays, two: Arrays) -> Arrays:
    """Add up the counts of two parts."""
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


def _narrowed(names: Sequence[str], columns: Sequence[Words]) -> dict[str, NDArray[Any]]:
    """Return counts by name, in the narrowest type that can hold them."""
    return {
        name: column.astype(np.min_scalar_type(int(column.max(initial=0))), copy=False)
        for name, column in zip(names, columns, strict=True)
    }


def _wide(counts: NDArray[Any]) -> Words:
    return counts.astype(np.uint32, copy=False)


def _add_squares(start: float, values: NDArray[np.float64]) -> float:
    """Add squares to a sum one after the other, as the rule does on one machine."""
    return float(np.cumsum(np.concatenate([[start], values * values]))[-1])
