"""The binary cache: speed of writing and reading, and the time of training from it.

One run, interleaved, best of several: `python benchmarks/cache.py [--rows 500000] [--repeats 5]`.

Training from the cache is compared with training from the same CSR matrix in memory: one epoch of
truncated gradient, core alone, on a learner with allocated memory. "fresh" opens the file, so every
block is checked; "again" is a later pass. The file is in the page cache, except for "cold". "alone"
takes the blocks from last to first, so that no thread reads ahead and converts. Resident memory is
measured in a separate process: the increase since before the file was opened, with the learner's
store allocated and touched.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from core import ETA, GRAVITY, best_of, core_alone, stream
from thresher import TruncatedGradientClassifier, _core
from thresher.data.cache_writer import CacheWriter
from thresher.rules.core_args import core_parameters

WIDTH = 1 << 20
BLOCK = 8 << 20  # bytes of a block in memory


def blocks(X: sp.csr_matrix, y: np.ndarray) -> list[_core.Block]:
    """Cut a matrix into blocks of about 8 MiB."""
    size = X.data.itemsize + X.indices.itemsize
    per_block = max(1, int(BLOCK * X.shape[0] / (size * X.nnz)))
    found = []
    for first in range(0, X.shape[0], per_block):
        starts = X.indptr[first : first + per_block + 1]
        labels = y[first : first + len(starts) - 1].astype(np.float64)
        found.append(_core.make_block(starts, X.indices, X.data, labels, columns=X.shape[1]))
    return found


def write(path: str, made: list[_core.Block]) -> None:
    """Write a cache."""
    with CacheWriter(path) as writer:
        for block in made:
            writer.add(block)
        writer.finish()


def read(reader: _core.CacheReader, dtype: str) -> None:
    """Read all blocks and discard them."""
    for number in range(reader.blocks):
        reader.block(number, dtype)


def forget(path: str) -> None:
    """Drop a file from the page cache."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def make_learner(dtype: str = "float32") -> Any:
    """Return a learner with the rule of core_alone()."""
    params = TruncatedGradientClassifier(gravity=GRAVITY, eta0=ETA, fit_intercept=False)
    numbers, words = core_parameters("truncated-gradient", params.get_params(), 1)
    return _core.make_learner("truncated_gradient", "dense", dtype, WIDTH, numbers, words)


def learning(
    path: str, keep_open: bool = True, cold: bool = False, alone: bool = False
) -> Callable[[], None]:
    """Return a function that trains one epoch from a cache."""
    learner = make_learner()
    kept = _core.CacheReader(path)

    def run() -> None:
        if cold:
            forget(path)
        reader = kept if keep_open else _core.CacheReader(path)
        numbers = range(reader.blocks)
        for number in reversed(numbers) if alone else numbers:
            learner.learn(reader.block(number, "float32").batch)

    run()
    return run


def speeds(rows: int, repeats: int, folder: str) -> None:
    """Print rates of writing and reading, and times of training."""
    X, y = stream(rows, WIDTH)
    path = os.path.join(folder, "narrow.cache")
    wide = os.path.join(folder, "wide.cache")
    X64 = X.astype(np.float64)
    X64.data *= 1 + 1e-12  # not exact in single precision
    made, made64 = blocks(X, y), blocks(X64, y)
    write(path, made), write(wide, made64)
    reader, wide_reader = _core.CacheReader(path), _core.CacheReader(wide)
    size, wide_size = os.path.getsize(path), os.path.getsize(wide)
    print(f"{rows:,} rows, {X.nnz / 1e6:.0f} M nonzeros, {reader.blocks} blocks, best of {repeats}")
    print(f"  float32: {size / 1e6:.0f} MB, float64: {wide_size / 1e6:.0f} MB")
    calls: dict[str, tuple[int, Callable[[], Any]]] = {
        "write": (size, lambda: write(path, made)),
        "read, fresh": (size, lambda: read(_core.CacheReader(path), "float32")),
        "read, again": (size, lambda: read(reader, "float32")),
        "read float64 as float32, fresh": (
            wide_size,
            lambda: read(_core.CacheReader(wide), "float32"),
        ),
        "read float64 as float32, again": (wide_size, lambda: read(wide_reader, "float32")),
        "svmlight text": (0, lambda: [_core.svmlight_text(b) for b in made[:8]]),
        "VW text": (0, lambda: [_core.vw_text(b) for b in made[:8]]),
    }
    best = best_of({name: call for name, (_, call) in calls.items()}, repeats)
    for name, (bytes_, call) in calls.items():
        nonzeros = X.nnz
        if not bytes_:
            bytes_ = sum(map(len, call()))
            nonzeros = sum(block.nonzeros for block in made[:8])
        rate, nonzeros = bytes_ / best[name] / 1e9, nonzeros / best[name] / 1e6
        print(f"  {name:32}{best[name]:8.3f} s{rate:8.2f} GB/s{nonzeros:8.0f} Mnnz/s")

    learners = {
        "CSR in memory": core_alone(X, y),
        "cache, fresh": learning(path, keep_open=False),
        "cache, again": learning(path),
        "cache, again, alone": learning(path, alone=True),
        "cache of float64, again": learning(wide),
        "cache of float64, again, alone": learning(wide, alone=True),
        "cache, cold": learning(path, cold=True),
    }
    best_of(learners, 1)
    best = best_of(learners, repeats)
    print("one epoch of truncated gradient, float32, 2^20 features")
    for name, seconds in best.items():
        ratio = seconds / best["CSR in memory"]
        print(f"  {name:32}{seconds:8.3f} s{X.nnz / seconds / 1e6:8.0f} Mnnz/s{ratio:8.2f} x CSR")


def memory(folder: str) -> None:
    """Print the resident memory of training from the caches."""
    code = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
from cache import *
from cache import _core
def status(name):
    line = next(l for l in open("/proc/self/status") if l.startswith(name))
    return int(line.split()[1]) / 1024
learner = make_learner()
everything = np.arange(WIDTH, dtype=np.int32)
ones = np.ones(WIDTH, np.float32)
learner.learn(_core.make_block(np.array([0, WIDTH]), everything, ones, np.ones(1)).batch)
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
reader = _core.CacheReader(sys.argv[1])
for number in 2 * list(range(reader.blocks)):
    learner.learn(reader.block(number, "float32").batch)
most, last = status("VmHWM") - before, status("VmRSS") - before
print(f"  {{os.path.basename(sys.argv[1])}}, {{reader.file_bytes / 2**20:.0f}} MiB: "
      f"{{most:.0f}} MiB more at most, {{last:.0f}} at the end")
"""
    print("resident memory of training, two passes")
    for name in ("narrow.cache", "wide.cache"):
        subprocess.run([sys.executable, "-c", code, os.path.join(folder, name)], check=True)


def main() -> None:
    """Parse arguments and print everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", help="folder for files; default: a temporary one")
    arguments = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        speeds(arguments.rows, arguments.repeats, folder)
        memory(folder)
    print(f"{time.perf_counter() - began:.0f} s in all")


if __name__ == "__main__":
    main()
