"""What the operations read and replace: rows in several formats, models and earlier results."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import thresher
from support.files import svmlight, vw
from thresher.data import writing

MODE = 0o664  # of an earlier model; a new file has another one, which is changed to this


def rows() -> None:
    """Write rows."""
    svmlight(Path("rows.svm"), rows=40, features=20)


def model() -> None:
    """Write rows, and a model of other rows, which must stay if the new one fails."""
    rows()
    svmlight(Path("old.svm"), rows=30, features=20, seed=5)
    fitted("old.svm").save("model")
    os.chmod("model", MODE)


def fitted(data: str) -> thresher.Model:
    """Return a model of the rows of a file."""
    return thresher.FTRLClassifier(random_state=0).fit(thresher.scan(data)).model_


def linked_model() -> None:
    """Write the same, but the model is a link to a file in another folder."""
    model()
    Path("models").mkdir()
    os.rename("model", "models/stored")
    os.symlink("models/stored", "model")


BAD_LINE = "1 bad:line"


def bad_rows() -> None:
    """Write rows with bad lines, a model, and a folder for a copy of the bad lines."""
    model()
    Path("lines").mkdir()
    lines = Path("rows.svm").read_text().splitlines()
    lines[5:5] = [BAD_LINE] * 3
    Path("rows.svm").write_text("\n".join(lines) + "\n")


def words() -> None:
    """Write rows with names of features, and a model."""
    model()
    vw(Path("rows.vw"), rows=30)


def table() -> None:
    """Write a table, and a model."""
    model()
    chance = random.Random(0)
    cells = [
        f"{chance.random():.3f},{chance.choice('ab')},{chance.randint(0, 1)}" for _ in range(40)
    ]
    Path("rows.csv").write_text("\n".join(["size,kind,label", *cells]) + "\n")


def cache() -> None:
    """Write rows, also as a cache, and a model."""
    model()
    write("rows.svm", "rows.cache")


def write(data: str, path: str) -> None:
    """Write the rows of a file in another format."""
    writing.write(thresher.scan(data), path, writing.format_of(path))


def old(*names: str) -> Callable[[], None]:
    """Return a function that writes rows, and other rows under these names."""

    def prepare() -> None:
        model()
        for name in names:
            write("old.svm", name)

    return prepare


def texts(*names: str, of: Callable[[], None] = model) -> Callable[[], None]:
    """Return a function that writes rows and a model, and old results under these names."""

    def prepare() -> None:
        of()
        for name in names:
            Path(name).write_text("old\n")

    return prepare


def shards() -> None:
    """Write rows in two files, and a model."""
    model()
    for number in range(2):
        svmlight(Path(f"part-{number}.svm"), rows=20, features=20, seed=number)


def kept() -> None:
    """Write rows, a model, and a model with the state of its learner."""
    model()
    learner = thresher.FTRLClassifier(random_state=0).fit(thresher.scan("old.svm"))
    learner.model_.save("kept", state=True)


def parts() -> None:
    """Write three models."""
    model()
    fitted("rows.svm").save("monday")
    fitted("old.svm").save("tuesday")
