"""Metrics of a regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.evaluation.bootstrap import CellSums
from thresher.evaluation.metric import ratio
from thresher.evaluation.rows import Rows
from thresher.evaluation.tally import EvaluationOptions, Findings, Tally
from thresher.model.links import values

if TYPE_CHECKING:
    from thresher.model.model import Model

Floats = NDArray[np.float64]

_BINS = 20  # of predictions, in the table of calibration
_REASON = "the squares of labels or errors are too large for a number"


class NumberTally(Tally):
    """Sums over rows with a number each.

    Parameters
    ----------
    model : Model
    options : EvaluationOptions
    """

    def __init__(self, model: Model, options: EvaluationOptions) -> None:
        super().__init__(model, options)
        own = model.parameters.get("quantile")
        self.quantile = options.quantile if options.quantile is not None else float(own or 0.5)
        # Weights; labels, their squares (both from `middle`); squared, absolute, quantile errors.
        self.cells = CellSums(6, self.counts)
        self.middle: float | None = None  # a mean of labels: sums of squares do not cancel
        self.least, self.most = np.inf, -np.inf  # labels of rows with a weight
        self.bins = PredictionBins(options.exact)

    def add_part(
        self, rows: Rows, weights: Floats, numbers: NDArray[np.int64], counts: Floats | None
    ) -> None:
        """Add some rows."""
        y, found = rows.targets[0], values(rows.raw[:, 0], self.model.loss)
        if self.middle is None:
            self.middle = float(y.mean())
        own = y[weights > 0]
        if len(own):
            self.least = min(self.least, float(own.min()))
            self.most = max(self.most, float(own.max()))
        away, errors = y - self.middle, y - found
        pinball = np.maximum(self.quantile * errors, (self.quantile - 1) * errors)
        with np.errstate(over="ignore"):  # the metrics of infinite sums are undefined
            squares = away**2, errors**2
        parts = np.stack([np.ones(len(y)), away, *squares, np.abs(errors), pinball])
        at = np.arange(len(y))
        self.cells.add(
            np.tile(at, 6), np.repeat(np.arange(6), len(y)), (parts * weights).ravel(), counts
        )
        self.bins.add(found, y, weights)

    def findings(self) -> Findings:
        """Return the metrics and tables."""
        sums, many = self.sums(self.cells)
        assert sums is not None
        found = Findings()
        same = self.least >= self.most
        for name, value in (("r2", _r2), ("rmse", _rmse), ("mae", _mae), ("quantile_loss", _tilt)):
            reason = "all labels are equal" if name == "r2" and same else _REASON
            exact = np.nan if name == "r2" and same else value(sums)
            found.metrics[name] = self.metric(exact, None if many is None else value(many), reason)
        found.metrics["loss"] = self.loss.metric(self.options.level)
        found.tables["quantile"] = self.quantile
        found.tables["calibration"] = self.bins.table()
        return found


def _r2(s: Floats) -> Any:
    # The spread of equal labels is 0 up to rounding.
    with np.errstate(over="ignore", invalid="ignore"):
        spread = s[2] - ratio(s[1] ** 2, s[0])
    return 1.0 - ratio(s[3], np.where(spread > 1e-12 * s[2], spread, 0.0))


def _rmse(s: Floats) -> Any:
    return np.sqrt(ratio(s[3], s[0]))


def _mae(s: Floats) -> Any:
    return ratio(s[4], s[0])


def _tilt(s: Floats) -> Any:
    return ratio(s[5], s[0])


class PredictionBins:
    """Mean labels of rows with similar predictions.

    The borders of the bins divide the rows evenly, up to the first `most` rows.

    Parameters
    ----------
    most : int
    """

    def __init__(self, most: int) -> None:
        self.most, self.rows = most, 0
        self._kept: list[tuple[Floats, Floats, Floats]] = []
        self._edges: Floats | None = None
        self._sums = np.zeros((3, _BINS))

    def add(self, found: Floats, y: Floats, weights: Floats) -> None:
        """Add rows: predictions, labels and weights."""
        self.rows += len(y)
        if self._edges is not None:
            self._count(found, y, weights)
            return
        self._kept.append((found, y, weights))
        if self.rows > self.most:
            self._settle()

    def _settle(self) -> None:
        found, y, weights = (np.concatenate(parts) for parts in zip(*self._kept, strict=True))
        self._kept = []
        shares = np.arange(1, _BINS) / _BINS
        self._edges = np.unique(np.quantile(found, shares, method="higher"))
        self._count(found, y, weights)

    def _count(self, found: Floats, y: Floats, weights: Floats) -> None:
        assert self._edges is not None
        at = np.searchsorted(self._edges, found, side="right")
        for line, part in zip(self._sums, (weights, weights * found, weights * y), strict=True):
            line += np.bincount(at, part, _BINS)

    def table(self) -> list[dict[str, Any]]:
        """Return the bins that have rows: weight, mean prediction and mean label."""
        if self._kept:
            self._settle()
        return [
            {"weight": float(w), "predicted": float(p / w), "observed": float(y / w)}
            for w, p, y in self._sums.T
            if w > 0
        ]
