"""Each experiment runs on little data; docs/results.md is generated from saved results."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import ROOT

sys.path.insert(0, str(ROOT))  # experiments are not in the package

from experiments.__main__ import modules
from experiments.record import RESULTS, About, Record, verdict_of

from experiments import results

VERDICTS = {"holds", "holds in part", "does not hold", "not tested"}
ABOUT = About(
    "toy",
    "Nobody 1900",
    "Table 1",
    "a toy",
    {"K": [1, 2], "g": 0.5, "rows": None},
    quick={"g": 0.25},
    seed=3,
)


def check(found: dict[str, Any], folder: Path) -> None:
    """Check the parts that all results have."""
    assert found["parameters"]
    assert isinstance(found["seed"], int)
    assert found["claims"]
    for claim in found["claims"]:
        assert claim["verdict"] in VERDICTS
        assert all(claim[name] for name in ("claim", "paper", "ours"))
    assert found["data"]
    for facts in found["data"].values():
        assert len(facts["sha256"]) == 16
        assert facts["shapes"]
    pictures = [part["file"] for part in found["parts"] if part["kind"] == "figure"]
    assert pictures
    for file in pictures:
        assert (folder / file).read_bytes().startswith(b"\x89PNG")
    for part in found["parts"]:
        if part["kind"] == "table":
            assert part["rows"]
            assert {len(row) for row in part["rows"]} == {len(part["head"])}


LONG = ("error_sparsity_stability", "feature_density")


@pytest.mark.data
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.soak) if n in LONG else n for n in modules()],
)
def test_experiment(
    name: str, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    monkeypatch.setenv("THRESHER_DATA", str(data_dir))
    module = importlib.import_module(modules()[name])
    record = Record(module.ABOUT, tmp_path, quick=True)
    module.run(record)
    record.save()
    plt.close("all")
    found = json.loads((tmp_path / f"{name}.json").read_text())
    assert found["quick"]
    assert found["module"] == modules()[name]
    check(found, tmp_path)


def test_the_page_is_generated_from_the_results() -> None:
    """docs/results.md is not edited by hand, and has no result of a quick run."""
    if not (ROOT / "docs" / "results.md").exists():
        pytest.skip("no docs/results.md yet")
    assert (ROOT / "docs" / "results.md").read_text() == results.page()


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_results_are_complete(path: Path) -> None:
    found = json.loads(path.read_text())
    assert not found["quick"]
    assert found["module"] == modules()[path.stem]
    check(found, path.parent)


def test_command_line(tmp_path: Path) -> None:
    """One experiment runs by name; results go to --out, and the page does not change."""
    page = ROOT / "docs" / "results.md"
    before = page.read_text() if page.exists() else None
    command = [sys.executable, "-m", "experiments", "exactness", "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "exactness: done" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"exactness.json", "exactness-1.png"}
    assert (page.read_text() if page.exists() else None) == before
    command[3] = "exactnes"
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no experiment exactnes; there are: " in done.stderr


# ---- records -----------------------------------------------------------------------------------


def toy(folder: Path, quick: bool = False, pictures: int = 1) -> dict[str, Any]:
    plt = pytest.importorskip("matplotlib.pyplot")
    record = Record(ABOUT, folder, quick)
    record.uses("rows", sp.csr_matrix(np.eye(3)), np.ones(3))
    record.say("Words.")
    record.table("Numbers", ["a", "b|c"], [[np.float32(0.5), np.nan], [np.int64(12345), "x|y"]])
    for _ in range(pictures):
        figure, ax = plt.subplots()
        ax.plot([1, 2])
        record.figure("A line", figure)
        plt.close(figure)
    record.claim("it is so", paper="1", ours="2", verdict=verdict_of(0.5))
    record.claim("so is this", paper="-", ours="3", verdict=verdict_of(1.0), own=True)
    found: dict[str, Any] = json.loads(record.save().read_text())
    return found


def test_record(tmp_path: Path) -> None:
    found = toy(tmp_path)
    assert found["parameters"] == {"K": [1, 2], "g": 0.5, "rows": None}
    assert found["seed"] == 3
    assert found["data"]["rows"]["shapes"] == ["3 x 3", "3"]
    table = found["parts"][1]
    assert table["rows"] == [[0.5, None], [12345, "x|y"]]
    assert found["claims"][0]["verdict"] == "holds in part"
    check(found, tmp_path)
    assert not list(tmp_path.glob("*.unfinished"))


def test_digests_of_different_data_differ(tmp_path: Path) -> None:
    first, second = Record(ABOUT, tmp_path), Record(ABOUT, tmp_path)
    first.uses("rows", np.arange(4.0))
    second.uses("rows", np.arange(4.0)[::-1])
    assert first._data != second._data
    second.uses("rows", np.arange(4.0))
    assert first._data == second._data


def test_a_later_run_replaces_an_earlier_one(tmp_path: Path) -> None:
    toy(tmp_path, pictures=3)
    assert len(list(tmp_path.glob("*.png"))) == 3
    found = toy(tmp_path, quick=True)
    assert found["parameters"]["g"] == 0.25
    assert [path.name for path in tmp_path.glob("*.png")] == ["toy-1.png"]


def test_page(tmp_path: Path) -> None:
    toy(tmp_path)
    page = results.page(tmp_path)
    heading = "Nobody 1900, Table 1: a toy"
    assert f"## {heading}" in page
    assert f"(#{results.anchor(heading)})" in page
    counts = "does not hold 0, not tested 0)."
    assert f"The papers' claims: 1 (holds 0, holds in part 1, {counts}" in page
    assert f"Own statements: 1 (holds 1, holds in part 0, {counts}" in page
    assert "| *own:* so is this | - | 3 | **holds** |" in page
    assert "| it is so | 1 | 2 | **holds in part** |" in page
    assert "| 12,345 | x\\|y |" in page
    assert "![A line](results/toy-1.png)" in page
    assert "seed 3; K = [1, 2], g = 0.5. Data: rows (3 x 3, 3; " in page
    assert "quick run" not in page
    toy(tmp_path, quick=True)
    assert "A quick run, with little data." in results.page(tmp_path)
    results.build(tmp_path, tmp_path / "results.md")
    assert (tmp_path / "results.md").read_text() == results.page(tmp_path)


def test_verdicts() -> None:
    """Verdicts of shares: all, at least half, fewer."""
    shares = {1.0: "holds", 0.99: "holds in part", 0.5: "holds in part", 0.49: "does not hold"}
    assert {share: verdict_of(share) for share in shares} == shares
