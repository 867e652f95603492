"""The rule of `thresher train` if none is given: one-pass, or FTRL where that cannot be used."""

from __future__ import annotations

from thresher.cli.options.parsed import TrainOptions
from thresher.cli.render.errors import option_of
from thresher.errors import ParameterError
from thresher.rules import RULES
from thresher.training.bank import LIMIT, bytes_of

DEFAULT_RULE = "one-pass"
OTHER_RULE = "ftrl"


def default_rule(options: TrainOptions) -> tuple[str, str]:
    """Return the rule for these options, and a note that says why it is not one-pass.

    Parameters
    ----------
    options : TrainOptions
        Their `rule` is not used.

    Examples
    --------
    >>> default_rule(TrainOptions(data=["rows.svm"], model="m"))
    ('one-pass', '')
    >>> default_rule(TrainOptions(data=["rows.svm"], model="m", passes=5))[0]
    'ftrl'
    """
    foreign = [name for name in options.chosen if name not in RULES[OTHER_RULE].parameters]
    if foreign and any(name not in RULES[DEFAULT_RULE].parameters for name in foreign):
        name = next(n for n in foreign if n not in RULES[DEFAULT_RULE].parameters)
        owners = ", ".join(rule for rule, spec in RULES.items() if name in spec.parameters)
        raise ParameterError(f"{option_of(name)} needs --rule: it is a parameter of {owners}")
    why = _obstacle(options)
    if not why:
        return DEFAULT_RULE, ""
    return OTHER_RULE, f"the rule is {OTHER_RULE}, because {why}"


def _obstacle(options: TrainOptions) -> str:
    """Return why one-pass cannot be used, or an empty text."""
    rule = RULES[DEFAULT_RULE]
    foreign = [name for name in options.chosen if name not in rule.parameters]
    bits = options.reading.get("bits")
    if options.ray is not None or options.workers is not None:
        return f"{DEFAULT_RULE} does not train on a cluster"
    if foreign:
        return f"{option_of(foreign[0])} was given"
    if options.loss is not None and options.loss not in rule.losses:
        return f"{DEFAULT_RULE} has no loss {options.loss}"
    if options.store == "nonzero":
        return f"{DEFAULT_RULE} has no store 'nonzero'"
    if (options.passes or 1) > 1 and not options.shuffle:
        return f"the passes of {DEFAULT_RULE} need --shuffle"
    if bits is not None and bytes_of(4, "float32", 1, 1 << bits) > LIMIT:
        return f"{DEFAULT_RULE} needs more than 2 GiB for 2^{bits} features"
    return ""
