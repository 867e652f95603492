"""Which estimators learn in which mode, and with which options."""

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

MODES = ("stages", "average", "columns")

OWN = {"rounds": "average", "batch": "columns", "blocks": "columns"}  # options of one mode alone


def mode_of(estimator: Any, wanted: str | None) -> str:
    """Return the mode in which an estimator learns.

    Raises ParameterError where it does not learn in the one wanted, or in any.
    """
    if isinstance(estimator, type):
        raise ParameterError(f"estimator must be an object, as in {estimator.__name__}()")
    name = type(estimator).__name__
    if wanted is not None and wanted not in MODES:
        raise ParameterError(parameter="mode", value=wanted, allowed=f"one of {', '.join(MODES)}")
    rule = RULES.get(getattr(estimator, "rule", ""))
    fitting = () if rule is None else rule.cluster
    if not fitting:
        raise ParameterError(
            f"{name}: does not learn on a cluster; StabilizedClassifier and estimators that learn "
            f"row by row do"
        )
    if wanted is not None and wanted not in fitting:
        raise ParameterError(
            owner=name, parameter="mode", value=wanted, allowed=" or ".join(fitting)
        )
    return wanted or fitting[0]


def checked_params(estimator: Any, mode: str) -> dict[str, Any]:
    """Return the parameters of an estimator, all checked.

    Raises ParameterError for those that make no sense on a cluster.
    """
    params: dict[str, Any] = estimator.get_params(deep=False)
    name = type(estimator).__name__
    validate.check(estimator.rule, estimator.task, params, name)
    if params.get("callback") is not None:
        raise ParameterError(f"{name}: callback is not called on a cluster; watch= of fit is")
    if params.get("warm_start"):
        raise ParameterError(f"{name}: warm_start=True does not go with a cluster")
    return params


def make_modes(job: ClusterJob, mode: str, own: Mapping[str, int]) -> Iterator[Mode]:
    """Yield what is to be run, one after the other: one for all outputs, or one for each."""
    if mode == "average":
        yield AverageMode(job, **own)
        return
    for output in range(job.labels.outputs):
        each = replace(job, output=output)
        if mode == "columns":
            yield ColumnsMode(each, **own)
        else:
            yield (RobustStagesMode if job.params["variant"] == "robust" else PaperStagesMode)(each)
