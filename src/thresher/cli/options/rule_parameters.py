"""Options for the parameters of the rules, generated from the table of rules."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_type_hints

import typer

from thresher.cli.render.errors import option_of
from thresher.errors import ParameterError
from thresher.losses import Task
from thresher.rules import RULES
from thresher.rules.parameter import Parameter

# No option is generated for these: they are Python objects, or all rules share their option.
_NOT_GENERATED = frozenset(
    (
        *("callback", "verbose", "warm_start", "levels", "certify"),
        *("class_weight", "random_state", "n_jobs", "passes", "shuffle"),
        *("store", "loss", "tol", "patience"),
    )
)


def is_option(name: str) -> bool:
    """Tell whether an option is generated for a parameter."""
    return name not in _NOT_GENERATED


def _of_rules(name: str) -> dict[str, Parameter]:
    """Return the parameters of this name, by rule."""
    return {rule: spec.parameters[name] for rule, spec in RULES.items() if name in spec.parameters}


def _help(name: str) -> str:
    """Return the help text of a parameter, with its meaning and default for each rule."""
    by_text: dict[tuple[str, str], list[str]] = {}
    for rule, parameter in _of_rules(name).items():
        text = parameter.help + ("" if parameter.kind == "flag" else f" ({parameter.allowed()})")
        default = parameter.default if parameter.shell_default is None else parameter.shell_default
        by_text.setdefault((text, str(default)), []).append(rule)
    everywhere = len(_of_rules(name)) >= 6 and len(by_text) == 1
    return " ".join(
        f"{'' if everywhere else ', '.join(rules) + ': '}{text} Default: {default.lower()}."
        for (text, default), rules in by_text.items()
    )


def takes_parameters(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each parameter of a rule; the command gets those given as `chosen`."""
    names = [n for n in dict.fromkeys(n for r in RULES.values() for n in r.parameters)]
    names = [name for name in names if name not in _NOT_GENERATED]
    hints = get_type_hints(command, include_extras=True)
    own = [
        p.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[p.name])
        for p in inspect.signature(command).parameters.values()
        if p.name != "chosen"
    ]
    made = []
    for name in names:
        flag = next(iter(_of_rules(name).values())).kind == "flag"
        shown = f"{option_of(name)}/{option_of('no_' + name)}" if flag else option_of(name)
        settings = typer.Option(
            shown,
            help=_help(name),
            rich_help_panel="Parameters of the rules",
            metavar=None if flag else "VALUE",
            show_default=False,
        )
        kind: Any = Annotated[bool | None if flag else str | None, settings]
        made.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        )

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        chosen = {name: kwargs.pop(name, None) for name in names}
        given = {name: value for name, value in chosen.items() if value is not None}
        command(*args, chosen=given, **kwargs)

    wrapped.__signature__ = inspect.Signature([*own, *made])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in [*own, *made]}
    return wrapped


def parameters(
    rule: str, task: Task, chosen: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all parameters of a rule: the values of `chosen`, and defaults for the others.

    Raises ParameterError if the rule does not have a parameter, or a value is not allowed.
    """
    table = RULES[rule].parameters
    shell = RULES[rule].streams  # only these rules have other defaults than in Python
    values = {name: parameter.default_for(task, shell) for name, parameter in table.items()}
    values |= {name: value for name, value in defaults.items() if name in table}
    for name, text in chosen.items():
        if name not in table:
            known = ", ".join(option_of(n) for n in table if n not in _NOT_GENERATED)
            raise ParameterError(
                f"{option_of(name)} is not a parameter of the rule {rule}; it has {known}"
            )
        values[name] = value_of(table[name], text, f"{option_of(name)}")
    return values


def value_of(parameter: Parameter, text: Any, owner: str) -> Any:
    """Return the value of a parameter that is given as text."""
    if not isinstance(text, str):  # from a checkpoint
        return text
    for choice in parameter.choices:  # some are numbers
        if text == str(choice):
            return choice
    if text.lower() == "none" and parameter.optional:
        return None
    value: Any = None
    with contextlib.suppress(ValueError):
        value = int(text) if parameter.kind == "integer" else float(text)
    if parameter.kind in ("integer", "number") and value is not None and parameter.accepts(value):
        return value
    raise ParameterError(f"{owner} must be {parameter.allowed()}; got {text!r}")


def task_of(rule: str, loss: str | None, labelled: bool) -> Task:
    """Return the task: classifier if the labels are classes or the loss is only for classes.

    Parameters
    ----------
    rule : str
    loss : str or None
    labelled : bool
        Whether other options say that the labels are classes.
    """
    spec = RULES[rule]
    chosen = spec.losses[0] if loss is None else loss
    of_classes = set(spec.losses_for("classifier")) - set(spec.losses_for("regressor"))
    return "classifier" if labelled or chosen in of_classes else "regressor"
