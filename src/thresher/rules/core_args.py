"""Turns the parameters of a rule into arguments of the C++ core: numbers and words, by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from thresher.losses import LOSSES
from thresher.rules.parameter import AUTO_GRAVITY
from thresher.rules.table import RULES


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
    return str(params.get("loss", RULES[rule].losses[0]))


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
    return {name: params[name] for name in names if name in params and name != "n_jobs"}


def core_parameters(
    rule: str, params: Mapping[str, Any], rows: int | None, width: int = 1
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the core's arguments: numbers (flags are 0 and 1) and words, by name.

    `rows` is the number of rows, or None if it is unknown. `width` is the number of features; the
    norm of mirror descent depends on it.
    """
    spec = RULES[rule]
    values: dict[str, Any] = {"loss": spec.losses[0], "epsilon": 0.0, "quantile": 0.5}
    values |= {name: params[name] for name in (*values, "fit_intercept") if name in params}
    values |= {name: params[name] for name in spec.own} | dict(spec.fixed)
    for name, core_name in spec.core_names.items():
        values[core_name] = values.pop(name)
    for name in ("gravity", "l1"):
        if name in values:
            values["fading"] = values[name] == "auto" and rows is None
            if values[name] == "auto":
                values[name] = AUTO_GRAVITY / (rows or 1)
    if isinstance(values.get("p"), str):
        values["p"] = max(2.0, float(values["p"].removesuffix("ln")) * math.log(width))
    loss = LOSSES[values["loss"]]
    for name, auto in (
        ("eta0", spec.auto_eta.get(loss.name, loss.auto_eta)),
        ("strength", loss.auto_strength),
    ):
        if name in values:
            values["relative"] = values[name] == "auto"
            if values["relative"]:
                values[name] = auto
    values.pop("passes", None)
    if "lanes" in values:
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
