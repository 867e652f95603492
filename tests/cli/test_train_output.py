"""What `thresher train` prints: JSON, tables, nothing with --quiet."""

import json
import subprocess

import pytest

from support.files import THRESHER, called
from support.training_cases import events, trained

HANDOVER = "the rule is ftrl, because the passes of one-pass need --shuffle"


def test_json_events(folder):
    _, done = trained(folder, "rows.svm", "--passes", "3", "--json", "--every", "0s")
    assert done.stderr == ""
    found = events(done)
    kinds = [event["event"] for event in found]
    assert set(kinds) == {"note", "progress", "pass", "checkpoint", "done"}
    assert kinds.count("note") == 1
    assert found[0] == {"event": "note", "message": HANDOVER}
    assert kinds.count("pass") == 3
    assert kinds[-1] == "done"
    for event in found:
        if event["event"] == "progress":
            assert {"examples", "pass", "loss", "mean_loss", "nonzeros", "seconds"} < set(event)
            assert {"rows_per_second", "done", "left"} < set(event)
    last = found[-1]
    assert last["examples"] == 1200
    assert last["model"].endswith("model.thresher")
    assert 0 < last["mean_loss"] < 0.7
    assert not (folder / "model.thresher.checkpoint").exists()


def test_json_is_valid_if_training_diverges(folder):
    """Infinite numbers and NaN are null."""
    done = subprocess.run(
        [
            *[*THRESHER, "train", folder / "rows.svm", "-m", folder / "wild.thresher", "--json"],
            *["--loss", "squared", "--eta0", "50", "--passes", "40"],
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    for line in done.stdout.splitlines():
        json.loads(line, parse_constant=lambda word: pytest.fail(word))


def test_quiet_prints_nothing(folder):
    _, done = trained(folder, "rows.svm", "--quiet")
    assert done.stdout == done.stderr == ""
    out = folder / "quiet.txt"
    done = called("predict", folder / "model.thresher", folder / "rows.svm", "-o", out, "--quiet")
    assert done.stdout == done.stderr == ""
    done = called("convert", folder / "rows.svm", folder / "quiet.vw", "--quiet")
    assert done.stdout == done.stderr == ""


def test_the_progress_table_in_a_pipe(folder):
    _, done = trained(folder, "rows.svm", "--valid", str(folder / "other.svm"), "--passes", "2")
    told = done.stderr.splitlines()
    assert told[0] == HANDOVER
    assert told[1].split() == ["examples", "pass", "loss", "nonzeros", "rows/s", "done", "left"]
    assert told[-1].startswith("pass 2: loss on the validation rows 0.")
    assert "\x1b" not in done.stderr
    assert "800 examples" in done.stdout
