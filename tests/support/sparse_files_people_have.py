"""Files of sparse rows: svmlight and VW text, plain and compressed."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from support.file_facts import CITIES, FileFacts, kind, rng_of, sentence


def _svmlight(seed: int, rows: int, features: int = 200) -> tuple[list[str], int]:
    rng = rng_of(seed)
    lines, nonzeros = [], 0
    for _ in range(rows):
        keys = np.sort(rng.choice(features, rng.integers(3, 15), replace=False)) + 1
        label = 1 if (keys[0] < 15) ^ (rng.random() < 0.1) else -1
        lines.append(f"{label} " + " ".join(f"{k}:{rng.uniform(0.1, 2):.3f}" for k in keys) + "\n")
        nonzeros += len(keys)
    return lines, nonzeros


@kind
def svmlight(folder: Path, seed: int = 0, rows: int = 600) -> FileFacts:
    lines, nonzeros = _svmlight(seed, rows)
    path = folder / "rows.svm"
    path.write_text("".join(lines))
    return FileFacts(path, "svmlight", rows, None, labels=(-1.0, 1.0), more={"nonzeros": nonzeros})


@kind
def svmlight_sorted_gzip(folder: Path, seed: int = 0, rows: int = 600) -> FileFacts:
    lines, nonzeros = _svmlight(seed, rows)
    lines.sort(key=lambda line: -int(line.split()[0]))
    path = folder / "sorted.svm.gz"
    path.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    return FileFacts(
        path,
        "svmlight",
        rows,
        None,
        labels=(-1.0, 1.0),
        options=("--shuffle",),
        more={"nonzeros": nonzeros, "compression": "gzip"},
    )


@kind
def svmlight_with_bad_lines(folder: Path, seed: int = 0, rows: int = 600) -> FileFacts:
    lines, _ = _svmlight(seed, rows)
    bad = range(50, rows, 200)
    for at in bad:
        lines[at] = "1 5:one 7:2\n"
    path = folder / "bad.svm"
    path.write_text("".join(lines))
    return FileFacts(
        path,
        "svmlight",
        rows - len(bad),
        None,
        labels=(-1.0, 1.0),
        options=("--on-bad-line skip",),
        more={"bad_lines": len(bad), "first_bad_line": bad[0] + 1},
    )


@kind
def svmlight_from_zero(folder: Path, seed: int = 0, rows: int = 600) -> FileFacts:
    """Features are numbered from 0."""
    rng = rng_of(seed)
    lines = []
    for _ in range(rows):
        keys = [0, *np.sort(rng.choice(50, 5, replace=False) + 1).tolist()]
        lines.append(f"{1 if keys[1] < 9 else -1} " + " ".join(f"{k}:1" for k in keys) + "\n")
    path = folder / "zero.svm"
    path.write_text("".join(lines))
    return FileFacts(path, "svmlight", rows, None, labels=(-1.0, 1.0), options=("--zero-based",))


@kind
def svmlight_multilabel(folder: Path, seed: int = 0, rows: int = 600) -> FileFacts:
    rng = rng_of(seed)
    lines = []
    for _ in range(rows):
        own = sorted(rng.choice(5, rng.integers(1, 4), replace=False).tolist())
        keys = sorted({10 * label + int(rng.integers(1, 10)) for label in own} | {77})
        lines.append(f"{','.join(map(str, own))} {' '.join(f'{k}:1' for k in keys)}\n")
    path = folder / "labels.txt"
    path.write_text("".join(lines))
    return FileFacts(
        path,
        "svmlight",
        rows,
        None,
        task="multilabel",
        labels=(0.0, 1.0, 2.0, 3.0, 4.0),
        options=("--multilabel",),
    )


@kind
def svmlight_regression(folder: Path, seed: int = 0, rows: int = 600) -> FileFacts:
    rng = rng_of(seed)
    lines = []
    for _ in range(rows):
        x = rng.normal(size=4)
        y = x[0] - 2 * x[1] + 0.1 * rng.normal()
        lines.append(f"{y:.4f} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in enumerate(x)) + "\n")
    path = folder / "numbers.svm"
    path.write_text("".join(lines))
    return FileFacts(path, "svmlight", rows, None, task="regression", options=("--loss squared",))


@kind
def vw_with_namespaces(folder: Path, seed: int = 0, rows: int = 600) -> FileFacts:
    rng = rng_of(seed)
    lines = []
    for _ in range(rows):
        good = bool(rng.random() < 0.5)
        words = sentence(rng, good).lower().translate(str.maketrans(".!,()|:", "       "))
        user = f"city={rng.choice(CITIES)} age:{rng.integers(18, 80) / 100}"
        lines.append(f"{1 if good else -1} |words {' '.join(words.split())} |user {user}\n")
    path = folder / "clicks.vw"
    path.write_text("".join(lines))
    return FileFacts(
        path, "vw", rows, None, labels=(-1.0, 1.0), more={"namespaces": ("user", "words")}
    )


@kind
def vw_gzip_classes(folder: Path, seed: int = 0, rows: int = 600) -> FileFacts:
    rng = rng_of(seed)
    lines = []
    for _ in range(rows):
        label = int(rng.integers(1, 5))
        words = " ".join(f"w{label}{rng.integers(4)}" for _ in range(4))
        lines.append(f"{label} | {words} x{rng.integers(50)}\n")
    path = folder / "classes.vw.gz"
    path.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    return FileFacts(
        path,
        "vw",
        rows,
        None,
        task="classes",
        labels=(1.0, 2.0, 3.0, 4.0),
        options=("--multiclass",),
        more={"compression": "gzip"},
    )
