"""`make faults`: let every call of every operation fail, and cut the power after every change.

PYTHONPATH=tests python -m faults                    writes build/reliability/*.json
PYTHONPATH=tests python -m faults --only train       operations whose name starts so
PYTHONPATH=tests python -m faults --slice            a part of each; in a folder of its own
PYTHONPATH=tests python -m faults --references       all operations, without a fault
PYTHONPATH=tests python -m faults --seconds 600      ends after ten minutes

A later run goes on where the earlier one ended, and tries the points that were wrong again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import thresher._core
from faults import library
from faults.operations import OPERATIONS
from thresher import __version__

RESULTS = library.ROOT / "build" / "reliability"


def main() -> int:
    """Try all points and power cuts; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="faults", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="operations whose name starts so")
    parser.add_argument("--fault", default="", help="faults whose name starts so, or power")
    parser.add_argument("--slice", action="store_true", help="a part of the points")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--verbose", action="store_true", help="show messages and places")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the JSON files")
    parser.add_argument("--seconds", type=float, default=1e9, help="when to stop")
    parser.add_argument("--references", action="store_true", help="run all without a fault")
    parser.add_argument("--again", action="store_true", help="forget earlier runs")
    options = parser.parse_args()
    if not any(name.startswith(options.only) for name in OPERATIONS):
        parser.error(f"no operation starts with {options.only}")
    if not any(name.startswith(options.fault) for name in (*library.FAULTS, "power")):
        parser.error(f"no fault starts with {options.fault}")
    if os.environ.get("LD_PRELOAD") != str(library.BUILT):
        again = [sys.executable, "-m", "faults", *sys.argv[1:]]
        os.execve(sys.executable, again, library.environment())
    if options.references:
        from faults.swept import references

        found = references(options.only)
        print(*found, sep="\n")
        return 1 if found else 0
    wrong = 0
    if options.slice:
        options.results /= "slice"
        shutil.rmtree(options.results, ignore_errors=True)
    if options.fault != "power":
        wrong += _faults(options)
    if options.fault in ("", "power"):
        wrong += _power(options)
    return 1 if wrong else 0


def _faults(options: argparse.Namespace) -> int:
    from faults.swept import KEYS, swept

    folder = options.results / "faults"
    if options.again:
        shutil.rmtree(folder, ignore_errors=True)
    found = swept(options.only, options.fault, options.slice, options.jobs, folder, options.seconds)
    _table(found, KEYS)
    for failure in found["failures"]:
        print(f"{failure['operation']}, {failure['fault']} {failure['n']}: {failure['wrong']}")
        if options.verbose:
            print("   ", failure["message"].strip().replace("\n", "\n    "))
            print("   ", " ".join(failure["frames"]))
    file = options.results / "faults.json"
    _write({**found, **_before(file, options.again)}, file)
    return int(found["wrong"] - found["known"])


def _before(file: Path, again: bool) -> dict[str, Any]:
    """Return the first version, and how many points were tried of which only the page is left."""
    if again or not file.exists():
        return {"since": __version__}
    old = json.loads(file.read_text())
    earlier = old["points"] - old["known"] if old.get("only_counts") else old.get("earlier", 0)
    return {"since": old.get("since", __version__), "earlier": earlier}


def _power(options: argparse.Namespace) -> int:
    from faults.power import CHECKS, SLICE, cuts

    file = options.results / "power.json"
    if not (options.only or options.fault or options.again) and _is_known(file):
        print("power cuts: this state of the code was tried")
        return 0
    known = SLICE if options.slice else CHECKS
    names = [name for name in known if name.startswith(options.only)]
    operations = {name: cuts(name, 7 if options.slice else 1) for name in names}
    keys = ("prefixes", "states", "wrong")
    sums = {key: sum(counts[key] for counts in operations.values()) for key in keys}
    found = {**sums, "operations": operations}
    _table(found, keys)
    failures = []
    for name, counts in operations.items():
        for failure in counts["failures"]:
            text = f"{name}, power cut after {failure['after']} changes: {failure['wrong']}"
            failures.append(text)
            print(text)
            if options.verbose:
                print("   ", " ".join(failure["files"]))
    if not options.only:
        _write({**found, **cuts_so_far(found, failures, file, options.again)}, file)
    return int(found["wrong"])


def _is_known(file: Path) -> bool:
    """Whether a record of power cuts is of this state of the code, and nothing was wrong."""
    old = json.loads(file.read_text()) if file.exists() else {}
    return old.get("code") == _digest_of_code() and old["wrong"] == 0


def cuts_so_far(
    found: dict[str, Any], failures: list[str], file: Path, again: bool
) -> dict[str, Any]:
    """Return what the record of power cuts has besides what was found.

    Counts of an earlier state of the code are kept: "tried" are the states of this one, "earlier"
    those of the others, and "failed" and "failures" are of all.
    """
    code = _digest_of_code()
    kept: dict[str, Any] = {"since": __version__, "earlier": 0}
    kept |= {"earlier_failed": 0, "earlier_failures": []}
    if file.exists() and not again:
        old = json.loads(file.read_text())
        kept |= {key: old[key] for key in kept if key in old}
        if old.get("code") != code:
            kept["earlier"] += old.get("tried", old.get("prefixes", 0))
            kept["earlier_failed"] = old.get("failed", old.get("wrong", 0))
            kept["earlier_failures"] = old.get("failures", [])
    return {
        **kept,
        "code": code,
        "tried": found["states"],
        "failed": found["wrong"] + kept["earlier_failed"],
        "failures": [*kept["earlier_failures"], *failures],
    }


def _digest_of_code() -> str:
    """Return the digest of the package, and of the files that check it."""
    folders = Path(thresher.__file__).parent, Path(__file__).parent
    files = sorted(
        file for folder in folders for file in folder.rglob("*.[pch]*") if file.is_file()
    )
    whole = hashlib.sha256()
    for file in (*files, Path(thresher._core.__file__)):
        whole.update(file.read_bytes())
    return whole.hexdigest()


def _table(found: dict[str, Any], keys: tuple[str, ...]) -> None:
    print(f"{'operation':30}", *(f"{key:>10}" for key in keys))
    for name, facts in [*found["operations"].items(), ("all", found)]:
        print(f"{name:30}", *(f"{facts[key]:10,}" for key in keys))


def _write(found: dict[str, Any], file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
