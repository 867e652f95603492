"""From the words of the shell to an estimator: the rule, its parameters, classes and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from thresher.cli.options import parameters, task_of
from thresher.errors import ParameterError
from thresher.estimators import estimator_class
from thresher.losses import Task
from thresher.rules import RULES

if TYPE_CHECKING:
    from thresher.cli.train import Options

DEFAULT_RULE = "ftrl"


def estimator_of(options: Options, task: Task | None = None) -> Any:
    """Return the estimator that the options stand for, not fitted.

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
    if not RULES[rule].streams:  # its own tol is another, and it has no patience
        given["tol"] = None
    defaults = {name: value for name, value in given.items() if value is not None}
    made = estimator_class(rule, task)
    params, known = parameters(rule, task, options.chosen, defaults), made().get_params(deep=False)
    return made(**{name: value for name, value in params.items() if name in known})


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
