"""What make says while it works."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE = "building: 2 to 10 minutes"


def test_the_first_build_says_how_long_it_takes(tmp_path):
    """The commands of make are looked at, not run; only the line itself is."""
    plan = ["make", "-n", f"VENV={tmp_path}", "demo"]
    commands = subprocess.run(plan, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (said,) = (line for line in commands.splitlines() if LINE in line)
    assert said in commands.partition("--editable .")[0]

    def shown():
        return subprocess.run(said, shell=True, capture_output=True, text=True, check=True).stdout

    assert shown() == LINE + "\n"
    (tmp_path / ".installed").touch()
    assert shown() == ""
