"""`make bench-compare REV=...`: our calls of two versions in turn; names what got slower.

It builds the commit REV in build/compare, with an environment of its own that borrows the packages
of this one, and starts a process for each version. Both have the lines of this version, and so the
same data. Their calls take turns. A call that takes over 10 % longer than that of REV is measured
again; if it is slower again, it is named and the exit code is 1. The peer of a line is the same for
both versions: if our call takes 10 % longer, the ratio to the peer is worse by as much.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speed import peers
from speed.areas import areas, chosen, select
from speed.environment import borrowing, command, pip_install
from speed.line import MOST
from speed.results import ROOT, git
from speed.table import seconds

WORSE = 1.10
LEAST, LIMIT = 1.5, 15.0  # seconds of one measurement of a line


@dataclass(frozen=True)
class Compared:
    """One line: the best seconds of both versions, or why there are none."""

    area: str
    name: str
    before: float = 0.0
    after: float = 0.0
    why: str = ""
    again: bool = False

    @property
    def change(self) -> float:
        """Seconds of this version in units of those of REV."""
        return self.after / self.before if self.before else 1.0

    @property
    def worse(self) -> bool:
        """Whether the call is slower than allowed."""
        return not self.why and self.change > WORSE


class Version:
    """A process that runs our calls with one version of Thresher."""

    def __init__(self, python: str, full: bool, package: str = "speed", path: str = "") -> None:
        folders = [str(Path(__file__).parents[1]), path, os.environ.get("PYTHONPATH", "")]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(f for f in folders if f)}
        serve = [python, "-m", "speed.server", "--package", package, *(["--full"] * full)]
        self.process = subprocess.Popen(
            serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def ask(self, request: str) -> dict[str, Any]:
        """Send a command; return the answer."""
        pipes = self.process.stdin, self.process.stdout
        assert pipes[0] is not None
        assert pipes[1] is not None
        try:
            print(request, file=pipes[0], flush=True)
            answer = pipes[1].readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise SystemExit(f"error: the process that ran {request!r} has ended")
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        """End the process."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()


def compare(
    before: Version, after: Version, names: Sequence[str], parts: Sequence[str], repeats: int
) -> Iterator[Compared]:
    """Compare line after line, in the order of the areas."""
    for area in names:
        both = before, after
        for version in both:
            version.ask(f"area {area}")
        while True:
            lines = [version.ask("next") for version in both]
            failed = [_failed(line, k) for k, line in enumerate(lines) if "failed" in line]
            if failed:
                yield Compared(area, f"lines of {area}", why="; ".join(failed))
                break
            if any("end" in line for line in lines):
                break
            name = lines[1]["name"]
            if not chosen(name, parts):
                continue
            why = lines[0].get("skipped") or lines[1].get("skipped")
            if why:
                yield Compared(area, name, why=f"skipped: {why}")
            elif lines[0]["name"] != name:
                yield Compared(area, name, why=f"REV has another line: {lines[0]['name']}")
            else:
                yield _twice(area, name, both, repeats)


def _twice(area: str, name: str, both: tuple[Version, Version], repeats: int) -> Compared:
    """Measure; if it seems worse, measure once more, and keep the better of the two changes."""
    first = _measure(area, name, both, repeats)
    if not first.worse:
        return first
    again = _measure(area, name, both, repeats)
    least = min(first, again, key=lambda found: found.change)
    return Compared(area, name, least.before, least.after, again.why, again=True)


def _measure(area: str, name: str, both: tuple[Version, Version], repeats: int) -> Compared:
    best, began, total, done = [float("inf")] * 2, time.perf_counter(), 0.0, 0
    while done < repeats or (total < LEAST and done < MOST):
        took = time.perf_counter() - began
        if done > 1 and took > (LEAST if done >= repeats else LIMIT):
            break
        for k in (0, 1) if done % 2 else (1, 0):  # neither is always the first
            answer = both[k].ask("run")
            if "failed" in answer:
                return Compared(area, name, why=_failed(answer, k))
            best[k], total = min(best[k], answer["seconds"]), total + answer["seconds"]
        done += 1
    return Compared(area, name, *best)


def _failed(answer: dict[str, Any], k: int) -> str:
    return f"{('REV', 'this version')[k]} cannot run it: {answer['failed']}"


def shown(found: Sequence[Compared], rev: str) -> str:
    """Return the table."""
    wide = max(len(line.name) for line in found)
    out = [f"{'what a user calls':{wide}}  {rev[:12]:>12}  {'this':>9}  {'change':>7}"]
    for line in found:
        if line.why:
            out.append(f"{line.name:{wide}}  not compared: {line.why}")
            continue
        note = ("  WORSE" if line.worse else "  not worse, measured again") * line.again
        numbers = f"{seconds(line.before):>12}  {seconds(line.after):>9}"
        out.append(f"{line.name:{wide}}  {numbers}  {line.change - 1:>+7.1%}{note}")
    return "\n".join(out)


def build(rev: str) -> Path:
    """Check out and build a commit, unless that is done; return its interpreter."""
    commit = git("rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}")
    if not commit:
        raise SystemExit(f"error: git knows no commit {rev!r}; give one by REV=...")
    folder = ROOT / "build" / "compare" / commit[:12]
    done = folder / ".venv" / ".installed"
    if not done.exists():
        print(f"building {rev} in {folder}", file=sys.stderr, flush=True)
        if not (folder / "pyproject.toml").exists():
            add = ["worktree", "add", "--quiet", "--force", "--detach", str(folder), commit]
            command("git", "-C", str(ROOT), *add)
        editable = ["--no-build-isolation", "--no-deps", "--editable", str(folder)]
        env = {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache"} if shutil.which("ccache") else {}
        pip_install(borrowing(folder / ".venv"), *editable, **env)
        done.touch()
    return borrowing(folder / ".venv")


def main() -> int:
    """Build, compare, print; return 1 if a line got worse."""
    parser = argparse.ArgumentParser(prog="make bench-compare", description=__doc__)
    parser.add_argument("rev", metavar="REV", help="a commit, branch or tag")
    parser.add_argument("--full", action="store_true", help="the sizes of make bench-full")
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="7 by default")
    options = parser.parse_args()
    python = build(options.rev)
    peers.find()
    versions = [Version(p, options.full) for p in (str(python), sys.executable)]
    names, parts = select(options.only, areas())
    found = []
    for line in compare(*versions, names, parts, options.repeats):
        found.append(line)
        what = f"not compared: {line.why}" if line.why else f"{line.change - 1:+.1%}"
        print(f"{line.area}: {line.name}: {what}", file=sys.stderr, flush=True)
    for version in versions:
        version.close()
    return report(found, options.rev)


def report(found: Sequence[Compared], rev: str) -> int:
    """Print the table and what got worse; return the exit code."""
    if not any(not line.why for line in found):
        print("error: no line could be compared", file=sys.stderr)
        return 1
    print(shown(found, rev))
    worse = [line for line in found if line.worse]
    for line in worse:
        print(f"error: {line.name}: takes {line.change - 1:.0%} longer than {rev}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
