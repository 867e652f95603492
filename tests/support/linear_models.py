"""Models with given weights, for tests of what is made of a model."""

from __future__ import annotations

import numpy as np

from thresher.model.model import Model, Output


def made(weights, intercept=0.25, loss="logistic", **rest):
    """Return a model with these weights, one row for each output."""
    outputs = []
    for row in np.atleast_2d(weights):
        keys = np.flatnonzero(row)
        outputs.append(Output(keys.astype(np.uint64), np.asarray(row)[keys], intercept))
    rest.setdefault("classes", np.array(["no", "yes"]))
    rest.setdefault("n_features", np.shape(weights)[-1])
    return Model.of(outputs, loss=loss, **rest)
