"""Whether the parameters of a rule are allowed, each and together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from thresher.errors import ParameterError
from thresher.losses import LOSSES, Task
from thresher.rules.table import RULES


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
    spec = RULES[rule]
    table = spec.parameters
    for name, value in params.items():
        if name not in table:
            raise ParameterError(f"{owner} has no parameter {name!r}; it has {', '.join(table)}")
        if not table[name].accepts(value):
            raise ParameterError(f"{owner}: {name} must be {table[name].allowed()}; got {value!r}")
    losses = spec.losses_for(task)
    if "loss" in params and params["loss"] not in losses:
        raise ParameterError(
            f"{owner}: loss {params['loss']!r} is not one for a {task}; "
            f"allowed are {', '.join(losses)}"
        )
    if params.get("shrink") == "round" and math.isinf(params["ceiling"]):
        raise ParameterError(f"{owner}: shrink='round' needs a finite ceiling")
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
                    f"{owner}: {name}={params[name]!r} does not go with target_nnz, which raises "
                    f"and lowers gravity for the last weights"
                )
    if params.get("loss") in spec.refused_losses:
        raise ParameterError(f"{owner}: {spec.refused_losses[params['loss']]}")
    if "variant" in params:
        _check_stabilized(params, owner)
    levels = params.get("levels", ())
    if (
        not isinstance(levels, tuple | list)
        or not all(type(level) in (int, float) and 0 < level <= 1 for level in levels)
        or list(levels) != sorted(set(levels))
    ):
        raise ParameterError(
            f"{owner}: levels must be increasing shares, above 0 and up to 1; got {levels!r}"
        )
    if params.get("shrink") == "all":
        for name in ("max_density", "levels"):
            if params[name] not in (None, (), []):
                raise ParameterError(
                    f"{owner}: {name} does not go with shrink='all': which of the untouched "
                    f"weights are zero is known only when they are counted"
                )
    if params.get("center") and LOSSES[params["loss"]].scales_rows:
        raise ParameterError(
            f"{owner}: center=True does not go with {params['loss']}, which scales each row by "
            f"itself"
        )
    if params.get("callback") is not None and not callable(params["callback"]):
        raise ParameterError(f"{owner}: callback must be callable or None")


def _check_nonzero(rule: str, task: Task, params: Mapping[str, Any], owner: str) -> None:
    if not RULES[rule].nonzero_store or task != "classifier":
        raise ParameterError(
            f"{owner}: store='nonzero' is for classifiers by truncated gradient and "
            f"forward-backward; others take 'dense' or 'hashed'"
        )
    if not LOSSES[params["loss"]].nonzero_store:
        able = [loss for loss in LOSSES.values() if loss.nonzero_store]
        idle, busy = (
            " or ".join(repr(loss.name) for loss in able if loss.sparse_updates is which)
            for which in (True, False)
        )
        raise ParameterError(
            f"{owner}: store='nonzero' needs loss {idle}, which leave satisfied margins alone, or "
            f"{busy}; got {params['loss']!r}"
        )
    for name, contradicts in (
        ("shrink", params.get("shrink") == "subgradient"),
        ("average", params.get("average")),
        ("target_nnz", params.get("target_nnz") is not None),
        ("certify", params.get("certify")),
    ):
        if contradicts:
            raise ParameterError(
                f"{owner}: {name}={params[name]!r} does not go with store='nonzero', which keeps "
                f"the weights that are not zero and nothing else"
            )


def _check_stabilized(params: Mapping[str, Any], owner: str) -> None:
    paths, bursts, n_jobs = params["paths"], params["bursts"], params["n_jobs"]
    if n_jobs == 0:
        raise ParameterError(f"{owner}: n_jobs must be -1, None or at least 1; got 0")
    if params["variant"] == "robust":
        if paths % 2:
            raise ParameterError(
                f"{owner}: paths must be even with variant='robust', whose paths go in pairs "
                f"through the two halves of the rows; got {paths}"
            )
        if params["rejection"] != "auto" and params["rejection"] < 0.01:
            raise ParameterError(
                f"{owner}: rejection must be at least 0.01 with variant='robust', which would "
                f"otherwise purge feature after feature; got {params['rejection']!r}"
            )
        return
    if params["target_nnz"] is not None:
        raise ParameterError(
            f"{owner}: target_nnz goes with variant='robust'; the published variant has gravity by "
            f"its rejection rate alone"
        )
    if params["keep"] > 0 and paths * bursts == 1:
        raise ParameterError(
            f"{owner}: keep={params['keep']} needs more than one path or burst: the share of one "
            f"burst that selects a feature says nothing; set keep=0, or raise paths or bursts"
        )
