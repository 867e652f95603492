"""The text readers compared with scikit-learn's.

One run, interleaved, best of several: `python benchmarks/readers.py [--rows 500000] [--repeats 5]`.

The svmlight file has 73 features per row, with frequencies as in text (core.stream), and values of
six decimals. "to blocks" parses all rows and discards them, as training in one pass does. "to one
matrix" keeps them and joins them into one CSR matrix, which is what scikit-learn's
`load_svmlight_file` returns; both matrices are compared. Times are wall times; rates are bytes of
the file per second. Files are made once, in --folder (else in a temporary folder, and removed).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from core import stream
from thresher import _core

WIDTH = 47_000


def write_files(folder: Path, rows: int) -> tuple[Path, Path, Path]:
    """Write the rows as svmlight, as VW text of names, and as VW text of names with values."""
    names = ("rows.svm", "words.vw", "values.vw")
    paths = [folder / f"{rows}-{name}" for name in names]
    if all(path.exists() for path in paths):
        return paths[0], paths[1], paths[2]
    X, y = stream(rows, WIDTH)
    values = np.random.default_rng(1).integers(1, 10**6, X.nnz)
    keys, starts = X.indices, X.indptr
    files = [path.with_suffix(".part").open("w") for path in paths]
    for r in range(rows):
        here = slice(starts[r], starts[r + 1])
        pairs = list(zip(keys[here].tolist(), values[here].tolist(), strict=True))
        words = [(f"w{k * 7919 % 1_000_003}", v) for k, v in pairs]
        lines = (
            f"{y[r]} " + " ".join(f"{k + 1}:0.{v:06}" for k, v in pairs),
            f"{y[r]} |words " + " ".join(word for word, _ in words),
            f"{y[r]} | " + " ".join(f"{word}:0.{v:06}" for word, v in words),
        )
        for file, line in zip(files, lines, strict=True):
            file.write(line + "\n")
    for file, path in zip(files, paths, strict=True):
        file.close()
        Path(file.name).rename(path)
    return paths[0], paths[1], paths[2]


def blocks(path: Path, text_format: str, **options: object) -> list[_core.Block]:
    """Read all blocks; discard each before the next."""
    reader = _core.Reader(None, text_format, path=str(path), **options)  # type: ignore[arg-type]
    while (block := reader.next()) is not None:
        if block.bad:
            raise SystemExit(f"{path}: {block.bad[0].what}")
    return []


def matrix(path: Path, threads: int = 1) -> tuple[sp.csr_matrix, np.ndarray]:
    """Read one CSR matrix and its labels."""
    reader = _core.Reader(None, "svmlight", path=str(path), threads=threads)
    parts = list(iter(reader.next, None))
    ends = np.cumsum([0] + [part.nonzeros for part in parts])
    starts = [np.asarray(p.starts)[1:] + end for p, end in zip(parts, ends[:-1], strict=True)]
    keys, values = (
        np.concatenate([getattr(p, name) for p in parts]) for name in ("keys", "values")
    )
    indptr = np.concatenate([[0], *starts]).astype(np.int32)
    X = sp.csr_matrix((values, keys, indptr), shape=(indptr.size - 1, max(p.width for p in parts)))
    return X, np.concatenate([p.labels for p in parts])


def main() -> None:
    """Run all readers and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        svm, words, values = write_files(args.folder or Path(temporary), args.rows)

        def peer() -> object:
            return load_svmlight_file(str(svm), dtype=np.float32, zero_based=False)

        runs: dict[str, tuple[Path, Callable[[], object]]] = {
            "svmlight to blocks, 1 thread": (svm, lambda: blocks(svm, "svmlight")),
            "svmlight to blocks, 2 threads": (svm, lambda: blocks(svm, "svmlight", threads=2)),
            "svmlight to one matrix": (svm, lambda: matrix(svm)),
            "svmlight to one matrix, 2 threads": (svm, lambda: matrix(svm, 2)),
            "load_svmlight_file": (svm, peer),
            "VW names, 1 thread": (words, lambda: blocks(words, "vw")),
            "VW names, 18 bits": (words, lambda: blocks(words, "vw", bits=18)),
            "VW names, returned": (words, lambda: blocks(words, "vw", names=True)),
            "VW names with values": (values, lambda: blocks(values, "vw")),
            "VW names, 2 threads": (words, lambda: blocks(words, "vw", threads=2)),
        }
        ours, theirs = matrix(svm), load_svmlight_file(str(svm), dtype=np.float32, zero_based=False)
        same = all(
            np.array_equal(getattr(ours[0], part), getattr(theirs[0], part))
            for part in ("indptr", "indices", "data")
        )
        if not same or not np.array_equal(ours[1], theirs[1]):
            raise SystemExit("the two matrices differ")
        del ours, theirs

        best = dict.fromkeys(runs, np.inf)
        for repeat in range(args.repeats):
            for name, (_, run) in runs.items():
                if name == "load_svmlight_file" and repeat >= 2:
                    continue
                started = time.perf_counter()
                run()
                best[name] = min(best[name], time.perf_counter() - started)
        slow = best["load_svmlight_file"]
        print(
            f"{args.rows} rows; svmlight {svm.stat().st_size / 1e6:.0f} MB; both matrices equal\n"
        )
        print(f"{'':36}{'seconds':>9}{'GB/s':>7}{'x scikit-learn':>16}")
        for name, (path, _) in runs.items():
            ratio = f"{slow / best[name]:16.1f}" if path == svm else ""
            rate = path.stat().st_size / best[name] / 1e9
            print(f"{name:36}{best[name]:9.3f}{rate:7.2f}{ratio}")


if __name__ == "__main__":
    main()
