"""Build an estimator from options: the rule, its parameters, classes and class weights."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from thresher.cli.options.parsed import TrainOptions
from thresher.cli.options.rule_parameters import parameters, task_of
from thresher.cli.options.values import class_weights_of, classes_of
from thresher.cli.steps.default_rule import default_rule
from thresher.errors import ParameterError
from thresher.losses import LOSSES, OTHER_LOSSES, SELECTABLE_LOSSES, Task
from thresher.model.model import Model
from thresher.rules import RULES
from thresher.training.fitting import Specification, fit
from thresher.training.run_options import RunOptions
from thresher.training.source_labels import known_labels

if TYPE_CHECKING:
    from thresher.data.source import Source
    from thresher.training.fitted import FittedState


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
    task = task or options.task or task_of(rule, options.loss, labelled(options))
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


def fitted_model(
    spec: Specification,
    source: Source,
    before: FittedState | None = None,
    keep_state: bool = False,
    **run: Any,
) -> Model:
    """Learn from a source; return the model.

    For a rule that learns row by row, no estimator is made: importing estimators takes a second.

    Parameters
    ----------
    spec : Specification
    source : Source
    before : FittedState, optional
        The training that goes on with these rows.
    keep_state : bool
        Whether the model can be saved with the learner's state.
    **run
        Arguments of the estimators' `fit`.
    """
    if not RULES[spec.rule].streams:
        found: Model = estimator_of(spec).fit(source, **run).model_
        return found
    valid, classes = run.pop("eval_set", None), run.pop("classes", None)
    known = None if before is None else known_labels(spec, source, before)
    given = replace(RunOptions.of(**run), all_names=keep_state)
    state = fit(
        spec, source, given, valid=valid, classes=classes, known=known,
        before=before, onward=before is not None,
    )  # fmt: skip
    model = state.model(spec.params)
    return model if keep_state else replace(model, learner=None)  # frees the learners


def check_loss(options: TrainOptions) -> None:
    """Raise ParameterError if the rule does not have the loss."""
    rule = options.rule or default_rule(options)[0]
    losses = RULES[rule].losses
    if len(losses) == 1:
        raise ParameterError(
            f"--loss cannot be used with the rule {rule}: its only loss is {losses[0]}"
        )
    if options.loss not in losses:
        raise ParameterError(unknown_loss(rule, options.loss, labelled(options)))


def labelled(options: TrainOptions) -> bool:
    """Tell whether options say that the labels are classes."""
    many = options.multiclass or bool(options.reading.get("multilabel"))
    return many or options.classes is not None


def unknown_loss(rule: str | None, loss: str | None, classes: bool) -> str:
    """Return what is wrong with a loss: those of the task at hand, and of the rule.

    Parameters
    ----------
    rule : str or None
        None: any rule.
    loss : str or None
    classes : bool
        Whether the labels are known to be classes.

    Examples
    --------
    >>> unknown_loss("one-pass", "log", True)
    "--loss must be logistic or squared with the rule one-pass; got 'log'"
    """
    having = SELECTABLE_LOSSES if rule is None else RULES[rule].losses
    of_classes = [name for name in having if "classifier" in LOSSES[name].tasks]
    of_numbers = [name for name in having if "regressor" in LOSSES[name].tasks]
    only = [name for name in of_classes if name not in of_numbers]
    known = f"{', '.join(only)} for classes, or {', '.join(of_numbers)} for numbers"
    if classes or not (only and of_numbers):
        names = of_classes or of_numbers
        known = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    with_rule = "" if rule is None else f" with the rule {rule}"
    hint = f"; {OTHER_LOSSES[str(loss)]}" if loss in OTHER_LOSSES else ""
    return f"--loss must be {known}{with_rule}; got {loss!r}{hint}"


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
