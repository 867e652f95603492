"""The README's shell session works as it stands there, in its order."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.xdist_group("ray")
def test_the_shell_session_of_the_readme(tmp_path, tmp_path_factory):
    commands = re.findall(r"^\$ (thresher [^#\n]*)", (ROOT / "README.md").read_text(), re.M)
    assert len(commands) >= 6
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    printed = {}
    for command in commands:
        done = subprocess.run(
            command.replace("--examples 100000", "--examples 20000").replace("--l1 300", "--l1 60"),
            shell=True,
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "HOME": str(tmp_path_factory.mktemp("home"))},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, (command, done.stderr)
        printed[command.split()[1]] = done.stdout
    assert printed["inspect"].count("x^true") == 5
    scores = (tmp_path / "scores.txt").read_text().split()
    assert len(scores) == 20_000
    assert all(0 <= float(score) <= 1 for score in scores)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {
        *("clicks.vw", "clicks.thresher", "scores.txt", "night.thresher", "clicks.cache"),
        *("best.thresher", "result.html", "report.html", "compared.html"),
        *("spread.thresher", "run"),
    }
    assert "14 combinations, 84 models" in printed["tune"]
