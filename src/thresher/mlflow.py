"""Models of Thresher in MLflow: save, log and load them, also as a pyfunc.

It needs MLflow 3, or its small part: ``pip install 'thresher[mlflow]'``. A saved model is a folder
with the model file of `Model.save`: loading it runs no code of the file, and reads no pickle.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from thresher._version import __version__
from thresher.atomic import write_whole
from thresher.disk_sync import make_folder
from thresher.errors import ParameterError
from thresher.model.model import Model, load

__all__ = ["FLAVOR", "get_default_pip_requirements", "load_model", "log_model", "save_model"]

FLAVOR = "thresher"
_FILE = "model.thresher"
_METHODS = ("predict", "predict_proba", "decision_function")


def get_default_pip_requirements() -> list[str]:
    """Return the packages that a served model needs."""
    return [f"thresher=={__version__}"]


def save_model(
    model: Any,
    path: str,
    mlflow_model: Any = None,
    signature: Any = None,
    pip_requirements: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write a model as a folder of MLflow.

    Parameters
    ----------
    model : Model or fitted estimator
    path : str
        The folder; it must not exist, or be empty.
    mlflow_model : mlflow.models.Model, optional
        The description to which the flavours are added.
    signature : mlflow.models.ModelSignature, optional
        Columns and types of the rows, for example from ``mlflow.models.infer_signature``.
    pip_requirements : sequence of str, optional
        Packages that a served model needs. Default: this version of Thresher.
    metadata : mapping, optional
        More facts for the description.
    """
    mlflow = _mlflow()
    model = _model_of(model)
    if os.path.exists(path) and (not os.path.isdir(path) or os.listdir(path)):
        raise ParameterError(f"{path}: exists, and is not an empty folder")
    described = mlflow.models.Model() if mlflow_model is None else mlflow_model
    if signature is not None:
        described.signature = signature
    if metadata is not None:
        described.metadata = dict(metadata)
    mlflow.pyfunc.add_to_model(
        described,
        loader_module="thresher.mlflow",
        data=_FILE,
        conda_env="conda.yaml",
        python_env="python_env.yaml",
    )
    described.add_flavor(FLAVOR, thresher_version=__version__, data=_FILE, loss=model.loss)
    make_folder(path)
    model.save(os.path.join(path, _FILE))
    described.model_size_bytes = os.path.getsize(os.path.join(path, _FILE))
    _write_requirements(path, list(pip_requirements or get_default_pip_requirements()))
    described.save(os.path.join(path, "MLmodel"))


def log_model(model: Any, name: str = "model", **options: Any) -> Any:
    """Log a model to the active run, or to a new one, and perhaps register it.

    Parameters
    ----------
    model : Model or fitted estimator
    name : str
        The name of the logged model.
    **options
        Arguments of `save_model`, and those of ``mlflow.models.Model.log``, such as
        `registered_model_name`.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its `model_uri` is the address for `load_model`.
    """
    mlflow = _mlflow()
    found = _model_of(model)
    flavor = sys.modules[__name__]
    return mlflow.models.Model.log(None, flavor, name=name, model=found, **options)


def load_model(model_uri: str, dst_path: str | None = None) -> Model:
    """Load a model that `log_model` or `save_model` wrote.

    Parameters
    ----------
    model_uri : str
        A folder, or an address such as ``models:/clicks/3`` or ``runs:/RUN/model``.
    dst_path : str, optional
        An existing folder to which the files are copied.

    Raises
    ------
    ModelFileError
        If the file in it is not a model, or is damaged.
    """
    folder = _mlflow().artifacts.download_artifacts(artifact_uri=model_uri, dst_path=dst_path)
    return load(os.path.join(folder, _FILE))


class _Predictor:
    """A model as a pyfunc: `predict` takes DataFrames, arrays, CSR matrices, or lists of dicts."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def get_raw_model(self) -> Model:
        """Return the model."""
        return self.model

    def predict(self, rows: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Return labels, or values; with the parameter `method`, the result of another method."""
        method = (params or {}).get("method", "predict")
        if method not in _METHODS:
            raise ParameterError(
                parameter="method", value=method, allowed=f"one of {', '.join(_METHODS)}"
            )
        return getattr(self.model, method)(rows)


def _load_pyfunc(path: str) -> _Predictor:
    """Return the model of a file; MLflow calls it."""
    return _Predictor(load(path))


def _model_of(model: Any) -> Model:
    found = getattr(model, "model_", model)
    if not isinstance(found, Model):
        raise ParameterError(
            parameter="model", value=type(model).__name__, allowed="a Model or a fitted estimator"
        )
    return found


def _mlflow() -> Any:
    try:
        import mlflow
        import mlflow.artifacts
        import mlflow.models
        import mlflow.pyfunc
    except ImportError:
        raise ParameterError(
            "thresher.mlflow needs the package mlflow: pip install 'thresher[mlflow]'"
        ) from None
    return mlflow


def _write_requirements(folder: str, packages: list[str]) -> None:
    """Write the environment for pip, virtualenv and conda; JSON is YAML, too."""
    python = platform.python_version()
    conda = {
        "name": "mlflow-env",
        "channels": ["conda-forge"],
        "dependencies": [f"python={python}", "pip", {"pip": packages}],
    }
    virtual = {
        "python": python,
        "build_dependencies": ["pip"],
        "dependencies": ["-r requirements.txt"],
    }
    for name, content in (
        ("requirements.txt", "\n".join(packages)),
        ("conda.yaml", json.dumps(conda, indent=1)),
        ("python_env.yaml", json.dumps(virtual, indent=1)),
    ):
        write_whole(os.path.join(folder, name), f"{content}\n".encode())
