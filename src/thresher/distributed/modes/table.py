"""The table of modes: which estimators can use them, and which options they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from thresher.distributed.engine.pieces import ClusterJob, Mode
from thresher.distributed.modes.average import AverageMode
from thresher.distributed.modes.columns import ColumnsMode
from thresher.distributed.modes.paper_stages import PaperStagesMode
from thresher.distributed.modes.robust_stages import RobustStagesMode
from thresher.errors import ParameterError
from thresher.rules import RULES, validate
from thresher.rules.core_args import canonical

MODES = ("stages", "average", "columns")

MODE_OPTIONS = {"rounds": "average", "batch": "columns", "blocks": "columns"}  # of one mode only


def choose_mode(estimator: Any, wanted: str | None) -> str:
    """Return the wanted mode, or the default mode of an estimator.

    Raises ParameterError if the estimator does not have that mode, or has none.
    """
    if isinstance(estimator, type):
        raise ParameterError(f"estimator must be an object, as in {estimator.__name__}()")
    name = type(estimator).__name__
    if wanted is not None and wanted not in MODES:
        raise ParameterError(parameter="mode", value=wanted, allowed=f"one of {', '.join(MODES)}")
    rule = RULES.get(getattr(estimator, "rule", ""))
    allowed = () if rule is None else rule.cluster
    if not allowed:
        able = ", ".join(name for name, rule in RULES.items() if rule.cluster)
        raise ParameterError(f"{name} cannot be trained on a cluster; these rules can: {able}")
    if wanted is not None and wanted not in allowed:
        raise ParameterError(
            owner=name, parameter="mode", value=wanted, allowed=" or ".join(allowed)
        )
    return wanted or allowed[0]


def checked_params(estimator: Any, mode: str) -> dict[str, Any]:
    """Return the validated parameters of an estimator.

    Raises ParameterError for parameters that a cluster does not support.
    """
    params: dict[str, Any] = estimator.get_params(deep=False)
    name = type(estimator).__name__
    validate.check(estimator.rule, estimator.task, params, name)
    if params.get("callback") is not None:
        raise ParameterError(f"{name}: callback is not called on a cluster; use watch= of fit")
    if params.get("warm_start"):
        raise ParameterError(f"{name}: warm_start=True cannot be used on a cluster")
    return canonical(params)


def make_modes(job: ClusterJob, mode: str, options: Mapping[str, int]) -> Iterator[Mode]:
    """Yield the modes to run one after the other: one for all outputs, or one for each output.

    `options` are those of this mode only.
    """
    if mode == "average":
        yield AverageMode(job, **options)
        return
    for output in range(job.labels.outputs):
        each = replace(job, output=output)
        if mode == "columns":
            yield ColumnsMode(each, **options)
        else:
            yield (RobustStagesMode if job.params["variant"] == "robust" else PaperStagesMode)(each)
