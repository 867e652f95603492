"""Reads the rows: one reading in a stream, or two readings with folds; resumable."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.arrays import as_batch
from thresher.data.block import Position
from thresher.data.labels import Labels
from thresher.data.matrix_source import MatrixSource
from thresher.data.read_options import Stopped
from thresher.data.visits import Visit
from thresher.discovery import checkpointing
from thresher.discovery.folds import FoldDealer
from thresher.discovery.row_checks import RowChecks, row_facts
from thresher.discovery.sums import EvidenceSums
from thresher.errors import DataError, OutOfMemoryError
from thresher.training import checkpoint as checkpoints
from thresher.training.input_digests import InputDigests
from thresher.training.observer import Interrupted
from thresher.training.run_options import RunOptions

if TYPE_CHECKING:
    from thresher.data.source import Source

_CHUNK = 1 << 19  # nonzeros of a matrix between two looks at the observer
_MODEL, _EVIDENCE = 128, 256  # bytes of a feature, about, in float32


@dataclass(frozen=True)
class DiscoveryPlan:
    """What decides the evidence, besides the rows.

    Attributes
    ----------
    form : {"stream", "crossfit"}
    task : {"classification", "regression"}
    folds : int
        Number of folds of a crossfit.
    redraws : int
    dtype : {"float32", "float64"}
    store : {"dense", "hashed"}
    width : int
        Number of features; 0: any 64-bit key.
    seed : int
    """

    form: str
    task: str
    folds: int
    redraws: int
    dtype: str
    store: str
    width: int
    seed: int

    @property
    def models(self) -> int:
        """Number of models of an output."""
        return self.folds if self.form == "crossfit" else 1


class Readings:
    """The readings of a source; the result does not depend on blocks, threads or interruptions.

    Parameters
    ----------
    plan : DiscoveryPlan
    labels : Labels
        Converts labels to targets; classes have the targets 0 and 1.
    jobs : int
        Number of threads.
    memory_limit : int
        Bytes for the models of a crossfit. If they need more, folds are learned one after the
        other, with one reading for each.

    Attributes
    ----------
    rows : int
        Number of rows in the reading so far.
    width : int
        The largest feature number so far, plus 1.
    """

    def __init__(
        self, plan: DiscoveryPlan, labels: Labels, jobs: int = 1, memory_limit: int = 1 << 31
    ) -> None:
        self.plan, self.labels, self.jobs = plan, labels, max(1, jobs)
        self.dealer = FoldDealer(plan.folds, plan.seed)
        self.memory_limit = memory_limit
        self.phase = self.rows = self.width = 0
        self.cores = [self._core(output) for output in range(labels.outputs)]
        self.checks = RowChecks(labels.outputs, plan.task == "classification")
        self.p: NDArray[np.float64] | None = None  # predictions of the rows of a matrix
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

    def sums(self) -> list[EvidenceSums]:
        """Return the sums of each output."""
        return [EvidenceSums.of_core(core.sums(), self.plan.redraws) for core in self.cores]

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
        if options.checkpoint is not None:
            checkpoints.check_replaceable(options.checkpoint)
        if options.resume:
            checkpointing.resume(self, source, options)
        try:
            self._run(source, options, groups)
        except Stopped:  # while waiting for rows: the state is that after the last block
            self.interrupt(source, options)
        if isinstance(source, MatrixSource) and self.p is not None:
            self._check_matrix(source)

    def interrupt(self, source: Source | MatrixSource, options: RunOptions) -> NoReturn:
        """Stop between two visits or after the last one; a resumed run continues from here.

        Parameters
        ----------
        source : Source or MatrixSource
        options : RunOptions
        """
        if options.checkpoint is None or (self.phase == 0 and self.rows == 0):
            raise KeyboardInterrupt
        checkpointing.write(self, source, options)
        raise Interrupted(self.rows)

    def _run(
        self,
        source: Source | MatrixSource,
        options: RunOptions,
        groups: NDArray[np.int64] | None,
    ) -> None:
        phases = self._phases(source)
        written = time.monotonic()
        with ThreadPoolExecutor(self.jobs) as pool:
            while self.phase < len(phases):
                for visit in self._visits(source):
                    self._work(phases[self.phase], visit, pool, groups)
                    self.position = visit.end
                    self.blocks += 1
                    options.observer.tell(
                        "reading", number=self.phase + 1, readings=len(phases), examples=self.rows
                    )
                    if options.observer.stops():
                        self.interrupt(source, options)
                    due = time.monotonic() - written >= options.every
                    if options.checkpoint is not None and due:
                        checkpointing.write(self, source, options)
                        written = time.monotonic()
                self._end(phases[self.phase], source)

    def partial(self, source: MatrixSource) -> None:
        """Read more rows of a stream.

        Parameters
        ----------
        source : MatrixSource
        """
        self.p = None
        with ThreadPoolExecutor(self.jobs) as pool:
            for visit in source.visits(0, False, self.plan.seed):
                self._work(_Phase("stream"), visit, pool, None)
        self._check_matrix(source)

    def _phases(self, source: Source | MatrixSource) -> list[_Phase]:
        if self.plan.form == "stream":
            return [_Phase("stream")]
        folds = list(range(self.plan.folds))
        at_once = len(folds)
        size = self.plan.width or source.distinct or 0
        if size * (_MODEL * len(folds) * len(self.cores)) > self.memory_limit:
            at_once = max(1, self.memory_limit // max(1, size * _MODEL * len(self.cores)))
        learning = [
            _Phase("learn", tuple(folds[i : i + at_once])) for i in range(0, len(folds), at_once)
        ]
        return [*learning, _Phase("score")]

    def _visits(self, source: Source | MatrixSource) -> Iterator[Visit]:
        """Yield the rows of this reading, from the position on; rows in memory are shuffled."""
        if isinstance(source, MatrixSource):
            source.chunk = _CHUNK
            self.checks.shuffled = self.plan.form == "crossfit"
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

    def _end(self, phase: _Phase, source: Source | MatrixSource) -> None:
        if self.rows == 0:
            raise DataError(f"{source}: no rows to learn from")
        if phase.name == "learn":
            for core in self.cores:
                for fold in phase.folds:
                    core.finish(fold)
        self.phase += 1
        self.position, self.blocks = None, 0
        if self.phase < len(self._phases(source)):
            self.rows = 0
            self.dealer.restart()

    # ---- rows ----------------------------------------------------------------------------------

    def _work(
        self,
        phase: _Phase,
        visit: Visit,
        pool: ThreadPoolExecutor,
        groups: NDArray[np.int64] | None,
    ) -> None:
        block = visit.block
        targets = self.labels.targets(block)
        y = np.stack([targets[output] for output in range(len(self.cores))])
        in_memory = not hasattr(block, "native")
        self._grow(int(block.width))
        rows: Any = block
        batches = [as_batch(rows.X) if in_memory else block.batch for _ in self.cores]
        for batch, target in zip(batches, y, strict=True):
            batch.set_targets(target, block.weights)
        folds = self._folds(phase, visit, y, groups, in_memory)
        first = 0 if in_memory and phase.name != "stream" else self.rows - (
            visit.first if in_memory else 0
        )  # fmt: skip
        place = visit.order, visit.first, visit.last

        def work(core: _core.Discovery, batch: _core.Batch, fold: int) -> Any:
            if phase.name == "stream":
                return core.stream(batch, first, *place)
            if phase.name == "score":
                return core.score(batch, folds, first, *place, groups)
            return core.learn(batch, folds, fold, *place)

        tasks = [
            (core, batch, fold)
            for core, batch in zip(self.cores, batches, strict=True)
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
        p = np.stack(found)
        if in_memory:
            if self.p is None:
                self.p = np.zeros((len(self.cores), block.rows))
            rows = slice(visit.first, visit.last)
            self.p[:, rows if visit.order is None else visit.order[rows]] = p
            return
        native = block.native
        facts = row_facts((native.starts, native.keys, native.values), y)
        self.checks.add(y, p, *facts)

    def _folds(
        self,
        phase: _Phase,
        visit: Visit,
        y: NDArray[np.float64],
        groups: NDArray[np.int64] | None,
        in_memory: bool,
    ) -> NDArray[np.int64]:
        """Return the folds of all rows of the block."""
        if phase.name == "stream":
            return np.zeros(0, np.int64)
        if in_memory:  # the block has all rows, and its folds stay the same
            self.dealer.restart()
        strata = np.zeros(y.shape[1], np.int64)
        if self.plan.task == "classification":
            strata = y.argmax(axis=0) if len(y) > 1 else y[0].astype(np.int64)
        return self.dealer.deal(strata, groups)

    def _grow(self, width: int) -> None:
        self.width = max(self.width, width or 2**64)
        if self.plan.store == "dense" and self.width > self.plan.width:
            raise DataError(f"a feature number is not below {self.plan.width}")

    def _check_matrix(self, source: MatrixSource) -> None:
        """Check the rows of a matrix in their stored order."""
        assert self.p is not None
        block = source.block
        targets = self.labels.targets(block)
        step = max(1, (1 << 22) // max(1, block.width if not hasattr(block.X, "indptr") else 64))
        for first in range(0, block.rows, step):
            rows = slice(first, min(block.rows, first + step))
            y = np.stack([targets[output][rows] for output in range(len(self.cores))])
            self.checks.add(y, self.p[:, rows], *row_facts(block.X[rows], y))
        self.p = None

    # ---- pickles -------------------------------------------------------------------------------

    def states(self) -> list[bytes]:
        """Return the states of the cores."""
        return [core.state() for core in self.cores]

    def restore(self, states: Sequence[bytes]) -> None:
        """Set the states of the cores."""
        for core, state in zip(self.cores, states, strict=True):
            core.restore(state)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cores": self.states(), "names": dict(self.names.names)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self.cores = [self._core(output) for output in range(len(state["cores"]))]
        self.restore(state["cores"])
        self.names = _core.NameTable()
        for key, name in state["names"].items():
            self.names.add(key, name)


@dataclass(frozen=True)
class _Phase:
    """One reading: "stream", "learn" with the folds to learn, or "score"."""

    name: str
    folds: tuple[int, ...] = ()
