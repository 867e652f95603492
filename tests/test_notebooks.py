"""The notebooks of docs/notebooks run, and print what is stored in them."""

import json
import runpy
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the notebooks draw with matplotlib")

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def texts(outputs):
    """Return the type and the text of each output; pictures count, but not their bytes."""
    found = []
    for output in outputs:
        text = output.get("text") or output["data"]["text/plain"]
        found.append((output["output_type"], "".join(text)))
    return found


def test_the_index_lists_all_notebooks():
    index = (FOLDER / "index.md").read_text()
    assert len(NOTEBOOKS) == 3
    for name in NOTEBOOKS:
        assert f"\n{name}\n" in index
        assert f"({name}.ipynb)" in index


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_prints_what_is_stored(name, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    runner = runpy.run_path(str(FOLDER / "make.py"))
    pictures = 0
    for cell, outputs in zip(cells, runner["run"](notebook), strict=True):
        assert texts(outputs) == texts(cell["outputs"])
        for output in cell["outputs"]:
            pictures += "image/png" in output.get("data", {})
    assert pictures >= 1
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
