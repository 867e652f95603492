"""Learning of one row of a matrix: `partial_fit` with one row, in a few microseconds.

The usual row is learned in the core. Any other row, and a row at which a record is due, takes the
general way, with the same result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher import _core
from thresher.data import as_batch
from thresher.estimators.learn_one import OneRowLearning
from thresher.health.label_order import LabelOrder
from thresher.health.watch import DivergenceWatch
from thresher.rules import RULES
from thresher.training.name_cache import NameCache
from thresher.training.observer import Observer
from thresher.training.order_watch import alarm_in_calls
from thresher.training.shared_outputs import SharedOutputs

_ROW = "partial_fit of one row"  # its key among what is cached


@dataclass
class MatrixRowLearner:
    """What `partial_fit` needs for the usual row.

    Attributes
    ----------
    core : _core.LearnerRow
    names : NameCache
        Empty; the core refers to it.
    watch : DivergenceWatch or None
    order : LabelOrder or None
    codes : dict or None
        The code of each label for `order`; None: labels are numbers.
    factors : dict
        The weights of classes.
    """

    core: _core.LearnerRow
    names: NameCache
    watch: DivergenceWatch | None
    order: LabelOrder | None
    codes: dict[Any, int] | None
    factors: dict[Any, float]


class MatrixRowLearning(OneRowLearning):
    """Base of estimators that learn row by row: learning of one row of a matrix."""

    def _learned_one_row(self, X: Any, y: Any) -> bool:
        """Learn the only row of X, if it is a usual row; return whether it was learned."""
        cached: dict[str, Any] = self.__dict__.get("_cached", {})
        learner: MatrixRowLearner | None = cached.get(_ROW)
        if learner is None or not self._needs_no_check(X) or X.shape[0] != 1:
            return False
        if not isinstance(y, list | np.ndarray) or np.shape(y) != (1,):
            return False
        label = y[0] if isinstance(y, list) else y.item()
        zero_loss = learner.core.learn_numbered(self.__dict__, as_batch(X), label)
        if zero_loss is None:
            return False
        if learner.watch is not None:
            learner.watch.expect(zero_loss, learner.factors.get(label, 1.0))
        if len(cached) > 1:
            self._cached = {_ROW: learner}
        order = learner.order
        if order is not None and not order.told:
            code = label if learner.codes is None else learner.codes[label]
            alarm = order.see(np.array([code])) or order.conclude()
            if alarm is not None:
                labels = {code: label for label, code in (learner.codes or {}).items()}
                Observer().warn(alarm_in_calls(alarm, labels.get(alarm.code)))
        return True

    def _prepare_one_row(self) -> None:
        """Make what the next call with one row needs, after a call with one row."""
        state = self._fitted
        if not self._learns_in_core(state) or self._is_multilabel() or state.reading:
            return
        codes, shared = None, isinstance(state.outputs, SharedOutputs)
        if state.classes is not None:
            classes = state.classes.tolist()
            if isinstance(state.outputs, SharedOutputs):
                lanes = state.outputs.lane_of.tolist()
            else:
                lanes = list(range(len(classes)))
            codes = {label: lane + shared for label, lane in zip(classes, lanes, strict=True)}
        core = self._core_learner(state, None)
        if core is None:
            return
        names = NameCache()
        self._set_learning(core, state, names)
        watch = state.watch if RULES[self.rule].diverges else None
        factors = None if state.classes is None else self._core_targets(state)[1]
        self._cached[_ROW] = MatrixRowLearner(core, names, watch, state.order, codes, factors or {})
