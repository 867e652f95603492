"""Defaults on real data, end to end: error and sparsity where they should be."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import thresher
from thresher import ForwardBackwardClassifier, FTRLClassifier, TruncatedGradientClassifier

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def datasets() -> ModuleType:
    """Return the loaders of the benchmarks."""
    path = Path(__file__).parents[1] / "benchmarks" / "datasets.py"
    spec = importlib.util.spec_from_file_location("datasets", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["datasets"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "error"), [("a9a", 0.155), ("agaricus", 0.002), ("basehock", 0.025), ("pcmac", 0.10)]
)
@pytest.mark.parametrize(
    "cls", [TruncatedGradientClassifier, ForwardBackwardClassifier, FTRLClassifier]
)
def test_defaults(data_dir: Path, datasets: ModuleType, cls: Any, name: str, error: float) -> None:
    """The default reaches about the error that tuned linear models reach on these sets."""
    data = datasets.load(name, data_dir)
    model = cls(random_state=0).fit(data.X_train, data.y_train)
    assert 1 - model.score(data.X_test, data.y_test) <= error
    assert 0 < model.model_.nnz < data.X_train.shape[1]


def test_a_sparse_model_of_real_text(data_dir: Path, datasets: ModuleType, tmp_path: Path) -> None:
    """A few hundred words of two newsgroups, streamed, saved and loaded again."""
    data = datasets.load("basehock", data_dir)
    online = FTRLClassifier(l1=1.0)
    for _ in range(5):
        for start in range(0, data.X_train.shape[0], 200):
            rows = slice(start, start + 200)
            online.partial_fit(data.X_train[rows], data.y_train[rows], classes=[-1, 1])
    assert online.model_.density < 0.25
    assert online.score(data.X_test, data.y_test) > 0.96
    losses = [record.loss for record in online.history_]
    assert losses[-1] < 0.3 * losses[0]
    online.model_.save(tmp_path / "news.thresher")
    loaded = thresher.load(tmp_path / "news.thresher")
    np.testing.assert_array_equal(loaded.predict(data.X_test), online.predict(data.X_test))
