"""A fitted estimator from a model."""

from __future__ import annotations

import json
from typing import Any

from thresher.errors import ModelFileError, ParameterError
from thresher.model.model import Model
from thresher.training.from_model import continued, only_weights


def estimator_of(model: Model) -> Any:
    """Return a fitted estimator with the parameters and the weights of a model.

    Parameters
    ----------
    model : Model
        If it has the learner's state, training can go on.
    """
    from thresher.estimators import estimator_class

    try:
        state, spec = continued(model)
    except ParameterError as error:
        state, spec = only_weights(model, str(error))
    cls = estimator_class(spec.rule, spec.task)
    known = cls().get_params(deep=False)
    made = cls(**{name: value for name, value in spec.params.items() if name in known})
    label = None if state.reading else model.parameters.get("label")
    made.set_columns(_columns(model), model.n_features, label)
    return made.take(state)


def _columns(model: Model) -> list[str]:
    """Return the names of the columns of a frame; empty: the model was not learned from one."""
    try:
        found = json.loads(str(model.parameters.get("frame_columns") or "[]"))
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise ModelFileError("the names of the model's columns cannot be read")
    return found
