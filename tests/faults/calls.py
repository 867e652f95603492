"""Operations that are calls of the library, and checks of what failed operations leave."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from unittest import mock

import numpy as np

import thresher
from faults import inputs
from support.learning import checked
from thresher.data import buckets, shuffled
from thresher.serving.learning import LearnFolder, Learning
from thresher.serving.models import Models
from thresher.serving.refusal import Refusal
from thresher.training import checkpoint as checkpoints
from thresher.training.observer import Interrupted, Observer


def load() -> str:
    """Load a model."""
    return _of_weights(thresher.load("model"))


def _of_weights(model: thresher.Model) -> str:
    return hashlib.sha256(np.asarray(model.weights).tobytes()).hexdigest()


def save() -> str:
    """Save a model."""
    inputs.fitted("rows.svm").save("model")
    return ""


def shuffle() -> str:
    """Train with rows in random order; they are dealt into buckets on disk."""
    learner = thresher.FTRLClassifier(random_state=0, passes=2, shuffle="each")
    with mock.patch.object(shuffled, "LIMIT", 1 << 10), mock.patch.object(buckets, "FEWEST", 4):
        learner.fit(thresher.scan("rows.svm"))
    return _of_weights(learner.model_)


# ---- checkpoints ---------------------------------------------------------------------------------


class _Stops(Observer):
    def __init__(self, passes: int) -> None:
        self.passes = passes

    def tell(self, event: str, **facts: object) -> None:
        self.passes -= event == "pass"

    def stops(self) -> bool:
        return self.passes <= 0


def checkpoint(passes: int = 3) -> str:
    """Train with a checkpoint after each block, and stop; return the digest of the last one."""
    learner = thresher.FTRLClassifier(random_state=0, passes=5)
    source = thresher.scan("rows.svm", threads=1)
    try:
        learner.fit(source, checkpoint="run.checkpoint", every=0.0, observer=_Stops(passes))
    except Interrupted:
        return digest()
    raise AssertionError("the run was not stopped")


def digest() -> str:
    """Return the digest of the checkpoint, which must be there."""
    return checkpoints.read("run.checkpoint").digest


def stopped() -> None:
    """Write rows and a checkpoint."""
    inputs.model()
    checkpoint(1)


def resume() -> str:
    """Train to the end from a checkpoint; return a digest of the weights."""
    learner = thresher.FTRLClassifier(random_state=0, passes=5)
    learner.fit(thresher.scan("rows.svm", threads=1), checkpoint="run.checkpoint", resume=True)
    return _of_weights(learner.model_)


def check_checkpoint() -> None:
    """Check that a checkpoint can be read, if there is one."""
    if os.path.exists("run.checkpoint"):
        digest()


def check_comparison() -> None:
    """The same for the checkpoint of a comparison."""
    _check_json("run.checkpoint")


def check_cluster() -> None:
    """The same for the checkpoint of a cluster."""
    _check_json("run/committed.json")


def _check_json(name: str) -> None:
    if os.path.exists(name):
        json.loads(Path(name).read_text())


def check_cache() -> None:
    """Check that a new cache has all rows, if there is one."""
    if os.path.exists("made.cache"):
        blocks = thresher.scan("made.cache").blocks()
        found = [len(block.labels) for block in blocks if block.labels is not None]
        assert sum(found) == len(Path("rows.svm").read_text().splitlines())


def check_quarantine() -> None:
    """Check that a quarantine file has whole lines only, if there is one."""
    if os.path.exists("lines/bad"):
        lines = Path("lines/bad").read_text().splitlines(keepends=True)
        assert set(lines) <= {f"{inputs.BAD_LINE}\n"}, f"the file of bad lines holds {lines}"


def check_checkpoint_and_quarantine() -> None:
    """Check both."""
    check_checkpoint()
    check_quarantine()


# ---- learning while serving ----------------------------------------------------------------------

LEARNED = 4  # rows
_answered = 0  # how many rows of `learn` were answered


def learning() -> None:
    """Write a model with names and the state of its learner, and a folder that knows a row."""
    rows, labels = _named_rows(30)
    learner = thresher.FTRLClassifier(random_state=0)
    for row, label in zip(rows, labels, strict=True):
        learner.learn_one(row, label, classes=[0, 1])
    learner.model_.save("model", state=True)
    learn(1)


def _named_rows(count: int) -> tuple[list[dict[str, float]], list[int]]:
    return [{f"word{n % 7}": 1.0, "size": n / 9} for n in range(count)], [
        n % 2 for n in range(count)
    ]


def learn(count: int = LEARNED) -> str:
    """Learn the rows that the folder does not know, as a server does; return their digest."""
    global _answered
    learning = Learning.open(Models("model"), "learned", 0.0)
    rows, labels = _named_rows(count)
    try:
        for n in range(learning.rows, count):
            asked = {"rows": rows[n : n + 1], "labels": labels[n : n + 1]}
            request = checked(asked, thresher.load("model"))
            _answered = learning.submit(request).result()[1]
    except Refusal as error:
        raise OSError(str(error)) from None
    finally:
        learning.close()
    digest, number = _restored()
    assert number == count
    return digest


def _restored() -> tuple[str, int]:
    """Return the digest of what the next server would begin with, and its number of rows."""
    folder = LearnFolder("learned", "model", Models("model").find(None).version, 0.0)
    try:
        learner, rows = folder.restore()
    finally:
        folder.release()
    return _of_weights(learner.model_), rows


def rows_learned() -> int:
    """Return how many rows the next server would know."""
    return _restored()[1]


def check_learned() -> None:
    """Check that all rows are there that were answered."""
    assert rows_learned() >= _answered, "rows that were answered are lost"
