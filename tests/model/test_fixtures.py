"""Files of earlier versions give the same results as then; their runs can be resumed."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import pytest

from fixtures import make
from thresher.errors import ModelFileError

FOLDERS = sorted(path for path in Path(make.__file__).parent.glob("*.*.*") if path.is_dir())


@pytest.fixture(params=FOLDERS, ids=lambda path: path.name)
def before(request, tmp_path):
    """Change to a folder with a copy of the files of a version; return their results."""
    shutil.copytree(request.param, tmp_path, dirs_exist_ok=True)
    known = json.loads((tmp_path / "results.json").read_text())
    if known["platform"] != make.PLATFORM:
        pytest.skip(f"the results were computed on {known['platform']}")
    with make.working_in(tmp_path):
        yield known["results"]


def same(found, wanted):
    """Check that two values are equal after conversion to JSON."""
    assert json.loads(json.dumps(found)) == wanted


@pytest.mark.parametrize("name", make.MODELS)
def test_models(before, name):
    same(make.of_model(make.thresher.load(f"{name}.thresher")), before[f"{name}.thresher"])


@pytest.mark.parametrize("name", make.SERIAL)
def test_runs_can_be_resumed(before, name):
    same(make.of_serial(name), before[f"{name}.thresher.checkpoint"])


@pytest.mark.parametrize("name", make.CLUSTER)
def test_runs_on_a_cluster_can_be_resumed(before, name):
    same(make.of_cluster(name), before[name])


def test_comparisons_can_be_resumed(before, request):
    """Those of version 0.1.0 are refused: its automatic rates were other ones."""
    if request.node.callspec.params["before"].name != "0.1.0":
        same(make.of_comparison(), before["compare.json"])
        return
    with pytest.raises(ModelFileError, match=r"written by Thresher 0\.1\.0, whose results differ"):
        make.of_comparison()


@pytest.mark.parametrize("name", make.ESTIMATORS)
def test_pickled_estimators(before, name):
    same(make.of_pickle(name), before[f"{name}.pickle"])


def test_pickled_models_of_searches_and_clusters():
    """The file has a dict of pickles of version 0.1.0, their predictions, and the rows."""
    pickled, predicted, X = pickle.loads((FOLDERS[0] / "searches.pickle").read_bytes())
    assert list(pickled) == ["best", "model", "path", "cluster", "single"]
    for name, content in pickled.items():
        found = pickle.loads(content)
        assert found.predict(X).tolist() == predicted[name], name
        if name in ("best", "path"):
            assert found.model_.frontier is not None
