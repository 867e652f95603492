"""Estimators on sources: rows that are read in blocks and never held all at once."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data.source import Source
from thresher.errors import ParameterError
from thresher.estimators.tasks import LinearClassifier
from thresher.health.watch import DivergenceWarning
from thresher.model import Progress
from thresher.training.labels import Arriving, Labels, LabelSets, ManyClasses, Values
from thresher.training.learning import Learning
from thresher.training.passes import Plan, Run, Watcher
from thresher.training.result import names_of, outputs_of
from thresher.training.together import Together

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.estimators.streaming import StreamingEstimator


class _Watcher(Watcher):
    """Passes on warnings, and records to the estimator's callback."""

    def __init__(self, estimator: StreamingEstimator) -> None:
        self.estimator, self.records, self.stopped = estimator, 0, False

    def progress(self, run: Run, block: Block) -> None:
        self._see(run.learning.history)

    def _see(self, history: list[Progress]) -> None:
        callback = self.estimator.callback
        for record in history[self.records :]:
            self.stopped |= callback is not None and bool(callback(record))
        self.records = len(history)

    def tell(self, event: str, **facts: Any) -> None:
        if event == "warning":
            warnings.warn(facts["message"], DivergenceWarning, stacklevel=8)
        if event == "pass":
            self._see([*[None] * self.records, facts["record"]])  # type: ignore[list-item]

    def stops(self) -> bool:
        return self.stopped


def fit_source(estimator: StreamingEstimator, source: Source, eval_set: Any) -> None:
    """Learn from all rows of a source, in `passes` passes.

    Rows come as they lie in the files; with any `shuffle` but False, those of a block are shuffled,
    and the blocks of a cache.
    """
    name = type(estimator).__name__
    if eval_set is not None and not isinstance(eval_set, Source):
        raise ParameterError(f"{name}: eval_set must be a source where X is one")
    if getattr(estimator, "certify", False):
        raise ParameterError(f"{name}: certify=True needs rows in memory, and not a source")
    if getattr(estimator, "levels", ()):
        raise ParameterError(f"{name}: levels needs rows in memory, and not a source")
    params = _params(estimator)
    estimator._made_of = (estimator._checked_params(), None)
    learning = _learning(estimator, source, params, labels_of(estimator, source))
    if params.get("center"):
        learning.center(*source.mean())
    plan = Plan(
        passes=estimator.passes,
        shuffle=estimator.shuffle is not False,
        seed=int(estimator._generator().integers(2**31)),
        tol=estimator.tol,
        patience=estimator.patience,
    )
    watcher = _Watcher(estimator)
    run = _Stoppable(learning, source, plan, eval_set, watcher)
    run.go()
    _keep(estimator, run)
    estimator.n_iter_ = run.number


class _Stoppable(Run):
    """A run that a callback ends as `tol` does: what was learned so far is the result."""

    def _pause(self) -> None:
        if self.watcher.stops():
            self.stopped = True

    def _blocks(self) -> Any:
        for block in super()._blocks():
            if self.stopped:
                return
            yield block


def learn_source(estimator: StreamingEstimator, source: Source, classes: Any) -> None:
    """Learn from all rows of a source, once, after those learned before."""
    first = estimator._is_new()
    kinds = {} if first or not estimator._kinds else {**source.kinds, **estimator._kinds}
    estimator._checked_params(going_on=not first)
    if first:
        estimator._made_of = (estimator._checked_params(), None)
        labels = labels_of(estimator, source, classes)
    else:
        labels = labels_of(estimator, source, getattr(estimator, "classes_", None))
    learning = _learning(estimator, source, _params(estimator), labels)
    if not first:
        learning.adopt(
            estimator._learners, estimator.history_, estimator._recorded, estimator._watch
        )
        learning.width = 0 if estimator._width == 2**64 else estimator._width
    run = _Stoppable(learning, source, Plan(), None, _Watcher(estimator))
    names = False if run.names is None else "blocks"
    try:
        for block in source.blocks(dtype=learning.dtype, names=names, kinds=kinds):
            learning.learn(block)
            if run.names is not None:
                run.names.see(block, learning)
    except BaseException:  # what was learned before counts, as it does with matrices
        if not first:
            _keep(estimator, run, kinds, named=False)
        raise
    _keep(estimator, run, kinds)
    estimator.n_iter_ = max(getattr(estimator, "n_iter_", 0), 1)


