"""Measure how good the defaults are: all our rules and untuned peers on many data sets.

    python benchmarks/defaults.py                       run all, write the results and the page
    python benchmarks/defaults.py --learners ftrl VW    run these again, and merge the results
    python benchmarks/defaults.py --sets a9a housing    only these sets
    python benchmarks/defaults.py --page                only write the page, from the results
    python benchmarks/defaults.py --folds 3 --try "ftrl alpha=0.3 l1=0.1" --learners ftrl

Every learner has its defaults. Training rows come in several random orders; test rows are fixed.
The results go to benchmarks/results/defaults.json, the page to docs/defaults.md. Peers that are not
installed are skipped: VW (vowpalwabbit), and the sets of statsmodels.

`--folds` is for choices: it cross-validates on the training rows, prints mean errors and geometric
means, and writes nothing. It never reads test rows. `--try` adds a rule with other parameters.
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import importlib.metadata
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import default_learners as learners
import default_page
import default_sets as sets
import numpy as np

import thresher
from thresher.rules import RULES

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "defaults.json"
PAGE = ROOT / "docs" / "defaults.md"
TASKS = (sets.CLASSIFICATION, sets.REGRESSION)
SLOW = 10.0  # seconds: a learner that needs more is run in one order only

Job = tuple[str, str, tuple[str, ...]]  # a task, a set, and names of learners
Measured = dict[str, list[Any]]


class Results(NamedTuple):
    """What was measured."""

    found: dict[str, Any]  # by task, set and learner
    sizes: dict[str, tuple[int, int, int]]  # of each set: training rows, features, test rows


@cache
def known(task: str, tried: tuple[str, ...] = ()) -> dict[str, learners.Learner]:
    """Return all learners of a task by name; `tried` adds rules with other parameters."""
    found = [*learners.ours(task), *learners.peers(task)]
    for text in tried:
        rule, *pairs = text.split()
        given = dict(pair.split("=", 1) for pair in pairs)
        name = RULES[rule].estimators.get(learners.KIND[task])
        if name is not None:
            values = {key: _value(value) for key, value in given.items()}
            made = learners.of_class(rule, getattr(thresher, name), task, values)
            found += [learners.renamed(learner, text) for learner in made]
    return {learner.key: learner for learner in found}


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def measure(
    job: Job, orders: int, tried: tuple[str, ...], folds: int
) -> tuple[tuple[int, int, int], dict[str, Measured]]:
    """Train the learners of a job in all orders, or on all folds.

    Return the numbers of training rows, of features and of test rows, and what was measured.
    """
    task, name, keys = job
    rows, result = sets.load(name), {key: _empty() for key in keys}
    for seed in range(folds or orders):
        now = rows.fold(seed, folds) if folds else rows
        now = now.ordered(seed)
        for key in keys:
            learner, found = known(task, tried)[key], result[key]
            done = found["seconds"]
            if learner.narrow and rows.X.shape[1] > learners.WIDE:
                continue
            if not folds and done and (done[0] > SLOW or not learner.ordered):
                continue
            outcome = learner.run(now, seed)
            found["error"].append(_short(outcome.error))
            found["nonzeros"].append(int(outcome.nonzeros))
            found["seconds"].append(_short(outcome.seconds))
            if outcome.progressive is not None:
                found["progressive"].append(_short(outcome.progressive))
            if not found["warned"]:
                found["warned"] = list(outcome.warned[:1])
    return (*rows.X.shape, len(rows.y_test)), result


def _empty() -> Measured:
    return {name: [] for name in ("error", "nonzeros", "seconds", "progressive", "warned")}


def _short(number: float) -> float:
    return float(f"{number:.6g}")


def jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    """Yield what is to be run: each learner alone, and all rates of VW together."""
    for task in TASKS:
        names = sets.names(task)
        if not arguments.folds and arguments.scaled:
            names += sets.scaled_names(task)
        wanted = [n for n in names if _matches(n, arguments.sets)]
        keys = [k for k in known(task, arguments.tried) if _chosen(k, arguments)]
        rates = tuple(key for key in keys if key.startswith("VW"))
        for name in wanted:
            own = rates if "@" not in name else rates[:1]
            if own:
                yield task, name, own
            yield from ((task, name, (key,)) for key in keys if key not in rates)


def _matches(name: str, patterns: list[str]) -> bool:
    return not patterns or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def _chosen(key: str, arguments: argparse.Namespace) -> bool:
    if any(key.startswith(text) for text in arguments.tried):
        return True
    name = key.removesuffix(", one pass")
    return _matches(name, arguments.learners) or _matches(key, arguments.learners)


def run(arguments: argparse.Namespace, keep: Callable[[Results], Any] | None = None) -> Results:
    """Run all jobs in processes; return the results by task, set and learner.

    `keep` gets the results so far, about once a minute.
    """
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, "1")  # processes that start from here on have one thread
    planned = list(jobs(arguments))
    results = Results({}, {})
    began, last, kept = time.perf_counter(), 0.0, 0.0
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(arguments.processes, mp_context=context) as pool:
        futures = {
            pool.submit(measure, job, arguments.orders, arguments.tried, arguments.folds): job
            for job in planned
        }
        for count, future in enumerate(as_completed(futures), 1):
            task, name, keys = futures[future]
            sizes, found = future.result()
            results.sizes[name] = sizes
            results.found.setdefault(task, {}).setdefault(name, {}).update(found)
            now = time.perf_counter() - began
            slow = sum(sum(m["seconds"]) for m in found.values()) > SLOW
            if keep is not None and now - kept > 60:
                kept = now
                keep(results)
            if now - last > 5 or slow or count == len(planned):
                last = now
                print(f"{now:6.0f} s  {count}/{len(planned)}  {name}: {keys[0]}", flush=True)
    return results


def _shown(value: Any, depth: int = 3) -> str:
    """Return JSON with a line for each set."""
    if depth == 0 or not isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    inner = (f"{json.dumps(key)}: {_shown(value[key], depth - 1)}" for key in sorted(value))
    return "{\n" + ",\n".join(inner) + "\n}"


def merge(path: Path, new: Results, arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the new results into the file, and return all results."""
    whole = json.loads(path.read_text()) if path.exists() else {"results": {}, "sizes": {}}
    for task, by_set in new.found.items():
        for name, by_learner in by_set.items():
            whole["results"].setdefault(task, {}).setdefault(name, {}).update(by_learner)
    whole["orders"] = arguments.orders
    whole["versions"] = {
        name: importlib.metadata.version(name)
        for name in ("scikit-learn", "statsmodels", "vowpalwabbit")
        if _installed(name)
    }
    whole["sizes"].update(new.sizes)
    path.parent.mkdir(exist_ok=True)
    path.write_text(_shown(whole) + "\n")
    return whole


