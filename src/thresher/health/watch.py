"""A watch for divergence, which looks at the records of training alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from thresher.model.model import Progress

_JOINED = 100  # rows that a watch judges together


class DivergenceWarning(UserWarning):
    """Training diverges, or is about to: the rate is too high for the data."""


class DivergenceWatch:
    """Tell from the records of training that it diverges, before numbers overflow.

    It does where the progressive loss is not finite, is 1e12 times that of predicting zero, or is
    `factor` times that and has doubled `patience` times in a row. Records of few rows are joined.
    A watch is for one fit.

    Parameters
    ----------
    zero_loss : float, optional
        Mean loss of predicting zero; without it, and before `expect` is called, the first record
        stands in for it.
    factor : float
    patience : int
    examples : int
        Rows that had been learned before the first record began.

    Examples
    --------
    >>> from thresher import Progress
    >>> watch = DivergenceWatch(zero_loss=0.5)
    >>> for examples, loss in ((128, 0.9), (256, 40.0), (512, 3000.0)):
    ...     message = watch.see(Progress(examples, loss, None, 0.1, 0.0))
    >>> message
    'training diverges: the mean loss of the last 256 rows is 3e+03, that of predicting zero ...'
    """

    def __init__(
        self,
        zero_loss: float | None = None,
        factor: float = 10.0,
        patience: int = 2,
        examples: int = 0,
    ) -> None:
        self.zero_loss, self.factor, self.patience = zero_loss, factor, patience
        self._expected = 0.0  # weight of the rows that zero_loss is the mean of
        self._examples, self._rows, self._sum = examples, 0, 0.0  # seen; of them not yet judged
        self._before: float | None = None
        self._rises, self._told = 0, False

    def expect(self, zero_loss: float, weight: float) -> None:
        """Tell the mean loss of predicting zero on rows that come now, and their total weight."""
        if math.isfinite(zero_loss) and weight > 0:
            self._expected += weight
            before = self.zero_loss or 0.0
            self.zero_loss = before + (zero_loss - before) * weight / self._expected

    def see(self, record: Progress, zero_loss: float | None = None) -> str | None:
        """Return what to warn of, once; None as long as all is well.

        `zero_loss` is that of the rows of this record, where it is known.
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
            f"training diverges: the mean loss of the last {rows:,} rows is {mean:.3g}, that of "
            f"predicting zero {usual:.3g}; lower the rate{now}, or scale the features"
        )
