"""What is spread over a cluster: pieces with a state, which are taken through steps together.

There are two kinds. A *part* has rows: some of the shards. A *range* has features. In a step, every
piece of one kind is given a message of the driver and what pieces of the other kind have sent it,
changes its state, tells the driver a few numbers, and sends arrays on: a part one bundle to each
range, a range one bundle to all parts. The driver holds references alone.

A step is a pure function of the state and what is given. So a piece that was lost is made again,
anywhere, from its last checkpoint and the steps since, to the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray

from thresher.data.labels import Labels
from thresher.losses import Task
from thresher.model.evidence import Evidence
from thresher.model.history import Output
from thresher.rules import RULES
from thresher.training.plan import TrainingPlan

if TYPE_CHECKING:
    from thresher.distributed.engine.executor import Executor
    from thresher.distributed.rows import PartitionedRows

PieceKind = Literal["part", "range"]
Arrays = dict[str, NDArray[Any]]
Packet = list[tuple[int, Arrays]]  # what pieces of one host send to one place, by their numbers


@dataclass
class StepResult:
    """What a piece gives in a step.

    Attributes
    ----------
    told : dict
        For the driver: a few numbers, or small arrays.
    sent : list of dict of arrays
        Of a part: one for each range. Of a range: one, which all parts get. Or none at all.
    """

    told: dict[str, Any] = field(default_factory=dict)
    sent: list[Arrays] = field(default_factory=list)


class Piece(ABC):
    """A part or a range."""

    @abstractmethod
    def step(self, message: dict[str, Any], received: Sequence[Arrays]) -> StepResult:
        """Take a step.

        Parameters
        ----------
        message : dict
            From the driver, the same for all pieces of the kind.
        received : sequence of dict of arrays
            Read-only. Of a part: what each range has sent, in their order. Of a range: what each
            part has sent it, in their order; or sums of it, where ``Mode.combined`` makes them.
        """

    def answer(self, question: dict[str, Any]) -> Any:
        """Answer a question of the driver; changes nothing. Most pieces are never asked."""
        raise TypeError(f"{type(self).__name__} answers no questions; got {question!r}")

    @abstractmethod
    def state(self) -> Arrays:
        """Return all that decides how it goes on, but for what `Mode` makes a new piece of."""

    @abstractmethod
    def restore(self, state: Arrays) -> None:
        """Go on from a state."""


class Coordinator(ABC):
    """The driver's part of a mode: what it decides from what it is told.

    Attributes
    ----------
    done : bool
        Nothing is left to do.
    """

    done: bool = False

    @abstractmethod
    def stage(self, executor: Executor) -> dict[str, Any]:
        """Take the executor through the steps of one stage.

        Returns what is to be shown of it: "rows" taken, and where they are known "loss" (mean,
        progressive) and "nonzeros".
        """

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return where it stands between two stages, as JSON can carry it."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""

    @abstractmethod
    def result(self, executor: Executor) -> Learned:
        """Return what was learned, after the last stage."""


@dataclass(frozen=True)
class ClusterJob:
    """What is learned from what; all of it agreed before the first stage.

    Attributes
    ----------
    rule : str
        A key of ``RULES``.
    task : {"classifier", "regressor"}
    params : dict
        Checked parameters of the estimator.
    rows : PartitionedRows
        Where the rows are, by parts.
    labels : Labels
        What they mean: all classes are known.
    width : int
        Number of features; 0 for any 64-bit key.
    counts : list of int
        Rows of each part.
    seed : int
    ranges : int
        Pieces into which features are cut.
    output : int
        Which of the outputs is learned, by modes that learn one at a time.
    folder : str or None
        Which all workers see, for what pieces need to keep besides their states.
    """

    rule: str
    task: Task
    params: dict[str, Any]
    rows: PartitionedRows
    labels: Labels
    width: int
    counts: list[int]
    seed: int = 0
    ranges: int = 1
    output: int = 0
    folder: str | None = None

    def plan(self, rate: float | None = None) -> TrainingPlan:
        """Return what a trainer is told of it.

        Parameters
        ----------
        rate : float, optional
            What all parts have agreed on, where the first rows decide the rate.
        """
        plan = TrainingPlan(
            rule=self.rule,
            task=self.task,
            params=self.params,
            labels=self.labels,
            width=self.width,
            grows=False,
            shuffle=self.params.get("shuffle", False),
            seed=self.seed,
            owner=RULES[self.rule].estimators[self.task],
        )
        return plan if rate is None or not plan.waits_for_rows else plan.with_rate(rate)


@dataclass(frozen=True)
class Learned:
    """What a mode has learned.

    Attributes
    ----------
    outputs : list of Output
        Weights and intercepts.
    evidence : Evidence or None
        Of the stabilized rule: why features stayed or went.
    states : list of bytes or None
        Of learners that can go on, one for each output.
    facts : dict
        What else is known, such as numbers of updates.
    """

    outputs: list[Output]
    evidence: Evidence | None = None
    states: list[bytes] | None = None
    facts: dict[str, Any] = field(default_factory=dict)


class Mode(ABC):
    """A way to learn on a cluster. It is sent to all workers, so it must be small.

    Attributes
    ----------
    parts, ranges : int
        How many pieces of each kind there are: never a matter of how many workers there are.
    threaded : bool
        Whether a part can use several threads; else a worker for each processor is better.
    every : int
        Stages between two checkpoints, by default.
    """

    parts: int
    ranges: int
    threaded: bool = False
    every: int = 1

    @abstractmethod
    def part(self, number: int, threads: int, shared: dict[str, Any]) -> Piece:
        """Make a part as it is before the first step.

        `shared` is one for all pieces in the same process, for what they need only one of. It is
        empty in a process that has just begun.
        """

    @abstractmethod
    def range(self, number: int, shared: dict[str, Any]) -> Piece:
        """Make a range as it is before the first step."""

    @abstractmethod
    def lead(self) -> Coordinator:
        """Make the driver's part, as it is before the first stage."""

    def combined(self, message: dict[str, Any], packet: Packet) -> Packet:
        """Combine what parts in one process send to one range after this message.

        Only where the order of combining does not show in the result: sums of whole numbers.
        """
        return packet


class MessagesLost(Exception):
    """What was sent since the last checkpoint is gone: all begin again from there."""


class PiecesMissing(Exception):
    """Pieces are not where a step begins: they were lost, and must catch up first."""

    def __init__(self, kind: PieceKind, numbers: list[int]) -> None:
        super().__init__(kind, numbers)
        self.kind, self.numbers = kind, numbers
