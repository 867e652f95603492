"""Class docstrings whose list of parameters comes from the table of rules."""

from __future__ import annotations

import textwrap
from typing import TypeVar

from thresher import rules
from thresher.estimators.linear import LinearEstimator
from thresher.losses import LOSSES
from thresher.rules.parameter import Parameter
from thresher.rules.rule import Rule

E = TypeVar("E", bound=type[LinearEstimator])

ATTRIBUTES = """\
Attributes
----------
model_ : thresher.Model
    Sparse weights, names, history; `model_.top(20)`, `model_.save(path)`.
coef_ : array of shape (outputs, features)
    Weights; CSR after `sparsify()` or with store="hashed". Computed when first used.
intercept_ : array of shape (outputs,)
history_ : list of thresher.Progress
{history}
n_iter_ : int
    Number of passes made.
n_features_in_ : int
feature_names_in_ : array
    Names of the columns, if X has them."""

HISTORY = """\
    Examples, mean progressive loss, nonzeros, rate and seconds; one record each time the number of
    examples has doubled, and one after every pass."""
HISTORY_OF_SOLVERS = """\
    Examples (rows times passes), objective, nonzeros, rate and seconds; one record for each
    pass."""
REFIT = """
refit_ : thresher.training.refit.Refit
    With target_nnz: the penalties of the refit, their held-out losses, and the choice; not after
    `partial_fit`."""


def documented(cls: E) -> E:
    """Fill the {parameters} and {attributes} of a class docstring from the table of rules."""
    rule = rules.RULES[cls.rule]
    lines = _about_units(rule) if cls.task == "regressor" else []
    lines += ["Parameters", "----------"]
    for name, parameter in rule.parameters.items():
        if parameter.of_classifiers and cls.task == "regressor":
            continue
        default = parameter.default_for(cls.task)
        symbol = f" The paper's {parameter.symbol}." if parameter.symbol else ""
        lines.append(
            f"{name} : {_type(name, parameter, rule.losses_for(cls.task))}, default={default!r}"
        )
        lines += textwrap.wrap(
            parameter.help + symbol, 92, initial_indent="    ", subsequent_indent="    "
        )
    streams = hasattr(cls, "partial_fit")
    attributes = ATTRIBUTES.replace("{history}", HISTORY if streams else HISTORY_OF_SOLVERS)
    if rule.refit_rule:
        attributes += REFIT
    if cls.task == "classifier":
        attributes += "\nclasses_ : array\n    Labels."
    assert cls.__doc__ is not None
    fill = {
        "parameters": "\n".join(lines),
        "attributes": attributes,
        "paper": rule.paper,
    }
    doc = cls.__doc__
    for key, text in fill.items():
        doc = doc.replace("{" + key + "}", textwrap.indent(text, "    ").lstrip())
    cls.__doc__ = doc
    return cls


def _about_units(rule: Rule) -> list[str]:
    """Return a paragraph on the units of y; empty if the rule standardises targets itself."""
    numbers = [name for name, parameter in rule.parameters.items() if parameter.fixes_units]
    if rule.standardises_in_core or not numbers:
        return []
    last = f" or {numbers[-1]}" if len(numbers) > 1 else numbers[-1]
    fixed = [n for n in rule.losses_for("regressor") if not LOSSES[n].degree]
    losses = f", or the loss is {' or '.join(fixed)}" if fixed else ""
    how = "running mean and standard deviation" if rule.streams else "mean and standard deviation"
    text = (
        f"Predictions follow any change of the units of y: targets are standardised by their {how} "
        f"(without an intercept, by their root mean square). If a number other than the default is "
        f"given for {', '.join(numbers[:-1])}{last}{losses}, they are not, and all parameters are "
        f"in the units of y."
    )
    return [*textwrap.wrap(text, 96), ""]


def _type(name: str, parameter: Parameter, losses: tuple[str, ...]) -> str:
    if name == "loss":
        return "{" + ", ".join(repr(loss) for loss in losses) + "}"
    if parameter.kind == "choice":
        return "{" + ", ".join(repr(choice) for choice in parameter.choices) + "}"
    if parameter.kind == "number" and parameter.choices:
        return "float or " + " or ".join(repr(choice) for choice in parameter.choices)
    words = {"number": "float", "integer": "int", "flag": "bool", "object": "object"}[
        parameter.kind
    ]
    return words + (" or None" if parameter.optional else "")
