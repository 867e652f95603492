"""The public interface as lines of text: names, parameters with defaults, attributes, options.

`make api` writes the lines to `tests/public_api.txt`; `tests/test_public_api.py` compares.
`docs/stability.md` says what is public.
"""

from __future__ import annotations

import builtins
import enum
import importlib
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from support.commands import COMMANDS, context
from thresher import errors
from thresher.cli.render.help import options_of
from thresher.losses import LOSSES
from thresher.rules import RULES
from thresher.serving import Limits
from thresher.serving.openapi import description

RECORD = Path(__file__).resolve().parents[1] / "public_api.txt"
HEAD = (
    "# The public interface. `make api` writes this file; docs/stability.md says what it is for.\n"
)

# Their `__all__` is public.
MODULES = (
    "thresher",
    *(f"thresher.{name}" for name in ("certificates", "comparison", "datasets", "discovery")),
    *(f"thresher.{name}" for name in ("distributed", "errors", "evaluation", "health", "mlflow")),
    *(f"thresher.{name}" for name in ("plots", "preprocessing", "race", "search", "serving")),
    "thresher.stability",
)
# Classes of results that have no name in these modules.
RESULTS = (
    "thresher.model.explanation.Contribution",
    "thresher.model.explanation.Explanation",
    "thresher.model.frontier.Dot",
    "thresher.model.frontier.Frontier",
    "thresher.model.model_changes.Change",
    "thresher.model.model_changes.ModelChanges",
)
# Names without an underscore that only other modules of the package use.
INTERNAL = ("amend", "hooks_of_pickle", "set_columns", "source_of", "state_", "take", "worded")
# Methods with a double underscore that are called by users, not by Python.
SPECIAL = ("__call__", "__len__", "__iter__", "__getitem__")


def lines() -> list[str]:
    """Return all lines of the record, sorted. What has two names is described under the first."""
    found: set[str] = set()
    first: dict[int, str] = {}
    for path in (*names_of_modules(), *RESULTS):
        module, _, name = path.rpartition(".")
        thing = getattr(importlib.import_module(module), name)
        known = first.setdefault(id(thing), path)
        found.update(of_object(path, thing) if known == path else [f"name {path} of {known}"])
    found.update(of_commands())
    found.update(of_tables())
    return sorted(found)


def names_of_modules() -> list[str]:
    """Return the names in `__all__` of all modules."""
    return [
        f"{module}.{name}"
        for module in MODULES
        for name in sorted(importlib.import_module(module).__all__)
        if name != "__version__"
    ]


def of_object(path: str, thing: Any) -> Iterator[str]:
    """Return the lines of a module, class, function or constant."""
    if inspect.ismodule(thing):
        yield f"module {path}"
    elif inspect.isclass(thing):
        yield from of_class(path, thing)
    elif callable(thing):
        yield f"function {path}"
        yield from of_parameters(path, thing)
    else:
        yield f"constant {path}"


def of_class(path: str, cls: type) -> Iterator[str]:
    """Return the lines of a class: its bases, parameters, methods and attributes.

    Left out is what comes from other packages, as `get_params` of scikit-learn.
    """
    above = cls.__mro__[1:-1]
    kinds = [base.__name__ for base in above if base.__name__ in (*errors.__all__, *vars(builtins))]
    yield f"class {path}" + (f" is {', '.join(kinds)}" if kinds else "")
    if issubclass(cls, enum.Enum):
        yield from (f"member {path}.{name}" for name in cls.__members__)
        return
    if not issubclass(cls, BaseException):
        yield from of_parameters(path, cls)
    for name in dir(cls):
        if name in INTERNAL or (name.startswith("_") and name not in SPECIAL):
            continue
        if re.fullmatch(r"set_.*_request", name):  # scikit-learn makes these
            continue
        home = next(base for base in cls.__mro__ if name in vars(base))
        if home.__module__.startswith("thresher"):
            yield from of_member(f"{path}.{name}", vars(home)[name], getattr(cls, name))
    for name in getattr(cls, "__annotations__", {}):
        if not name.startswith("_") and name not in INTERNAL:
            yield f"attribute {path}.{name}"
    for name in documented_attributes(cls):
        yield f"attribute {path}.{name}"


