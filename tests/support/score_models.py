"""Models whose raw predictions are the columns of X, for tests of metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.model.history import Output
from thresher.model.model import Model


def identity_model(
    outputs: int, classes: Any = None, loss: str = "logistic", **parameters: Any
) -> Model:
    """Return a model with a weight of 1 for column k in output k."""
    return Model.of(
        [Output(np.array([k], np.uint64), np.ones(1), 0.0) for k in range(outputs)],
        n_features=outputs,
        classes=None if classes is None else np.asarray(classes),
        loss=loss,
        parameters=parameters,
    )
