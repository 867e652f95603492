"""The tasks of models, and the tally of each."""

from __future__ import annotations

from thresher.evaluation.class_tally import ClassTally
from thresher.evaluation.number_tally import NumberTally
from thresher.evaluation.set_tally import SetTally
from thresher.evaluation.tally import EvaluationOptions, Tally
from thresher.model.model import Model


def task_of(model: Model) -> str:
    """Return the task of a model: "binary", "multiclass", "multilabel" or "regression".

    Parameters
    ----------
    model : Model
    """
    if model.classes is None:
        return "regression"
    if model.multilabel:
        return "multilabel"
    return "binary" if len(model.intercept) == 1 else "multiclass"


def tally_of(model: Model, options: EvaluationOptions) -> Tally:
    """Return an empty tally for a model.

    Parameters
    ----------
    model : Model
    options : EvaluationOptions
    """
    task = task_of(model)
    if task == "regression":
        return NumberTally(model, options)
    return SetTally(model, options) if task == "multilabel" else ClassTally(model, options)
