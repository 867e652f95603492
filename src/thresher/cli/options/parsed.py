"""The options of `train`, `tune`, `compare` and `discover` after parsing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from thresher.losses import Task, canonical_loss


@dataclass
class TrainOptions:
    """Options of `thresher train`.

    `reading` holds the options for reading files, as `scan` takes them. `chosen` holds the
    parameters of the rule that were given, as text.
    """

    data: Sequence[str]
    model: str
    rule: str | None = None
    loss: str | None = None
    reading: dict[str, Any] = field(default_factory=dict)
    chosen: dict[str, Any] = field(default_factory=dict)
    passes: int | None = None
    shuffle: str | None = None
    seed: int | None = None
    store: str | None = None
    multiclass: bool = False
    classes: str | None = None
    class_weight: str | None = None
    cache: str | None = None
    valid: Sequence[str] = ()
    tol: float | None = None
    patience: int | None = None
    checkpoint: str | None = None
    every: str | None = None
    resume: bool = False
    keep_checkpoint: bool = False
    names: bool = True
    json: bool = False
    quiet: bool = False
    ray: str | None = None
    mode: str | None = None
    workers: int | None = None
    parts: int | None = None
    rounds: int | None = None
    batch: int | None = None
    blocks: int | None = None
    tolerance: float | None = None
    budget: str | None = None
    html: str | None = None
    scale: str | None = None
    metric: str | None = None
    from_model: str | None = None
    keep_state: bool = False
    task: Task | None = None  # None: the loss and the options for labels decide

    def __post_init__(self) -> None:
        """Give the loss our name, not that of scikit-learn."""
        self.loss = canonical_loss(self.loss)

    @property
    def races(self) -> bool:
        """Whether a race chooses the rule."""
        return self.rule == "auto"

    @property
    def checkpoint_file(self) -> str:
        """The file that checkpoints are written to."""
        return self.checkpoint or self.model + ".checkpoint"

    @property
    def checkpoints(self) -> bool:
        """Whether checkpoints are written from time to time, not only at Ctrl-C."""
        return self.checkpoint is not None or self.every is not None or self.resume


@dataclass
class TuneOptions(TrainOptions):
    """Options of `thresher tune`."""

    grid: Sequence[str] = ()
    folds: int | None = None
    scoring: str | None = None
    sparsest: bool = False
    memory: str | None = None


@dataclass
class CompareOptions:
    """Options of `thresher compare`."""

    data: Sequence[str]
    test: Sequence[str] = ()
    test_share: float | None = None
    rules: str | None = None
    orders: int = 10
    folds: int = 5
    choose: str = "best"
    scale: str | None = None
    loss: str | None = None
    multiclass: bool = False
    seed: int = 0
    jobs: int = 1
    reading: dict[str, Any] = field(default_factory=dict)
    checkpoint: str | None = None
    output: str | None = None
    html: str | None = None
    json: bool = False
    quiet: bool = False
    command: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Give the loss our name, not that of scikit-learn."""
        self.loss = canonical_loss(self.loss)


@dataclass
class DiscoverOptions:
    """Options of `thresher discover`."""

    data: Sequence[str]
    fdr: float | None = None
    expected_false: float | None = None
    form: str = "auto"
    group_namespaces: bool = False
    task: str = "auto"
    classes: str | None = None
    folds: int = 5
    redraws: int = 20
    shuffle: bool | None = None
    seed: int = 0
    memory: str | None = None
    reading: dict[str, Any] = field(default_factory=dict)
    cache: str | None = None
    checkpoint: str | None = None
    every: str | None = None
    resume: bool = False
    keep_checkpoint: bool = False
    top: int | None = None
    why: Sequence[str] = ()
    html: str | None = None
    json: str | None = None
    csv: str | None = None
    model: str | None = None
    quiet: bool = False
    command: Sequence[str] = ()

    @property
    def results(self) -> dict[str, str | None]:
        """Files written at the end, by option."""
        return {
            "--html": self.html, "--json": self.json, "--csv": self.csv, "--model": self.model,
        }  # fmt: skip
