"""Commands and examples about clusters in docs/tour.md and in examples/ work."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import clusters
from support.files import printed

ROOT = Path(__file__).resolve().parents[2]

pytestmark = clusters.needs_ray


@pytest.mark.parametrize(("where", "rows"), [("shared", 6_000), ("local", 20_000)])
@pytest.mark.soak  # 50 s; tests/cli/test_cluster.py runs such commands in every run
def test_the_shell_session_of_the_tour(where, rows, ray_nodes, tmp_path, tmp_path_factory):
    """Its commands run in their order, with fewer rows, on the cluster of the tests."""
    commands = re.findall(r"^\$ (thresher [^#\n]*)", (ROOT / "docs" / "tour.md").read_text(), re.M)
    assert len(commands) >= 16
    assert sum("--ray local" in command for command in commands) == 2
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = {}
    for command in commands:
        short = command.replace("--examples 100000", f"--examples {rows}")
        if where == "shared":
            short = short.replace("--ray local", f"--ray {ray_nodes.address}")
        done = subprocess.run(
            short,
            shell=True,
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "HOME": str(tmp_path_factory.mktemp("home"))},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, (command, done.stderr)
        found.setdefault(command.split()[1], done.stdout)
    assert found["inspect"].count("x^true") == 5
    scores = (tmp_path / "scores.txt").read_text().split()
    assert len(scores) == rows
    assert all(0 <= float(score) <= 1 for score in scores)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {
        *("clicks.vw", "clicks.thresher", "clicks.onnx", "clicks.cache", "night.thresher"),
        *("best.thresher", "kept.thresher", "spread.thresher", "scores.txt", "reasons.txt"),
        *("result.html", "report.html", "compared.html", "discovery.html", "evaluation.html"),
        "changes.html",
    }
    assert "14 combinations, 84 models" in found["tune"]


@pytest.mark.parametrize("where", ["shared", pytest.param("local", marks=pytest.mark.soak)])
def test_several_workers_give_the_same_as_one_process(where, ray_nodes, tmp_path):
    address = ["--address", ray_nodes.address] if where == "shared" else []
    out = printed("several_workers.py", tmp_path, *address)
    assert "30 weights: the same bits" in out
    found = [int(feature) for feature in re.findall(r"^feature (\d+):", out, re.M)]
    assert len(found) == 5
    assert max(found) < 30
