"""What the tallies of all tasks share: options, and the loss of a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.evaluation.bootstrap import CHUNK, CellSums, PoissonCounts
from thresher.evaluation.metric import Metric, ratio
from thresher.evaluation.rank_scores import EXACT
from thresher.evaluation.rows import Rows

if TYPE_CHECKING:
    from thresher.model.model import Model

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EvaluationOptions:
    """What is computed; the parameters of `thresher.evaluate`."""

    replicates: int = 200
    level: float = 0.95
    seed: int = 0
    at: tuple[int, ...] = (1, 3, 5)
    shares: tuple[float, ...] = (0.01, 0.05, 0.1, 0.2)
    quantile: float | None = None
    exact: int = EXACT

    @property
    def counts(self) -> PoissonCounts | None:
        """The bootstrap; None: no intervals."""
        return PoissonCounts(self.replicates, self.seed) if self.replicates else None


@dataclass
class Findings:
    """What a tally found: metrics by name, tables and curves as JSON types, and remarks."""

    metrics: dict[str, Metric] = field(default_factory=dict)
    tables: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


class Tally(ABC):
    """Sums over rows for the metrics of one model.

    Parameters
    ----------
    model : Model
    options : EvaluationOptions
    """

    def __init__(self, model: Model, options: EvaluationOptions) -> None:
        self.model, self.options, self.counts = model, options, options.counts
        self.rows, self.weight = 0, 0.0
        self.loss = _LossSums(model, self.counts)

    def add(self, rows: Rows) -> None:
        """Add rows, a few thousand at a time."""
        for start in range(0, len(rows), CHUNK):
            part = rows.part(start, min(start + CHUNK, len(rows)))
            numbers = part.first + np.arange(len(part))
            counts = None if self.counts is None else self.counts.of(numbers)
            weights = np.ones(len(part)) if part.weights is None else part.weights
            self.rows += len(part)
            self.weight += float(weights.sum())
            self.loss.add(part, weights, counts)
            self.add_part(part, weights, numbers, counts)

    @abstractmethod
    def add_part(
        self, rows: Rows, weights: Floats, numbers: NDArray[np.int64], counts: Floats | None
    ) -> None:
        """Add some rows, with their weights, numbers and counts in the bootstrap."""

    @abstractmethod
    def findings(self) -> Findings:
        """Return the metrics and tables."""

    def metric(self, value: Any, replicates: Any, reason: str = "", bound: float = 0.0) -> Metric:
        """Return a metric with its interval; `reason` says why a NaN is undefined."""
        return Metric.of(value, replicates, self.options.level, reason, bound)

    def sums(self, sums: CellSums) -> list[Floats | None]:
        """Return the sums over the rows, and those of the replicates."""
        return [sums.total.astype(np.float64), sums.replicates]


class _LossSums:
    """The mean loss of training, over rows and outputs."""

    def __init__(self, model: Model, counts: PoissonCounts | None) -> None:
        self.outputs = len(model.intercept)
        self.sums = CellSums(2, counts)
        epsilon, quantile = (model.parameters.get(name) for name in ("epsilon", "quantile"))
        self.reason = ""
        if not isinstance(epsilon, int | float):
            epsilon = 0.1
            if _depends_on_epsilon(model.loss):
                self.reason = (
                    "training chose the epsilon of the loss from its labels; the model file does "
                    "not have it"
                )
        self.words = model.loss, float(epsilon), float(quantile or 0.5)

    def add(self, rows: Rows, weights: Floats, counts: Floats | None) -> None:
        """Add rows; with one output, rows of a label that the model does not know are left out."""
        if self.reason:
            return

        def losses(raw: Floats, targets: Floats) -> Floats:
            return _core.loss_values(*self.words, np.ascontiguousarray(raw), targets)[0]

        own = rows.targets.row_losses(rows.raw, losses)
        w = weights if self.outputs > 1 else np.where(rows.known, weights, 0.0)
        at = np.arange(len(w))
        cells = np.repeat([0, 1], len(w))
        self.sums.add(np.tile(at, 2), cells, np.append(w * own, w), counts)

    def metric(self, level: float) -> Metric:
        """Return the mean."""
        if self.reason:
            return Metric(None, reason=self.reason)
        total, replicates = self.sums.total.astype(np.float64), self.sums.replicates
        means = None if replicates is None else ratio(*replicates)
        return Metric.of(ratio(*total), means, level)


def _depends_on_epsilon(loss: str) -> bool:
    """Tell whether a loss has the parameter epsilon."""
    raw, labels = np.zeros(3), np.array([0.25, 1.0, 8.0])
    values = [_core.loss_values(loss, epsilon, 0.5, raw, labels)[0] for epsilon in (0.1, 3.0)]
    return bool((values[0] != values[1]).any())
