"""Run experiments: ``python -m experiments [NAME ...] [--quick] [--out FOLDER] [--missing]``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from experiments import results
from experiments.record import RESULTS, ROOT, modules


def _run(name: str, module: str, options: Sequence[str]) -> str:
    """Run one experiment in its own process, on one thread; return its error message."""
    began = time.monotonic()
    print(f"{name}: started", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", module, *options],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    took = f"{time.monotonic() - began:.0f} s"
    said = "" if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"
    print(f"{name}: {'failed' if said else 'done'} after {took}", flush=True)
    return said


def main() -> int:
    """Run the experiments, then write the page."""
    known = modules()
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Reproduce the papers' tables and figures, and write docs/results.md.",
        epilog=f"Experiments: {', '.join(known)}.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments to run; default: all")
    parser.add_argument(
        "--quick", action="store_true", help="little data, to check that the scripts work"
    )
    parser.add_argument("--missing", action="store_true", help="only experiments without results")
    parser.add_argument(
        "--jobs", type=int, default=2, help="experiments at the same time (default: 2)"
    )
    parser.add_argument(
        "--out", type=Path, default=RESULTS, metavar="FOLDER", help="default: docs/results"
    )
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no experiment {', '.join(unknown)}; there are: {', '.join(known)}")
    names = options.names or list(known)
    if options.missing:
        names = [name for name in names if not (options.out / f"{name}.json").exists()]
    passed = ["--out", str(options.out.resolve()), *(["--quick"] if options.quick else [])]
    with ThreadPoolExecutor(options.jobs) as pool:
        said = list(pool.map(lambda name: _run(name, known[name], passed), names))
    failed = {name: text for name, text in zip(names, said, strict=True) if text}
    for name, text in failed.items():
        print(f"\n{name} failed:\n{text}", file=sys.stderr)
    if not failed and options.out.resolve() == RESULTS:
        results.build()
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
