"""Cost of a cluster: seconds and bytes of a stage, on two workers of one machine.

    python benchmarks/cluster.py [--only paper robust average columns] [--repeats 3] [--json FILE]

Needs Ray. Rows are synthetic: 100 draws each; the r-th most frequent feature has frequency 1/r,
like words of a text. There are two files in the binary cache; each is a part. All methods of a
table train on the same files, in turn, `--repeats` times. For each stage, the fastest repeat counts
(other work on the machine only makes it slower). A table has the median, the minimum and the mean
over stages.

paper    ``StabilizedClassifier(variant="paper")``, 16 paths, 10^6 features, stages of 250 rows per
         path, which touch about 10^5 features. With ``keep=0``, because the published rule would
         soon purge nearly all features of such rows, and stages would cost nothing. "work": both
         parts in this process on one thread. "in process": the same with a thread for each
         processor (``workers=0``). "native": ``fit`` of all rows on one machine, ``n_jobs=2``, with
         the same number of stages and rows. The overhead of two workers is the wall time of the
         stage minus half the wall time of "work" in the same stage: the time beyond a perfect
         division of the work. Requirements: below 100 ms; below 25 bytes per touched feature. In
         the first stage, parts also send how many rows have each feature; these bytes are shown
         separately. Checkpoints are written to the folder of temporary files.
robust   the same with variant "robust", a few passes; stage by stage.
average  ``FTRLClassifier``, 2^20 features, one round per pass. It is compared with
         ``fit(scan(files))``: three passes minus one pass, divided by two, so that neither counts
         opening files and the first scan.
columns  ``MarginPerceptronClassifier``: seconds of a stage divided by its round trips, one for each
         batch.

Bytes are those of arrays sent between parts and ranges of features, counted for each receiver;
arrays that stay on one worker are counted too. Touched features are the distinct features for which
any part sent data in the stage; "part" divides by the features touched by each part, added up. The
results with workers and without are compared: they must be bit-identical.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cluster_ways import WORKERS, Run, Ways, files_of, made_rows, touched_by, turns

from thresher import FTRLClassifier, MarginPerceptronClassifier, StabilizedClassifier, scan
from thresher.distributed.ray.cluster import Cluster


def in_ms(seconds: np.ndarray) -> dict[str, float]:
    """Return the median, the minimum and the mean, in milliseconds."""
    ms = 1000 * np.asarray(seconds)
    return {"median": float(np.median(ms)), "least": float(ms.min()), "mean": float(ms.mean())}


def paper(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Time stages of the published variant."""
    X, y = made_rows(WORKERS * options.stages * 5 * options.burst, options.width)
    files = files_of(folder, X, y)
    given = {
        "variant": "paper", "paths": options.paths, "burst": options.burst, "bursts": 5,
        "keep": options.keep,
    }  # fmt: skip

    def make() -> Any:
        return StabilizedClassifier(**given, passes=1, random_state=0)

    touched, entries = touched_by(make(), files)
    stages = len(touched)

    def native() -> list[float]:
        seen: list[float] = [0.0]
        clf = StabilizedClassifier(
            **given, random_state=0, n_jobs=2,
            callback=lambda p: seen.append(p.seconds) or len(seen) > stages,
        )  # fmt: skip
        clf.fit(X, y)
        return np.diff(seen).tolist()

    ways = Ways(make, files)
    names: dict[str, Run] = {
        "native": native,
        "work": ways.work,
        "in process": ways.in_process,
        "2 workers": ways.workers,
        "2 workers, checkpoints": lambda: ways.workers(checkpoint=True),
        "2 workers, one each stage": lambda: ways.workers(checkpoint=True, every=1),
    }
    times = turns(names, options.repeats)
    sent = np.array([report.bytes for report in ways.reports])
    results: dict[str, Any] = {"stages": stages, "ms": {n: in_ms(t) for n, t in times.items()}}
    for name in (name for name in names if "workers" in name):
        results["ms"][f"overhead, {name}"] = in_ms(times[name] - times["work"] / WORKERS)
    results["touched"] = {"median": float(np.median(touched)), "first": int(touched[0])}
    results["bytes"] = {"median": float(np.median(sent)), "first": int(sent[0])}
    each = sent[1:] / np.maximum(touched[1:], 1)
    results["bytes per touched feature"] = {
        "median": float(np.median(each)), "most": float(max(each)), "first": sent[0] / touched[0],
        "and part": float(np.median(sent[1:] / np.maximum(entries[1:], 1))),
    }  # fmt: skip
    results["bytes of a checkpoint"] = {"last": ways.written}
    print(f"paper: {stages} stages of {5 * options.burst} rows x {options.paths} paths")
    for name, row in results["ms"].items():
        print(f"  {name:36}" + "".join(f"{k} {v:8.2f}  " for k, v in row.items()) + "ms")
    for name in list(results)[2:]:
        print(f"  {name:36}" + "".join(f"{k} {v:,.1f}  " for k, v in results[name].items()))
    overhead = results["ms"]["overhead, 2 workers"]["median"]
    print(f"  requirements: overhead {overhead:.1f} ms (100), {np.median(each):.1f} bytes (25)")
    return results


