"""Parts and ranges of the stages of the robust stabilized rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.distributed.engine.encoding import look_up, narrow_integers, pack_keys, unpack_keys
from thresher.distributed.engine.messages import Message, Question
from thresher.distributed.engine.pieces import Arrays, Piece, StepResult, unknown_message
from thresher.distributed.modes.robust_messages import (
    AdmitFeatures,
    AskRankCounts,
    AskResult,
    AverageWeights,
    CountFeatures,
    LearnAllRows,
    LearnHalves,
    LeftReply,
    MeasureSizes,
    NonzerosReply,
    PathsReply,
    PurgeFeatures,
    RowsReply,
    ScoreFeatures,
    ScoreReply,
    SizesReply,
)
from thresher.errors import DivergenceError
from thresher.training.class_weights import class_factors, row_weights

if TYPE_CHECKING:
    from thresher.distributed.modes.robust_stages import RobustStagesMode


class RobustPartPiece(Piece):
    """A part: its rows, and the paths that use them."""

    def __init__(self, mode: RobustStagesMode, number: int, threads: int) -> None:
        self.mode, self.number, self.threads = mode, number, threads
        self._core: _core.RobustPart | None = None  # None until the rows are read
        self._left: NDArray[np.uint64] | None = None  # features of a checkpoint, until then

    def step(self, message: Message[Any], received: Sequence[Arrays]) -> StepResult:
        """Count the features of the rows; in later steps, train the paths."""
        match message:
            case CountFeatures():
                return self._count()
            case MeasureSizes(norm, features):
                core = self._rows()
                core.retain(self._received_keys(received)[0])
                return StepResult(SizesReply(core.sizes(norm, features, self.threads)))
            case LearnHalves() | LearnAllRows():
                return self._learn(message, received)
        raise unknown_message(self, message)

    def _learn(self, message: LearnHalves | LearnAllRows, received: Sequence[Arrays]) -> StepResult:
        core = self._rows()
        keys, order = self._received_keys(received)
        start = np.zeros(0)
        if isinstance(message, LearnAllRows) and message.round > 0:
            weights = np.concatenate([sent["weights"] for sent in received])
            start = look_up(core.features(), keys, weights[order].astype(np.float64))
        elif message.stage > 1:
            core.drop(keys)
        elif isinstance(message, LearnHalves) and not message.retained:
            core.retain(keys)
        try:
            sums = self._run_paths(core, message, start)
        except DivergenceError as error:
            raise DivergenceError(f"part {self.number}: {error}") from None
        reply = PathsReply(sums.rows, sums.loss, sums.weight, sums.bias)
        z, w, plus, minus, updates = sums.arrays()
        found = np.flatnonzero((updates > 0) | (w != 0))
        columns: Arrays = {"w": w[found], "updates": narrow_integers(updates[found])}
        if isinstance(message, LearnHalves):
            signs = {"plus": narrow_integers(plus[found]), "minus": narrow_integers(minus[found])}
            columns |= {"z": z[found]} | signs
        return StepResult(reply, self.mode.by_range(core.features()[found], columns))

    def _received_keys(
        self, received: Sequence[Arrays]
    ) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
        """Return the features that ranges sent, in increasing order, and that order."""
        sent = [self.mode.unpacked(r, arrays) for r, arrays in enumerate(received)]
        keys = np.concatenate([np.zeros(0, np.uint64), *sent])
        order = np.argsort(keys)
        return keys[order], order

    def _run_paths(
        self,
        core: _core.RobustPart,
        message: LearnHalves | LearnAllRows,
        start: NDArray[np.float64],
    ) -> _core.PathSums:
        about = message.stage, message.norm
        if isinstance(message, LearnHalves):
            return core.halves(*about, message.bias, self.threads)
        steps = max(int(self.mode.job.params["passes"]) * message.rows, core.refit_steps)
        passes = -(-steps // (max(core.rows, 1) * self.mode.rounds))
        penalty = message.strength, message.weight
        return core.whole(*about, passes, start, message.bias, *penalty, self.threads)

    def _count(self) -> StepResult:
        core, (keys, rows, documents, squares, sums) = self._read()
        self._core = core
        paths = self.mode.paths(self.number)[1] if core.rows else 0
        counts = {
            "rows": narrow_integers(rows),
            "documents": narrow_integers(documents),
            "squares": squares,
            "sums": sums.reshape(-1, 3),
        }
        reply = RowsReply(core.rows, core.norms, core.totals, paths)
        return StepResult(reply, self.mode.by_range(keys, counts))

    def _rows(self) -> _core.RobustPart:
        if self._core is None:
            assert self._left is not None
            self._core, _ = self._read()
            self._core.retain(self._left)
            self._left = None
        return self._core

    def _read(self) -> tuple[_core.RobustPart, tuple[NDArray[Any], ...]]:
        """Read the rows, and count their features."""
        mode, job = self.mode, self.mode.job
        core = _core.make_robust_part(
            job.params["dtype"], job.width, mode.numbers, mode.words, *mode.paths(self.number)
        )
        # As for a matrix, values are rounded to `dtype` only once, when the rows are added.
        for block in job.rows.source(self.number).blocks(dtype="float64"):
            targets = job.labels.targets(block)
            factors = class_factors(job.params["class_weight"], job.labels, "")
            weights = row_weights(block, targets, factors)
            batch = block.batch
            batch.set_targets(targets[job.output], weights)
            try:
                core.add(batch)
            except _core.DataError as error:
                raise block.located(error) from None
        return core, core.end()

    def state(self) -> Arrays:
        """Return the features that are left: every stage starts from new weights."""
        left = self._left if self._core is None else self._core.features()
        assert left is not None
        return pack_keys(left)

    def restore(self, state: Arrays) -> None:
        """Continue from a state. The rows are read in the next step."""
        self._core, self._left = None, unpack_keys(state)


class RobustRangePiece(Piece):
    """A range: features, with the evidence of each."""

    def __init__(self, mode: RobustStagesMode, number: int) -> None:
        self.mode, self.number = mode, number
        self._core = _core.RobustRange()

    def step(self, message: Message[Any], received: Sequence[Arrays]) -> StepResult:
        """Admit, score or purge features, or average their weights."""
        match message:
            case AdmitFeatures():
                return self._admit(received)
            case ScoreFeatures(rows):
                return self._score(rows, received)
            case PurgeFeatures(stage, rank, last):
                purged = self._core.purge(stage, rank, last)
                return StepResult(LeftReply(self._core.left), [self.mode.packed(purged)])
            case AverageWeights(last=is_last):
                return self._average(is_last, received)
        raise unknown_message(self, message)

    def _admit(self, received: Sequence[Arrays]) -> StepResult:
        core = self._core
        for part, sent in enumerate(received):
            keys = self.mode.unpacked(self.number, sent)
            counts = sent["rows"].astype(np.int64), sent["documents"].astype(np.int64)
            sums = np.ascontiguousarray(sent["sums"]).ravel()
            core.count(keys, *counts, sent["squares"], sums, self.mode.paths(part)[1])
        admitted = core.admit(self.mode.numbers["min_updates"])
        return StepResult(LeftReply(core.left), [self.mode.packed(admitted)])

    def _score(self, rows: float, received: Sequence[Arrays]) -> StepResult:
        core = self._core
        for sent in received:
            keys = self.mode.unpacked(self.number, sent)
            signs = sent["plus"].astype(np.uint32), sent["minus"].astype(np.uint32)
            core.add(keys, sent["z"], sent["w"], *signs, sent["updates"].astype(np.int64))
        return StepResult(ScoreReply(core.judge(rows, self.mode.numbers["keep"])))

    def _average(self, is_last: bool, received: Sequence[Arrays]) -> StepResult:
        core = self._core
        for sent in received:
            keys = self.mode.unpacked(self.number, sent)
            core.add_weights(keys, sent["w"], sent["updates"].astype(np.int64))
        core.set_weights()
        keys, weights = core.weights()
        if is_last:
            return StepResult(NonzerosReply(len(keys)))
        weights = weights.astype(self.mode.job.params["dtype"])  # the number type of paths
        bundle = self.mode.packed(keys) | {"weights": weights}
        return StepResult(NonzerosReply(len(keys)), [bundle])

    def answer(self, question: Question[Any]) -> Any:
        """Return counts of ranks, or weights and evidence."""
        match question:
            case AskRankCounts(tied, prefix, shift, bits):
                return self._core.histogram(tied, prefix, shift, bits)
            case AskResult(totals):
                return self._core.weights(), self._core.findings(totals)
        raise unknown_message(self, question)

    def state(self) -> Arrays:
        """Return the evidence of all features."""
        state: Arrays = self._core.state()
        keys = {f"keys_{name}": array for name, array in pack_keys(state.pop("keys")).items()}
        state["purged"] = state["purged"] + 1  # from -1 to 0 and above
        state["admitted"] = np.packbits(state["admitted"])
        if not state["weight"].any():
            state["weight"] = np.zeros(0)
        whole = ("rows", "documents", "updates", "purged", "stages", "paths")
        return keys | state | {name: narrow_integers(state[name]) for name in whole}

    def restore(self, state: Arrays) -> None:
        """Continue from a state."""
        known = dict(state)
        keys = unpack_keys({name: known.pop(f"keys_{name}") for name in ("first", "gaps")})
        for name in ("rows", "documents", "updates", "purged", "stages"):
            known[name] = known[name].astype(np.int64)
        known["purged"] -= 1
        known["paths"] = known["paths"].astype(np.uint32)
        known["admitted"] = np.unpackbits(known["admitted"], count=len(keys))
        if not len(known["weight"]):
            known["weight"] = np.zeros(len(known["W"]))
        self._core.restore(known | {"keys": keys})