def of_member(path: str, stored: Any, found: Any) -> Iterator[str]:
    """Return the line of a method or an attribute of a class."""
    function = found if callable(found) else None
    if isinstance(stored, property) or function is None:
        yield f"attribute {path}"
        return
    try:
        shown = [shown_parameter(p) for p in parameters(function) if p.name != "self"]
    except ValueError:  # of the core
        shown = ["..."]
    yield f"method {path}({', '.join(shown)})"


def of_parameters(path: str, function: Any) -> Iterator[str]:
    """Return a line for each parameter. Its position is shown if it may be given by position."""
    try:
        found = parameters(function)
    except ValueError:  # of the core
        return
    for position, parameter in enumerate(found, 1):
        by_name = parameter.kind is parameter.KEYWORD_ONLY
        where = "by name" if by_name else f"position {position}"
        yield f"parameter {path}({shown_parameter(parameter)}) {where}"


def parameters(function: Any) -> list[inspect.Parameter]:
    """Return the parameters of a function."""
    return list(inspect.signature(function).parameters.values())


def shown_parameter(parameter: inspect.Parameter) -> str:
    """Return the name of a parameter with its default."""
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
    shown = stars.get(parameter.kind, "") + parameter.name
    if parameter.default is parameter.empty:
        return shown
    default = parameter.default
    if inspect.isclass(default) or inspect.isfunction(default):
        return f"{shown}={default.__name__}"
    return f"{shown}={re.sub(' object at 0x[0-9a-f]+', '', repr(default))}"


def documented_attributes(cls: type) -> Iterator[str]:
    """Return the names in the section Attributes of a docstring."""
    text = inspect.cleandoc(cls.__doc__ or "")
    section = re.search(
        r"^Attributes\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL
    )
    for names in re.findall(r"^(\w[\w, ]*?) ?:", section[1] if section else "", re.MULTILINE):
        yield from names.split(", ")


def of_commands() -> Iterator[str]:
    """Return the lines of all commands and their options."""
    for command in COMMANDS:
        yield f"command thresher {command}"
        for option in options_of(*context(command)):
            extra = f"  {option.extra}" if option.extra else ""
            yield f"option thresher {command} {option.shown}{extra}"


def of_tables() -> Iterator[str]:
    """Return the lines of rules, losses, and addresses of the server."""
    for name, rule in RULES.items():
        yield f"rule {name}"
        yield from (f"rule {name} --loss {loss}" for loss in rule.losses)
    yield from (f"loss {name}" for name in LOSSES)
    addresses = description(Limits(), learns=True, token=True)["paths"]
    for address, methods in addresses.items():
        yield from (f"address {method.upper()} {address}" for method in methods)


def write() -> None:
    """Write the record."""
    RECORD.write_text(HEAD + "".join(f"{line}\n" for line in lines()), encoding="utf-8")


def recorded() -> list[str]:
    """Return the lines of the record."""
    return RECORD.read_text(encoding="utf-8").removeprefix(HEAD).splitlines()


def difference(before: Iterable[str], now: Iterable[str]) -> str:
    """Return a message that says which lines have gone and come; empty if there are none."""
    gone, come = set(before) - set(now), set(now) - set(before)
    if not gone | come:
        return ""
    listed = [*(f"  - {line}" for line in sorted(gone)), *(f"  + {line}" for line in sorted(come))]
    harm = (
        "Lines with - are gone: programs that use them break. Deprecate them first\n"
        "(docs/stability.md), or say in CHANGELOG.md under Changed or Removed what to do instead.\n"
    )
    return (
        "The public interface has changed (tests/public_api.txt):\n"
        + "\n".join(listed)
        + "\n"
        + (harm if gone else "")
        + "If you want this change, run `make api`, and commit the record with it."
    )


if __name__ == "__main__":
    write()
