"""The files for vw.py: the same rows in three formats.

`python benchmarks/vw_data.py [--rows 500000] [--folder build/bench]`, or `files()` from a script.
Existing files are used again; the rows depend only on their number.

A row has 73 distinct features; the r-th most frequent of 2^20 has frequency 1/r. A feature belongs
to one of four namespaces and has a name made of syllables, a short one if it is frequent. Features
of namespace `n` have numbers as values; all others have the value 1 (only written in svmlight). The
label is drawn from a logistic model in which every tenth feature has a weight.

named.vw     `1 |a ba deto |n mi:0.37 ... |t ... |u ...`
numbered.vw  `1 | 17 904:0.37 ...`
rows.svm     `1 18:1 905:0.37 ...`: feature i of numbered.vw is i + 1
one.vw       the first line of named.vw, to measure the start-up time
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

WIDTH = 1 << 20
PER_ROW = 73
NAMESPACES = "antu"
SHARES = (0.1, 0.15, 0.55, 0.2)  # of the features, by namespace
CHUNK = 20_000
STRENGTH = 1.6  # standard deviation of a true weight
NAMES = ("named.vw", "numbered.vw", "rows.svm", "one.vw")


def syllables(ranks: NDArray[np.int64]) -> NDArray[np.bytes_]:
    """Return pronounceable names, one to four syllables: the k-th is k written with 90 digits."""
    digits = np.array([c + v for c in "bcdfghjklmnprstvwz" for v in "aeiou"], "S2")
    names = digits[ranks % 90]
    rest = ranks // 90
    while rest.any():
        names = np.where(rest > 0, np.char.add(digits[rest % 90], names), names)
        rest = rest // 90
    return names


class Rows:
    """The features with their names and weights, and the chunks of rows drawn from them."""

    def __init__(self, rows: int, seed: int = 4) -> None:
        self.rows, self.rng = rows, np.random.default_rng(seed)
        # spread the frequent features; the multiplier is odd, so every feature has one rank
        self.key_of = np.arange(WIDTH, dtype=np.int64) * 0x9E3779B1 % WIDTH
        self.name = np.empty(WIDTH, "S8")
        self.name[self.key_of] = syllables(np.arange(WIDTH))
        self.space = self.rng.choice(len(SHARES), WIDTH, p=SHARES).astype(np.int8)
        matters = self.rng.random(WIDTH) < 0.1
        self.truth = np.where(matters, self.rng.normal(size=WIDTH) * STRENGTH, 0.0)
        self.cents = np.array([f"{c / 100:g}" for c in range(1000)], "S4")

    def chunks(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """Yield keys in increasing order, values in hundredths and labels."""
        for start in range(0, self.rows, CHUNK):
            n = min(CHUNK, self.rows - start)
            ranks = np.exp(self.rng.random((n, 3 * PER_ROW)) * np.log(WIDTH)).astype(np.int64) - 1
            drawn = np.sort(ranks, axis=1)
            fresh = np.ones(drawn.shape, bool)
            fresh[:, 1:] = drawn[:, 1:] != drawn[:, :-1]
            # choose among each row's distinct features at random; fill up if there are too few
            order = np.argsort(np.where(fresh, self.rng.random(drawn.shape), 2.0), axis=1)
            order = order[:, :PER_ROW]
            chosen = np.take_along_axis(drawn, order, axis=1)
            for row in np.flatnonzero(~np.take_along_axis(fresh, order, axis=1).all(axis=1)):
                chosen[row] = self.rng.choice(WIDTH, PER_ROW, replace=False)
            keys = np.sort(self.key_of[chosen], axis=1)
            drawn_values = 30 * np.exp(self.rng.normal(size=keys.shape))
            numeric = self.space[keys] == NAMESPACES.index("n")
            cents = np.where(numeric, np.clip(drawn_values, 1, 999), 100).astype(np.int64)
            z = (self.truth[keys] * cents).sum(axis=1) / 100
            yield keys, cents, np.where(self.rng.random(n) < 1 / (1 + np.exp(-z)), 1, -1)


def lines(
    fields: list[NDArray[np.bytes_]],
) -> bytes:
    """Join fixed-width fields of text, one array for each, without the padding."""
    dtype = np.dtype([(str(i), f.dtype) for i, f in enumerate(fields)])
    table = np.empty(fields[0].shape, dtype)
    for i, field in enumerate(fields):
        table[str(i)] = field
    return table.tobytes().translate(None, b"\0")


def texts(source: Rows) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield the rows as named VW, numbered VW and svmlight, chunk by chunk."""
    number = np.arange(WIDTH + 1).astype("S7")
    with_colon = np.char.add(b":", source.cents)
    value = with_colon.copy()
    value[100] = b""  # 1 is not written
    opening = np.array([f" |{c} " for c in NAMESPACES], "S4")
    for keys, cents, labels in source.chunks():
        label = np.where(labels > 0, b"1", b"-1").astype("S2")
        head, tail = np.zeros(keys.shape, "S2"), np.zeros(keys.shape, "S1")
        head[:, 0], tail[:, -1] = label, b"\n"
        bar = np.full(keys.shape, b" ", "S3")
        bar[:, 0] = b" | "
        numbered = lines([head, bar, number[keys], value[cents], tail])
        svmlight = lines([head, np.full(keys.shape, b" ", "S1"), number[keys + 1],
                          with_colon[cents], tail])  # fmt: skip
        order = np.argsort(source.space[keys], axis=1, kind="stable")
        keys, cents = np.take_along_axis(keys, order, 1), np.take_along_axis(cents, order, 1)
        space = source.space[keys]
        begins = np.ones(keys.shape, bool)
        begins[:, 1:] = space[:, 1:] != space[:, :-1]
        before = np.where(begins, opening[space], b" ")
        yield lines([head, before, source.name[keys], value[cents], tail]), numbered, svmlight


def files(folder: Path, rows: int) -> dict[str, Path]:
    """Return the paths of the files by name; write files that do not exist."""
    folder = folder / f"vw-{rows}"
    paths = {name: folder / name for name in NAMES}
    if all(path.exists() for path in paths.values()):
        return paths
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    parts = {name: path.with_name(name + ".part") for name, path in paths.items()}
    with (
        parts["named.vw"].open("wb") as named,
        parts["numbered.vw"].open("wb") as numbered,
        parts["rows.svm"].open("wb") as svmlight,
    ):
        for chunk, (a, b, c) in enumerate(texts(Rows(rows))):
            named.write(a), numbered.write(b), svmlight.write(c)
            if chunk == 0:
                parts["one.vw"].write_bytes(a[: a.index(b"\n") + 1])
    for name, part in parts.items():
        os.replace(part, paths[name])
    print(f"{rows:,} rows written to {folder} in {time.perf_counter() - began:.0f} s", flush=True)
    return paths


def main() -> None:
    """Write the files and print their sizes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    arguments = parser.parse_args()
    for name, path in files(arguments.folder, arguments.rows).items():
        print(f"{name:12} {path.stat().st_size / 1e6:8.1f} MB")


if __name__ == "__main__":
    main()
