"""Warns if rows are learned in the order of their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.labels import ArrivingClasses, Labels
from thresher.errors import setting
from thresher.health.label_order import LabelOrder, LabelOrderWarning
from thresher.health.label_runs import OrderAlarm

if TYPE_CHECKING:
    from thresher.data.targets import Targets
    from thresher.data.visits import Visit
    from thresher.errors import Words
    from thresher.training.observer import Observer
    from thresher.training.trainer import Trainer

_IN_CALLS = "give partial_fit rows in random order, or use fit, which shuffles them"
_WRONG = "a model that learns them in this order predicts the last labels, while its loss is small"


def watched_labels(labels: Labels, targets: Targets) -> NDArray[Any]:
    """Return a label or code of each row, for `LabelOrder`.

    A code does not change when further classes arrive. If rows have any number of labels, the first
    label of a row counts; 0 is a row without labels.

    Parameters
    ----------
    labels : Labels
    targets : Targets
        The targets that `labels` made of a block.
    """
    if labels.classes is None:
        assert targets.values is not None
        return targets.values
    if targets.values is not None:
        return np.asarray(targets.values == 1.0).view(np.uint8)
    numbers: NDArray[Any] = targets.numbers
    if isinstance(labels, ArrivingClasses):
        numbers = labels.lane_of[numbers]
    counts = np.diff(targets.starts)
    if (counts == 1).all():
        return numbers + 1
    codes = np.zeros(targets.rows, np.int64)
    codes[counts > 0] = numbers[targets.starts[:-1][counts > 0]] + 1
    return codes


def label_of(labels: Labels, code: int) -> Any:
    """Return the label of a code of `watched_labels`.

    Parameters
    ----------
    labels : Labels
    code : int
    """
    if labels.classes is None:
        return None
    names = labels.arrived if isinstance(labels, ArrivingClasses) else labels.classes.tolist()
    several = labels.outputs > 1 or isinstance(labels, ArrivingClasses) or len(names) != 2
    at = code - 1 if several else code
    return names[at] if at >= 0 else None


class OrderWatch:
    """Watches the labels of the first pass of a trainer, and warns once.

    Parameters
    ----------
    order : LabelOrder, optional
        The labels of rows that were learned before.
    """

    def __init__(self, order: LabelOrder | None = None) -> None:
        self.order = order
        self._last: tuple[Any, NDArray[Any]] = None, np.zeros(0)

    def see(self, trainer: Trainer, visit: Visit, targets: Targets) -> None:
        """Add the rows of a visit, after they were learned."""
        labels = trainer.plan.labels
        if self.order is None:
            self.order = LabelOrder(labels.classes is not None)
        if self.order.told:
            return
        if self._last[0] is not targets:
            self._last = targets, watched_labels(labels, targets)
        rows: Any = slice(visit.first, visit.last)
        if visit.order is not None:
            rows = visit.order[visit.first : visit.last]
        self._warn(trainer, self.order.see(self._last[1][rows]))

    def conclude(self, trainer: Trainer) -> None:
        """Check all rows, after the pass."""
        self._last = None, np.zeros(0)
        if self.order is not None:
            self._warn(trainer, self.order.conclude())

    def _warn(self, trainer: Trainer, alarm: OrderAlarm | None) -> None:
        if alarm is not None:
            label = label_of(trainer.plan.labels, alarm.code)
            trainer.options.observer.warn(order_warning(alarm.worded(label), _remedy(trainer)))


def see(trainer: Trainer, visit: Visit, prepared: tuple[Targets, Any, Any] | None) -> None:
    """Watch the rows of a visit, if they are of the first pass and the trainer has a watch.

    Parameters
    ----------
    trainer : Trainer
    visit : Visit
    prepared : tuple or None
        The targets of the block come first.
    """
    if trainer.order is not None and trainer.number == 0 and prepared is not None:
        trainer.order.see(trainer, visit, prepared[0])


def conclude(trainer: Trainer) -> None:
    """Check the order of all rows, after the first pass or after rows were learned once.

    Parameters
    ----------
    trainer : Trainer
    """
    if trainer.order is not None and (trainer.number == 1 or trainer.learns_once):
        trainer.order.conclude(trainer)


def watched_batch(
    order: LabelOrder | None, labels: Labels, targets: Targets, observer: Observer
) -> LabelOrder:
    """Watch a batch of `partial_fit` whose rows are learned in random order; return the watch.

    Parameters
    ----------
    order : LabelOrder or None
        The watch of the batches before.
    labels : Labels
    targets : Targets
    observer : Observer
        Gets the warning.
    """
    order = order or LabelOrder(labels.classes is not None)
    codes = watched_labels(labels, targets)
    alarm = order.see(np.random.default_rng(len(codes)).permutation(codes)) or order.conclude()
    if alarm is not None:
        observer.warn(order_warning(alarm.worded(label_of(labels, alarm.code)), _IN_CALLS))
    return order


def alarm_in_calls(alarm: OrderAlarm, label: Any) -> LabelOrderWarning:
    """Return the warning that the rows of calls of `partial_fit` are ordered by their labels.

    Parameters
    ----------
    alarm : OrderAlarm
    label : object
        The label of its code; None in a regression.
    """
    return order_warning(alarm.worded(label), _IN_CALLS)


def order_warning(seen: str, remedy: Words) -> LabelOrderWarning:
    """Return the warning that rows are ordered by their labels.

    Parameters
    ----------
    seen : str
    remedy : str or tuple
        What the user can do.
    """
    return LabelOrderWarning(f"{seen}; {_WRONG}", hint=remedy)


def _remedy(trainer: Trainer) -> Words:
    """Return the setting that mends the order."""
    plan, source = trainer.plan, trainer.source
    if trainer.learns_once:
        return _IN_CALLS
    if plan.in_memory or source.rereadable:
        return "set ", setting("shuffle", "each")
    return (
        "raise ", setting("shuffle_buffer", call="scan"),
        " above the length of such runs, or read the rows from a file, with ",
        setting("shuffle", "each"),
    )  # fmt: skip
