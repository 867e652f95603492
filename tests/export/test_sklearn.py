"""`Model.to_sklearn`: an estimator of scikit-learn that predicts the same."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor

import thresher
from support.linear_models import made
from thresher import FTRLClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 6)) * (RNG.random((300, 6)) < 0.5)
X[0] = 0  # all scores are equal, and exactly 0


@pytest.mark.parametrize(
    ("loss", "outputs", "name"),
    [
        ("logistic", 1, "LogisticRegression"),
        ("logistic", 3, "SGDClassifier"),
        ("modified_huber", 1, "SGDClassifier"),
        ("modified_huber", 3, "SGDClassifier"),
        ("hinge", 1, "LinearSVC"),
        ("squared_hinge", 3, "LinearSVC"),
        ("margin", 1, "LinearSVC"),
        ("squared", 1, "SGDClassifier"),
        ("square", 3, "SGDClassifier"),
    ],
)
def test_classifiers(loss, outputs, name):
    classes = np.array(["a", "b", "c"][: max(outputs, 2)])
    model = made(RNG.normal(size=(outputs, 6)), 0.0, loss, classes=classes)
    estimator = model.to_sklearn()
    assert type(estimator).__name__ == name
    assert is_classifier(estimator)
    assert sp.issparse(estimator.coef_)
    for rows in (X, sp.csr_matrix(X), sp.csr_array(X)):
        assert np.array_equal(estimator.predict(rows), model.predict(rows))
        difference = estimator.decision_function(rows) - model.decision_function(rows)
        assert np.abs(difference).max() < 1e-14
    if loss in ("logistic", "modified_huber"):
        assert np.abs(estimator.predict_proba(X) - model.predict_proba(X)).max() < 1e-15
    else:
        assert not hasattr(estimator, "predict_proba")
    assert estimator.score(X, model.predict(X)) == 1.0
    with pytest.raises(ValueError, match="expecting 6 features"):
        estimator.predict(X[:, :5])


@pytest.mark.parametrize(
    "loss", ["squared", "square", "absolute", "huber", "epsilon_insensitive", "quantile", "poisson"]
)
def test_regressors(loss):
    model = made(RNG.normal(size=6), 0.5, loss, classes=None)
    estimator = model.to_sklearn()
    assert is_regressor(estimator)
    assert type(estimator).__name__ == ("PoissonRegressor" if loss == "poisson" else "SGDRegressor")
    for rows in (X, sp.csr_matrix(X)):
        assert estimator.predict(rows).shape == (300,)
        assert np.allclose(estimator.predict(rows), model.predict(rows), rtol=1e-13)


def test_names_of_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = FTRLClassifier(random_state=0).fit(frame, X[:, 0] > 0).model_
    estimator = model.to_sklearn()
    assert estimator.feature_names_in_.tolist() == list("abcdef")
    assert np.array_equal(estimator.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(frame[list("fedcba")])


def test_refusals():
    def refused(model, message):
        with pytest.raises(thresher.ParameterError, match=message):
            model.to_sklearn()

    refused(made([1.0], n_features=2**64), "any number of features, and an estimator of scikit")
    refused(made([1.0], n_features=2**31), "2,147,483,648 features")
    refused(made([1.0], loss="clipped_square"), "divides each row")
    refused(made([1.0], parameters={"multilabel": True}), "any number of labels")
    refused(made([1.0], classes=np.array([7])), "only the class 7")
