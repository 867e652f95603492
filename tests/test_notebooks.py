"""The notebooks of docs/notebooks run, and print what is stored in them."""

import json
import runpy
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot", reason="the notebooks draw with matplotlib")

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
    plt.close("all")  # pictures that other tests left open
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


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_page_of_a_notebook_shows_all_of_it(name):
    pytest.importorskip("myst_parser", reason="the site needs Sphinx and myst-parser")
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text())
    extension = runpy.run_path(str(FOLDER.parent / "extensions" / "notebook_pages.py"))
    page = extension["page_of"](notebook)
    for cell in notebook["cells"]:
        assert "".join(cell["source"]).rstrip() in page
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                assert f'<img alt="{cell["metadata"]["alt"]}" src="data:image/png;base64,' in page
                assert len(cell["metadata"]["alt"]) > 40
    for _, text in (pair for cell in notebook["cells"] for pair in texts(cell.get("outputs", []))):
        assert text.startswith("<Figure>") or text.rstrip() in page
