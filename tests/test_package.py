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


def test_names_that_other_modules_use_are_public():
    """A leading underscore says: of this module alone."""
    private = [
        f"{path.name}: {name.name} of {node.module}"
        for path in (ROOT / "src" / "thresher").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("thresher")
        for name in node.names
        if name.name.startswith("_") and name.name not in ("_core", "__version__")
    ]
    assert private == []


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


def test_import_is_light_and_names_come_when_asked_for():
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