def robust(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Time stages of the robust variant."""
    X, y = made_rows(options.rows, options.width)
    files = files_of(folder, X, y)

    def make() -> Any:
        return StabilizedClassifier(paths=options.paths, passes=options.passes, random_state=0)

    touched, entries = touched_by(make(), files)
    ways = Ways(make, files)
    names = {"work": ways.work, "in process": ways.in_process, "2 workers": ways.workers}
    times = turns(names, options.repeats)
    results = []
    print(f"robust: {options.passes} passes; seconds per stage")
    print(
        "  stage     left   touched      bytes  each  part    work  in process  2 workers  over ms"
    )
    for i, report in enumerate(ways.reports):
        row = {
            "left": report.nonzeros, "touched": int(touched[i]), "bytes": report.bytes,
            "each": report.bytes / max(1, touched[i]),
            "and part": report.bytes / max(1, entries[i]),
            **{n: float(t[i]) for n, t in times.items()},
            "overhead": 1000 * float(times["2 workers"][i] - times["work"][i] / WORKERS),
        }  # fmt: skip
        results.append(row)
        print(
            f"  {i + 1:5} {row['left']:8} {row['touched']:9} {row['bytes']:10} {row['each']:5.1f} "
            f"{row['and part']:5.1f} "
            f"{row['work']:7.3f} {row['in process']:11.3f} {row['2 workers']:10.3f} "
            f"{row['overhead']:8.1f}"
        )
    return {"stages": results}


def average(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Time passes of FTRL."""
    X, y = made_rows(options.average_rows, 1 << 20)
    files, results = files_of(folder, X, y), {}
    for store in ("dense", "hashed"):

        def make(passes: int = 3, store: str = store) -> Any:
            return FTRLClassifier(store=store, passes=passes, random_state=0)

        def serial(make: Callable[..., Any] = make) -> list[float]:
            took = []
            for passes in (1, 3):
                began = time.perf_counter()
                make(passes).fit(scan(files))
                took.append(time.perf_counter() - began)
            return took

        (touched, entries), ways = touched_by(make(), files), Ways(make, files)
        names = {"serial": serial, "in process": ways.in_process, "2 workers": ways.workers}
        times = turns(names, options.repeats)
        row = {way: float(np.median(times[way])) for way in ("in process", "2 workers")}
        row["serial"] = float(times["serial"][1] - times["serial"][0]) / 2
        row["bytes"] = float(np.median([report.bytes for report in ways.reports]))
        row["touched"] = float(np.median(touched))
        row["each"] = row["bytes"] / row["touched"]
        row["and part"] = row["bytes"] / float(np.median(entries))
        results[store] = row
        print(
            f"average, {store}: {len(y):,} rows; a pass: serial {row['serial']:.3f} s, 2 workers "
            f"{row['2 workers']:.3f} s (ratio {row['2 workers'] / row['serial']:.2f}), in process "
            f"{row['in process']:.3f} s; {row['bytes']:,.0f} bytes, {row['touched']:,.0f} features "
            f"touched, {row['each']:.1f} bytes each, {row['and part']:.1f} by part"
        )
    return results


def columns(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Time round trips of the margin perceptron."""
    files = files_of(folder, *made_rows(options.rows, options.width))
    results = {}
    for batch in (64, 1024, 4096):
        ways = Ways(
            lambda: MarginPerceptronClassifier(passes=3, random_state=0), files,
            mode="columns", batch=batch,
        )  # fmt: skip
        times = turns({"in process": ways.in_process, "2 workers": ways.workers}, options.repeats)
        trips = [1 - report.rows // -batch for report in ways.reports[1:]]  # and one to train
        row = {way: in_ms(seconds[1:] / trips) for way, seconds in times.items()}
        results[batch] = row
        print(
            f"columns, batch {batch}: a round trip takes {row['2 workers']['median']:.2f} ms on "
            f"2 workers, {row['in process']['median']:.2f} ms in process (all 8 blocks in turn)"
        )
    return results


def main() -> None:
    """Measure, print, and write."""
    assert __doc__ is not None
    tables = {"paper": paper, "robust": robust, "average": average, "columns": columns}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(tables), default=list(tables))
    parser.add_argument("--stages", type=int, default=20, help="for the published variant")
    parser.add_argument("--keep", type=float, default=0.0, help="for the published variant")
    parser.add_argument("--rows", type=int, default=20_000, help="for robust and columns")
    parser.add_argument("--average-rows", type=int, default=200_000)
    parser.add_argument("--width", type=int, default=1_000_000)
    parser.add_argument("--paths", type=int, default=16)
    parser.add_argument("--burst", type=int, default=50, help="rows; a stage has 5 bursts per path")
    parser.add_argument("--passes", type=int, default=3, help="for the robust variant")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*gravity is 0")
    results: dict[str, Any] = {"options": {k: str(v) for k, v in vars(options).items()}}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder  # Ray writes a file there
        # By default, Ray workers run at a low priority; this would favour the other methods.
        os.environ.setdefault("RAY_worker_niceness", "0")
        with Cluster.connect("local", WORKERS):
            for name in options.only:
                load = os.getloadavg()[0]
                results[name] = tables[name](options, Path(folder)) | {"load before": load}
                if options.json:
                    options.json.write_text(json.dumps(results, indent=1))
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
