"""Parameters of a rule: whether they are allowed together, and what the core is told of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from thresher.errors import ParameterError, setting
from thresher.parameters import (
    AUTO_ETA,
    AUTO_ETA_ELSE,
    AUTO_GRAVITY,
    AUTO_STRENGTH,
    AUTO_STRENGTH_ELSE,
    Task,
)
from thresher.rules import RULES


def check(rule: str, task: Task, params: Mapping[str, Any], owner: str) -> None:
    """Raise ParameterError for the first parameter, or pair of them, that is not allowed.

    Parameters
    ----------
    rule : str
        A key of ``RULES``.
    task : {"classifier", "regressor"}
        Decides which losses fit.
    params : mapping
        Values by name.
    owner : str
        Whose parameters they are, for the message.
    """
    table = RULES[rule].parameters
    for name, value in params.items():
        if name not in table:
            raise ParameterError(
                f"{owner} has no parameter {name!r}; it has {', '.join(table)}", parameter=name
            )
        if not table[name].accepts(value):
            raise ParameterError(
                owner=owner, parameter=name, value=value, allowed=table[name].allowed()
            )
    losses = RULES[rule].losses_for(task)
    if "loss" in params and params["loss"] not in losses:
        raise ParameterError(
            (setting("loss"), f" {params['loss']!r} is not one for a {task}; allowed are "
             f"{', '.join(losses)}"),
            owner=owner,
            parameter="loss",
            value=params["loss"],
            allowed=f"one of {', '.join(losses)}",
        )  # fmt: skip
    if params.get("shrink") == "round" and math.isinf(params["ceiling"]):
        raise ParameterError(
            (setting("shrink", "round"), " needs a finite ", setting("ceiling")),
            owner=owner,
            parameter="ceiling",
            value=params["ceiling"],
        )
    if params.get("store") == "nonzero":
        _check_nonzero(rule, task, params, owner)
    if rule == "truncated-gradient" and params["target_nnz"] is not None:
        for name, contradicts in (
            ("gravity", params["gravity"] == 0),
            ("average", params["average"]),
            ("shrink", params["shrink"] != "truncate"),
        ):
            if contradicts:
                raise ParameterError(
                    (setting(name, params[name]), " does not go with ", setting("target_nnz"),
                     ", which raises and lowers ", setting("gravity"), " for the last weights"),
                    owner=owner,
                    parameter=name,
                    value=params[name],
                )  # fmt: skip
    if rule == "averaged-sgd" and params["loss"] == "poisson":
        raise ParameterError(
            ("steps of 1/(alpha t) explode with ", setting("loss"), " 'poisson', whose slope has "
             "no bound; FTRL and truncated gradient take it"),
            owner=owner,
            parameter="loss",
            value="poisson",
        )  # fmt: skip
    if rule == "stabilized":
        _check_stabilized(params, owner)
    levels = params.get("levels", ())
    if (
        not isinstance(levels, tuple | list)
        or not all(type(level) in (int, float) and 0 < level <= 1 for level in levels)
        or list(levels) != sorted(set(levels))
    ):
        raise ParameterError(
            owner=owner,
            parameter="levels",
            value=levels,
            allowed="increasing shares, above 0 and up to 1",
        )
    if rule == "margin-perceptron" and params["shrink"] == "all":
        for name in ("max_density", "levels"):
            if params[name] not in (None, (), []):
                raise ParameterError(
                    (setting(name), " does not go with ", setting("shrink", "all"), ": which of "
                     "the untouched weights are zero is known only when they are counted"),
                    owner=owner,
                    parameter=name,
                    value=params[name],
                )  # fmt: skip
    if params.get("center") and params["loss"] == "clipped_square":
        raise ParameterError(
            (setting("center", True), " does not go with clipped_square, which scales each row by "
             "itself"),
            owner=owner,
            parameter="center",
            value=True,
        )  # fmt: skip
    if params.get("callback") is not None and not callable(params["callback"]):
        raise ParameterError(
            owner=owner, parameter="callback", allowed="callable or None", value=params["callback"]
        )


def _check_nonzero(rule: str, task: Task, params: Mapping[str, Any], owner: str) -> None:
    if rule not in ("truncated-gradient", "forward-backward") or task != "classifier":
        raise ParameterError(
            (setting("store", "nonzero"), " is for classifiers by truncated gradient and "
             "forward-backward; others take 'dense' or 'hashed'"),
            owner=owner,
            parameter="store",
            value="nonzero",
            allowed="dense or hashed",
        )  # fmt: skip
    if params["loss"] not in ("hinge", "squared_hinge", "logistic"):
        raise ParameterError(
            (setting("store", "nonzero"), " needs ", setting("loss"), " 'hinge' or "
             "'squared_hinge', which leave satisfied margins alone, or 'logistic'; got "
             f"{params['loss']!r}"),
            owner=owner,
            parameter="loss",
            value=params["loss"],
        )  # fmt: skip
    for name, contradicts in (
        ("shrink", params.get("shrink") == "subgradient"),
        ("average", params.get("average")),
        ("target_nnz", params.get("target_nnz") is not None),
        ("certify", params.get("certify")),
    ):
        if contradicts:
            raise ParameterError(
                (setting(name, params[name]), " does not go with ", setting("store", "nonzero"),
                 ", which keeps the weights that are not zero and nothing else"),
                owner=owner,
                parameter=name,
                value=params[name],
            )  # fmt: skip


def _check_stabilized(params: Mapping[str, Any], owner: str) -> None:
    paths, bursts, n_jobs = params["paths"], params["bursts"], params["n_jobs"]
    if n_jobs == 0:
        raise ParameterError(
            owner=owner, parameter="n_jobs", value=0, allowed="-1, None or at least 1"
        )
    if params["variant"] == "robust":
        if paths % 2:
            raise ParameterError(
                (setting("paths"), " must be even with ", setting("variant", "robust"), ", whose "
                 f"paths go in pairs through the two halves of the rows; got {paths}"),
                owner=owner,
                parameter="paths",
                value=paths,
            )  # fmt: skip
        if params["rejection"] != "auto" and params["rejection"] < 0.01:
            raise ParameterError(
                (setting("rejection"), " must be at least 0.01 with ", setting("variant", "robust"),
                 ", which would otherwise purge feature after feature; got "
                 f"{params['rejection']!r}"),
                owner=owner,
                parameter="rejection",
                value=params["rejection"],
            )  # fmt: skip
        return
    if params["target_nnz"] is not None:
        raise ParameterError(
            (setting("target_nnz"), " goes with ", setting("variant", "robust"), "; the published "
             "variant has gravity by its rejection rate alone"),
            owner=owner,
            parameter="target_nnz",
            value=params["target_nnz"],
        )  # fmt: skip
    if params["keep"] > 0 and paths * bursts == 1:
        raise ParameterError(
            (setting("keep", params["keep"]), " needs more than one path or burst: the share of "
             "one burst that selects a feature says nothing"),
            owner=owner,
            parameter="keep",
            value=params["keep"],
            hint=("set ", setting("keep", 0), ", or raise ", setting("paths"), " or ",
                  setting("bursts")),
        )  # fmt: skip


def stabilized_parameters(
    params: Mapping[str, Any], seed: int, rows: int | None
) -> tuple[dict[str, float], dict[str, str]]:
    """Split what the stabilized rule's core is told into numbers and words, by name.

    `rows` is the number of rows, or None where it is not known beforehand.
    """
    robust = params["variant"] == "robust"
    eta0 = {"logistic": 2.0, "hinge": 1.0, "squared_hinge": 0.25}[params["loss"]] if robust else 0.1
    auto = {
        "rejection": 0.5 if robust else 0.7,
        "min_updates": (5 if rows is None else min(5, 1 + rows // 50)) if robust else 0,
        "eta0": eta0,
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


def learner_parameters(rule: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return those parameters that make a learner, and cannot change while it lives."""
    names = ("loss", "epsilon", "quantile", "fit_intercept", "store", "dtype", *RULES[rule].own)
    return {name: params[name] for name in names if name in params and name != "n_jobs"}


