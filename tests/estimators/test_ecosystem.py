"""Estimators in scikit-learn: signatures, feature names, pipelines, searches, selection."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import thresher
from thresher import FTRLClassifier, TruncatedGradientClassifier, TruncatedGradientRegressor
from thresher.estimators import __all__ as ESTIMATORS
from thresher.rules import RULES, Parameter
from thresher.rules.parameter import UNRECORDED

RNG = np.random.default_rng(5)
X = RNG.normal(size=(400, 12))
NAMES = [f"size {j}" for j in range(12)]
Y = np.where(2 * X[:, 4] - X[:, 9] + 0.3 * RNG.normal(size=400) > 0, "spam", "ham")
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def table(name: str) -> tuple[str, dict[str, Parameter]]:
    """Return the task of an estimator, and its parameters in the table of rules."""
    cls = getattr(thresher, name)
    parameters = dict(RULES[cls.rule].parameters)
    if cls.task == "regressor":
        parameters = {k: p for k, p in parameters.items() if not p.of_classifiers}
    return cls.task, parameters


# ---- the table of rules -----------------------------------------------------------------------


@every_estimator
def test_signature_equals_the_table_of_rules(name: str) -> None:
    """Names, order and defaults are equal; all parameters are keyword-only."""
    task, parameters = table(name)
    signature = inspect.signature(getattr(thresher, name)).parameters
    assert list(signature) == list(parameters)
    for key, parameter in parameters.items():
        assert signature[key].default == parameter.default_for(task), key
        assert type(signature[key].default) is type(parameter.default_for(task)), key
        assert signature[key].kind is inspect.Parameter.KEYWORD_ONLY, key
    assert getattr(thresher, name)().get_params() == {
        key: parameter.default_for(task) for key, parameter in parameters.items()
    }


@every_estimator
def test_defaults_are_allowed(name: str) -> None:
    task, parameters = table(name)
    for key, parameter in parameters.items():
        assert parameter.accepts(parameter.default_for(task)), key


@every_estimator
def test_every_parameter_is_documented(name: str) -> None:
    doc = inspect.getdoc(getattr(thresher, name)) or ""
    task, parameters = table(name)
    section = doc.split("Parameters\n----------\n")[1].split("\nAttributes\n")[0]
    documented = dict(re.findall(r"^(\w+) : .*default=(.*)$", section, flags=re.MULTILINE))
    assert documented == {k: repr(p.default_for(task)) for k, p in parameters.items()}
    flowing = " ".join(section.split())
    for key, parameter in parameters.items():
        assert " ".join(parameter.help.split()) in flowing, key
    assert RULES[getattr(thresher, name).rule].paper in " ".join(doc.split())
    for attribute in ("model_", "coef_", "intercept_", "history_", "n_iter_", "n_features_in_"):
        assert re.search(rf"^{attribute} :", doc, flags=re.MULTILINE), attribute
    assert "{" + "parameters}" not in doc
    assert ("classes_ :" in doc) == (task == "classifier")


@every_estimator
def test_public_methods_are_documented(name: str) -> None:
    cls = getattr(thresher, name)
    streams = ("partial_fit",) if hasattr(cls, "partial_fit") else ()
    for method in ("fit", *streams, "predict", "sparsify", "densify"):
        doc = inspect.getdoc(getattr(cls, method)) or ""
        assert doc, method
        for argument in inspect.signature(getattr(cls, method)).parameters:
            assert argument == "self" or re.search(rf"^{argument} :", doc, flags=re.MULTILINE), (
                method,
                argument,
            )


@every_estimator
def test_kind_of_estimator(name: str) -> None:
    estimator = getattr(thresher, name)()
    assert is_classifier(estimator) == name.endswith("Classifier")
    assert is_regressor(estimator) == name.endswith("Regressor")


@every_estimator
def test_clone_copies_parameters_but_no_fitted_state(name: str) -> None:
    values = {
        "passes": 3, "store": "hashed", "random_state": 1, "tol": 0.1, "alpha": 0.3, "eta0": 0.01,
    }  # fmt: skip
    estimator = getattr(thresher, name)(**{k: v for k, v in values.items() if k in table(name)[1]})
    estimator.fit(X, Y if is_classifier(estimator) else np.clip(X[:, 0], -1, 1))
    twin = clone(estimator)
    assert twin.get_params() == estimator.get_params()
    assert not hasattr(twin, "coef_")
    assert not hasattr(twin, "history_")


# ---- names of features ------------------------------------------------------------------------


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_names_of_columns_are_in_the_model(make: Any) -> None:
    frame = make(dict(zip(NAMES, X.T, strict=True)))
    model = TruncatedGradientClassifier(gravity=0.05, eta0=0.05, random_state=0).fit(frame, Y)
    np.testing.assert_array_equal(model.feature_names_in_, NAMES)
    assert model.model_.names == {int(i): NAMES[int(i)] for i in model.model_.indices}
    assert 2 <= model.model_.nnz < 12
    assert [feature.name for feature in model.model_.top(2)] == ["size 4", "size 9"]
    assert [feature.label for feature in model.model_.top(2)] == [None, None]
    np.testing.assert_array_equal(model.predict(frame), model.model_.predict(X))
    np.testing.assert_array_equal(model.predict(frame[NAMES[::-1]]), model.predict(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[NAMES[1:]])
    streamed = clone(model).partial_fit(frame[:100], Y[:100], classes=["ham", "spam"])
    streamed.partial_fit(frame[100:], Y[100:])
    assert streamed.model_.name(4) == "size 4"


def test_without_names_features_are_numbers() -> None:
    model = TruncatedGradientClassifier(gravity=0.05, eta0=0.05, random_state=0).fit(X, Y).model_
    assert model.names is None
    assert [feature.name for feature in model.top(2)] == [4, 9]
    assert model.name(7) == 7


def test_top_is_ordered_and_has_labels() -> None:
    labels = np.array(["ash", "birch", "oak"])[np.digitize(X[:, 4], [-0.5, 0.5])]
    estimator = TruncatedGradientClassifier(gravity=1e-3, eta0=0.05, random_state=0).fit(X, labels)
    model, coef = estimator.model_, estimator.coef_
    found = model.top(1000)
    assert len(found) == model.nnz == np.count_nonzero(coef)
    sizes = [abs(feature.weight) for feature in found]
    assert sizes == sorted(sizes, reverse=True)
    for feature in found:
        row = estimator.classes_.tolist().index(feature.label)
        assert feature.weight == coef[row, feature.name]
    assert model.top(3) == found[:3]
    assert model.top(0) == []
    with pytest.raises(ValueError, match="n must be"):
        model.top(-1)
    assert len(TruncatedGradientClassifier(eta0=0.1).fit(X, Y).model_.top()) == 12


# ---- the model --------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [Y, np.array(["a", "b", "c"])[np.arange(400) % 3]], ids=len)
@pytest.mark.parametrize("store", ["dense", "hashed"])
def test_model_agrees_with_its_estimator(labels: np.ndarray, store: str) -> None:
    estimator = FTRLClassifier(l1=5.0, alpha=0.1, store=store, random_state=0).fit(X, labels)
    model, coef = estimator.model_, sp.csr_matrix(estimator.coef_)
    assert model.nnz == coef.nnz == np.count_nonzero(coef.toarray())
    assert model.density == model.nnz / coef.toarray().size  # a share of all columns
    assert model.n_features == estimator.n_features_in_ == 12
    np.testing.assert_array_equal(model.indptr, coef.indptr)
    np.testing.assert_array_equal(model.indices, coef.indices)
    np.testing.assert_array_equal(model.weights, coef.data)
    np.testing.assert_array_equal(model.intercept, estimator.intercept_)
    np.testing.assert_array_equal(model.classes, estimator.classes_)
    assert model.loss == "logistic"
    learned = {k: v for k, v in estimator.get_params().items() if k not in UNRECORDED}
    assert model.parameters == {"rule": "ftrl", **learned}
    assert list(model.history) == list(estimator.history_)
    np.testing.assert_allclose(
        model.decision_function(X), estimator.decision_function(X), rtol=1e-6, atol=1e-6
    )
    np.testing.assert_array_equal(model.predict(X), estimator.predict(X))


def test_density_counts_empty_columns() -> None:
    wide = sp.hstack([sp.csr_matrix(X), sp.csr_matrix((400, 88))], format="csr")
    model = TruncatedGradientClassifier(eta0=0.1, gravity=0.0, passes=1).fit(wide, Y).model_
    assert model.nnz == 12
    assert model.density == 0.12


def test_further_training_does_not_change_an_earlier_model() -> None:
    estimator = TruncatedGradientRegressor(eta0=0.01).partial_fit(X[:200], X[:200, 0])
    model = estimator.model_
    weights, count = model.weights.copy(), len(model.history)
    assert estimator.model_ is model
    estimator.partial_fit(X[200:], X[200:, 0])
    np.testing.assert_array_equal(model.weights, weights)
    assert len(model.history) == count
    assert estimator.model_ is not model


# ---- scikit-learn's tools ---------------------------------------------------------------------

DOCUMENTS = [
    "cheap pills now", "win cash now", "cheap cash", "pills to win", "lunch on monday",
    "notes of the meeting", "meeting on monday", "lunch and notes",
]  # fmt: skip
KINDS = ["spam"] * 4 + ["ham"] * 4


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name.endswith("Classifier")])
def test_pipeline_of_text(name: str) -> None:
    classifier = getattr(thresher, name)(passes=30, random_state=0)
    strong = {"eta0": 0.5, "gravity": 1e-3, "l1": 1e-3, "alpha": 0.05}
    if name == "FTRLClassifier":
        strong |= {"alpha": 1.0, "l1": 0.01}
    classifier.set_params(**{k: v for k, v in strong.items() if k in classifier.get_params()})
    pipeline = make_pipeline(TfidfVectorizer(), classifier).fit(DOCUMENTS, KINDS)
    assert pipeline.predict(["cash pills", "monday meeting"]).tolist() == ["spam", "ham"]
    assert pipeline.score(DOCUMENTS, KINDS) == 1.0


def test_grid_search_over_gravity() -> None:
    estimator = TruncatedGradientClassifier(eta0=0.05, random_state=0)
    gravities = [0.0, 1e-3, 0.05, 100.0]
    search = GridSearchCV(estimator, {"gravity": gravities}, cv=3, error_score="raise").fit(X, Y)
    assert search.best_params_["gravity"] in gravities[:3]
    assert search.best_score_ > 0.9
    sizes = [clone(estimator).set_params(gravity=g).fit(X, Y).model_.nnz for g in gravities]
    assert sizes[0] == 12
    assert sizes[-1] == 0
    assert sizes == sorted(sizes, reverse=True)


def test_grid_search_in_a_pipeline_with_arrays_of_values() -> None:
    """Values from NumPy arrays are NumPy scalars."""
    grid = {
        "ftrlclassifier__l1": np.array([0.1, 1.0], np.float32),
        "ftrlclassifier__passes": np.arange(1, 3),
        "ftrlclassifier__loss": np.array(["logistic", "hinge"]),
        "ftrlclassifier__fit_intercept": np.array([True, False]),
    }
    pipeline = make_pipeline(MaxAbsScaler(), FTRLClassifier(random_state=0))
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, Y)
    assert search.best_score_ > 0.9


def test_cross_validation_of_a_regressor() -> None:
    y = X[:, 1] - 3.0 * X[:, 2]
    estimator = TruncatedGradientRegressor(eta0=0.02, gravity=1e-3, random_state=0)
    assert cross_val_score(estimator, X, y, cv=3).min() > 0.99


def test_select_from_model() -> None:
    estimator = TruncatedGradientClassifier(gravity=0.05, eta0=0.05, random_state=0)
    selector = SelectFromModel(estimator, threshold=1e-12).fit(X, Y)
    chosen = selector.get_support()
    np.testing.assert_array_equal(chosen, selector.estimator_.coef_[0] != 0)
    assert chosen[[4, 9]].all()
    assert not chosen.all()
    np.testing.assert_array_equal(selector.transform(X), X[:, chosen])