def _params(estimator: StreamingEstimator) -> dict[str, Any]:
    params: dict[str, Any] = estimator.get_params(deep=False)
    if params.get("class_weight") == "balanced":
        raise ParameterError(
            f"{type(estimator).__name__}: class_weight='balanced' needs rows in memory; give a "
            f"source a dict of weights"
        )
    return params


def labels_of(estimator: StreamingEstimator, source: Source, classes: Any = None) -> Labels:
    """Return what makes targets of the labels of a source; without classes, it is read for them."""
    if estimator._task == "regressor":
        return Values(estimator._loss())
    low, sets = (0.0 if estimator._loss() == "clipped_square" else -1.0), source.reading.multilabel
    learners = getattr(estimator, "_learners", None) if classes is not None else None
    if isinstance(learners, Together) and classes is getattr(estimator, "classes_", None):
        if sets != estimator._is_multilabel():
            raise ParameterError(
                f"{type(estimator).__name__}: rows had {'one label' if sets else 'lists of labels'}"
                f" when learning began, and have {'lists of labels' if sets else 'one'} now"
            )
        return Arriving(low, sets, np.asarray(classes)[np.argsort(learners.lane_of)].tolist())
    if classes is None and not source.rereadable:
        if sets and estimator._recipe(1).together(2):
            return Arriving(low, sets)
        raise ParameterError(
            f"{type(estimator).__name__}: {source} can be read only once, and its classes are "
            f"not known; use partial_fit with classes="
        )
    known, counted = classes, None
    if classes is None:
        known, counted = source.label_counts()
    labels = (LabelSets if sets else ManyClasses)(known, low)
    labels.counted, estimator.classes_ = counted, labels.classes
    return labels


def _learning(
    estimator: StreamingEstimator, source: Source, params: dict[str, Any], labels: Labels
) -> Learning:
    rule, name = estimator._rule, type(estimator).__name__
    hashed = params.get("store", "dense") != "dense"
    if source.named and source.bits is None and not hashed:
        raise ParameterError(
            f"{name}: features with names need store='hashed', or bits= in scan to number them"
        )
    width, grows = (0, not source.named) if hashed else (1, True)
    if source.bits is not None:
        width, grows = 1 << source.bits, False
    elif rule == "mirror-descent" or params.get("max_density") is not None:
        width, grows = source.width(), False
        if width == 2**64:
            raise ParameterError(f"{name}: needs bits= in scan where features have names")
    return Learning(rule, estimator._task, params, labels, width, grows)


def _keep(
    estimator: StreamingEstimator,
    run: Run,
    kinds: dict[str, str] | None = None,
    named: bool = True,
) -> None:
    """Let the estimator have what was learned, of columns taken for these kinds, and its names."""
    learning = run.learning
    if isinstance(estimator, LinearClassifier):
        classes = learning.labels.classes
        assert classes is not None
        estimator.classes_ = classes
        estimator._multilabel = "sparse" if run.source.reading.multilabel else ""
    estimator._learners, estimator.history_ = learning.learners, learning.history
    estimator._recorded, estimator._watch = learning.recorded, learning.watch
    estimator._width = learning.width or 2**64
    estimator.n_features_in_ = estimator._width
    estimator._sparse_coef = learning.store != "dense"
    estimator._forget_answers()
    estimator._conclude_source(run)
    estimator._kinds = kinds or run.source.kinds
    if not named:
        return
    before, found = estimator._names or {}, names_of(run, outputs_of(learning), kinds) or {}
    estimator._names = {**before, **found} or None
