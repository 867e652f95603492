"""Build an estimator from options: the rule, its parameters, classes and class weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thresher.cli.options.parsed import TrainOptions
from thresher.cli.options.rule_parameters import parameters, task_of
from thresher.cli.options.values import class_weights_of, classes_of
from thresher.cli.steps.default_rule import default_rule
from thresher.errors import ParameterError
from thresher.losses import Task
from thresher.model.model import Model
from thresher.rules import RULES
from thresher.training.fitting import Specification, fit
from thresher.training.run_options import RunOptions

if TYPE_CHECKING:
    from thresher.data.source import Source


def specification_of(options: TrainOptions, task: Task | None = None) -> Specification:
    """Return the rule and its parameters.

    Parameters
    ----------
    options : TrainOptions
    task : {"classifier", "regressor"}, optional
        By default, the loss and the options for labels decide.
    """
    rule = options.rule or default_rule(options)[0]
    if rule not in RULES:
        raise ParameterError(parameter="rule", value=rule, allowed=f"one of {', '.join(RULES)}")
    if options.loss is not None:
        check_loss(options)
    many = options.multiclass or bool(options.reading.get("multilabel"))
    task = task or task_of(rule, options.loss, many or options.classes is not None)
    given = {
        "random_state": options.seed or 0,
        "loss": options.loss,
        "passes": options.passes,
        "shuffle": options.shuffle,
        "store": options.store,
        "tol": 0.0 if options.tol is None and options.valid else options.tol,
        "patience": options.patience,
        "class_weight": class_weight_of(options, task),
    }
    if not RULES[rule].streams:  # its tol is the tolerance of the optimum, without validation rows
        given["tol"] = options.tol
    if options.store not in (None, "auto") and "store" not in RULES[rule].parameters:
        raise ParameterError(f"--store cannot be used with the rule {rule}: its store is fixed")
    defaults = {name: value for name, value in given.items() if value is not None}
    if task not in RULES[rule].tasks:
        raise ParameterError(f"the rule {rule} has no {task}")
    params = parameters(rule, task, options.chosen, defaults)
    return Specification(rule, task, params, f"the rule {rule}")


def estimator_of(spec: Specification) -> Any:
    """Return the estimator of a specification, not fitted."""
    from thresher.estimators import estimator_class  # importing scikit-learn takes a second

    made = estimator_class(spec.rule, spec.task)
    known = made().get_params(deep=False)
    return made(**{name: value for name, value in spec.params.items() if name in known})


def fitted_model(spec: Specification, source: Source, **run: Any) -> Model:
    """Learn from a source; return the model.

    For a rule that learns row by row, no estimator is made: importing estimators takes a second.

    Parameters
    ----------
    spec : Specification
    source : Source
    **run
        Arguments of the estimators' `fit`.
    """
    if not RULES[spec.rule].streams:
        model: Model = estimator_of(spec).fit(source, **run).model_
        return model
    valid, classes = run.pop("eval_set", None), run.pop("classes", None)
    state = fit(spec, source, RunOptions.of(**run), valid=valid, classes=classes)
    return state.model(spec.params)


def check_loss(options: TrainOptions) -> None:
    """Raise ParameterError if the rule does not have the loss."""
    rule = options.rule or default_rule(options)[0]
    losses = RULES[rule].losses
    if len(losses) == 1:
        raise ParameterError(
            f"--loss cannot be used with the rule {rule}: its only loss is {losses[0]}"
        )
    if options.loss not in losses:
        raise ParameterError(
            f"--loss must be one of {', '.join(losses)} with the rule {rule}; got {options.loss!r}"
        )


def labels_of(options: TrainOptions) -> Any:
    """Return the argument `classes` of `fit`."""
    classes = classes_of(options.classes)
    if classes is not None:
        return classes
    many = options.multiclass or options.reading.get("multilabel")
    return "arriving" if many else "binary"


def class_weight_of(options: TrainOptions, task: Task) -> dict[Any, float] | str | None:
    """Return the weights of the classes; raise ParameterError if rows have no single classes."""
    if options.class_weight is None:
        return None
    if task == "regressor":
        raise ParameterError("--class-weight needs classes, but the loss is for numbers")
    if options.reading.get("multilabel"):
        raise ParameterError(
            "--class-weight cannot be used with --multilabel: a row has several labels"
        )
    return class_weights_of(options.class_weight)
