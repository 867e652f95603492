"""What a generated file holds, and the rows that the generators share."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

GOOD = ["great", "lovely", "perfect", "brilliant", "charming", "superb", "delightful", "fine"]
BAD = ["awful", "boring", "broken", "terrible", "dull", "poor", "horrible", "weak"]
COMMON = [
    "the",
    "a",
    "of",
    "and",
    "to",
    "in",
    "it",
    "was",
    "for",
    "with",
    "on",
    "that",
    "this",
    "film",
    "book",
    "story",
    "actor",
    "scene",
    "time",
    "people",
    "very",
    "quite",
    "some",
    "other",
    "first",
    "last",
    "day",
    "night",
    "long",
    "short",
    "music",
    "plot",
    "end",
    "start",
    "place",
    "house",
]
CITIES = ("Rome", "Oslo", "Lima", "Kyoto", "Cairo")


@dataclass(frozen=True)
class FileFacts:
    """A generated file, and what is in it.

    Attributes
    ----------
    path : Path
    format : str
        "csv", "parquet", "arrow", "svmlight", "vw", or "" if it is none of them.
    rows : int
        Rows that can be read.
    label : str or int or None
        Column of the labels: its name, or its position in a file without header.
    task : {"two classes", "classes", "multilabel", "regression", ""}
    labels : tuple
        The different labels, sorted; empty in a regression.
    columns : dict
        The kind of each column, by name (or by position in a file without header): number, truth,
        category, text, id, date, list, constant or empty. The label is not in it.
    options : tuple of str
        Options of `thresher train` that a good suggestion has.
    more : dict
        Other facts, such as the number of bad lines.
    """

    path: Path
    format: str = "csv"
    rows: int = 0
    label: str | int | None = "label"
    task: str = "two classes"
    labels: tuple[Any, ...] = ()
    columns: dict[str | int, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)


Generator = Callable[..., FileFacts]
KINDS: dict[str, Generator] = {}


def kind(generator: Generator) -> Generator:
    """Add a generator to `KINDS`; called with a folder, it writes a file there."""
    KINDS[generator.__name__] = generator
    return generator


def rng_of(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 19])


def sentence(rng: np.random.Generator, good: bool, words: int = 14) -> str:
    """Return a text whose words tell its class, most of the time."""
    own, other = (GOOD, BAD) if good else (BAD, GOOD)
    picked = [str(word) for word in rng.choice(COMMON, words)]
    for _ in range(3):
        picked[rng.integers(words)] = str(rng.choice(own if rng.random() < 0.9 else other))
    return " ".join(picked).capitalize() + rng.choice([".", "!", ", really.", " (again)."])


def numbers(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    return np.round(rng.normal(size=(rows, columns)), 4)


def classes_of(rng: np.random.Generator, X: np.ndarray, classes: int = 2) -> np.ndarray:
    """Return classes 0, 1, ... that depend on the first columns, with some noise."""
    score = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=len(X))
    return np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)


def csv_text(rows: Sequence[Sequence[Any]], delimiter: str = ",", newline: str = "\n") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator=newline).writerows(rows)
    return out.getvalue()


def write_csv(
    path: Path,
    head: Sequence[str] | None,
    rows: Sequence[Sequence[Any]],
    delimiter: str = ",",
    newline: str = "\n",
    encoding: str = "utf-8",
) -> Path:
    whole = [*([head] if head else []), *rows]
    path.write_bytes(csv_text(whole, delimiter, newline).encode(encoding))
    return path
