"""`--from MODEL`: go on with the training of a model, with its rule, parameters and reading."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from thresher.cli.options.parsed import TrainOptions
from thresher.cli.options.values import classes_of
from thresher.cli.render.errors import option_of
from thresher.cli.steps.build_estimator import specification_of
from thresher.cli.steps.resume import class_weight_text, not_given
from thresher.data.read_options import ReadOptions
from thresher.errors import ParameterError
from thresher.model.model import Model, load
from thresher.rules import RULES, core_args
from thresher.training.fitted import FittedState
from thresher.training.from_model import continued, task_of

# Options of reading that decide the numbers and values of features, and the form of labels.
_DECIDE = ("bits", "interactions", "text", "ngrams", "missing", "dates", "multilabel", "zero_based")
_OF_FILES = ("format", "on_bad_line", "shuffle_buffer")  # other files may need other ones
_LISTS = ("interactions", "text", "ignore", "columns")


def continue_from(options: TrainOptions) -> tuple[TrainOptions, FittedState]:
    """Return the options, with those of a model where none were given, and the model's state.

    Parameters
    ----------
    options : TrainOptions
        With `from_model`.

    Raises
    ------
    ParameterError
        The model has no state, or the options differ from those that it was learned with.
    """
    file = str(options.from_model)
    for name in ("ray", "workers", "scale"):
        if getattr(options, name) is not None:
            raise ParameterError(f"--{name} cannot be combined with --from")
    model = load(file)
    try:
        state, spec = continued(model)
    except ParameterError as error:
        raise error.at(file) from None
    _check(file, "rule", spec.rule, options.rule)
    _check(file, "loss", model.loss, options.loss)
    _check_labels(file, model, options)
    reading = _reading(state)
    for name in _DECIDE:
        given = options.reading.get(name)
        if given is not None and given != getattr(ReadOptions(), name):
            _check(file, name, reading.get(name), given)
    own = {name: value for name, value in state.requested.items() if name not in ("loss", "store")}
    weights = spec.params.get("class_weight")
    options = replace(
        options,
        rule=spec.rule,
        task=task_of(model),
        loss=model.loss if len(RULES[spec.rule].losses) > 1 else None,
        chosen={**own, **options.chosen},
        store=options.store or state.requested.get("store"),
        class_weight=options.class_weight
        or class_weight_text(list(weights.items()) if isinstance(weights, dict) else weights),
        reading={**options.reading, **not_given(options, reading)},
    )
    if options.class_weight == "balanced":
        raise ParameterError(
            f"--class-weight balanced counts the classes of all rows, and those that {file} "
            f"learned are not read again; give CLASS:WEIGHT,..."
        )
    now = specification_of(options)
    for name, value in core_args.learner_parameters(now.rule, now.params).items():
        _check(file, name, state.requested[name], value)
    return options, state


def _check(file: str, name: str, before: Any, now: Any) -> None:
    """Raise ParameterError if an option differs from what the model was learned with."""
    if now is not None and now != before:
        shown = "without it" if before is None else f"with {before}"
        raise ParameterError(
            f"{option_of(name)} is {now}, and {file} was learned {shown}; training can only go on "
            f"with the same",
            parameter=name,
            value=now,
        )


def _check_labels(file: str, model: Model, options: TrainOptions) -> None:
    known = None if model.classes is None else model.classes.tolist()
    if known is None and (options.multiclass or options.classes is not None):
        option = "--multiclass" if options.multiclass else "--classes"
        raise ParameterError(f"{option} is for classes, and {file} predicts numbers")
    given = classes_of(options.classes)
    if given is not None and set(given) != set(known or ()):
        raise ParameterError(
            f"--classes are {', '.join(map(str, given))}, and those of {file} are "
            f"{', '.join(map(str, known or ()))}"
        )


def _reading(state: FittedState) -> Mapping[str, Any]:
    """Return how the rows before were read, as `scan` takes it."""
    found = {name: value for name, value in state.reading.items() if name not in _OF_FILES}
    return found | {
        name: tuple(json.loads(found[name] or "[]")) for name in _LISTS if name in found
    }
