"""Train a rule on rows, and return a `FittedState`: used by estimators and the command line."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thresher.data.arrays import nonzeros
from thresher.data.labels import Labels
from thresher.data.matrix_source import MatrixSource
from thresher.data.read_options import Stopped
from thresher.data.scaled import refuse_scaled, same_scale
from thresher.errors import ParameterError, ReadOnceError, setting
from thresher.health.watch import DivergenceWatch
from thresher.losses import Task
from thresher.rules import RULES, core_args, validate
from thresher.training.bank import fewer_lanes
from thresher.training.checkpoint import check_replaceable
from thresher.training.continuing import (
    capacity_of,
    check_names,
    check_width,
    continued_outputs,
    for_any_feature,
    kept_values,
    refuse_numbers,
)
from thresher.training.fitted import FittedState
from thresher.training.hooks import Hooks, MakeHooks
from thresher.training.learner_state import why_final
from thresher.training.model_names import collector, joined, names_of
from thresher.training.name_cache import NameCache
from thresher.training.no_weights import without_weights
from thresher.training.order_watch import OrderWatch
from thresher.training.plan import TrainingPlan
from thresher.training.records import Records, watch_for
from thresher.training.refit import Refit, message_of, obstacle, refit
from thresher.training.run_options import RunOptions
from thresher.training.seeds import seed_of, stream_seed
from thresher.training.shuffling import shuffled_rows
from thresher.training.trainer import Trainer
from thresher.training.unscaled import check_scaled, unscaled
from thresher.training.validation_metric import check_validation_metric

if TYPE_CHECKING:
    from thresher.data.source import Source


@dataclass(frozen=True)
class Specification:
    """A rule that learns row by row, and all its parameters.

    Attributes
    ----------
    rule : str
        A key of ``RULES``.
    task : {"classifier", "regressor"}
    params : mapping
        All parameters of the estimator.
    owner : str
        The estimator that has the parameters, for messages.
    """

    rule: str
    task: Task
    params: Mapping[str, Any]
    owner: str

    def __post_init__(self) -> None:
        """Give the loss our name."""
        object.__setattr__(self, "params", core_args.canonical(self.params))

    def checked(self, before: FittedState | None = None) -> dict[str, Any]:
        """Check all parameters; return those that learners are built from.

        If training continues from `before`, the returned parameters must not have changed.
        """
        validate.check(self.rule, self.task, self.params, self.owner)
        params = core_args.learner_parameters(self.rule, self.params)
        if before is None:
            return params
        if before.final:
            raise ParameterError(
                f"its training cannot continue, because {why_final(before)}",
                owner=self.owner,
                hint=("fit again without ", setting("warm_start")),
            )
        for name, value in before.requested.items():
            if params[name] != value:
                raise ParameterError(
                    (setting(name), f" was {value!r} when training started, and cannot change to "
                     f"{params[name]!r}"),
                    owner=self.owner,
                    parameter=name,
                    value=params[name],
                    hint=("fit again without ", setting("warm_start")),
                )  # fmt: skip
        return params

    @property
    def loss(self) -> str:
        """Name of the loss."""
        return core_args.loss_of(self.rule, self.params)

    def seed(self, source: Source | MatrixSource, run: RunOptions) -> int:
        """Return the seed of the shuffling."""
        if isinstance(source, MatrixSource):
            return seed_of(self.params["random_state"], self.owner)
        if run.seed is not None:
            return run.seed
        return stream_seed(self.params["random_state"], self.owner)

    def hooks(self, mean: Any = None) -> Hooks:
        """Return the extra training steps of the rule; its module is imported only if needed.

        `mean` is the mean of the rows to come, if rows are centred and it is known.
        """
        module = RULES[self.rule].hooks
        if not module:
            return Hooks()
        make: MakeHooks = importlib.import_module(f"thresher.training.{module}").make_hooks
        return make(self.params, mean)

    def plan(
        self, source: Source | MatrixSource, before: FittedState | None, **given: Any
    ) -> TrainingPlan:
        """Return the plan for a source; `given` are the other arguments of ``resolve``."""
        params = {**self.params, **({} if before is None else before.params)}
        if before is None and source.keeps_names and source.bits is None:
            params = {**params, **({"store": "hashed"} if params.get("store") == "dense" else {})}
        if before is not None:
            given["standardised"] = before.standardised
            if "n_jobs" in self.params:  # it may change while training continues
                params["n_jobs"] = self.params["n_jobs"]
        return TrainingPlan.resolve(self.rule, self.task, params, source, owner=self.owner, **given)

    def records(self, plan: TrainingPlan, before: FittedState | None) -> Records:
        """Return the records of a run, which start with those of `before`."""
        watch = watch_for(self.rule, 0 if before is None else before.outputs_steps)
        arguments = plan.average, plan.target, watch, self.params["callback"]
        if before is None:
            return Records(*arguments)
        return Records(*arguments, before.history or (), before.recorded)


def fit(
    spec: Specification,
    source: Source | MatrixSource,
    run: RunOptions,
    *,
    valid: Source | MatrixSource | None = None,
    classes: Any = None,
    known: Labels | None = None,
    before: FittedState | None = None,
    onward: bool = False,
    multilabel: str | None = None,
) -> FittedState:
    """Train in passes, and return the result.

    Parameters
    ----------
    spec : Specification
    source : Source or MatrixSource
    run : RunOptions
    valid : Source or MatrixSource, optional
        Rows to compute the loss on after each pass.
    classes : array, "binary" or "arriving", optional
        As for `TrainingPlan.resolve`.
    known : Labels, optional
        The labels, if they are known.
    before : FittedState, optional
        The state to continue from (`warm_start`).
    onward : bool
        Whether the rows are further rows of the last pass of `before`, not another pass.
    multilabel : {"", "dense", "sparse"}, optional
        Format of the labels; by default that of the source.
    """
    requested = spec.checked(before)
    check_scaled(source, spec.params, spec.owner)
    valid = same_scale(source, valid)
    if run.checkpoint is not None and run.every < float("inf"):
        check_replaceable(run.checkpoint)
    seed = spec.seed(source, run)
    dtype = core_args.rows_dtype(spec.rule, spec.params)
    source = shuffled_rows(source, spec.params["shuffle"], seed, dtype, run.observer)
    first_names = collector(source) if run.names else None
    if onward and before is not None:
        check_names(before, source, spec.owner)
    plan = spec.plan(source, before, classes=classes, known=known, seed=seed)
    if spec.params.get("lanes") == "auto" and plan.params["lanes"] != 12:
        run.observer.tell("note", message=fewer_lanes(plan.labels.outputs))
    check_validation_metric(run.metric, valid, plan, source.multilabel)
    capacity = capacity_of(plan, before)
    trainer = Trainer(
        plan,
        source,
        run,
        outputs=None if before is None else continued_outputs(before, plan, capacity, onward),
        hooks=spec.hooks() if before is None else copy(before.hooks),
        records=spec.records(plan, before),
        capacity=capacity,
        valid=valid,
        order=OrderWatch(before.order if onward and before is not None else None),
    )
    trainer.first_names = first_names
    if onward and before is not None:
        check_width(before, plan)
        for note in kept_values(before):
            run.observer.tell("note", message=note)
    if before is not None:
        trainer.passes_before = before.passes - (1 if onward else 0)
        trainer.origin = before.origin
        if onward and before.kinds:
            trainer.kinds = {**source.kinds, **before.kinds}
    if valid is not None and not valid.rereadable and plan.passes > 1:
        raise ReadOnceError(
            ("rows of ", setting("eval_set"), f" are read after each pass, and {valid} can be read "
             "only once"),
            source=str(valid),
            owner=spec.owner,
            parameter="eval_set",
        )  # fmt: skip
    if run.resume and not trainer.resume():
        message = f"no checkpoint {run.checkpoint}: {spec.rule} starts from the beginning"
        run.observer.tell("note", message=message)
    trainer.run()
    passes = trainer.number + trainer.passes_before
    try:
        first = before is None and not trainer.older
        trainer.hooks.conclude(trainer, first, trainer.complete)
        refitted = _refitted(spec, trainer, onward) if trainer.refits else None
        state = _state(spec, trainer, requested, passes, before, multilabel)
        state.runs += onward
        state.refit = refitted
        if run.names:
            found = names_of(trainer, state)
            state.names = joined(found, state.names or {}) if onward else joined(state.names, found)
    except Stopped:  # while rows were read again
        trainer.interrupt()
    last = state.history[-1] if state.history else None
    state = unscaled(state, source)
    empty = isinstance(source, MatrixSource) and nonzeros(source.block.X) == 0
    if last is not None and last.nonzeros == 0 and not empty:
        run.observer.warn(without_weights(spec.owner, RULES[spec.rule].penalty))
    return state


def learn_once(
    spec: Specification,
    source: Source | MatrixSource,
    before: FittedState | None,
    *,
    classes: Any = None,
    known: Labels | None = None,
    mean: Any = None,
    multilabel: str | None = None,
) -> tuple[FittedState | None, BaseException | None]:
    """Learn rows once, after those of `before`; return the state to keep, and an error to raise.

    The rows before a bad row count: then both a state and an error are returned. If there is no
    `before`, or no row was learned, only the error is returned.

    Parameters
    ----------
    spec, source, before, classes, known, multilabel
        As for `fit`.
    mean : array, optional
        The mean of the rows to come, if rows are centred.
    """
    requested = spec.checked(before)
    refuse_scaled(source, spec.owner, "partial_fit sees each row once; use fit")
    if before is not None:
        refuse_numbers(before, source, spec.owner)
    plan = spec.plan(source, before, classes=classes, known=known, once=True)
    capacity = capacity_of(plan, before)
    outputs = None if before is None else for_any_feature(before.outputs, plan, capacity)
    trainer = Trainer(
        plan,
        source,
        RunOptions(),
        outputs=outputs,
        hooks=spec.hooks(mean) if before is None else before.hooks,
        records=spec.records(plan, before),
        capacity=capacity,
        order=OrderWatch(None if before is None else before.order),
    )
    trainer.first_names = collector(source)
    if source.keeps_names:
        trainer.names = (None if before is None else before.seen_names) or NameCache()
    if trainer.outputs.scale is not None:
        trainer.outputs.scale.fixed = False  # new rows count
    if before is not None:
        trainer.records.watch = before.watch if RULES[spec.rule].diverges else None
        if before.kinds:
            trainer.kinds = {**source.kinds, **before.kinds}
    if plan.refits and (before is None or before.refit is not None):  # once, not in each call
        why = "partial_fit sees each row once"
        trainer.options.observer.warn(message_of(spec.owner, why))
    passes = max(1, 0 if before is None else before.passes)
    failure: BaseException | None = None
    steps = trainer.records.steps
    try:
        trainer.once()
    except BaseException as error:
        failure = error
    if failure is not None and (before is None or trainer.records.steps == steps):
        return None, failure
    trainer.hooks.conclude(trainer, first=False, complete=False)
    state = _state(spec, trainer, requested, passes, before, multilabel)
    if source.keeps_names:
        state.seen_names = trainer.names
        if before is not None and before.reading:
            state.reading = before.reading
    elif failure is None:
        state.names = joined(state.names, names_of(trainer, state))
    return state, failure


def _refitted(spec: Specification, trainer: Trainer, onward: bool) -> Refit | None:
    """Learn the weights kept by target_nnz again; None: they stay as they are."""
    plan, records, observer = trainer.plan, trainer.records, trainer.options.observer
    kept = trainer.outputs.outputs(plan.average, plan.target)
    if not any(len(output.keys) for output in kept):
        return None
    why = "the rows before are not read again" if onward else obstacle(plan, trainer.source)
    if why:
        observer.warn(message_of(spec.owner, why))
        return None
    found = refit(trainer, kept)
    observer.tell("note", message=str(found))
    if found.outputs is not None and records.history and trainer.passes_kept == trainer.number:
        last, valid = records.history[-1], trainer.valid
        loss = None if valid is None or not valid.rereadable else last.valid_loss
        if loss is not None and valid is not None:
            loss = trainer.valid_loss(valid, found.outputs)
        nonzeros = sum(len(output.keys) for output in found.outputs)
        records.history[-1] = last._replace(nonzeros=nonzeros, valid_loss=loss)
    return found


def _state(
    spec: Specification,
    trainer: Trainer,
    requested: dict[str, Any],
    passes: int,
    before: FittedState | None,
    multilabel: str | None,
) -> FittedState:
    """Return the result of a trainer."""
    plan, source, records = trainer.plan, trainer.source, trainer.records
    if multilabel is None:
        multilabel = "sparse" if source.multilabel else ""
    return FittedState(
        rule=spec.rule,
        params=plan.learner_params,
        requested=requested,
        rows=plan.rows if before is None else before.rows,
        width=trainer.capacity.width or 2**64,
        history=records.history,
        passes=passes,
        outputs=trainer.outputs,
        hooks=trainer.hooks,
        recorded=records.recorded,
        watch=records.watch or DivergenceWatch(),
        order=None if trainer.order is None else trainer.order.order,
        classes=plan.labels.classes,
        multilabel=multilabel,
        names=None if before is None else before.names,
        kinds=dict(trainer.kinds) or None,
        reading=source.described(),
        standardised=plan.standardised,
        seen_names=None if before is None else before.seen_names,
        separate=before is not None and before.separate,
        runs=0 if before is None else before.runs,
        origin="" if before is None else before.origin,
    )
