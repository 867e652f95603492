"""An estimator of scikit-learn with the weights of a model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.errors import ParameterError
from thresher.export.refusals import check_linear
from thresher.losses import LOSSES

if TYPE_CHECKING:
    from thresher.model.model import Model

__all__ = ["to_sklearn"]

_WIDEST = 2**30  # scikit-learn's predictions need memory for each column
# The loss of SGDClassifier and SGDRegressor; it matters only if they are trained further.
_SGD = {
    "logistic": "log_loss",
    "modified_huber": "modified_huber",
    "huber": "huber",
    "epsilon_insensitive": "epsilon_insensitive",
}
_MARGINS = {"hinge": "hinge", "margin": "hinge", "squared_hinge": "squared_hinge"}
_REGRESSIONS = ("logistic",)  # LogisticRegression has the probabilities of two classes


def to_sklearn(model: Model) -> Any:
    """Return a fitted estimator of scikit-learn that predicts like a model.

    Parameters
    ----------
    model : Model
    """
    check_linear(model, "an estimator of scikit-learn")
    if model.n_features > _WIDEST:
        width = "any number of" if model.n_features == 2**64 else f"{model.n_features:,}"
        raise ParameterError(
            f"the model has {width} features, and an estimator of scikit-learn at most {_WIDEST:,}",
            hint="train with bits=18 to have 2^18; to_onnx and to_sql take features by name",
        )
    estimator = _classifier(model) if model.classes is not None else _regressor(model)
    estimator.n_features_in_ = model.n_features
    columns = json.loads(str(model.parameters.get("frame_columns") or "[]"))
    if len(columns) == model.n_features and not model.parameters.get("kinds"):
        estimator.feature_names_in_ = np.array(columns, object)
    return estimator


def _classifier(model: Model) -> Any:
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.svm import LinearSVC

    assert model.classes is not None
    if model.loss in _REGRESSIONS and len(model.classes) == 2:
        estimator: Any = LogisticRegression()
    elif model.loss in _MARGINS:
        estimator = LinearSVC(loss=_MARGINS[model.loss])
    else:  # several classes have a probability each, divided by their sum, as here
        estimator = SGDClassifier(loss=_SGD.get(model.loss, "squared_error"))
    estimator.coef_, estimator.classes_ = _coefficients(model), model.classes.copy()
    estimator.intercept_ = model.intercept.copy()
    if len(model.classes) == 2:
        # A score of exactly 0 is the second class here, and the first one in scikit-learn.
        tiny = np.finfo(np.float64).tiny
        estimator.intercept_ = np.where(estimator.intercept_ == 0, tiny, estimator.intercept_)
    return estimator


def _regressor(model: Model) -> Any:
    from scipy import sparse
    from sklearn.linear_model import PoissonRegressor, SGDRegressor

    if LOSSES[model.loss].link == "exp":
        # Fitted to two rows of zeros, so that it has all of its own attributes.
        estimator = PoissonRegressor(max_iter=1, alpha=0.0)
        estimator.fit(sparse.csr_matrix((2, model.n_features)), [1.0, 1.0])
        estimator.coef_ = _coefficients(model).toarray()[0]
        estimator.intercept_ = float(model.intercept[0])
        return estimator
    estimator = SGDRegressor(loss=_SGD.get(model.loss, "squared_error"))
    estimator.coef_, estimator.intercept_ = _coefficients(model), model.intercept.copy()
    return estimator


def _coefficients(model: Model) -> Any:
    from scipy import sparse

    parts = (model.weights.copy(), model.indices.astype(np.int64), model.indptr)
    return sparse.csr_matrix(parts, shape=(len(model.intercept), model.n_features))
