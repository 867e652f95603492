"""Reads the rows: one reading in a stream, or two readings with folds; resumable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.arrays import as_batch
from thresher.data.block import Position
from thresher.data.input_digests import InputDigests
from thresher.data.labels import Labels
from thresher.data.matrix_source import MatrixSource
from thresher.data.read_options import Stopped
from thresher.data.shuffled import ShuffledSource
from thresher.data.visits import Visit
from thresher.discovery import checkpointing
from thresher.discovery.evidence import Evidence, calibration
from thresher.discovery.folds import FoldDealer, order_of
from thresher.discovery.phases import Phase, Prepared
from thresher.discovery.plan import DiscoveryPlan, folds_at_once
from thresher.discovery.row_checks import RowChecks
from thresher.discovery.row_facts import RowFacts, combined
from thresher.discovery.row_weights import RelativeWeights
from thresher.discovery.sums import EvidenceSums
from thresher.errors import DataError, OutOfMemoryError
from thresher.training import checkpoint as checkpoints
from thresher.training.regular_checkpoints import RegularCheckpoints
from thresher.training.run_options import RunOptions

if TYPE_CHECKING:
    from thresher.data.source import Source

_CHUNK = 1 << 19  # nonzeros of a matrix between two looks at the observer
_SMALL = 1e6  # values that the core never refuses


class Readings:
    """The readings of a source; the result does not depend on blocks, threads or interruptions.

    Parameters
    ----------
    plan : DiscoveryPlan
    labels : Labels
        Converts labels to targets; classes have the targets 0 and 1.
    jobs : int
        Number of threads.
    memory_limit : int, optional
        Bytes for the models of a crossfit; see `folds_at_once`.

    Attributes
    ----------
    rows : int
        Number of rows in the reading so far.
    total : int
        Number of rows of a complete reading; 0 before the first one ends.
    width : int
        The largest feature number so far, plus 1.
    seeded : bool
        Whether the seed was given; if not, a resumed run takes that of its checkpoint.
    groups : str
        Digest of the groups of rows, for a checkpoint.
    at_once : int
        Number of folds that learn in one reading; 0 before the first reading.
    """

    def __init__(
        self, plan: DiscoveryPlan, labels: Labels, jobs: int = 1, memory_limit: float | None = None
    ) -> None:
        self.plan, self.labels, self.jobs = plan, labels, max(1, jobs)
        self.dealer = FoldDealer(plan.folds, plan.seed)
        self.weights = RelativeWeights()
        self.memory_limit, self.at_once = memory_limit, 0
        self.phase = self.rows = self.total = self.width = 0
        self.seeded, self.groups = True, ""
        self.cores = [self._core(output) for output in range(labels.outputs)]
        self.checks = RowChecks(labels.outputs, plan.task == "classification")
        self.facts: RowFacts | None = None  # of the rows of a matrix
        self._prepared: Prepared | None = None  # the block that was visited last
        self.position: Position | None = None
        self.blocks = 0
        self.digests = InputDigests()
        self.names = _core.NameTable()

    def _core(self, output: int) -> _core.Discovery:
        plan = self.plan
        try:
            return _core.make_discovery(
                plan.task, plan.store, plan.dtype, plan.width, plan.redraws,
                plan.seed + output, plan.models,
            )  # fmt: skip
        except MemoryError:
            raise OutOfMemoryError(
                f"not enough memory for the evidence of {plan.width} features"
            ) from None

    def take_seed(self, seed: int) -> None:
        """Set the seed, before the first reading."""
        self.plan = replace(self.plan, seed=seed)
        self.dealer = FoldDealer(self.plan.folds, seed)
        self.cores = [self._core(output) for output in range(len(self.cores))]

    def evidence(self) -> Evidence:
        """Return all that the readings have found."""
        facts = [core.facts() for core in self.cores]
        return Evidence(
            plan=self.plan,
            labels=self.labels,
            sums=[EvidenceSums.of_core(core.sums(), self.plan.redraws) for core in self.cores],
            checks=[*self.checks.checks(), calibration(facts)],
            rows=self.rows,
            width=self.plan.width or self.width,
            names=dict(self.names.names),
            residual_variance=facts[0]["residual_variance"],
            used=self.checks.rows,
            positives=tuple(self.checks.sums["y"].tolist()),
        )

    # ---- runs ----------------------------------------------------------------------------------

    def run(
        self,
        source: Source | MatrixSource,
        options: RunOptions,
        groups: NDArray[np.int64] | None = None,
    ) -> None:
        """Make all readings that remain.

        Parameters
        ----------
        source : Source or MatrixSource
        options : RunOptions
        groups : array of int of shape (rows,), optional
            Groups that folds do not divide; only for rows in memory.
        """
        in_memory = isinstance(source, MatrixSource) and self.plan.form == "crossfit"
        self.checks.shuffled = in_memory or isinstance(source, ShuffledSource)
        self.checks.groups = groups
        if options.checkpoint is not None:
            checkpoints.check_replaceable(options.checkpoint)
            if groups is not None:
                self.groups = blake2b(groups.tobytes(), digest_size=16).hexdigest()
        if options.resume:
            checkpointing.resume(self, source, options)
        if isinstance(source, MatrixSource):
            self.weights.restart()  # a resumed run prepares all rows again
        try:
            self._run(source, options, groups)
        except Stopped:  # while waiting for rows: the state is that after the last block
            checkpointing.interrupt(self, source, options)
        if isinstance(source, MatrixSource) and self.facts is not None:
            self._check_matrix(source)

    def _run(
        self,
        source: Source | MatrixSource,
        options: RunOptions,
        groups: NDArray[np.int64] | None,
    ) -> None:
        phases = self._phases(source)
        regular = RegularCheckpoints(options)
        with ThreadPoolExecutor(self.jobs) as pool:
            while self.phase < len(phases):
                for visit in self._visits(source):
                    self._work(phases[self.phase], visit, pool, groups)
                    self.position = visit.end
                    self.blocks += 1
                    options.observer.tell(
                        "reading",
                        number=self.phase + 1,
                        readings=len(phases),
                        examples=self.rows,
                        rows=source.rows,
                    )
                    if options.observer.stops():
                        checkpointing.interrupt(self, source, options)
                    regular.write_if_due(lambda: checkpointing.write(self, source, options))
                self._end(phases[self.phase], source)

    def partial(self, source: MatrixSource) -> None:
        """Read more rows of a stream.

        Parameters
        ----------
        source : MatrixSource
        """
        self.facts = self._prepared = None
        self._try(source)
        with ThreadPoolExecutor(self.jobs) as pool:
            for visit in source.visits(0, False, self.plan.seed):
                self._work(Phase("stream"), visit, pool, None)
        self._check_matrix(source)

    def _try(self, source: MatrixSource) -> None:
        """Raise DataError if the core refuses a row, before any row is learned."""
        X, y = source.block.X, self.labels.targets(source.block)[0]
        values = X.data if hasattr(X, "indptr") else X
        if max(float(np.abs(each).max(initial=0.0)) for each in (values, y)) < _SMALL:
            return
        trial = _core.make_discovery(self.plan.task, "hashed", self.plan.dtype, self.plan.width, 1)
        batch = as_batch(X)
        batch.set_targets(y, np.zeros(len(y)))  # rows of weight 0 are only checked
        try:
            trial.stream(batch, 0)
        except _core.DataError as error:
            raise source.block.located(error) from None

    def _phases(self, source: Source | MatrixSource) -> list[Phase]:
        if self.plan.form == "stream":
            return [Phase("stream")]
        folds = list(range(self.plan.folds))
        if not self.at_once:  # else the checkpoint of a resumed run says it
            self.at_once = folds_at_once(self.plan, source, len(self.cores), self.memory_limit)
        step = self.at_once
        learning = [Phase("learn", tuple(folds[i : i + step])) for i in range(0, len(folds), step)]
        return [*learning, Phase("score")]

    def _visits(self, source: Source | MatrixSource) -> Iterator[Visit]:
        """Yield the rows of this reading, from the position on; rows in memory are shuffled."""
        if isinstance(source, MatrixSource):
            source.chunk = _CHUNK
            shuffle = "once" if self.plan.form == "crossfit" else False
            yield from source.visits(0, shuffle, self.plan.seed, self.position)
            return
        names = source.named and not source.rereadable
        reading = source.visits(
            0,
            False,
            self.plan.seed,
            self.position,
            self.blocks,
            names=names,
            dtype=self.plan.dtype,
        )
        if self.position is None:
            self.digests.begin()
        for visit in reading:
            if source.traced:
                self.digests.add(visit.block)
            if names:
                self.names.take(visit.block.native)
            yield visit
        if source.traced:
            self.digests.end()

    def _end(self, phase: Phase, source: Source | MatrixSource) -> None:
        if self.rows == 0:
            raise DataError(f"{source}: no rows to learn from")
        if self.rows != (self.total or self.rows):
            raise DataError(
                f"{source}: the input has changed since it was last read: it had {self.total:,} "
                f"rows, and has {self.rows:,} now"
            )
        self.total = self.rows
        if phase.name == "learn":
            for core in self.cores:
                for fold in phase.folds:
                    core.finish(fold)
        self.phase += 1
        if not isinstance(source, MatrixSource):
            self._prepared = None
        self.position, self.blocks = None, 0
        if self.phase < len(self._phases(source)):
            self.rows = 0
            self.dealer.restart()
            self.weights.restart()

    # ---- rows ----------------------------------------------------------------------------------

    def _work(
        self,
        phase: Phase,
        visit: Visit,
        pool: ThreadPoolExecutor,
        groups: NDArray[np.int64] | None,
    ) -> None:
        block = visit.block
        if self._prepared is None or self._prepared.block is not block:
            self._prepared = self._prepare(phase, block, groups)
        prepared = self._prepared
        folds = prepared.folds
        first = self.rows
        if prepared.in_memory:
            first = first - visit.first if phase.name == "stream" else 0
        place = visit.order, visit.first, visit.last

        def work(core: _core.Discovery, batch: _core.Batch, fold: int) -> Any:
            if phase.name == "stream":
                return core.stream(batch, first, *place)
            if phase.name == "score":
                return core.score(batch, folds, first, *place, groups)
            return core.learn(
                batch, folds, fold, order_of(visit.order, fold, self.plan.folds), *place[1:]
            )

        tasks = [
            (core, batch, fold)
            for core, batch in zip(self.cores, prepared.batches, strict=True)
            for fold in (phase.folds or (0,))
        ]
        try:
            found = list(pool.map(lambda task: work(*task), tasks))
        except _core.DataError as error:
            raise block.located(error) from None
        except MemoryError:
            raise OutOfMemoryError("not enough memory for the evidence of all features") from None
        self.rows += visit.last - visit.first
        if phase.name == "learn":
            return
        p, lengths = np.stack([each[0] for each in found]), found[0][1]
        hashes = combined([each[2] for each in found])
        if not prepared.in_memory:
            self._check(prepared.y, block.weights, p, lengths, hashes)
            return
        if self.facts is None:
            self.facts = RowFacts.of(len(self.cores), block.rows)
        rows: Any = slice(visit.first, visit.last)
        self.facts.put(rows if visit.order is None else visit.order[rows], p, lengths, hashes)

    def _prepare(self, phase: Phase, block: Any, groups: NDArray[np.int64] | None) -> Prepared:
        """Return targets, batches and folds of a block."""
        targets = self.labels.targets(block)
        y = np.stack([targets[output] for output in range(len(self.cores))])
        in_memory = not hasattr(block, "native")
        self.width = max(self.width, int(block.width) or 2**64)
        batches = [as_batch(block.X) if in_memory else block.batch for _ in self.cores]
        weights = block.weights
        if weights is not None and in_memory and phase.name != "stream":
            weights = RelativeWeights.of_all(weights)
        elif weights is not None:
            weights = self.weights.running(np.asarray(weights, np.float64))
        for batch, target in zip(batches, y, strict=True):
            batch.set_targets(target, weights)
        folds = np.zeros(0, np.int64)
        if phase.name != "stream":
            if in_memory:  # all rows: a resumed run deals them the same folds
                self.dealer.restart()
            strata = np.zeros(y.shape[1], np.int64)
            if self.plan.task == "classification":
                strata = y.argmax(axis=0) if len(y) > 1 else y[0].astype(np.int64)
            folds = self.dealer.deal(strata, groups)
        return Prepared(block, in_memory, y, batches, folds)

    def _check_matrix(self, source: MatrixSource) -> None:
        """Check the rows of a matrix in their stored order."""
        assert self.facts is not None
        targets = self.labels.targets(source.block)
        y = np.stack([targets[output] for output in range(len(self.cores))])
        self._check(y, source.block.weights, self.facts.p, self.facts.lengths, self.facts.hashes)
        self.facts = self._prepared = None

    def _check(
        self,
        y: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
        p: NDArray[np.float64],
        lengths: NDArray[np.int64],
        hashes: NDArray[np.uint64],
    ) -> None:
        """Add the next rows to the checks, without those of weight 0."""
        if weights is not None:
            self.checks.weigh(np.asarray(weights, np.float64))
        if weights is not None and not (used := np.asarray(weights) > 0).all():
            y, p, lengths, hashes = y[:, used], p[:, used], lengths[used], hashes[used]
            if self.checks.groups is not None:
                self.checks.groups = self.checks.groups[used]
        self.checks.add(y, p, lengths, hashes)

    # ---- pickles -------------------------------------------------------------------------------

    def states(self) -> list[bytes]:
        """Return the states of the cores."""
        return [core.state() for core in self.cores]

    def restore(self, states: Sequence[bytes]) -> None:
        """Set the states of the cores."""
        for core, state in zip(self.cores, states, strict=True):
            core.restore(state)

    def __getstate__(self) -> dict[str, Any]:
        changed = {"cores": self.states(), "names": dict(self.names.names), "_prepared": None}
        return {**self.__dict__, **changed}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self.cores = [self._core(output) for output in range(len(state["cores"]))]
        self.restore(state["cores"])
        self.names = _core.NameTable()
        for key, name in state["names"].items():
            self.names.add(key, name)
