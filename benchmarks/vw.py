"""Thresher and Vowpal Wabbit compared: the same files, one interleaved run, best of several.

    make bench-peers                      installs VW's wheel into build/peers
    python benchmarks/vw.py [--rows 500000] [--repeats 5] [--json FILE] [--peer-only]

Every run is a separate process, timed from outside: wall-clock time, and CPU time of all threads.
The start-up time, measured by the same command on a file of one line, is subtracted; the table
shows both. Both programs hash names to 22 bits, make one pass, write a model and report the mean
progressive loss (the loss of each row before learning from it).

VW is the wheel's native driver: `pylibvw.vw([...]).run_parser()`, which `python -m vowpalwabbit`
calls, without the other imports of that. It parses on one thread and learns on another; on one core
the two share it. Its cache is written by a run that is not timed (`-k`). Its options are
    text, cache   --sgd --l1 1e-7 --power_t 0 -l 0.015 --loss_function logistic -b 22
    loss          --loss_function logistic -b 22 -l RATE (default: adaptive, normalized, invariant)
and those of Thresher are
    text, cache   --rule truncated-gradient --gravity 1e-7 --eta0 0.015 --bits 22 --no-names
    loss          --rule ftrl --l1 1 --alpha ALPHA --bits 22 --no-names
(VW keeps no names either; the row "text with names" shows what they cost in Thresher). The rates of
"text" and "cache" are the best of both programs on these rows. RATE and ALPHA are first searched in
a grid, from the cache; the best must not be at the end of the grid. The row "loss" is the time
until VW's progressive loss is reached: for VW the whole pass, for Thresher until an event of
`--json` reports it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from speed import peers
from vw_data import files

ROOT = Path(__file__).resolve().parents[1]
DRIVER = "import sys, pylibvw; v = pylibvw.vw(sys.argv[1:]); v.run_parser(); v.finish()"
BITS, ETA, GRAVITY, L1 = "22", "0.015", "1e-7", "1"
RATES = ["0.25", "0.35", "0.5", "0.7", "1", "1.4", "2", "2.8"]  # of VW, adaptive
ALPHAS = ["0.05", "0.1", "0.15", "0.2", "0.3", "1"]  # of FTRL
BARS = {"text, one core": 4.0, "text, both cores": 3.0, "cache, both cores": 3.0, "loss": 4.0}


@dataclass
class Run:
    """One process: its seconds, and the lines it printed, each with its time."""

    wall: float
    cpu: float
    lines: list[tuple[float, str]]
    loss: float = float("nan")


@dataclass
class Best:
    """The best of several runs, and of as many runs on a file of one line."""

    wall: float = float("inf")
    cpu: float = float("inf")
    startup: float = float("inf")
    loss: float = float("nan")

    def see(self, run: Run, startup: Run, wall: float | None = None) -> None:
        """Add one more run and one more start-up."""
        self.wall = min(self.wall, run.wall if wall is None else wall)
        self.cpu = min(self.cpu, run.cpu)
        self.startup = min(self.startup, startup.wall)
        self.loss = run.loss

    @property
    def net(self) -> float:
        """Wall-clock time without start-up."""
        return self.wall - self.startup


def timed(command: list[str], cores: int) -> Run:
    """Run a command on the first of the cores that this process may use."""
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    )
    assert process.stdout is not None
    lines = [(time.perf_counter() - began, line) for line in process.stdout]
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(" ".join(command) + "\n" + "".join(text for _, text in lines))
    return Run(wall, usage.ru_utime + usage.ru_stime, lines)


class VW:
    """Vowpal Wabbit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        peers.find()
        if importlib.util.find_spec("pylibvw") is None:
            raise SystemExit(peers.missing("VW"))
        self.sgd = ["--sgd", "--l1", GRAVITY, "--power_t", "0", "-l", ETA]

    def train(self, data: Path, rule: list[str], cores: int, cache: list[str] | None = None) -> Run:
        """Train once; `cache` holds the options of the cache."""
        model = str(self.folder / "vw.model")
        options = ["-d", str(data), "-f", model, "--loss_function", "logistic", "-b", BITS]
        command = [sys.executable, "-c", DRIVER, *options, *rule, *(cache or [])]
        Path(model).unlink(missing_ok=True)
        run = timed(command, cores)
        if not Path(model).exists():
            raise SystemExit("VW wrote no model")
        run.loss = next(
            float(t.split("=")[1]) for _, t in run.lines if t.startswith("average loss")
        )
        return run

    def cached(self, data: Path) -> list[str]:
        """Write the cache again; return the options that use it."""
        options = ["--cache_file", str(self.folder / f"{data.name}.vw-cache")]
        self.train(data, self.sgd, 2, [*options, "-k"])
        return options


