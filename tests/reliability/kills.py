"""Ends `thresher train` by signals at random moments; a resumed run must write the same bytes."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from support.files import THRESHER, svmlight, thresher, vw

CASES: dict[str, list[str]] = {
    "ftrl": ["train", "--passes", "30", "--rule", "ftrl", "--bits", "10"],
    "truncated-gradient": ["train", "--passes", "30", "--rule", "truncated-gradient", "--shuffle"],
    "averaged": [
        *("train", "--passes", "30", "--rule", "truncated-gradient", "--average", "--l2", "1e-4"),
    ],
    "multiclass": ["train", "--passes", "6", "--multiclass"],
    "cache": ["train", "--passes", "30", "--shuffle", "--cache", "rows.cache"],
    "names": ["train", "--passes", "6", "-q", "wa"],
    "search": ["tune", "--passes", "3", "--grid", "l1=0.1,1", "--folds", "3"],
}
MOMENTS = ("start", "checkpoint", "end")
Event = dict[str, Any]


class Case:
    """A run of `thresher` in a folder, with the bytes of its model when nothing happens."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        if name == "names":
            data = vw(folder / "rows.vw", rows=40_000)
        else:
            classes = (1, 2, 5) if name == "multiclass" else (-1, 1)
            data = svmlight(folder / "rows.svm", rows=1000, repeat=48, classes=classes)
        command, *options = CASES[name]
        self.model = folder / "model.thresher"
        self.arguments = [command, data.name, *options, "-m", self.model.name]
        self.resumed = [*self.arguments, "--resume"]
        if command == "tune":
            self.resumed += ["--checkpoint", f"{self.model.name}.checkpoint"]
        begin = time.monotonic()
        events = thresher(*self.arguments, "--json", cwd=folder).stdout.splitlines()
        self.seconds = time.monotonic() - begin
        self.last = _what(json.loads(events[-2]))  # before it writes the model
        self.bytes = self.model.read_bytes()
        self.inputs = {path.name for path in folder.iterdir()}

    def end_by(self, how: signal.Signals, moment: str, share: float) -> bool:
        """Start or resume a run and send it a signal; return whether that ended it.

        The signal comes at a share of the time of a run, or of a part of a second after the first
        checkpoint, or after the last event before the model is written.
        """
        self.model.unlink(missing_ok=True)
        process = subprocess.Popen(
            [*THRESHER, *self.resumed, "--every", "0.01s", "--json"],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        if moment == "start":
            delay = share * self.seconds
        else:
            delay = share * (0.15 if moment == "checkpoint" else 0.02)
            assert process.stdout is not None
            for line in process.stdout:
                event = json.loads(line)
                if (moment == "checkpoint" and event["event"] == moment) or (
                    _what(event) == self.last
                ):
                    break
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(delay)
        process.send_signal(how)
        _, message = process.communicate(timeout=120)
        if self.model.exists():  # the run had ended, or nearly
            assert self.model.read_bytes() == self.bytes, "other bytes"
            return process.returncode == -how
        allowed = {-how} if how == signal.SIGKILL else {128 + how, 130}
        assert process.returncode in allowed, (process.returncode, message)
        assert how == signal.SIGKILL or os.path.exists(f"{self.model}.checkpoint"), message
        return True

    def finish(self) -> None:
        """Let the run end, and compare the model."""
        thresher(*self.resumed, "--quiet", cwd=self.folder)
        assert self.model.read_bytes() == self.bytes, "other bytes after resume"
        left = {path.name for path in self.folder.iterdir()} - self.inputs
        assert not left, f"files are left: {sorted(left)}"


def _what(event: Event) -> tuple[Any, ...]:
    """Return what tells an event from others, in all runs."""
    return tuple(event.get(key) for key in ("event", "examples", "params"))


def kill(name: str, count: int, how: signal.Signals, seed: int) -> tuple[int, list[str]]:
    """End runs of a case until `count` were ended; return that number and what was wrong.

    Each run resumes the one before. After three, one is finished and compared.
    """
    rng = random.Random(f"{name} {how} {seed}")
    moments = MOMENTS if how == signal.SIGKILL else MOMENTS[1:]  # else Python ends the process
    ended, turn, failures = 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        case = Case(name, Path(folder))
        while ended < count and turn < 10 * count and not failures:
            turn += 1
            moment = rng.choice(moments)
            try:
                # Earlier each time: a resumed run has less to do.
                ended += case.end_by(how, moment, rng.uniform(0, 1 / (1 + turn % 4)))
                if turn % 4 == 3 or ended == count:
                    case.finish()
            except (AssertionError, subprocess.TimeoutExpired) as error:
                failures.append(
                    f"{name}, {how.name} at the {moment}, seed {seed}, run {turn}: {error}"
                )
    if ended < count and not failures:
        failures.append(f"{name}, {how.name}: runs ended before the signal: make them longer")
    return ended, failures
