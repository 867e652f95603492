"""Makes the package `speed` importable, and a package of small fake lines."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = str(ROOT / "benchmarks")
if BENCHMARKS not in sys.path:
    sys.path.append(BENCHMARKS)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return a function that writes a package of areas, by name and text, and returns its name."""

    def make(name, **texts):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        for area, text in texts.items():
            (folder / f"{area}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        return name

    return make
