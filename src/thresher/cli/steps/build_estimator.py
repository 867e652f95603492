"""From the words of the shell to an estimator: the rule, its parameters, classes and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from thresher.cli.options.rule_parameters import parameters, task_of
from thresher.errors import ParameterError
from thresher.losses import Task
from thresher.model.model import Model
from thresher.rules import RULES
from thresher.training.fitting import Specification, fit
from thresher.training.run_options import RunOptions

if TYPE_CHECKING:
    from thresher.cli.commands.train import Options
    from thresher.data.source import Source

DEFAULT_RULE = "ftrl"


def specification_of(options: Options, task: Task | None = None) -> Specification:
    """Return the rule and the parameters that the options stand for.

    Parameters
    ----------
    options : Options
    task : {"classifier", "regressor"}, optional
        By default as the loss and the labels say.
    """
    rule = options.rule or DEFAULT_RULE
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
        "shuffle": "blocks" if options.shuffle else None,
        "store": options.store,
        "tol": 0.0 if options.tol is None and options.valid else options.tol,
        "patience": options.patience,
        "class_weight": _class_weight(options, task),
    }
    if not RULES[rule].streams:  # its tol is of the optimum, and needs no validation rows
        given["tol"] = options.tol
    if options.store not in (None, "auto") and "store" not in RULES[rule].parameters:
        raise ParameterError(
            f"--store does not go with the rule {rule}, which has a store of its own"
        )
    defaults = {name: value for name, value in given.items() if value is not None}
    if task not in RULES[rule].tasks:
        raise ParameterError(f"the rule {rule} is not one for a {task}")
    params = parameters(rule, task, options.chosen, defaults)
    return Specification(rule, task, params, f"the rule {rule}")


def estimator_of(spec: Specification) -> Any:
    """Return the estimator of a specification, not fitted."""
    from thresher.estimators import estimator_class  # it imports scikit-learn, which takes a second

    made = estimator_class(spec.rule, spec.task)
    known = made().get_params(deep=False)
    return made(**{name: value for name, value in spec.params.items() if name in known})


def fitted_model(spec: Specification, source: Source, **run: Any) -> Model:
    """Learn from a source; return the model.

    A rule that learns row by row does so without an estimator: it starts faster.

    Parameters
    ----------
    spec : Specification
    source : Source
    **run
        As of `fit` of the estimators.
    """
    if not RULES[spec.rule].streams:
        model: Model = estimator_of(spec).fit(source, **run).model_
        return model
    valid, classes = run.pop("eval_set", None), run.pop("classes", None)
    state = fit(spec, source, RunOptions.of(**run), valid=valid, classes=classes)
    return state.model(spec.params)


def check_loss(options: Options) -> None:
    """Raise ParameterError for a loss that the rule does not have."""
    rule = options.rule or DEFAULT_RULE
    losses = RULES[rule].losses
    if len(losses) == 1:
        raise ParameterError(f"--loss does not go with the rule {rule}, whose loss is {losses[0]}")
    if options.loss not in losses:
        raise ParameterError(
            f"--loss must be one of {', '.join(losses)} with the rule {rule}; got {options.loss!r}"
        )


def labels_of(options: Options) -> Any:
    """Return what is said of the labels, as `fit` takes it for `classes`."""
    found = classes_of(options)
    if found is not None:
        return found
    many = options.multiclass or options.reading.get("multilabel")
    return "arriving" if many else "binary"


def classes_of(options: Options) -> Sequence[Any] | None:
    """Return the classes that were given: numbers, or words where one of them is one."""
    if options.classes is None:
        return None
    words = options.classes.split(",")
    numbers = [_number(word) for word in words]
    return words if any(isinstance(number, str) for number in numbers) else numbers


def _number(word: str) -> Any:
    try:
        return float(word)
    except ValueError:
        return word


def _class_weight(options: Options, task: Task) -> dict[Any, float] | str | None:
    if options.class_weight is None:
        return None
    if task == "regressor":
        raise ParameterError("--class-weight needs classes; the loss is one for numbers")
    if options.reading.get("multilabel"):
        raise ParameterError("--class-weight does not go with --multilabel: rows have many labels")
    return weights_in(options.class_weight)


def weights_in(text: str) -> dict[Any, float] | str:
    """Return the weights of classes that a text has: by class, or "balanced"."""
    if text == "balanced":
        return text
    found: dict[Any, float] = {}
    for entry in text.split(","):
        word, _, weight = entry.rpartition(":")
        label = _number(word)
        try:
            found[label] = float(weight)
        except ValueError:
            found[label] = -1.0
        if not word or not 0 <= found[label] < float("inf"):
            raise ParameterError(
                f"--class-weight must be balanced, or CLASS:WEIGHT,..., weights >= 0; got {text!r}"
            )
    return found