def core_parameters(
    rule: str, params: Mapping[str, Any], rows: int | None, width: int = 1
) -> tuple[dict[str, float], dict[str, str]]:
    """Split what the core is told into numbers (flags as 0 and 1) and words, by name.

    `rows` is the number of rows, or None where it is not known beforehand; `width` the number of
    features, which decides the norm of mirror descent.
    """
    spec = RULES[rule]
    values: dict[str, Any] = {"loss": spec.losses[0], "epsilon": 0.0, "quantile": 0.5}
    values |= {name: params[name] for name in (*values, "fit_intercept") if name in params}
    values |= {name: params[name] for name in spec.own} | dict(spec.fixed)
    if rule == "forward-backward":
        values["gravity"] = values.pop("l1")
    if rule == "margin-perceptron":
        values["epsilon"] = values.pop("margin")
    for name in ("gravity", "l1"):
        if name in values:
            values["fading"] = values[name] == "auto" and rows is None
            if values[name] == "auto":
                values[name] = AUTO_GRAVITY / (rows or 1)
    if isinstance(values.get("p"), str):
        values["p"] = max(2.0, float(values["p"].removesuffix("ln")) * math.log(width))
    bold = 4.0 if rule == "mirror-descent" and values["loss"] == "logistic" else 1.0  # record 6
    for name, auto in (
        ("eta0", bold * AUTO_ETA.get(values["loss"], AUTO_ETA_ELSE)),
        ("strength", AUTO_STRENGTH.get(values["loss"], AUTO_STRENGTH_ELSE)),
    ):
        if name in values:
            values["relative"] = values[name] == "auto"
            if values["relative"]:
                values[name] = auto
    words = {name: value for name, value in values.items() if isinstance(value, str)}
    told = {
        name: float(value)
        for name, value in values.items()
        if name not in words and value is not None and name != "levels"
    }
    return told, words
