"""A fitted estimator from a model."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from thresher.errors import ParameterError
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
    columns = json.loads(str(model.parameters.get("frame_columns") or "[]"))
    made.n_features_in_ = len(columns) or model.n_features
    if columns:
        made.feature_names_in_ = np.array(columns, object)
    return made.take(state)
