"""Pieces: the units of state and of work that a cluster distributes.

There are two kinds of pieces. A *part* has rows: some of the shards. A *range* has features. The
*driver*, the process that called `fit`, takes all pieces of one kind through a step at a time. In a
step, a piece receives a message from the driver and arrays from pieces of the other kind. It
changes its state, returns a small reply to the driver, and sends arrays: a part sends one bundle to
each range, a range sends one bundle to all parts. The driver itself has only references to arrays.

A step is a pure function of the state and of what the piece receives. So a lost piece can be made
again on any worker, from its last checkpoint and the steps since then, with the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray

from thresher.data.labels import Labels
from thresher.distributed.engine.messages import Message, Question
from thresher.losses import Task
from thresher.model.evidence import Evidence
from thresher.model.history import Output
from thresher.rules import RULES
from thresher.training.plan import TrainingPlan
from thresher.training.target_scale import KnownScale

if TYPE_CHECKING:
    from thresher.distributed.engine.executor import Executor
    from thresher.distributed.rows import PartitionedRows

PieceKind = Literal["part", "range"]
Arrays = dict[str, NDArray[Any]]
Packet = list[tuple[int, Arrays]]  # arrays from the pieces of one host, with the sender's number


@dataclass
class StepResult:
    """The result of one step of a piece.

    Attributes
    ----------
    reply : object
        For the driver: a dataclass with a few numbers or small arrays, or None.
    sent : list of dict of arrays
        From a part: one bundle for each range. From a range: one bundle, which all parts receive.
        May be empty.
    """

    reply: Any = None
    sent: list[Arrays] = field(default_factory=list)


class Piece(ABC):
    """A part or a range."""

    @abstractmethod
    def step(self, message: Any, received: Sequence[Arrays]) -> StepResult:
        """Take a step.

        Parameters
        ----------
        message : Message
            The driver sends the same message to all pieces of the kind.
        received : sequence of dict of arrays
            Read-only. A part receives one bundle from each range, in the order of ranges. A range
            receives one bundle from each part, in the order of parts; where `Mode.combined` adds
            bundles up, it receives fewer.
        """

    def answer(self, question: Any) -> Any:
        """Answer a `Question`, without a change of state. By default there are no questions."""
        raise unknown_message(self, question)

    @abstractmethod
    def state(self) -> Arrays:
        """Return the state, without what `Mode` gives to a new piece."""

    @abstractmethod
    def restore(self, state: Arrays) -> None:
        """Continue from a state."""


def unknown_message(piece: Piece, message: Message[Any] | Question[Any]) -> TypeError:
    """Return the error for a message or a question that a piece does not have."""
    return TypeError(f"{type(piece).__name__} does not take a {type(message).__name__}")


class Coordinator(ABC):
    """The driver's side of a mode: sends messages, and makes decisions from the replies.

    Attributes
    ----------
    done : bool
        Whether training is finished.
    """

    done: bool = False

    @abstractmethod
    def stage(self, executor: Executor) -> dict[str, Any]:
        """Take all pieces through the steps of one stage.

        Returns the stage's record: "rows" learned, and "loss" (mean progressive loss) and
        "nonzeros" where they are known.
        """

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return the state between two stages, as JSON can hold it."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""

    @abstractmethod
    def result(self, executor: Executor) -> Learned:
        """Return the model, after the last stage."""


@dataclass(frozen=True)
class ClusterJob:
    """What to train, and on which rows. It is complete before the first stage.

    Attributes
    ----------
    rule : str
        A key of ``RULES``.
    task : {"classifier", "regressor"}
    params : dict
        Validated parameters of the estimator.
    rows : PartitionedRows
        The rows, by parts.
    labels : Labels
        Converts labels to targets; has all classes.
    width : int
        Number of features; 0 for any 64-bit key.
    counts : list of int
        Number of rows in each part.
    seed : int
    ranges : int
        Number of ranges of features.
    output : int
        The output to train, in modes that train one at a time.
    folder : str or None
        A folder that all workers share, for files that pieces need besides their states.
    known_scale : tuple or None
        Weight, mean and sd of all targets, if targets are standardised.
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
    known_scale: KnownScale | None = None

    def plan(self, rate: float | None = None) -> TrainingPlan:
        """Return the plan for a trainer.

        Parameters
        ----------
        rate : float, optional
            The rate that all parts use, where the first rows decide it.
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
            standardised=self.known_scale is not None,
            known_scale=self.known_scale,
        )
        return plan if rate is None or not plan.waits_for_rows else plan.with_rate(rate)


@dataclass(frozen=True)
class Learned:
    """The model that a mode has trained.

    Attributes
    ----------
    outputs : list of Output
        Weights and intercepts.
    evidence : Evidence or None
        Why each feature was kept or removed; only for the stabilized rule.
    states : list of bytes or None
        States of learners that can be trained further, one for each output; then that of the
        scale of the targets, if they are standardised.
    facts : dict
        Other results, such as the number of updates.
    """

    outputs: list[Output]
    evidence: Evidence | None = None
    states: list[bytes] | None = None
    facts: dict[str, Any] = field(default_factory=dict)


class Mode(ABC):
    """A way to train on a cluster. It is sent to all workers, so it must be small.

    Attributes
    ----------
    parts, ranges : int
        Number of pieces of each kind. It must not depend on the number of workers.
    threaded : bool
        Whether a part can use several threads. If not, one worker for each processor is better.
    every : int
        Default number of stages between two checkpoints.
    """

    parts: int
    ranges: int
    threaded: bool = False
    every: int = 1

    @abstractmethod
    def part(self, number: int, threads: int, shared: dict[str, Any]) -> Piece:
        """Make a part as it is before the first step.

        All pieces in one process have the same dict `shared`, for objects of which a process needs
        only one. It is empty in a new process.
        """

    @abstractmethod
    def range(self, number: int, shared: dict[str, Any]) -> Piece:
        """Make a range as it is before the first step."""

    @abstractmethod
    def coordinator(self) -> Coordinator:
        """Make the coordinator as it is before the first stage."""

    def combined(self, message: Message[Any], packet: Packet) -> Packet:
        """Combine the bundles that the parts of one process send to one range in this step.

        Allowed only if the order does not change the result: sums of whole numbers.
        """
        return packet


class MessagesLost(Exception):
    """Arrays that pieces sent since the last checkpoint are lost: all pieces go back to it."""


class PiecesMissing(Exception):
    """Pieces are not on this host, or miss earlier steps: they must be made again first."""

    def __init__(self, kind: PieceKind, numbers: list[int]) -> None:
        super().__init__(kind, numbers)
        self.kind, self.numbers = kind, numbers
