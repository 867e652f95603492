"""Run designs: ``python -m experiments.discovery [DESIGN ...] [--quick] [--repetitions N]``."""

from __future__ import annotations

import argparse
import os
import time
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

for _library in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_library, "1")

import numpy as np

from experiments.discovery import page
from experiments.discovery.designs import all_designs
from experiments.discovery.measuring import measured
from experiments.discovery.saved import RESULTS, Saved

SAVE = 20.0  # seconds between two writes of the results


def run(name: str, repetitions: int, folder: Path, seconds: float) -> str:
    """Repeat a design until it has this many repetitions; return what was done.

    Parameters
    ----------
    name : str
        Of a design.
    repetitions : int
    folder : Path
    seconds : float
        No repetition starts after this time.
    """
    design = next(one for one in all_designs() if one.name == name)
    saved = Saved.of(design, folder)
    began = written = time.monotonic()
    for number in range(repetitions):
        forms = [form for form in design.forms if not saved.has(form, number)]
        if not forms:
            continue
        if time.monotonic() - began > seconds:
            break
        rng = np.random.default_rng([number, zlib.crc32(design.name.encode())])
        drawn = design.draw(rng)
        saved.runs += [measured(drawn, form, number) for form in forms]
        if time.monotonic() - written > SAVE:
            saved.write()
            written = time.monotonic()
    saved.write()
    return f"{name}: {len(saved.runs)} runs, {time.monotonic() - began:.0f} s"


def main() -> None:
    """Run the designs, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.discovery", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="DESIGN", help="or a kind; default: all")
    parser.add_argument("--quick", action="store_true", help="one repetition of each")
    parser.add_argument("--repetitions", type=int, help="by default those of each design")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="limit of a design")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FOLDER")
    options = parser.parse_args()
    designs = [
        one
        for one in all_designs()
        if not options.names or one.name in options.names or one.kind in options.names
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    if options.again:
        for one in designs:
            (options.out / f"{one.name}.json").unlink(missing_ok=True)
    with ProcessPoolExecutor(options.jobs) as pool:
        tasks = [
            pool.submit(
                run, one.name, 1 if options.quick else options.repetitions or one.repetitions,
                options.out, options.seconds,
            )
            for one in designs
        ]  # fmt: skip
        for task in tasks:
            print(task.result(), flush=True)
    if options.out.resolve() == RESULTS:
        page.build()


if __name__ == "__main__":
    main()
