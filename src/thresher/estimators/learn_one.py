"""Learning of one row, given as a dict: `learn_one`.

The usual row is learned in the core, in a few microseconds (cpp/bindings/one_row.cpp). Any other
row, and a row at which a record is due, takes the way of `partial_fit`, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.atomic import all_or_nothing
from thresher.data.dict_rows import DictReading, DictRows, plain
from thresher.data.labels import ArrivingClasses, Labels
from thresher.errors import ParameterError, setting
from thresher.estimators.linear import LinearEstimator
from thresher.estimators.locks import lock_of
from thresher.estimators.one_row import PREDICT
from thresher.health.watch import DivergenceWatch
from thresher.losses import LOSSES
from thresher.model.one_row import RowPredictor, checked, predictor_of
from thresher.rules import RULES
from thresher.training.fitted import FittedState
from thresher.training.hooks import Hooks
from thresher.training.name_cache import NameCache
from thresher.training.outputs_factory import OutputsFactory
from thresher.training.separate_outputs import SeparateOutputs
from thresher.training.shared_outputs import SharedOutputs

_LEARN = "learn_one"  # its key among what is cached
_NOTHING: dict[str, Any] = {}


class RowLearner(NamedTuple):
    """What `learn_one` needs for the usual row.

    Attributes
    ----------
    core : _core.LearnerRow
    watch : DivergenceWatch or None
    convert : callable or None
        Converts the values of a row, if the model was trained on a table.
    kept : tuple of str
        The cached objects that remain valid when a row is learned.
    """

    core: _core.LearnerRow
    watch: DivergenceWatch | None
    convert: Any
    kept: tuple[str, ...]


class OneRowLearning(LinearEstimator):
    """Base of estimators that learn row by row: learning of one row."""

    class_weight: Any  # of classifiers
    _learn_once: Callable[..., Self]  # learns rows of a source, after those of earlier calls
    _set_given_classes: Callable[[Any], None]
    _check_classes: Callable[[Any], None]

    def learn_one(
        self, row: Mapping[Any, Any], y: Any, w: float = 1.0, *, classes: Any = None
    ) -> Self:
        """Learn from one row.

        The result is bit-identical to `partial_fit` with the same rows.

        Parameters
        ----------
        row : dict
            Values by name of the feature; see `predict_one`.
        y : label, or number in a regression
        w : float
            How often the row is repeated.
        classes : array, optional
            All labels of a classifier, in the first call. By default a label of True or False is
            one of two classes; with other labels each class is added at its first row.

        Returns
        -------
        self
        """
        cached: dict[str, Any] = self.__dict__.get("_cached", _NOTHING)
        learner: RowLearner | None = cached.get(_LEARN)
        if learner is not None and classes is None:
            core, watch, convert, kept = learner
            given = row if convert is None else convert(checked(row))
            zero_loss = core.learn(self.__dict__, given, y, w)
            if zero_loss is None and (usual := plain(given)) is not None:
                zero_loss = core.learn(self.__dict__, usual, y, w)
            if zero_loss is not None:
                if watch is not None:
                    watch.expect(zero_loss, w)
                if len(cached) > len(kept):
                    self._cached = {name: cached[name] for name in kept}
                return self
        with lock_of(self):
            return self._learn_one_generally(row, y, w, classes)

    def _learn_one_generally(self, row: Any, y: Any, w: Any, classes: Any) -> Self:
        if isinstance(y, list | tuple | set | dict):
            raise ParameterError(
                "learn_one needs one label, not several", owner=type(self).__name__, value=y
            )
        if classes is None and self._is_new():
            classes = [False, True] if isinstance(y, bool | np.bool_) else "arriving"
        self._learn_dicts([checked(row)], [y], [w], classes)
        self._fitted.row_by_row = True
        learner = self._make_row_learner()
        if learner is not None:
            self._cached[_LEARN] = learner
        return self

    # ---- the general way: also for partial_fit with several rows -------------------------------

    def _learn_dicts(self, rows: Any, y: Any, weights: Any, classes: Any = None) -> Self:
        """Learn rows given as dicts once, after those of earlier calls."""
        first = self._is_new()
        with all_or_nothing(self) if first else nullcontext():
            if not first:
                self.__dict__["_cached"].pop(_LEARN, None)
                self._check_trained_on_names()
            reading = DictReading() if first else self._dict_reading()
            source = DictRows(rows, y, weights, reading)
            known = self._labels_of_dicts(classes, first)
            return self._learn_once(source, known=known)

    def _labels_of_dicts(self, classes: Any, first: bool) -> Labels | None:
        """Return the labels for the first call; check the classes of later calls."""
        if self.task == "regressor":
            if classes is not None and not isinstance(classes, str):
                raise ParameterError("a regression has no classes", owner=type(self).__name__)
            return self._labels()
        arriving = isinstance(classes, str) and classes == "arriving"
        if not first:
            if classes is not None and not arriving:
                self._check_classes(classes)
            return None
        self._checked_params()
        if not arriving:
            self._set_given_classes(classes)
            return self._labels()
        spec = self._specification()
        if not OutputsFactory(self.rule, spec.params, None, 1, 1).is_shared(2):
            raise ParameterError(
                ("cannot add classes one by one with these parameters: give ",
                 setting("classes"), " in the first call of learn_one or partial_fit"),
                owner=type(self).__name__,
                parameter="classes",
            )  # fmt: skip
        return ArrivingClasses(LOSSES[spec.loss].low)

    def _check_trained_on_names(self) -> None:
        if not self._fitted.reading and not self._fitted.final:
            raise ParameterError(
                "was trained on a matrix, whose features have numbers; rows given as dicts have "
                "names",
                owner=type(self).__name__,
                hint="start with learn_one, with partial_fit on dicts, or with a source of scan",
            )

    def _dict_reading(self) -> DictReading:
        """Return how dicts become rows of the model."""
        state = self._fitted
        reading = {**state.reading, **({"kinds": state.kinds} if state.kinds else {})}
        return DictReading.of(reading)

    # ---- the short way -------------------------------------------------------------------------

    def _make_row_learner(self) -> RowLearner | None:
        """Return the learner of one row; None if each row needs the general way."""
        state = self._fitted
        if not self._learns_in_core(state):
            return None
        reading = self._dict_reading()
        core = self._core_row(state, reading)
        if core is None:
            return None
        assert state.seen_names is not None
        self._set_learning(core, state, state.seen_names)
        kept: tuple[str, ...] = (_LEARN,)
        if self._predicts_by_learners():
            self._cached[PREDICT] = self._predictor_with(core, reading)
            kept = (_LEARN, PREDICT)
        watch = state.watch if RULES[self.rule].diverges else None
        return RowLearner(core, watch, reading.converted if reading.converts else None, kept)

    def _learns_in_core(self, state: FittedState) -> bool:
        """Return whether nothing is due between two rows, except records."""
        outputs = state.outputs
        return not (state.final or outputs is None or outputs.full or not state.hooks.is_idle())

    def _set_learning(self, core: _core.LearnerRow, state: FittedState, names: NameCache) -> None:
        """Let the core learn rows with the current parameters and classes."""
        numbers, words = state.factory.parameters()
        targets = factors = None
        if state.classes is not None:
            targets, factors = self._core_targets(state)
        loss = LOSSES[words["loss"]]
        core.set_learning(
            {name: getattr(self, name) for name in self._parameter_names()},
            targets,
            factors,
            loss.label_range,
            loss.low,
            (words["loss"], numbers["epsilon"], numbers["quantile"]),
            names.table,
            names.most,
            type(state.hooks) is not Hooks,
        )

    def _core_row(self, state: FittedState, reading: DictReading) -> _core.LearnerRow | None:
        """Return the core's learner of one dict; None if it cannot use these outputs."""
        bits = reading.bits
        if state.width != (2**64 if bits is None else 1 << bits):
            return None  # numbered features
        return self._core_learner(state, bits)

    def _core_learner(self, state: FittedState, bits: int | None) -> _core.LearnerRow | None:
        """Return the core's learner of one row; None if it cannot use these outputs."""
        outputs, learners = state.outputs, list[Any]()
        if isinstance(outputs, SharedOutputs):
            learners, lane_of = outputs.groups, outputs.lane_of.tolist()
            if len(lane_of) != outputs.lane_count:
                return None
        elif isinstance(outputs, SeparateOutputs) and len(outputs) == 1:
            learners, lane_of = outputs.learners, None
        else:
            return None
        at = LOSSES[self._learned_loss()].decision_at if self.task == "classifier" else 0.0
        core = _core.LearnerRow(
            learners, lane_of, str(state.params.get("dtype", "float64")), bits, at,
            state.average, state.row_by_row,
        )  # fmt: skip
        if outputs.scale is not None:
            scale = outputs.scale
            core.set_scale((scale.table, scale.centred, scale.degree))
        return core

    def _core_targets(self, state: FittedState) -> tuple[dict[Any, float], dict[Any, float] | None]:
        """Return the target or the lane of each label, and the weight of its class."""
        assert state.classes is not None
        classes = state.classes.tolist()
        numbers: list[float] = [LOSSES[self._learned_loss()].low, 1.0]
        if isinstance(state.outputs, SharedOutputs):
            numbers = list(map(float, state.outputs.lane_of.tolist()))
        weights = self.class_weight
        factors = None if weights is None else {c: float(weights.get(c, 1.0)) for c in classes}
        return dict(zip(classes, numbers, strict=True)), factors

    # ---- predictions ---------------------------------------------------------------------------

    def _predicts_by_learners(self) -> bool:
        """Return whether the learners predict what the model does, for rows given as dicts."""
        state = self._fitted
        return (
            state.target is None
            and state.refit is None
            and not state.final
            and not state.multilabel
            and state.outputs is not None
        )

    def _make_row_predictor(self) -> RowPredictor:
        if not self._is_new() and self._predicts_by_learners():
            reading = self._dict_reading()
            core = self._core_row(self._fitted, reading)
            if core is not None:
                return self._predictor_with(core, reading)
        return predictor_of(self.model_)

    def _predictor_with(self, core: _core.LearnerRow, reading: DictReading) -> RowPredictor:
        state = self._fitted
        assert state.outputs is not None
        classes = None if state.classes is None else state.classes.tolist()
        outputs = len(state.outputs)
        return RowPredictor(core, outputs, classes, self._learned_loss(), False, reading)

    def _raw_of_dicts(self, rows: Any) -> NDArray[np.float64]:
        self.state_  # noqa: B018 - raises an error if nothing was learned
        state, outputs = self._fitted, self._fitted.outputs
        if not state.row_by_row and not LOSSES[self._learned_loss()].decision_at:
            predictor = self._row_predictor()
            few = None if predictor is None else predictor.few(rows)
            if few is not None:
                return few
        reading = None if not self._predicts_by_learners() else self._dict_reading()
        if reading is None or outputs is None or self._core_row(state, reading) is None:
            return super()._raw_of_dicts(rows)
        source, dtype = DictRows(rows, reading=reading), str(state.params.get("dtype", "float64"))
        found = [
            outputs.predict(block.batch, state.average) for block in source.blocks(dtype=dtype)
        ]
        return np.concatenate(found)
