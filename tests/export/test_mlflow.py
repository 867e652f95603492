"""`thresher.mlflow` with a local store; skipped where MLflow is not installed."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import thresher
import thresher.mlflow
from support.linear_models import made
from thresher import FTRLClassifier

X = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.5]] * 30)
Y = np.array(["yes", "no"] * 30)


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    found = pytest.importorskip("mlflow", reason="mlflow is not installed: thresher[mlflow]")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = found.get_tracking_uri()
    found.set_tracking_uri((tmp_path / "store").as_uri())
    yield found
    found.set_tracking_uri(before)


def test_a_model_is_logged_registered_and_loaded(mlflow):
    estimator = FTRLClassifier(random_state=0).fit(X, Y)
    signature = mlflow.models.infer_signature(X, Y)
    with mlflow.start_run():
        found = thresher.mlflow.log_model(
            estimator, "clicks", signature=signature, registered_model_name="clicks",
            metadata={"source": "test"},
        )  # fmt: skip
    for uri in (found.model_uri, "models:/clicks/1"):
        model = thresher.mlflow.load_model(uri)
        assert np.array_equal(model.weights, estimator.model_.weights)
        assert model.predict(X).tolist() == Y.tolist()
        served = mlflow.pyfunc.load_model(uri)
        assert served.predict(X).tolist() == Y.tolist()
    assert served.metadata.metadata == {"source": "test"}
    assert served.metadata.signature == signature
    assert {"python_function", "thresher"} == set(served.metadata.flavors)


def test_a_folder_without_pickles(mlflow, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"age": X[:, 2], "colour": np.where(X[:, 0] > 0, "red", "blue")})
    model = FTRLClassifier(random_state=0, l1=0.0).fit(frame, Y).model_
    folder = tmp_path / "saved"
    thresher.mlflow.save_model(model, str(folder), pip_requirements=["thresher", "pyarrow"])
    names = {path.name for path in folder.rglob("*")}
    assert names == {
        "MLmodel", "model.thresher", "requirements.txt", "conda.yaml", "python_env.yaml",
    }  # fmt: skip
    assert (folder / "requirements.txt").read_text() == "thresher\npyarrow\n"
    assert json.loads((folder / "python_env.yaml").read_text())["dependencies"]
    model.save(tmp_path / "plain")
    assert (folder / "model.thresher").read_bytes() == (tmp_path / "plain").read_bytes()
    assert thresher.mlflow.load_model(str(folder)).predict(frame).tolist() == Y.tolist()
    served = mlflow.pyfunc.load_model(str(folder))
    assert served.predict(frame).tolist() == Y.tolist()
    raw = served._model_impl
    assert raw.predict([{"age": 2.0, "colour": "red"}]).tolist() == ["yes"]
    shares = raw.predict(frame, {"method": "predict_proba"})
    assert np.array_equal(shares, model.predict_proba(frame))
    with pytest.raises(thresher.ParameterError, match="method must be one of predict, predict_p"):
        raw.predict(frame, {"method": "__del__"})
    with pytest.raises(thresher.ParameterError, match="exists, and is not an empty folder"):
        thresher.mlflow.save_model(model, str(folder))
    (folder / "model.thresher").write_bytes(b"\x80\x04.")
    with pytest.raises(thresher.ModelFileError, match="not a model"):
        thresher.mlflow.load_model(str(folder))


def test_what_is_not_a_model_is_refused(mlflow, tmp_path):
    with pytest.raises(thresher.ParameterError, match="a Model or a fitted estimator; got 'dict'"):
        thresher.mlflow.save_model({}, str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_without_mlflow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(thresher.ParameterError, match=r"pip install 'thresher\[mlflow\]'"):
        thresher.mlflow.save_model(made([1.0]), str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
