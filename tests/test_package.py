import difflib
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import thresher

ROOT = Path(__file__).resolve().parent.parent


def test_version_is_the_same_everywhere():
    assert thresher.__version__ == metadata.version("thresher")


def test_stub_of_the_core_is_current(tmp_path):
    fresh = tmp_path / "_core.pyi"
    stubgen = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "thresher._core"]
    subprocess.run([*stubgen, "-o", str(fresh)], check=True)
    ruff = [sys.executable, "-m", "ruff", "format", "--quiet"]
    subprocess.run([*ruff, "--config", str(ROOT / "pyproject.toml"), str(fresh)], check=True)
    committed = ROOT / "src" / "thresher" / "_core.pyi"
    difference = difflib.unified_diff(
        committed.read_text().splitlines(), fresh.read_text().splitlines(), lineterm=""
    )
    assert not list(difference), "src/thresher/_core.pyi is out of date: run `make stub`"
