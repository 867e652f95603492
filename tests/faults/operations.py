"""The operations whose calls fail: commands and calls of the library, on real files."""

from __future__ import annotations

import hashlib
import random
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import thresher
from support.files import svmlight, vw
from thresher.cli import main
from thresher.data import writing
from thresher.serving.learning import LearnFolder, Learning
from thresher.serving.models import Models
from thresher.serving.question import Question
from thresher.serving.refusal import Refusal
from thresher.training import checkpoint as checkpoints
from thresher.training.observer import Interrupted, Observer


@dataclass(frozen=True)
class Operation:
    """One operation. All paths are relative to its folder.

    Attributes
    ----------
    run : tuple of str or function
        Words of a command, or a function; its result is compared.
    prepare : function
        Writes the inputs and earlier results.
    again : tuple of str
        Words that the command needs to be run after a failure.
    changes : tuple of str
        Files and folders that a failed run may change.
    check : function
        Checks these after a failed run; raises an error if they are not as they must be.
    """

    run: tuple[str, ...] | Callable[[], str]
    prepare: Callable[[], None]
    again: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    check: Callable[[], object] = field(default=lambda: None)


def command(*words: str) -> int:
    """Run a command of the program in this process; return its exit code."""
    before, handlers = sys.argv, [(n, signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGTERM)]
    sys.argv = ["thresher", *words]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.argv = before
        for number, handler in handlers:
            signal.signal(number, handler)
    return 0


def _rows() -> None:
    svmlight(Path("rows.svm"), rows=40, features=20)


def _model() -> None:
    """Write rows, and a model of other rows, which must stay if the new one fails."""
    _rows()
    svmlight(Path("old.svm"), rows=30, features=20, seed=5)
    _fitted("old.svm").save("model")


def _fitted(rows: str) -> thresher.Model:
    return thresher.FTRLClassifier(random_state=0).fit(thresher.scan(rows)).model_


def _bad_rows() -> None:
    _model()
    lines = Path("rows.svm").read_text().splitlines()
    lines[5:5] = ["1 bad:line"] * 3
    Path("rows.svm").write_text("\n".join(lines) + "\n")


def _words() -> None:
    _model()
    vw(Path("rows.vw"), rows=30)


def _table() -> None:
    _model()
    chance = random.Random(0)
    rows = [
        f"{chance.random():.3f},{chance.choice('ab')},{chance.randint(0, 1)}" for _ in range(40)
    ]
    Path("rows.csv").write_text("\n".join(["size,kind,label", *rows]) + "\n")


def _cache() -> None:
    _model()
    _write("rows.svm", "rows.cache")


def _write(rows: str, path: str) -> None:
    writing.write(thresher.scan(rows), path, writing.format_of(path))


def _old(*names: str) -> Callable[[], None]:
    """Return a function that writes rows, and other files under these names."""

    def prepare() -> None:
        _model()
        for name in names:
            _write("old.svm", name)

    return prepare


def _predictions() -> None:
    _model()
    Path("out").write_text("old predictions\n")


def _shards() -> None:
    _model()
    for number in range(2):
        svmlight(Path(f"part-{number}.svm"), rows=20, features=20, seed=number)


class _Stops(Observer):
    def __init__(self, passes: int) -> None:
        self.passes = passes

    def tell(self, event: str, **facts: object) -> None:
        self.passes -= event == "pass"

    def stops(self) -> bool:
        return self.passes <= 0


def _checkpoint(passes: int = 3) -> str:
    """Train with a checkpoint after each block, and stop; return the digest of the last one."""
    learner = thresher.FTRLClassifier(random_state=0, passes=5)
    source = thresher.scan("rows.svm", threads=1)
    try:
        learner.fit(source, checkpoint="run.checkpoint", every=0.0, observer=_Stops(passes))
    except Interrupted:
        return _digest()
    raise AssertionError("the run was not stopped")


def _digest() -> str:
    return checkpoints.read("run.checkpoint").digest


def _stopped() -> None:
    _model()
    _checkpoint(1)


def _resume() -> str:
    """Train to the end from a checkpoint; return a digest of the weights."""
    learner = thresher.FTRLClassifier(random_state=0, passes=5)
    learner.fit(thresher.scan("rows.svm", threads=1), checkpoint="run.checkpoint", resume=True)
    return _of_weights(learner.model_)


def _of_weights(model: thresher.Model) -> str:
    return hashlib.sha256(np.asarray(model.weights).tobytes()).hexdigest()


def _load() -> str:
    return _of_weights(thresher.load("model"))


def _save() -> str:
    _fitted("rows.svm").save("model")
    return ""


def _kept() -> None:
    """Write rows, and a model with the state of its learner."""
    _model()
    learner = thresher.FTRLClassifier(random_state=0).fit(thresher.scan("old.svm"))
    learner.model_.save("kept", state=True)


def _parts() -> None:
    _model()
    _fitted("rows.svm").save("monday")
    _fitted("old.svm").save("tuesday")


