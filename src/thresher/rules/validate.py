"""Checks the parameters of a rule, each alone and in combination."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from thresher.errors import ParameterError, Words, setting
from thresher.losses import LOSSES, OTHER_LOSSES, Task, canonical_loss
from thresher.rules.core_args import canonical
from thresher.rules.table import RULES


def check(rule: str, task: Task, params: Mapping[str, Any], owner: str) -> None:
    """Raise ParameterError for the first parameter, or combination of two, that is not allowed.

    Parameters
    ----------
    rule : str
        A key of ``RULES``.
    task : {"classifier", "regressor"}
        Decides which losses are allowed.
    params : mapping
        Values by name.
    owner : str
        The class or function that has the parameters, for the message.
    """
    given, params = params, canonical(params)
    spec = RULES[rule]
    table = spec.parameters
    for name, value in params.items():
        if name not in table:
            raise ParameterError(
                f"{owner} has no parameter {name!r}; it has {', '.join(table)}", parameter=name
            )
        if name == "loss":
            _check_loss(rule, task, given["loss"], owner)
        elif not table[name].accepts(value):
            raise ParameterError(
                owner=owner, parameter=name, value=value, allowed=table[name].allowed()
            )
    if params.get("shrink") == "round" and math.isinf(params["ceiling"]):
        raise ParameterError(
            (setting("shrink", "round"), " needs a finite ", setting("ceiling")),
            owner=owner,
            parameter="ceiling",
            value=params["ceiling"],
        )
    if params.get("store") == "nonzero":
        _check_nonzero(rule, task, params, owner)
    if params.get("target_nnz") is not None:
        for name, contradicts in (
            ("gravity", params.get("gravity") == 0),
            ("average", params.get("average")),
            ("shrink", params.get("shrink", "truncate") != "truncate"),
        ):
            if contradicts:
                raise ParameterError(
                    (setting(name, params[name]), " cannot be combined with ",
                     setting("target_nnz"), ", which adjusts ", setting("gravity"),
                     " and keeps the largest of the last weights"),
                    owner=owner,
                    parameter=name,
                    value=params[name],
                )  # fmt: skip
    if params.get("loss") in spec.refused_losses:
        raise ParameterError(
            spec.refused_losses[params["loss"]],
            owner=owner,
            parameter="loss",
            value=params["loss"],
        )
    if params.get("n_jobs") == 0:
        raise ParameterError(
            owner=owner, parameter="n_jobs", value=0, allowed="-1, None or at least 1"
        )
    if "variant" in params:
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
            allowed="increasing numbers above 0 and up to 1",
        )
    if params.get("shrink") == "all":
        for name in ("max_density", "levels"):
            if params[name] not in (None, (), []):
                raise ParameterError(
                    (setting(name), " cannot be combined with ", setting("shrink", "all"), ", with "
                     "which the number of nonzero weights is not known at every step"),
                    owner=owner,
                    parameter=name,
                    value=params[name],
                )  # fmt: skip
    if params.get("center") and LOSSES[params["loss"]].scales_rows:
        raise ParameterError(
            (setting("center", True), f" cannot be combined with {params['loss']}, which scales "
             "each row"),
            owner=owner,
            parameter="center",
            value=True,
        )  # fmt: skip
    if params.get("callback") is not None and not callable(params["callback"]):
        raise ParameterError(
            owner=owner, parameter="callback", value=params["callback"], allowed="callable or None"
        )


def _check_loss(rule: str, task: Task, given: Any, owner: str) -> None:
    """Raise ParameterError for a loss that the classifier or regressor of a rule does not have."""
    losses, loss = RULES[rule].losses_for(task), canonical_loss(given)
    if isinstance(loss, str) and loss in losses:
        return
    allowed = f"one of {', '.join(map(repr, losses))}"
    what: Words | None = None
    if isinstance(loss, str) and loss in RULES[rule].losses:
        what = (setting("loss"), f" {given!r} is not allowed for a {task}; allowed are "
                f"{', '.join(losses)}")  # fmt: skip
    elif isinstance(loss, str) and loss in OTHER_LOSSES:
        what = (setting("loss"), f" {given!r} of scikit-learn does not exist here: "
                f"{OTHER_LOSSES[loss]}; allowed are {', '.join(losses)}")  # fmt: skip
    raise ParameterError(what, owner=owner, parameter="loss", value=given, allowed=allowed)


def _check_nonzero(rule: str, task: Task, params: Mapping[str, Any], owner: str) -> None:
    if not RULES[rule].nonzero_store or task != "classifier":
        raise ParameterError(
            (setting("store", "nonzero"), " is only for classifiers by truncated gradient and "
             "forward-backward; others take 'dense' or 'hashed'"),
            owner=owner,
            parameter="store",
            value="nonzero",
            allowed="dense or hashed",
        )  # fmt: skip
    if not LOSSES[params["loss"]].nonzero_store:
        allowed = " or ".join(repr(loss.name) for loss in LOSSES.values() if loss.nonzero_store)
        raise ParameterError(
            (setting("store", "nonzero"), " needs ", setting("loss"), f" {allowed}; got "
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
                (setting(name, params[name]), " cannot be combined with ",
                 setting("store", "nonzero"), ", which keeps only nonzero weights"),
                owner=owner,
                parameter=name,
                value=params[name],
            )  # fmt: skip


def _check_stabilized(params: Mapping[str, Any], owner: str) -> None:
    paths, bursts = params["paths"], params["bursts"]
    if params["variant"] == "robust":
        if paths % 2:
            raise ParameterError(
                (setting("paths"), " must be even with ", setting("variant", "robust"), ": pairs "
                 f"of paths train on the two halves of the rows; got {paths}"),
                owner=owner,
                parameter="paths",
                value=paths,
            )  # fmt: skip
        if params["rejection"] != "auto" and params["rejection"] < 0.01:
            raise ParameterError(
                (setting("rejection"), " must be at least 0.01 with ", setting("variant", "robust"),
                 ", otherwise there would be too many stages; got "
                 f"{params['rejection']!r}"),
                owner=owner,
                parameter="rejection",
                value=params["rejection"],
            )  # fmt: skip
        return
    if params["target_nnz"] is not None:
        raise ParameterError(
            (setting("target_nnz"), " needs ", setting("variant", "robust"), "; the published "
             "variant sets gravity by its rejection rate only"),
            owner=owner,
            parameter="target_nnz",
            value=params["target_nnz"],
        )  # fmt: skip
    if params["keep"] > 0 and paths * bursts == 1:
        raise ParameterError(
            (setting("keep", params["keep"]), " needs more than one path or burst: a selection "
             "probability cannot be estimated from one burst"),
            owner=owner,
            parameter="keep",
            value=params["keep"],
            hint=("set ", setting("keep", 0), ", or raise ", setting("paths"), " or ",
                  setting("bursts")),
        )  # fmt: skip
