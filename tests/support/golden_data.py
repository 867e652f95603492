"""The data of `golden_cases.py`.

They are made by `random.Random` from whole numbers, so they do not depend on NumPy's version.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random

import numpy as np
import scipy.sparse as sp

from support.files import called

ROWS, FEATURES, FILES = 300, 60, 3

Row = tuple[list[int], list[float]]


def rows_of(labels: str, seed: int = 0) -> tuple[list[Row], list, list[int]]:
    """Return rows, labels and weights. Values are multiples of 1/8: exact as text and float."""
    rng = Random(f"{labels} {seed}")
    rows, targets, weights = [], [], []
    for number in range(ROWS):
        keys = sorted(rng.sample(range(FEATURES), rng.randrange(3, 12)))
        if number == 0:
            keys = [*keys[:-1], FEATURES - 1]  # so that all files and matrices have one width
        values = [rng.randrange(1, 17) / 8 for _ in keys]
        sums = [sum(v for k, v in zip(keys, values, strict=True) if k % 4 == c) for c in range(4)]
        score = sums[0] - sums[1] + rng.randrange(-8, 9) / 8
        rows.append((keys, values))
        weights.append(rng.randrange(1, 4))
        targets.append(
            {
                "two": 1 if score > 0 else -1,
                "weighted": 1 if score > 0 else -1,
                "four": (2, 3, 5, 7)[sums.index(max(sums))],
                "lists": [c for c in range(4) if sums[c] > 2],
                "numbers": score,
            }[labels]
        )
    return rows, targets, weights


def matrix(rows: list[Row]) -> sp.csr_matrix:
    """Return rows as a CSR matrix."""
    indptr = [0, *itertools.accumulate(len(keys) for keys, _ in rows)]
    keys = [key for row, _ in rows for key in row]
    values = [value for _, row in rows for value in row]
    return sp.csr_matrix((values, keys, indptr), shape=(len(rows), FEATURES))


def arrays(labels: str, seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    """Return rows, labels and weights as arguments of `fit`."""
    rows, targets, weights = rows_of(labels, seed)
    if labels == "lists":
        targets = [[int(c in found) for c in range(4)] for found in targets]
    return matrix(rows), np.array(targets), np.array(weights, float)


def lines_of(labels: str, format: str, seed: int = 0) -> list[str]:
    """Return the lines of a text file."""
    lines = []
    for (keys, values), target, weight in zip(*rows_of(labels, seed), strict=True):
        pairs = list(zip(keys, values, strict=True))
        if format == "svmlight":
            label = ",".join(map(str, target)) if labels == "lists" else f"{target}"
            lines.append(f"{label} " + " ".join(f"{key + 1}:{value}" for key, value in pairs))
        else:
            weight = f" {weight}" if labels == "weighted" else ""
            lines.append(f"{target}{weight} |f " + " ".join(f"w{k}:{v}" for k, v in pairs))
    return lines


class Folder:
    """The data files of all cells; each is written when it is first used.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._numbers = itertools.count()

    def text(self, labels: str, format: str, seed: int = 0, files: int = FILES) -> list[str]:
        """Return the paths of text files; each is one block."""
        lines = lines_of(labels, format, seed)
        size, paths = len(lines) // files, []
        for number in range(files):
            path = self.path / f"{labels}-{seed}-{number}-of-{files}.{format[:3]}"
            path.write_text("\n".join(lines[number * size : (number + 1) * size]) + "\n")
            paths.append(str(path))
        return paths

    def cache(self, labels: str) -> list[str]:
        """Return the path of a cache, made from text files."""
        path = self.path / f"{labels}.cache"
        if not path.exists():
            called("convert", *self.text(labels, "svmlight"), path, "--quiet")
        return [str(path)]

    def fresh(self, suffix: str) -> Path:
        """Return a path that does not exist yet."""
        return self.path / f"{next(self._numbers)}{suffix}"
