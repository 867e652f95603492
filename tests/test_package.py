"""The package: its version, its imports and the stub of the core."""

import ast
import difflib
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import thresher

ROOT = Path(__file__).resolve().parent.parent


def test_version_is_the_same_everywhere():
    assert thresher.__version__ == metadata.version("thresher")


def test_modules_import_only_public_names_of_each_other():
    """A name with a leading underscore is used only in its own module."""
    private = [
        f"{path.name}: {name.name} of {node.module}"
        for path in (ROOT / "src" / "thresher").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("thresher")
        for name in node.names
        if name.name.startswith("_") and name.name not in ("_core", "__version__")
    ]
    assert private == []


def test_the_stub_of_the_core_is_up_to_date(tmp_path):
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


def test_import_is_fast_and_names_are_imported_when_first_used():
    code = """if True:
        import sys, thresher
        print({"scipy", "sklearn"} & set(sys.modules))
        print(all(getattr(thresher, name) is not None for name in thresher.__all__))
        print(set(thresher.__all__) <= set(dir(thresher)))
        print(thresher.stability.stability_score is thresher.stability_score)
    """
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == ["set()", "True", "True", "True"]
