"""Watches the order of labels while rows are learned: runs of one label, and drift of their mean.

A learner that reads rows one by one follows the last rows. If the rows are sorted by label, its
progressive loss is tiny, and its model predicts the last label. `LabelOrder` notices that from a
few counts. The counts do not depend on the sizes of the blocks in which rows arrive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from thresher.errors import DataWarning
from thresher.health.label_runs import SHARE, ClassRuns, OrderAlarm
from thresher.health.mean_drift import MeanDrift, between_parts

_EARLY_SHARE = 0.5  # of all rows in one run, before the end of a pass
_FIRST_MARK = 1 << 14  # rows; the order is also checked after each power of two from here on
_MOST = 1 << 16  # classes


class LabelOrderWarning(DataWarning):
    """The rows are ordered by their labels, and the model learns from them in this order."""


class LabelOrder:
    """Watches the labels of rows in the order in which they are learned, and raises one alarm.

    Parameters
    ----------
    classes : bool
        Whether labels are classes; otherwise they are numbers.

    Attributes
    ----------
    told : bool
        Whether the alarm was raised.

    Examples
    --------
    >>> import numpy as np
    >>> order = LabelOrder(classes=True)
    >>> order.see(np.repeat([1, 0], 5000))  # None: rows may follow that are mixed
    >>> order.conclude().worded(1)
    'the rows are ordered by their labels: rows 1 to 5,000 of the first 10,000 have ...'
    >>> order.conclude()  # only once
    """

    def __init__(self, classes: bool) -> None:
        self.classes, self.told = classes, False
        self.watch = ClassRuns() if classes else MeanDrift()
        self._checked = 0  # rows at the last check

    def see(self, labels: NDArray[Any]) -> OrderAlarm | None:
        """Add the labels of the next rows; return an alarm, if rows so far already raise it.

        Parameters
        ----------
        labels : array
            Codes of classes, which are whole numbers from 0; or numbers.
        """
        found, at = None, 0
        if self.classes and len(labels) and int(labels.max()) >= _MOST:
            self.told = True  # too many classes to watch
        while at < len(labels) and not self.told:
            mark = max(_FIRST_MARK, 1 << self.watch.rows.bit_length())
            piece = labels[at : at + mark - self.watch.rows]
            self.watch.add(piece)
            at += len(piece)
            if self.watch.rows == mark:
                found = self._check(_EARLY_SHARE) or found
        return found

    def conclude(self) -> OrderAlarm | None:
        """Return an alarm if the rows are ordered; call it after the last row of a pass or call."""
        if self.told or self.watch.rows < 1.1 * self._checked:  # few more rows than at the last one
            return None
        self._checked = self.watch.rows
        return self._check(SHARE)

    def _check(self, share: float) -> OrderAlarm | None:
        watch = self.watch
        found = watch.alarm(share) if isinstance(watch, ClassRuns) else watch.alarm()
        self.told = self.told or found is not None
        return found

    @property
    def state(self) -> dict[str, Any]:
        """Everything in types that JSON has, for a checkpoint."""
        return {"told": self.told, "checked": self._checked, "watch": self.watch.state}

    @state.setter
    def state(self, saved: Mapping[str, Any]) -> None:
        self.told, self._checked = bool(saved["told"]), int(saved["checked"])
        self.watch.state = saved["watch"]


def order_of_parts(
    parts: Sequence[tuple[ClassRuns, Mapping[Any, int], MeanDrift]],
) -> str | None:
    """Return what shows that rows in several parts are ordered by their labels; None: nothing.

    Parameters
    ----------
    parts : sequence of (ClassRuns, mapping, MeanDrift)
        Of each part: the runs of classes, the code of each label in them, and the drift of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> runs = ClassRuns(), ClassRuns()
    >>> for each in runs:
    ...     each.add(np.zeros(500, np.int64))
    >>> order_of_parts([(runs[0], {"no": 0}, MeanDrift()), (runs[1], {"yes": 0}, MeanDrift())])
    "the rows are ordered by their labels: rows 1 to 500 of the first 1,000 have ..."
    """
    whole, codes = ClassRuns(), dict[Any, int]()
    for runs, own, _ in parts:
        whole.append(runs.recoded([codes.setdefault(label, len(codes)) for label in own]))
    found = whole.alarm()
    if found is not None:
        return found.worded(list(codes)[found.code])
    between = between_parts([drift for _, _, drift in parts])
    drifts = (found for _, _, drift in parts if (found := drift.alarm()) is not None)
    found = between or next(drifts, None)
    return None if found is None else found.worded()
