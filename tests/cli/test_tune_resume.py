"""`thresher tune` that was killed or stopped, and resumed: the same bytes as without the stop."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.files import THRESHER, called, svmlight, vw
from support.golden_cases import Interrupting

CASES = {
    "lanes": ["--grid", "l1=0.1..10:3", "--passes", "2", "--folds", "3"],
    "several groups": ["--grid", "l1=0.1..10:3", "--folds", "3", "--memory", "0.006M"],
    "plain fits": ["--grid", "target_nnz=3,10", "--passes", "2", "--folds", "2"],
    "all rows": ["--rule", "coordinate-descent", "--grid", "l1=0.001,0.01", "--folds", "2"],
    "shuffled": ["--grid", "l1=0.1,1", "--shuffle", "--passes", "2", "--seed", "3"],
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("rows")
    return [svmlight(folder / f"{n}.svm", rows=80, seed=n) for n in range(3)]


def shown(text: str) -> list[dict[str, Any]]:
    """Return the results in JSON, without times and names of files."""
    events = [json.loads(line) for line in text.splitlines()]
    found = [event for event in events if event["event"] in ("point", "done")]
    return [{k: v for k, v in one.items() if k not in ("seconds", "model")} for one in found]


def tuned(files: list[Path], model: Path, *options: str, **more: Any) -> Any:
    return called("tune", *files, "-m", model, *options, "--json", **more)


@pytest.mark.parametrize("case", CASES)
def test_stopped_after_checkpoints(tmp_path: Path, files: list[Path], case: str) -> None:
    whole, model = tmp_path / "whole", tmp_path / "model"
    expected = shown(tuned(files, whole, *CASES[case]).stdout)
    for count in (1, 2) if case == "shuffled" else (1, 4, 6):  # a shuffled source is one block
        began = [*CASES[case], "--every", "0s"]
        tuned(files, model, *began, code=130, stdout=Interrupting(count))
        assert Path(f"{model}.checkpoint").exists()
        done = tuned(files, model, *CASES[case], "--resume")
        assert '"resumed"' in done.stdout
        assert shown(done.stdout) == expected
        assert model.read_bytes() == whole.read_bytes()
        assert not Path(f"{model}.checkpoint").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_ended_by_a_signal(tmp_path: Path, files: list[Path], number: signal.Signals) -> None:
    whole, model, file = tmp_path / "whole", tmp_path / "model", tmp_path / "file"
    options = [*CASES["several groups"], "--checkpoint", str(file)]
    expected = shown(tuned(files, whole, *CASES["several groups"]).stdout)
    arguments = ["tune", *files, "-m", model, *options, "--every", "0s", "--json"]
    with subprocess.Popen(
        [*THRESHER, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        seen = 0
        for line in process.stdout:
            seen += '"checkpoint"' in line
            if seen == 5:
                break
        process.send_signal(number)
        process.communicate(timeout=100)
    assert process.returncode == (-number if number == signal.SIGKILL else 130)
    assert not model.exists()
    done = tuned(files, model, *options, "--resume", "--keep-checkpoint")
    assert shown(done.stdout) == expected
    assert model.read_bytes() == whole.read_bytes()
    assert file.exists()


def test_names_of_a_page_and_a_table(tmp_path: Path) -> None:
    rows = vw(tmp_path / "rows.vw")
    options = ["--grid", "l1=0.1,1", "--bits", "10", "--memory", "0.06M"]
    whole, model = tmp_path / "whole", tmp_path / "model"
    table = called("tune", rows, "-m", whole, *options).stdout.splitlines()
    began = [*options, "--every", "0s"]
    tuned([rows], model, *began, code=130, stdout=Interrupting(1))
    done = called("tune", rows, "-m", model, *options, "--resume", "--html", tmp_path / "page.html")
    assert "continuing from the checkpoint" in done.stderr
    assert model.read_bytes() == whole.read_bytes()
    assert [line for line in done.stdout.splitlines() if " s" not in line and "->" not in line] == [
        line for line in table if " s" not in line and "->" not in line
    ]
    assert "l1=" in (tmp_path / "page.html").read_text()


def test_a_pipe_is_resumed(tmp_path: Path, files: list[Path]) -> None:
    rows = b"".join(file.read_bytes() for file in files) * 300
    options = ["--grid", "l1=0.1,1", "--format", "svmlight"]
    whole, model = tmp_path / "whole", tmp_path / "model"
    called("tune", "-", "-m", whole, *options, stdin=rows)
    began = ["tune", "-", "-m", model, *options, "--every", "0s", "--json"]
    called(*began, code=130, stdin=rows, stdout=Interrupting(2))
    called("tune", "-", "-m", model, *options, "--resume", stdin=rows)
    assert model.read_bytes() == whole.read_bytes()


def test_refusals(tmp_path: Path, files: list[Path]) -> None:
    model, options = tmp_path / "model", ["--grid", "l1=0.1,1", "--every", "0s"]
    tuned(files, model, *options, code=130, stdout=Interrupting(1))
    done = called("tune", *files, "-m", model, "--grid", "l1=0.1,2", "--resume", code=1)
    assert "--l1 was 1.0 in the search that wrote it, and is 2.0 now" in done.stderr
    done = called("tune", *files[:2], "-m", model, "--grid", "l1=0.1,1", "--resume", code=1)
    assert "the rows are not those of the search that wrote it" in done.stderr
    done = called("train", *files, "-m", model, "--rule", "ftrl", "--resume", code=1)
    assert "is from a search, and the rule ftrl learns row by row" in done.stderr
    called("tune", *files, "-m", model, "--grid", "l1=0.1,1", "--resume")
    done = called("tune", *files, "-m", model, "--grid", "l1=0.1,1", "--resume")
    assert "the search starts from the beginning" in done.stderr
