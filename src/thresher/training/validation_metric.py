"""A metric of the validation rows, which early stopping can use in place of their loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data.labels import ArrivingClasses
from thresher.data.matrix_source import MatrixBlock
from thresher.data.unseen_labels import UnseenLabels
from thresher.errors import DataError, ParameterError, setting
from thresher.model.model import Model
from thresher.model.predict import RawPredictor

if TYPE_CHECKING:
    from thresher.data.matrix_source import MatrixSource
    from thresher.data.source import Source
    from thresher.training.plan import TrainingPlan
    from thresher.training.trainer import Trainer


def check_validation_metric(
    name: str | None, valid: Source | MatrixSource | None, plan: TrainingPlan, multilabel: bool
) -> None:
    """Raise ParameterError if a metric does not suit the labels, or there are no validation rows.

    Parameters
    ----------
    name : str or None
    valid : Source, MatrixSource or None
    plan : TrainingPlan
    multilabel : bool
        Whether rows have any number of labels.
    """
    if name is None:
        return
    if valid is None:
        raise ParameterError(
            (setting("metric", name), " needs rows to compute it on: ", setting("eval_set")),
            parameter="metric",
            value=name,
        )
    labels = plan.labels
    if multilabel:
        tasks = ["multilabel"]
    elif isinstance(labels, ArrivingClasses):
        tasks = ["binary", "multiclass"]
    else:
        tasks = ["regression" if labels.classes is None else "binary"]
        tasks = ["multiclass"] if labels.outputs > 1 else tasks
    from thresher.evaluation.metric import check_metric  # only if it is needed

    check_metric(name, tasks)


def judged_by(trainer: Trainer, loss: float) -> tuple[float, dict[str, Any]]:
    """Return the number that early stopping makes small, and what is told about it.

    Without a metric this is the loss.

    Parameters
    ----------
    trainer : Trainer
        After a pass.
    loss : float
        Loss of the pass.
    """
    name = trainer.options.metric
    if name is None or trainer.valid is None:
        return loss, {}
    from thresher.evaluation.metric import about

    value = metric_on(trainer.valid, trainer, name)
    return (-value if about(name).larger else value), {"metric": name, "value": value}


def metric_on(source: Source | MatrixSource, trainer: Trainer, name: str) -> float:
    """Return a metric of the model so far on all rows of a source.

    Parameters
    ----------
    source : Source or MatrixSource
        Rows as the trainer learns them: scaled if those are scaled.
    trainer : Trainer
    name : str
        A key of `thresher.evaluate`.
    """
    from thresher.evaluation.metric import about, number_in
    from thresher.evaluation.rows import Rows
    from thresher.evaluation.tally import EvaluationOptions
    from thresher.evaluation.tasks import tally_of

    plan, unseen = trainer.plan, UnseenLabels()
    model = Model.of(
        trainer.outputs.outputs(plan.average, plan.target),
        n_features=2**64,
        classes=plan.labels.classes,
        loss=plan.loss,
        parameters={
            "multilabel": source.multilabel,
            **{word: plan.params.get(word) for word in ("epsilon", "quantile")},
        },
    )
    number, lift = number_in(name), name.startswith("lift_")
    options = EvaluationOptions(
        replicates=0,
        at=(int(number),) if number and not lift else (),
        shares=(number,) if number and lift else (),
    )
    tally, predictor, first = tally_of(model, options), RawPredictor(model), 0
    for block in source.blocks(dtype=plan.dtype, kinds=trainer.kinds):
        if block.rows:
            targets, known = unseen.targets(plan.labels, block)
            sizes = np.diff(block.label_sets()[0]) if source.multilabel else None
            if isinstance(block, MatrixBlock):
                raw = predictor.of_matrix(block.X)
            else:
                raw = predictor.of_block(block)
            tally.add(Rows(raw, targets, known, block.weights, first, sizes))
            first += block.rows
    found = tally.findings().metrics[name]
    if found.value is None:
        raise DataError(f"{source}: no {about(name).text} of the validation rows: {found.reason}")
    return found.value
