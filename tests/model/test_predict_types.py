"""Matrices of any number type and memory order have the predictions of float64 in rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from thresher import DataError, FTRLClassifier, FTRLRegressor, MarginPerceptronClassifier
from thresher.losses import LOSSES
from thresher.model.model import Model

X = np.random.default_rng(0).integers(0, 5, (40, 6)).astype(float)
Y = X[:, 0] - X[:, 1] > 0


def model_of(loss: str) -> Model:
    """Return a model that was trained with a loss."""
    classifies = "classifier" in LOSSES[loss].tasks
    estimator: Any = FTRLClassifier if classifies else FTRLRegressor
    y = Y if classifies else np.abs(X[:, 0]) + 1
    made = estimator(loss=loss, passes=2, random_state=0, l1=0.0)
    if loss == "margin":
        made = MarginPerceptronClassifier(random_state=0)
    model: Model = made.fit(X, y).model_
    assert len(model.weights) > 0
    return model


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_types_and_orders(loss: str) -> None:
    model = model_of(loss)
    wanted = model.raw(X).tolist()
    types = (np.int8, np.uint16, np.int64, np.float16, np.float32, np.longdouble, ">f8", ">i4")
    for dtype in types:
        assert model.raw(X.astype(dtype)).tolist() == wanted, dtype
        if np.dtype(dtype).isnative and dtype is not np.float16:
            assert model.raw(sp.csr_array(X.astype(dtype))).tolist() == wanted, dtype
    strided = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    assert not strided.flags.c_contiguous
    for other in (np.asfortranarray(X), strided, X[::-1][::-1], sp.csc_array(X), X.tolist()):
        assert model.raw(other).tolist() == wanted
    assert model.raw(X > 0).tolist() == model.raw((X > 0).astype(float)).tolist()


@pytest.mark.parametrize("other", [X * 1j, X.astype(str), X.astype(object), X[0], X[None]])
def test_what_is_no_matrix_of_numbers(other: Any) -> None:
    with pytest.raises(DataError, match=r"the rows must be numbers of shape \(rows, features\)"):
        model_of("logistic").raw(other)
