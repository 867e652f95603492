"""Files contain the version that wrote them; old formats are read, newer ones are refused."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import thresher
from fixtures import make
from support.files import svmlight
from thresher.comparison.checkpoint import ComparisonCheckpoint
from thresher.distributed import ContinueLater, fit
from thresher.distributed.engine.manifest import Manifest
from thresher.errors import DataError, ModelFileError
from thresher.training import checkpoint as checkpoints
from thresher.training.checkpoint import TrainingCheckpoint

FIXTURES = Path(make.__file__).parent


def model(path):
    estimator = thresher.FTRLClassifier(random_state=0).fit(np.eye(4), [0, 1, 0, 1])
    estimator.model_.save(path, state=True)
    return path, "thresher", thresher.load, ModelFileError


def checkpoint(path):
    TrainingCheckpoint({"seconds": 0.0}, [b"abc"]).write(path)
    return path, "thresher-checkpoint", checkpoints.read, ModelFileError


def comparison(path):
    ComparisonCheckpoint(path, {}).write()
    return path, None, lambda path: ComparisonCheckpoint(path, {}), DataError


def manifest(path):
    rows = svmlight(Path(f"{path}.svm"), rows=60)
    estimator = thresher.FTRLClassifier(random_state=0)
    with pytest.raises(ContinueLater):
        fit(estimator, rows, workers=0, checkpoint=path, watch=lambda report: True)
    return path / "manifest.json", None, lambda path: Manifest.read(path.parent), ModelFileError


KINDS = {kind.__name__: kind for kind in (model, checkpoint, comparison, manifest)}


def description(path, key):
    """Return the description in a file."""
    if key is None:
        return json.loads(path.read_text())
    with safe_open(path, framework="numpy") as file:
        return json.loads(file.metadata()[key])


def describe(path, key, about):
    """Replace the description in a file."""
    if key is None:
        path.write_text(json.dumps(about))
        return
    with safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(tensors, path, {key: json.dumps(about)})


@pytest.mark.parametrize("kind", KINDS)
def test_newer_formats_are_refused_with_the_version_that_wrote_them(kind, tmp_path):
    path, key, read, error = KINDS[kind](tmp_path / "written")
    about = description(path, key)
    assert about["version"] == thresher.__version__
    newest = about["format"]
    read(path)
    for version, writer in (("9.8.7", "Thresher 9.8.7"), (None, "a newer Thresher")):
        newer = {**about, "format": newest + 1, "version": version}
        describe(path, key, {name: value for name, value in newer.items() if value is not None})
        message = (
            f"{path}: written by {writer} in format {newest + 1}; this is Thresher "
            f"{thresher.__version__}, which reads formats up to {newest}; use a newer version"
        )
        with pytest.raises(error, match=f"^{re.escape(message)}$"):
            read(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("format", [0, -1, True, 1.0, "1", None])
def test_invalid_format_numbers_count_as_damage(kind, format, tmp_path):
    path, key, read, error = KINDS[kind](tmp_path / "written")
    describe(path, key, {**description(path, key), "format": format})
    with pytest.raises(error, match=r"damaged|not a checkpoint of a comparison"):
        read(path)


def test_checkpoints_have_the_version_that_wrote_them(tmp_path):
    path, *_ = checkpoint(tmp_path / "written")
    assert checkpoints.read(path).version == thresher.__version__
    early = FIXTURES / "0.1.0" / "single.thresher.checkpoint"
    assert checkpoints.read(early).version == "0.1.0 or earlier"


def test_other_files_are_no_checkpoints(tmp_path):
    path = tmp_path / "other"
    save_file({"state0": np.ones(3)}, path)
    with pytest.raises(ModelFileError, match="other: a safetensors file, but not a checkpoint"):
        checkpoints.read(path)
    shutil.copy(FIXTURES / "format-1" / "model.thresher", path)
    with pytest.raises(ModelFileError, match="other: a safetensors file, but not a checkpoint"):
        checkpoints.read(path)
    path.write_bytes(b"1 1:1\n")
    with pytest.raises(ModelFileError, match="other"):
        checkpoints.read(path)


def test_models_of_format_1_are_read():
    """Their names are in the JSON text."""
    found = thresher.load(FIXTURES / "format-1" / "model.thresher")
    assert [feature.name for feature in found.top(2)] == ["size", "größe"]
    assert found.predict(np.array([[0.0, 1.0, 0.0]])).tolist() == ["yes"]
    nameless = thresher.load(FIXTURES / "format-1" / "nameless.thresher")
    assert nameless.names is None
    assert np.array_equal(nameless.weights, found.weights)
    assert sorted(os.listdir(FIXTURES / "format-1")) == [
        "README.md", "model.thresher", "nameless.thresher",
    ]  # fmt: skip
