"""Ends `thresher train` by signals at random moments; a resumed run must write the same bytes."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import tempfile
from pathlib import Path

from support.files import THRESHER, svmlight, thresher, vw

CASES: dict[str, list[str]] = {
    "ftrl": ["--passes", "30", "--rule", "ftrl", "--bits", "10"],
    "truncated-gradient": ["--passes", "30", "--rule", "truncated-gradient", "--shuffle"],
    "averaged": ["--passes", "30", "--rule", "truncated-gradient", "--average", "--l2", "1e-4"],
    "multiclass": ["--passes", "6", "--multiclass"],
    "cache": ["--passes", "30", "--shuffle", "--cache", "rows.cache"],
    "names": ["--passes", "6", "-q", "wa"],
}


class Case:
    """A run of `thresher train` in a folder, with the bytes of its model when nothing happens."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        if name == "names":
            data = vw(folder / "rows.vw", rows=40_000)
        else:
            classes = (1, 2, 5) if name == "multiclass" else (-1, 1)
            data = svmlight(folder / "rows.svm", rows=1000, repeat=48, classes=classes)
        self.arguments = ["train", data.name, *CASES[name]]
        self.model = folder / "model.thresher"
        thresher(*self.arguments, "-m", self.model.name, "--quiet", cwd=folder)
        self.bytes = self.model.read_bytes()

    def end_by(self, how: signal.Signals, delay: float) -> bool:
        """Start or resume a run and send it a signal; return whether that ended it.

        The delay begins at the first checkpoint.
        """
        self.model.unlink(missing_ok=True)
        process = subprocess.Popen(
            [*THRESHER, *self.arguments, "-m", self.model.name, "--every", "0.01s", "--resume",
             "--json"],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["event"] == "checkpoint":
                break
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(delay)
        process.send_signal(how)
        _, message = process.communicate(timeout=120)
        if self.model.exists():
            return False  # the run had ended
        allowed = {-how} if how == signal.SIGKILL else {128 + how, 130}
        assert process.returncode in allowed, (process.returncode, message)
        assert how == signal.SIGKILL or os.path.exists(f"{self.model}.checkpoint"), message
        return True

    def finish(self) -> None:
        """Let the run end, and compare the model."""
        thresher(*self.arguments, "-m", self.model.name, "--resume", "--quiet", cwd=self.folder)
        assert self.model.read_bytes() == self.bytes, "other bytes after resume"
        left = {path.name for path in self.folder.iterdir()}
        left -= {"rows.svm", "rows.vw", "rows.cache", self.model.name}
        assert not left, f"files are left: {sorted(left)}"


def kill(name: str, count: int, how: signal.Signals, seed: int) -> tuple[int, list[str]]:
    """End runs of a case until `count` were ended; return that number and what was wrong.

    Each run resumes the one before. After three, one is finished and compared.
    """
    rng = random.Random(f"{name} {how} {seed}")
    ended, turn, failures = 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        case = Case(name, Path(folder))
        while ended < count and turn < 10 * count and not failures:
            turn += 1
            try:
                # Earlier each time: a resumed run has less to do.
                ended += case.end_by(how, rng.uniform(0, 0.15 / (1 + turn % 4)))
                if turn % 4 == 3 or ended == count:
                    case.finish()
            except (AssertionError, subprocess.TimeoutExpired) as error:
                failures.append(f"{name}, {how.name}, seed {seed}, run {turn}: {error}")
    if ended < count and not failures:
        failures.append(f"{name}, {how.name}: runs ended before the signal: make them longer")
    return ended, failures