def _exported() -> None:
    _model()
    for name in ("out.json", "out.onnx", "page.html"):
        Path(name).write_text("old")


LEARNED = 4  # rows
_answered = 0  # how many rows of `_learn` were answered


def _learning() -> None:
    """Write a model with names and the state of its learner, and a folder that knows a row."""
    rows, labels = _named_rows(30)
    learner = thresher.FTRLClassifier(random_state=0)
    for row, label in zip(rows, labels, strict=True):
        learner.learn_one(row, label, classes=[0, 1])
    learner.model_.save("model", state=True)
    _learn(1)


def _named_rows(count: int) -> tuple[list[dict[str, float]], list[int]]:
    return [{f"word{n % 7}": 1.0, "size": n / 9} for n in range(count)], [
        n % 2 for n in range(count)
    ]


def _learn(count: int = LEARNED) -> str:
    """Learn the rows that the folder does not know, as a server does; return their digest."""
    global _answered
    learning = Learning.open(Models("model"), "learned", 0.0)
    rows, labels = _named_rows(count)
    try:
        for n in range(learning.rows, count):
            asked = Question(rows=rows[n : n + 1], labels=labels[n : n + 1])
            _answered = learning.submit(asked, thresher.load("model")).result()[1]
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


def _check_learned() -> None:
    assert rows_learned() >= _answered, "rows that were answered are lost"


_TRAIN = ("train", "rows.svm", "-m", "model", "--rule", "ftrl", "--passes", "2")
_CLUSTER_RUN = (
    *("train", "part-*.svm", "-m", "model", "--rule", "ftrl", "--passes", "3", "--rounds", "3"),
    *("--workers", "0", "--checkpoint", "run", "--every", "1"),
)
_TUNE = ("tune", "rows.svm", "-m", "model", "--grid", "l1=0.1,1", "--folds", "2")
_CHECKPOINT = ("--checkpoint", "run.checkpoint", "--every", "0s")

OPERATIONS = {
    "train": Operation(_TRAIN, _model),
    "train, 2 threads": Operation((*_TRAIN, "--threads", "2"), _model),
    "train, names": Operation(("train", "rows.vw", "-m", "model", "--rule", "one-pass"), _words),
    "train, table": Operation(("train", "rows.csv", "-m", "model", "--rule", "ftrl"), _table),
    "train, cache": Operation(("train", "rows.cache", "-m", "model", "--rule", "ftrl"), _cache),
    "train, new cache": Operation((*_TRAIN, "--cache", "made.cache"), _model, (), ("made.cache",)),
    "train, quarantine": Operation(
        (*_TRAIN, "--on-bad-line", "quarantine=bad"), _bad_rows, (), ("bad",)
    ),
    "train, shuffle": Operation((*_TRAIN, "--shuffle"), _model),
    "train, checkpoint": Operation((*_TRAIN, *_CHECKPOINT), _model, (), ("run.checkpoint",)),
    "tune": Operation(_TUNE, _model),
    "tune, checkpoint": Operation((*_TUNE, *_CHECKPOINT), _model, (), ("run.checkpoint",)),
    "predict": Operation(("predict", "model", "rows.svm", "-o", "out"), _predictions),
    "predict, strict": Operation(("predict", "model", "rows.svm", "--strict"), _predictions),
    "convert to cache": Operation(("convert", "rows.svm", "made.cache"), _old("made.cache")),
    "convert to svmlight": Operation(("convert", "rows.svm", "made.svm.gz"), _old("made.svm.gz")),
    "convert to vw": Operation(("convert", "rows.svm", "made.vw"), _old("made.vw")),
    "convert to parquet": Operation(("convert", "rows.svm", "made.parquet"), _old("made.parquet")),
    "convert to csv": Operation(("convert", "rows.svm", "made.csv"), _old("made.csv")),
    "save": Operation(_save, _model),
    "load": Operation(_load, _model),
    "checkpoint": Operation(_checkpoint, _stopped, (), ("run.checkpoint",), _digest),
    "resume": Operation(_resume, _stopped, (), ("run.checkpoint",), _digest),
    "train, keep state": Operation((*_TRAIN, "--keep-state"), _model),
    "train, from": Operation(
        ("train", "rows.svm", "-m", "model", "--from", "kept", "--keep-state"), _kept
    ),
    "merge": Operation(("merge", "monday", "tuesday", "-m", "model"), _parts),
    "export": Operation(("export", "model", "-o", "out.json"), _exported),
    "export to onnx": Operation(("export", "model", "-o", "out.onnx"), _exported),
    "evaluate": Operation(
        ("evaluate", "model", "rows.svm", "--html", "page.html", "--bootstrap", "5"), _exported
    ),
    "serve, learn": Operation(_learn, _learning, (), ("learned",), _check_learned),
    "cluster": Operation(_CLUSTER_RUN, _shards, ("--resume",), ("run",)),
}
