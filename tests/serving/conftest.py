"""Models and one server for each module of tests."""

import socket

import numpy as np
import pytest

from support.serving_rows import named_rows
from thresher import FTRLClassifier, FTRLRegressor, OnePassClassifier


@pytest.fixture(scope="package")
def named_model():
    """Return a classifier of two classes over named features."""
    rows, labels = named_rows(400)
    return OnePassClassifier().partial_fit(rows, labels, classes=[0, 1]).model_


@pytest.fixture(scope="package")
def matrix_model():
    """Return a classifier of three classes over columns."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    y = np.array(["low", "mid", "high"])[np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])]
    return FTRLClassifier(random_state=0).fit(X, y).model_


@pytest.fixture(scope="package")
def number_model():
    """Return a regression over columns."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3))
    return FTRLRegressor(random_state=0).fit(X, X @ [2.0, -1.0, 0.5] + 10).model_


@pytest.fixture
def free_port():
    """Return a port that was free just now."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]
