"""Detects divergence from the records of training."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from thresher.model.model import Progress

_JOINED = 100  # records are joined until they have this many rows


class NoSignalWarning(UserWarning):
    """The labels cannot be predicted from the features better than by the intercept alone."""


class DivergenceWarning(UserWarning):
    """Training diverges, or soon will: the rate is too high for the data."""


class DivergenceWatch:
    """Detects from the records of one fit that training diverges, before numbers overflow.

    Training diverges if the progressive loss is not finite; or is more than 1e12 times the loss of
    predicting zero; or is more than `factor` times that loss and has doubled `patience` times in a
    row. Records of few rows are joined.

    Parameters
    ----------
    zero_loss : float, optional
        Mean loss of predicting zero; by default the loss of the first record, unless `expect` is
        called before.
    factor : float
    patience : int
    examples : int
        Rows learned before the first record.

    Examples
    --------
    >>> from thresher import Progress
    >>> watch = DivergenceWatch(zero_loss=0.5)
    >>> for examples, loss in ((128, 0.9), (256, 40.0), (512, 3000.0)):
    ...     message = watch.see(Progress(examples, loss, None, 0.1, 0.0))
    >>> message
    'training diverges: the mean loss of the last 256 rows is 3e+03, but 0.5 if zero is ...'
    """

    def __init__(
        self,
        zero_loss: float | None = None,
        factor: float = 10.0,
        patience: int = 2,
        examples: int = 0,
    ) -> None:
        self.zero_loss, self.factor, self.patience = zero_loss, factor, patience
        self._expected = 0.0  # total weight of the rows in the mean zero_loss
        self._examples = examples  # rows of all records
        self._rows, self._sum = 0, 0.0  # rows and loss since the last decision
        self._before: float | None = None
        self._rises, self._told = 0, False

    def expect(self, zero_loss: float, weight: float) -> None:
        """Add the next rows to `zero_loss`: their mean loss of predicting zero, and weight."""
        if math.isfinite(zero_loss) and weight > 0:
            self._expected += weight
            before = self.zero_loss or 0.0
            self.zero_loss = before + (zero_loss - before) * weight / self._expected

    def see(self, record: Progress, zero_loss: float | None = None) -> str | None:
        """Return a warning, once, if training diverges; else None.

        `zero_loss` is the loss of predicting zero on the rows of this record, if it is known.
        """
        rows, self._examples = record.examples - self._examples, record.examples
        self._rows, self._sum = self._rows + rows, self._sum + rows * record.loss
        if self._told or (self._rows < _JOINED and math.isfinite(record.loss)):
            return None
        rows, mean = self._rows, self._sum / max(self._rows, 1)
        self._rows, self._sum = 0, 0.0
        if self.zero_loss is None:
            self.zero_loss = mean
        usual = max(self.zero_loss, zero_loss or 0.0)
        rises = mean > usual * self.factor and mean > 2 * (self._before or 0.0)
        self._rises, self._before = self._rises + 1 if rises else 0, mean
        hopeless, lasting = mean > 1e12 * usual, self._rises >= self.patience
        self._told = not math.isfinite(mean) or (usual > 0 and (hopeless or lasting))
        if not self._told:
            return None
        now = f" (now {record.rate:.3g})" if record.rate else ""  # on a cluster it is not known
        return (
            f"training diverges: the mean loss of the last {rows:,} rows is {mean:.3g}, but "
            f"{usual:.3g} if zero is predicted; lower the rate{now}, or scale the features"
        )
