"""Write the model of `train`, with the learner's state if --keep-state was given."""

from __future__ import annotations

from thresher.cli.options.parsed import TrainOptions
from thresher.cli.steps.default_rule import DEFAULT_RULE, default_rule
from thresher.errors import ParameterError
from thresher.model.model import Model
from thresher.rules import RULES
from thresher.training.observer import Observer


def check_keep_state(options: TrainOptions) -> None:
    """Raise ParameterError if the rule has no state that a file can hold.

    Parameters
    ----------
    options : TrainOptions
    """
    if not options.keep_state:
        return
    if options.rule in RULES and not RULES[options.rule].streams:
        able = ", ".join(rule for rule in RULES if RULES[rule].streams)
        raise ParameterError(
            f"--keep-state cannot be used with the rule {options.rule}: only rules that learn row "
            f"by row can go on from a file: {able}"
        )
    if options.scale is not None:
        why = "--keep-state cannot be combined with --scale: the learners know only scaled rows"
        begins = options.from_model is None  # else the rule is that of the model
        if begins and (options.rule or default_rule(options)[0]) == DEFAULT_RULE:
            why += f"; leave out --scale: the rule {DEFAULT_RULE} does not need it"
        raise ParameterError(why)


def write_model(model: Model, options: TrainOptions, observer: Observer) -> None:
    """Write the model; if its state cannot be kept, warn, and write it without.

    Parameters
    ----------
    model : Model
    options : TrainOptions
    observer : Observer
    """
    if options.keep_state:
        try:
            model.save(options.model, state=True)
            return
        except ParameterError as error:
            observer.warn(f"--keep-state: {error}; the file has only the model")
    model.save(options.model)
