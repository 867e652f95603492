"""`make soak`: everything that takes a night. It goes on where an earlier run ended.

python tests/reliability/soak.py                      all steps, then docs/reliability.md
python tests/reliability/soak.py kills fuzz           these steps
python tests/reliability/soak.py --again              all steps from their beginning
python tests/reliability/soak.py --share 0.01         a hundredth of the kills, inputs, ...
python tests/reliability/soak.py sanitize --tests tests/io    these files and folders of tests
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reliability import differential, hostile, kills, records, report, restored, suites, vw_peer

FUZZERS = {
    "svmlight": "svmlight files",
    "vw": "VW files",
    "cache": "caches",
    "model": "model files",
    "checkpoint": "checkpoints",
    "unpacking": "compressed files",
}
SLICE = 60  # seconds of one run of a fuzzer
MAKE = ("make", "--no-print-directory")


Tried = Callable[[int, int], tuple[int, list[str]]]  # of a count and a seed


def counts(kind: str, goal: int, some: int, tried: Tried, folder: Path = records.FOLDER) -> None:
    """Try `some` at a time, up to the goal; the seed is the number tried before."""
    record = records.read(kind, folder) or {}
    while (before := record.get("done", {}).get("tried", 0)) < goal:
        number, failures = tried(min(some, goal - before), record.get("tried", 0))
        done = before + max(number, len(failures))
        record = records.add(kind, number, failures, done={"tried": done}, folder=folder)
        say(kind, f"{done} of {goal}", failures)


def run_kills(share: float) -> None:
    """End runs of `thresher train` by signals."""
    names = list(kills.CASES)

    def killed(how: signal.Signals) -> Tried:
        return lambda count, seed: kills.kill(names[seed // count % len(names)], count, how, seed)

    counts("kills", round(1000 * share), 5, killed(signal.SIGKILL))
    counts("interrupts", round(200 * share), 2, killed(signal.SIGINT))
    counts("terminations", round(200 * share), 2, killed(signal.SIGTERM))


def run_fuzzers(share: float) -> None:
    """Fuzz all readers, ten minutes each."""
    for target in FUZZERS:
        goal = 600 * share
        record = records.read(f"fuzz_{target}") or {}
        while (before := record.get("done", {}).get("seconds", 0)) < goal:
            seconds = max(1, round(min(SLICE, goal - before)))
            done = subprocess.run(
                [*MAKE, f"fuzz-{target}", f"FUZZ_SECONDS={seconds}"],
                cwd=records.ROOT, capture_output=True, text=True,
            )  # fmt: skip
            inputs = sum(map(int, re.findall(r"inputs tried: (\d+)", done.stdout)))
            failures = [f"{target}: {done.stderr[-2000:]}"] if done.returncode else []
            record = records.add(
                f"fuzz_{target}", inputs, failures, done={"seconds": before + seconds}
            )
            say(f"fuzz {target}", f"{before + seconds} of {goal:.0f} s, {inputs} inputs", failures)
            if failures:
                break  # it would stop at the same input


def run_suite(kind: str, command: tuple[str, ...], files: list[str], **variables: str) -> None:
    """Run test files one by one; files whose tests have run are left out."""
    done = (records.read(kind) or {}).get("done", {})
    for file in files:
        if file in done:
            continue
        xml = records.FOLDER / f"pytest-{kind}.xml"
        options = "-m 'soak or hypothesis'" if kind == "properties" else ""
        tests, failures = suites.run(command, file, xml, options, **variables)
        done = records.add(kind, tests, failures, done={file: tests})["done"]
        say(kind, f"{file}: {tests}", failures)


TESTS: list[str] = []  # files and folders of tests that were chosen; none: all


def chosen(files: list[str]) -> list[str]:
    """Return those files that were chosen, or are in a chosen folder."""
    return [file for file in files if not TESTS or any(map(Path(file).is_relative_to, TESTS))]


def run_checked(kind: str, share: float) -> None:
    """Run the tests with sanitizers."""
    files = chosen(suites.test_files())
    if kind == "race":
        listed = subprocess.run(
            [*MAKE, "race-tests"], cwd=records.ROOT, capture_output=True, text=True, check=True
        )
        files = chosen(listed.stdout.split())
    run_suite(kind, (*MAKE, kind), files[: max(1, round(len(files) * share))])


def run_properties(share: float) -> None:
    """Run property tests with many examples, and the tests with the mark `soak`."""
    files = chosen(suites.test_files("hypothesis", "mark.soak"))
    files = files[: max(1, round(len(files) * share))]
    run_suite("properties", (*MAKE, "properties"), files, HYPOTHESIS_PROFILE="soak")


def run_faults(share: float) -> None:
    """Let all calls of all operations fail, ten minutes at a time; then cut the power."""
    tried, seconds = -1, min(600.0, 7200 * share)
    while tried != (now := _points()) and (_unfinished() or records.read("power") is None):
        tried = now
        options = f"FAULT_ARGS=--seconds {seconds:.0f}"
        code = subprocess.run([*MAKE, "faults", options], cwd=records.ROOT).returncode
        say("faults", f"{_points()} points, exit code {code}", [])
        must_have_counted(code, "faults", "power")
        if share < 1:
            return


def _points() -> int:
    return int((records.read("faults") or {}).get("points", 0))


def _unfinished() -> bool:
    return bool((records.read("faults") or {}).get("unfinished", True))


def run_coverage() -> None:
    """Measure what the tests run, if there is no record of it but that of the page."""
    if (records.read("coverage") or {"of_page": True}).get("of_page"):
        code = subprocess.run([*MAKE, "coverage"], cwd=records.ROOT).returncode
        say("coverage", f"exit code {code}", [])
        must_have_counted(code, "coverage")


def must_have_counted(code: int, *kinds: str) -> None:
    """End with an error if a command failed, and its records do not say why."""
    if code and not any(report.failed(records.FOLDER, kind) for kind in kinds):
        raise SystemExit(
            f"error: make {kinds[0]} ended with exit code {code}, for no counted failure"
        )


def run_differential(share: float) -> None:
    """Compare our parser of VW text with others."""
    counts("differential", round(200_000 * share), 1000, differential.tried)
    if vw_peer.workspace() is not None:
        counts("differential_vw", round(20_000 * share), 1000, vw_peer.tried)


STEPS: dict[str, Callable[[float], None]] = {
    "kills": run_kills,
    "hostile": lambda share: counts("hostile", round(20_000 * share), 500, hostile.tried),
    "differential": run_differential,
    "faults": run_faults,
    "fuzz": run_fuzzers,
    "properties": run_properties,
    "sanitize": lambda share: run_checked("sanitize", share),
    "race": lambda share: run_checked("race", share),
    "coverage": lambda share: run_coverage(),
}


def say(step: str, text: str, failures: list[str]) -> None:
    print(f"{time.strftime('%H:%M:%S')} {step}: {text}", *failures, sep="\n  ", flush=True)


def main() -> int:
    """Run the steps and write the report; return 1 if something failed in this run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("steps", nargs="*", choices=[[], *STEPS], metavar="STEP")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH")
    options = parser.parse_args()
    TESTS[:] = options.tests
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # if a shell started it with &
        signal.signal(signal.SIGINT, signal.default_int_handler)  # else commands ignore it, too
    restored.restore(records.FOLDER, report.PAGE)
    if options.again:
        records.start_again()
    before = report.failed(records.FOLDER)
    for name in options.steps or STEPS:
        with records.locked(name, wait=False):
            STEPS[name](options.share)
        report.write(records.FOLDER, report.PAGE)  # also if a later step is ended
    return int(report.failed(records.FOLDER) > before)


if __name__ == "__main__":
    sys.exit(main())
