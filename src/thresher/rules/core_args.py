"""Turns the parameters of a rule into arguments of the C++ core: numbers and words, by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from thresher.losses import LOSSES, Task, canonical_loss
from thresher.rules.table import RULES

OF_THE_FIT = ("n_jobs", "refit")  # parameters of rules that their learners do not have
_UNKNOWN_STEPS = 20_000  # for a rate that depends on the number of steps, if it is unknown


def stabilized_parameters(
    params: Mapping[str, Any], seed: int, rows: int | None
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the core's arguments for the stabilized rule: numbers and words, by name.

    `rows` is the number of rows, or None if it is unknown.
    """
    robust = params["variant"] == "robust"
    auto = {
        "rejection": 0.5 if robust else 0.7,
        "min_updates": (5 if rows is None else min(5, 1 + rows // 50)) if robust else 0,
        "eta0": RULES["stabilized"].auto_eta[params["loss"]] if robust else 0.1,
    }
    numbers = {
        name: float(auto[name] if params[name] == "auto" else params[name])
        for name in ("rejection", "min_updates", "eta0", "keep", "paths", "annealing", "burst",
                     "bursts")
    }  # fmt: skip
    numbers |= {"seed": float(seed), "epsilon": 0.0, "quantile": 0.5}
    numbers["streams"] = float(rows is None)
    numbers["target"] = float(params["target_nnz"] or 0)
    numbers["burst_growth"] = float(params["burst_growth"] or 0)
    words = {name: str(params[name]) for name in ("loss", "count", "gravity_rule")}
    return numbers, words | {"shuffle": "once"}  # a path keeps its order, as published


def loss_of(rule: str, params: Mapping[str, Any]) -> str:
    """Return the name of the loss; a rule with a single loss has no parameter `loss`."""
    return str(canonical_loss(params.get("loss", RULES[rule].losses[0])))


def canonical(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters in which the loss has our name, not that of scikit-learn.

    Examples
    --------
    >>> canonical({"loss": "squared_error", "l1": 1.0})
    {'loss': 'squared', 'l1': 1.0}
    """
    found = dict(params)
    if "loss" in found:
        found["loss"] = canonical_loss(found["loss"])
    return found


def number_of(rule: str, params: Mapping[str, Any], name: str) -> float:
    """Return a parameter as a number: "auto" is replaced if it does not depend on the rows."""
    value = params[name]
    auto = RULES[rule].parameters[name].auto
    return float(auto if value == "auto" and auto is not None else value)


def with_numbers(rule: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters in which "auto" is replaced by the number that it always stands for.

    Where targets are not standardised, both give the same bits.
    """
    table = RULES[rule].parameters
    return {
        name: value if value != "auto" or name not in table or table[name].auto is None
        else table[name].auto
        for name, value in params.items()
    }  # fmt: skip


def epsilon_of(rule: str, params: Mapping[str, Any], standardised: bool = False) -> float:
    """Return the number for `epsilon`; 0 if the rule does not have it.

    `standardised`: targets are standardised, and "auto" is in units of their sd.
    """
    if standardised and params.get("epsilon") == "auto":
        return LOSSES[loss_of(rule, params)].auto_epsilon
    return number_of(rule, params, "epsilon") if "epsilon" in params else 0.0


def waits_for_rows(rule: str, params: Mapping[str, Any], standardised: bool) -> bool:
    """Tell whether the norms of the first rows decide the rate.

    If its "auto" also stands for a number, they decide it only where targets are standardised.
    """
    spec = RULES[rule]
    name = spec.rate_from_rows
    fixed = bool(name) and spec.own[name].auto is not None
    return params.get(name) == "auto" and (standardised or not fixed)


def standardises(rule: str, task: Task, params: Mapping[str, Any]) -> bool:
    """Tell whether targets are standardised: y' = (y - mean) / sd.

    They are if the task is a regression by a loss that scales with y, and no parameter that
    depends on the units of y has a number other than its default. As soon as the user gives one
    such number, all parameters are in the units of y.
    """
    if task != "regressor" or not LOSSES[loss_of(rule, params)].degree:
        return False
    if RULES[rule].standardises_in_core:
        return False
    return not any(
        parameter.fixes_units
        and not isinstance(value := params.get(name, "auto"), str)
        and value != parameter.default_for(task)
        for name, parameter in RULES[rule].parameters.items()
    )


def rows_dtype(rule: str, params: Mapping[str, Any]) -> str:
    """Return the number type in which a cache stores rows for a rule: that of its weights.

    It is float64 if the rule needs all rows at once, or their mean before the first step.
    """
    if not RULES[rule].streams or params.get("center"):
        return "float64"
    return str(params.get("dtype", "float64"))


def learner_parameters(rule: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a learner is built from; they cannot change afterwards."""
    names = ("loss", "epsilon", "quantile", "fit_intercept", "store", "dtype", *RULES[rule].own)
    known = canonical(params)
    return {name: known[name] for name in names if name in known and name not in OF_THE_FIT}


def core_parameters(
    rule: str,
    params: Mapping[str, Any],
    rows: int | None,
    width: int = 1,
    standardised: bool = False,
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the core's arguments: numbers (flags are 0 and 1) and words, by name.

    `rows` is the number of rows, each as often as its weight repeats it, or None if it is unknown.
    `width` is the number of features; the norm of mirror descent depends on it. `standardised`:
    targets are standardised.
    """
    spec = RULES[rule]
    values: dict[str, Any] = {"loss": spec.losses[0], "epsilon": 0.0, "quantile": 0.5}
    values |= {name: params[name] for name in (*values, "fit_intercept") if name in params}
    values |= {name: params[name] for name in spec.own if name not in OF_THE_FIT}
    values |= dict(spec.fixed)
    if values["epsilon"] == "auto" and "lanes" not in values:
        values["epsilon"] = epsilon_of(rule, values, standardised)
    for name, value in values.items():
        parameter = spec.parameters.get(name)
        if value == "auto" and parameter is not None and parameter.auto is not None:
            values[name] = parameter.auto
    for name, core_name in spec.core_names.items():
        values[core_name] = values.pop(name)
    for name in ("gravity", "l1"):
        if name in values:
            values["fading"] = values[name] == "auto" and rows is None
            if values[name] == "auto":
                unknown = _UNKNOWN_STEPS if "threshold" in values else 1
                values[name] = spec.auto_penalty / (rows or unknown)
                if "threshold" in values:
                    values["threshold"] = "scaled"
    if isinstance(values.get("p"), str):
        values["p"] = max(2.0, float(values["p"].removesuffix("ln")) * math.log(width))
    loss = LOSSES[values["loss"]]
    eta = spec.auto_eta.get(loss.name, loss.auto_eta)
    if "p" in values and loss.largest_slope is not None:
        eta *= values["p"] - 1.0
    for name, auto in (
        ("eta0", eta),
        ("strength", loss.auto_strength),
    ):
        if name in values:
            values["relative"] = values[name] == "auto"
            if values["relative"]:
                values[name] = auto
    values.pop("passes", None)
    if "lanes" in values:
        values["lanes"] = 12 if values["lanes"] == "auto" else values["lanes"]
        values["relative_epsilon"] = values["epsilon"] == "auto"
        if values["relative_epsilon"]:
            values["epsilon"] = 1.0
    words = {name: value for name, value in values.items() if isinstance(value, str)}
    number_values = {
        name: float(value)
        for name, value in values.items()
        if name not in words and value is not None and name != "levels"
    }
    return number_values, words


def rate_for(
    rule: str, task: Task, params: Mapping[str, Any], norm: float, steps: int | None = None
) -> float:
    """Return the parameter `rate_from_rows` of a rule for rows of this norm.

    The first step of FTRL or AdaGrad changes each weight of a row by about alpha, so it changes the
    prediction by about alpha times the squared norm: rows with many features need a smaller rate.
    Steps of 1 / (alpha t) suit the rows if the last of `steps` steps is about 1 / norm^2; with a
    loss whose slope has no bound, the first steps must not be much longer than that (R-14.10). An
    update of the perceptron changes the prediction of its row by eta0 times the squared norm.

    Examples
    --------
    >>> rate_for("adagrad", "classifier", {"loss": "logistic"}, norm=4.0)
    0.25
    >>> rate_for("averaged-sgd", "classifier", {"loss": "logistic"}, norm=1.0, steps=1000)
    0.002
    """
    spec = RULES[rule]
    factor = spec.auto_rate.get(task, 1.0)
    if spec.rate_from_rows == spec.inverse_rate:
        bounded = LOSSES[loss_of(rule, params)].largest_slope is not None
        factor = max(factor / (steps or _UNKNOWN_STEPS), 0.0 if bounded else 0.1)
    elif spec.norm_power > 0:
        factor *= float(params["eta0"])
    rate = factor * norm**spec.norm_power
    return min(max(float(f"{rate:.2g}"), 1e-30), 1e30)
