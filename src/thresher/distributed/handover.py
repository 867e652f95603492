"""The result of training on a cluster, as a fitted estimator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from thresher.distributed.engine.loop import ClusterRun
from thresher.distributed.engine.pieces import ClusterJob
from thresher.distributed.shards import Shards
from thresher.distributed.survey import SurveyResult
from thresher.model.evidence import Evidence, join_known
from thresher.model.model import Progress
from thresher.rules import RULES, core_args
from thresher.training.fitted import FittedState
from thresher.training.fitting import Specification
from thresher.training.records import watch_for


def hand_over(
    estimator: Any,
    job: ClusterJob,
    survey: SurveyResult,
    shards: Shards,
    runs: Sequence[ClusterRun],
    names: dict[int, str] | None,
) -> None:
    """Give an estimator the fitted state, as its own `fit` would.

    After averaging, `partial_fit` can continue, with a learner of its own for each output. Other
    estimators can predict, and can be fitted again.
    """
    rule, learned = RULES[job.rule], [run.learned for run in runs]
    paths = int(job.params.get("paths", 1))  # the history counts the rows of one path
    history = [record for run in runs for record in _records(run, paths)]
    pass_rows = sum(survey.rows) / (1 if rule.streams else job.rows.parts)  # of one path
    rate = learned[0].facts.get("alpha")  # of all parts, if the first rows decided it
    state = FittedState(
        rule=job.rule,
        params=job.plan(rate).learner_params,
        requested=core_args.learner_parameters(job.rule, estimator.get_params(deep=False)),
        rows=None if rule.streams else sum(survey.rows),
        width=survey.width,
        history=history,
        passes=math.ceil(max(record.examples for record in history) / pass_rows - 1e-9),
        classes=job.labels.classes,
        multilabel="sparse" if shards.reading.get("multilabel") else "",
        names=names or None,
        kinds=shards.reading.get("kinds") or None,
        reading=shards.source(0).described(),
        standardised=job.known_scale is not None,
    )
    state.hooks = Specification(job.rule, job.task, job.params, "").hooks()
    outputs = [output for one in learned for output in one.outputs]
    states = learned[0].states
    if states is not None and not rule.keeps_facts:
        state.separate = len(outputs) > 1
        state.outputs = state.factory.restore(states, len(outputs))
        state.recorded = state.outputs.tally  # the history covers all rows so far
        state.watch = watch_for(job.rule, state.outputs.steps) or state.watch
    else:
        state.weights, state.final, state.obstacle = outputs, True, _obstacle(job.rule)
        if all(one.evidence is not None for one in learned):
            found = [one.evidence for one in learned if one.evidence]
            state.extras["evidence"] = _join_evidence(found)
    estimator.take(state)


def _obstacle(rule: str) -> str:
    """Return why training cannot continue after a run on a cluster."""
    if RULES[rule].keeps_facts:
        return "it was trained on a cluster, and its learner must have seen each row itself"
    return "it was trained on a cluster, whose workers kept the state of its learners"


def _records(run: ClusterRun, paths: int) -> list[Progress]:
    return [
        Progress(
            examples=int(facts["examples"]) // paths,
            loss=float(facts.get("loss") or 0.0),
            nonzeros=facts.get("nonzeros"),
            rate=float(facts.get("rate") or 0.0),
            seconds=float(facts["seconds"]),
        )
        for facts in run.history
    ]


def _join_evidence(found: Sequence[Evidence]) -> Evidence:
    """Join the evidence of several outputs."""
    counts = [len(one.features) for one in found]
    return Evidence(
        indptr=np.cumsum([0, *counts], dtype=np.int64),
        features=np.concatenate([one.features for one in found]),
        probability=np.concatenate([one.probability for one in found]),
        updates=np.concatenate([one.updates for one in found]),
        purged=np.concatenate([one.purged for one in found]),
        documents=np.concatenate([one.documents for one in found]),
        z=join_known([one.z for one in found]),
        rows=join_known([one.rows for one in found]),
        shares=join_known([one.shares for one in found]),
        signal=join_known([one.signal for one in found]),
    )
