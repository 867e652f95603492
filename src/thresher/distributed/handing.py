"""What was learned on a cluster, as a fitted estimator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from thresher.distributed.agreeing import Agreed
from thresher.distributed.driving import Driven
from thresher.distributed.pieces import Job
from thresher.distributed.shards import Shards
from thresher.estimators.linear import Elsewhere
from thresher.estimators.tasks import LinearClassifier
from thresher.evidence import Evidence
from thresher.health.watch import DivergenceWatch
from thresher.model import Progress
from thresher.rules import RULES, core_args


def hand_over(
    estimator: Any,
    job: Job,
    agreed: Agreed,
    shards: Shards,
    driven: Sequence[Driven],
    names: dict[int, str] | None,
) -> None:
    """Let an estimator have what was learned, as if it had learned it itself.

    A single output of a rule that learns row by row goes on with `partial_fit`; other estimators
    predict, and can be fitted anew.
    """
    rule = RULES[job.rule]
    made_of = core_args.learner_parameters(job.rule, job.params)
    estimator._made_of = made_of, None if rule.streams else sum(agreed.rows)
    estimator._width = estimator.n_features_in_ = agreed.width
    estimator._sparse_coef = job.params.get("store", "dense") != "dense"
    if isinstance(estimator, LinearClassifier):
        assert job.labels.classes is not None
        estimator.classes_ = job.labels.classes
    if rule.streams and estimator._task == "classifier":
        estimator._multilabel = "sparse" if shards.reading.get("multilabel") else ""
    paths = int(job.params.get("paths", 1))  # rows are told as each path takes them
    estimator.history_ = [record for one in driven for record in _records(one, paths)]
    rows = sum(agreed.rows) / (1 if rule.streams else job.rows.parts)  # that a path walks through
    estimator.n_iter_ = math.ceil(max(r.examples for r in estimator.history_) / rows - 1e-9)
    estimator._forget_answers()
    estimator._names, estimator._kinds = names or None, shards.reading.get("kinds") or None
    estimator.__dict__.pop("feature_names_in_", None)
    learned = [one.learned for one in driven]
    outputs = [output for one in learned for output in one.outputs]
    states = learned[0].states
    if states is not None and len(outputs) == 1 and not rule.keeps_facts:
        estimator._learners = estimator._recipe(agreed.width).restore(states, 1)
        estimator._recorded, estimator._watch = (0.0, 0.0), DivergenceWatch()
        estimator._regret = []  # of truncated gradient, whose certificate is of rows in memory
        return
    estimator.__dict__.pop("_learners", None)
    extras: dict[str, Any] = {}
    if all(one.evidence is not None for one in learned):
        extras["evidence"] = _together([one.evidence for one in learned if one.evidence])
    estimator._elsewhere = Elsewhere(outputs, extras)


def _records(driven: Driven, paths: int) -> list[Progress]:
    return [
        Progress(
            examples=int(facts["examples"]) // paths,
            loss=float(facts.get("loss") or 0.0),
            nonzeros=facts.get("nonzeros"),
            rate=float(facts.get("rate") or 0.0),
            seconds=float(facts["seconds"]),
        )
        for facts in driven.shown
    ]


def _together(found: Sequence[Evidence]) -> Evidence:
    """Return the evidence of several outputs as one."""
    counts = [len(one.features) for one in found]
    return Evidence(
        indptr=np.cumsum([0, *counts], dtype=np.int64),
        features=np.concatenate([one.features for one in found]),
        probability=np.concatenate([one.probability for one in found]),
        updates=np.concatenate([one.updates for one in found]),
        purged=np.concatenate([one.purged for one in found]),
        documents=np.concatenate([one.documents for one in found]),
    )
