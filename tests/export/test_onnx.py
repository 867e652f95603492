"""`Model.to_onnx`, in onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import thresher
from support.exports import inferred
from support.linear_models import made
from thresher import FTRLClassifier

onnx = pytest.importorskip("onnx")
numbers = st.floats(-1e3, 1e3, width=32, allow_subnormal=False)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=30), numbers)
def test_labels_of_any_row(tmp_path, pairs, intercept):
    weights, row = np.array(pairs).T
    model = made(weights, intercept)
    found = inferred(model, tmp_path, row[None, :])
    score = model.decision_function(row[None, :])
    if abs(score[0]) > 1e-9 * (1 + np.abs(weights) @ np.abs(row)):
        assert found[0].tolist() == model.predict(row[None, :]).tolist()
    assert np.abs(found[1] - model.predict_proba(row[None, :])).max() < 1e-6


@pytest.mark.parametrize("loss", ["logistic", "modified_huber", "hinge", "squared"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_losses_of_classifiers(tmp_path, loss, outputs):
    rng = np.random.default_rng(0)
    classes = np.array(["it's", "b", "c"][: max(outputs, 2)])
    model = made(rng.normal(size=(outputs, 4)), 0.0, loss, classes=classes)
    X = rng.normal(size=(200, 4)).astype(np.float32) * 4
    X[0] = 0  # all scores are equal, and exactly 0
    labels, more = inferred(model, tmp_path, X)
    assert labels.tolist() == model.predict(X).tolist()
    names = [one.name for one in onnx.load(tmp_path / "model.onnx").graph.output]
    if loss in ("logistic", "modified_huber"):
        assert names == ["label", "probabilities"]
        assert np.abs(more - model.predict_proba(X)).max() < 1e-6
    else:
        assert names == ["label", "scores"]
        assert np.abs(more - model.decision_function(X).reshape(200, -1)).max() < 1e-5


def test_probabilities_without_any_class(tmp_path):
    model = made(np.full((3, 1), -5.0), 0.0, "modified_huber", classes=np.arange(3))
    found = inferred(model, tmp_path, np.ones((2, 1)))[1]
    assert np.allclose(found, 1 / 3)


@pytest.mark.parametrize("low", [-36.0, -40.0, -400.0, -700.0])
def test_probabilities_of_scores_that_are_all_low(tmp_path, low):
    model = made(low - np.arange(3.0)[:, None], 0.0, classes=np.arange(3))
    X = np.ones((1, 1))
    found = inferred(model, tmp_path, X)[1]
    assert np.abs(found - model.predict_proba(X)).max() < 1e-6


def test_a_small_probability_of_two_classes(tmp_path):
    model = made([-60.0], 0.0)
    found = inferred(model, tmp_path, np.ones((1, 1)))[1]
    assert np.allclose(found[0, 1], np.exp(-60.0), rtol=1e-6, atol=0)


@pytest.mark.parametrize("loss", ["squared", "absolute", "poisson"])
def test_losses_of_regressors(tmp_path, loss):
    model = made([0.5, -0.25], loss=loss, classes=None)
    X = np.array([[1.0, 2.0], [0.0, 4.0], [100.0, 0.0]])
    (found,) = inferred(model, tmp_path, X)
    assert np.allclose(found[:, 0], model.predict(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        ([-1.0, 1.0], np.int64),
        ([0.5, 1.5], np.float64),
        ([False, True], np.int64),
        ([3, 2**40], np.int64),
        (["a", "ä"], object),
    ],
)
def test_types_of_labels(tmp_path, classes, kind):
    model = made([1.0], 0.0, classes=np.array(classes))
    labels, _ = inferred(model, tmp_path, np.array([[-1.0], [1.0]]))
    assert labels.dtype == kind
    assert labels.tolist() == classes


def test_named_features_of_one_row(tmp_path):
    rows = [{"age": 3.0, "colour": "red"}, {"age": 1.0, "colour": "blue"}] * 50
    estimator = FTRLClassifier(l1=0.0).partial_fit(rows, ["yes", "no"] * 50, classes=["no", "yes"])
    model = estimator.model_
    given = [
        {"age": 3.0, "colour^red": 1.0},
        {"age": 1.0, "colour^blue": 1.0, "new": 9.0},
        {"new": 1.0},
    ]
    labels, probabilities = inferred(model, tmp_path, given)
    assert labels.tolist() == model.predict(given).tolist()
    assert np.abs(probabilities - model.predict_proba(given)).max() < 1e-7
    with pytest.raises(thresher.ParameterError, match="any number of features, and a dense matrix"):
        model.to_onnx(tmp_path / "none", inputs="matrix")


def test_named_columns_of_a_matrix(tmp_path):
    model = made([1.0, 0.0, -2.0])
    given = [{"a": 1.0, "c": 0.25}, {"b": 7.0}]
    _, found = inferred(model, tmp_path, given, names=["a", "b", "c"])
    X = np.array([[1.0, 0.0, 0.25], [0.0, 7.0, 0.0]])
    assert np.abs(found - model.predict_proba(X)).max() < 1e-7
    _, found = inferred(model, tmp_path, X, names=["a", "b", "c"], inputs="matrix")
    assert np.abs(found - model.predict_proba(X)).max() < 1e-7


def test_a_model_without_weights(tmp_path):
    model = made(np.zeros((1, 3)))
    labels, probabilities = inferred(model, tmp_path, np.ones((2, 3)))
    assert labels.tolist() == ["yes", "yes"]
    assert np.allclose(probabilities, model.predict_proba(np.ones((2, 3))))
    named = made(np.zeros((1, 3)), names={})
    assert inferred(named, tmp_path, [{"a": 1.0}], inputs="dict")[0].tolist() == ["yes"]


def test_equal_models_give_equal_files(tmp_path):
    for name in ("a", "b"):
        made([1.0, 2.0], parameters={"rule": "ftrl"}).to_onnx(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    about = {one.key: one.value for one in onnx.load(tmp_path / "a").metadata_props}
    assert about == {"loss": "logistic", "rule": "ftrl"}


def test_refusals_write_nothing(tmp_path):
    def refused(model, message, **options):
        with pytest.raises(thresher.ParameterError, match=message):
            model.to_onnx(tmp_path / "model.onnx", **options)
        assert not list(tmp_path.iterdir())

    refused(made([1.0], n_features=2**64), "feature 0 has no name: ONNX takes features of hashed")
    refused(made([1.0], n_features=2**25), "33,554,432 features, and a dense matrix for ONNX at")
    refused(made([1.0]), "inputs must be one of auto, matrix, dict", inputs="csr")
    refused(made([1.0, 2.0]), "two features are named 'a'", names=["a", "a"])
    refused(made([1.0], loss="clipped_square"), "divides each row by the square root")
    refused(made([1.0], parameters={"multilabel": True}), "any number of labels")
    refused(made([1.0], classes=np.array(["a"])), "only the class 'a'; ONNX needs two")


def test_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(thresher.ParameterError, match=r"pip install 'thresher\[export\]'"):
        made([1.0]).to_onnx(tmp_path / "model.onnx")