def _installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def show_folds(results: Results) -> None:
    """Print mean errors of cross-validation, and geometric means of ratios to the best."""
    for task, by_set in results.found.items():
        keys = list(dict.fromkeys(key for found in by_set.values() for key in found))
        keys = [key for key in keys if all(found[key]["error"] for found in by_set.values())]
        table = np.array([[np.mean(by_set[name][key]["error"]) for key in keys] for name in by_set])
        floor = np.array([0.5 / results.sizes[name][0] for name in by_set])[:, None]
        ratios = (table + floor) / (table + floor).min(axis=1, keepdims=True)
        print(f"\n{task}: errors by cross-validation on training rows, in percent")
        for j, key in enumerate(keys):
            mean = np.exp(np.log(ratios[:, j]).mean())
            print(f"  {mean:7.3f} {ratios[:, j].max():8.2f}  {key}")
        for i, name in enumerate(by_set):
            shown = " ".join(f"{100 * value:9.3g}" for value in table[i])
            print(f"  {name:20s} {shown}")


def main() -> None:
    """Parse arguments, run, and write the results and the page."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--learners", nargs="*", default=[], help="names or patterns")
    parser.add_argument("--sets", nargs="*", default=[], help="names or patterns")
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--no-scaled", dest="scaled", action="store_false")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--write", type=Path, default=PAGE)
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--folds", type=int, default=0, help="cross-validate on training rows")
    parser.add_argument("--try", dest="tried", action="append", default=[], metavar="RULE K=V ...")
    arguments = parser.parse_args()
    arguments.tried = tuple(arguments.tried)
    if arguments.folds:
        show_folds(run(arguments))
        return
    if arguments.page:
        whole = json.loads(arguments.results.read_text())
    else:
        found = run(arguments, lambda results: merge(arguments.results, results, arguments))
        whole = merge(arguments.results, found, arguments)
    arguments.write.write_text(default_page.page(whole))
    print(f"wrote {arguments.results} and {arguments.write}")


if __name__ == "__main__":
    main()