class Thresher:
    """Thresher's command line."""

    def __init__(self, command: str, folder: Path) -> None:
        self.command, self.folder = command, folder
        self.sgd = ["--rule", "truncated-gradient", "--gravity", GRAVITY, "--eta0", ETA]

    def train(self, data: Path, rule: list[str], cores: int, cache: list[str] | None = None) -> Run:
        """Train once, with as many threads as cores."""
        options = ["-m", str(self.folder / "thresher.model"), "--bits", BITS, "--passes", "1"]
        options += ["--threads", str(cores), "--json", "--no-names", *rule, *(cache or [])]
        run = timed([self.command, "train", str(data), *options], cores)
        course = self.course(run)
        run.loss = course[-1][1] if course else float("nan")
        return run

    def cached(self, data: Path) -> list[str]:
        """Write the cache again; return the options that use it."""
        path = self.folder / f"{data.name}.thresher-cache"
        path.unlink(missing_ok=True)
        self.train(data, self.sgd, 2, ["--cache", str(path)])
        return ["--cache", str(path)]

    @staticmethod
    def course(run: Run) -> list[tuple[float, float]]:
        """Return the time of each event, with the mean progressive loss up to it."""
        events = [(at, json.loads(line)) for at, line in run.lines if line.startswith("{")]
        return [(at, event["mean_loss"]) for at, event in events if event.get("mean_loss")]

    def reached(self, run: Run, target: float) -> float:
        """Return the time at which the mean loss reached the target and stayed there."""
        course = self.course(run)
        above = [number for number, (_, loss) in enumerate(course) if loss > target]
        then = above[-1] + 1 if above else 0
        return course[then][0] if then < len(course) else float("inf")


def search(program: VW | Thresher, data: Path, rules: list[list[str]]) -> tuple[list[str], float]:
    """Try rules from the cache, once each; print their losses; return the best and its loss."""
    cache = program.cached(data)
    losses = [program.train(data, rule, 2, cache).loss for rule in rules]
    shown = "  ".join(f"{r[-1]}: {v:.4f}" for r, v in zip(rules, losses, strict=True))
    print(f"{type(program).__name__}, {rules[0][-2]}  {shown}", flush=True)
    best = min(range(len(rules)), key=losses.__getitem__)
    return rules[best], losses[best]


def compare(programs: list[VW | Thresher], paths: dict[str, Path], repeats: int) -> dict[str, Any]:
    """Run everything in turn; return the best of each case and program."""
    data, one = paths["named.vw"], paths["one.vw"]
    tuned: dict[str, list[str]] = {}
    target = float("inf")
    for program in programs:
        name = type(program).__name__
        if isinstance(program, VW):
            tuned[name], target = search(program, data, [["-l", rate] for rate in RATES])
            if tuned[name][-1] in (RATES[0], RATES[-1]):
                print("VW's best rate is at the end of the grid: extend the grid")
        else:
            rules = [["--rule", "ftrl", "--l1", L1, "--alpha", a] for a in ALPHAS]
            tuned[name] = search(program, data, rules)[0]
    caches = {type(p).__name__: p.cached(data) for p in programs}
    best = {case: {type(p).__name__: Best() for p in programs} for case in BARS}
    for _ in range(repeats):
        for case, by_name in best.items():
            for program in programs:
                name = type(program).__name__
                cores = 1 if "one core" in case else 2
                rule = tuned[name] if case == "loss" else program.sgd
                cache = None if case.startswith("text") else caches[name]
                startup = program.train(one, rule, cores)
                run = program.train(data, rule, cores, cache)
                reached = None
                if case == "loss" and isinstance(program, Thresher):
                    reached = program.reached(run, target)
                by_name[name].see(run, startup, reached)
    return {"best": best, "tuned": tuned, "target": target}


def show(result: dict[str, Any], repeats: int) -> None:
    """Print the table."""
    print(f"\nseconds, best of {repeats}; VW's best progressive loss is {result['target']:.4f}")
    print(f"{'':20}{'program':10}{'wall':>8}{'start-up':>10}{'net':>8}{'CPU':>8}{'loss':>9}  ratio")
    for case, by_name in result["best"].items():
        for name, best in by_name.items():
            ratio = ""
            if name == "Thresher" and "VW" in by_name:
                times = by_name["VW"].net / best.net
                ratio = f"{times:7.1f}x (required: {BARS[case]:g}x)"
            print(
                f"{case:20}{name:10}{best.wall:8.3f}{best.startup:10.3f}{best.net:8.3f}"
                f"{best.cpu:8.3f}{best.loss:9.4f}{ratio}"
            )


def main() -> None:
    """Parse arguments, run, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peer-only", action="store_true", help="run only VW")
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench")
    parser.add_argument("--thresher", default=str(Path(sys.executable).with_name("thresher")))
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    arguments = parser.parse_args()
    paths = files(arguments.folder, arguments.rows)
    programs: list[VW | Thresher] = [VW(arguments.folder)]
    if not arguments.peer_only:
        programs.append(Thresher(arguments.thresher, arguments.folder))
    result = compare(programs, paths, arguments.repeats)
    show(result, arguments.repeats)
    if arguments.json:
        arguments.json.write_text(json.dumps(result, default=asdict, indent=1) + "\n")


if __name__ == "__main__":
    main()
