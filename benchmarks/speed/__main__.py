"""`make bench`: measure all lines, print the table."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from speed import peers, results, table
from speed.areas import areas, chosen, lines_of, select
from speed.line import Skipped, measure
from speed.page import PAGE, write_page
from speed.results import Result, result_of

LIMIT = {False: 8.0, True: 90.0}  # seconds after which no repeat of a line begins


def run(full: bool, only: Sequence[str], repeats: int, package: str = "speed") -> Iterator[Result]:
    """Measure line after line; a line that fails does not stop the others."""
    found = areas(package)
    run_areas, parts = select(only, found)
    for area in run_areas:
        try:
            for line in lines_of(area, full, package):
                if chosen(line.name, parts):
                    yield _measured(area, line, repeats, LIMIT[full])
                del line  # before the data of the next line is made
        except Exception as error:  # of the generator: no more lines of this area
            traceback.print_exc()
            yield Result(area, f"lines of {area}", failed=_words(error))


def _measured(area: str, line: object, repeats: int, limit: float) -> Result:
    if isinstance(line, Skipped):
        return Result(area, line.name, skipped=line.reason)
    try:
        return result_of(area, measure(line, repeats, limit))
    except AssertionError as error:
        return Result(area, line.name, failed=f"the check says: {error or 'not the same'}")
    except Exception as error:
        traceback.print_exc()
        return Result(area, line.name, failed=_words(error))


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def main(arguments: Sequence[str] | None = None, package: str = "speed") -> int:
    """Run; return the exit code: 1 if a line failed."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="the sizes of make bench-full")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="an area, or part of a name"
    )
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="5 by default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results here")
    parser.add_argument(
        "--page", action="store_true", help=f"also write {PAGE.name} and benchmarks/results"
    )
    options = parser.parse_args(arguments)
    if options.page and options.only:
        parser.error("--page needs all lines; leave out --only")
    peers.find()
    began, found = time.perf_counter(), []
    for result in run(options.full, options.only, options.repeats, package):
        found.append(result)
        cells = table.cells(result)
        shown = cells[-1] if not result.measured else f"{cells[3]} (must: {cells[4]})"
        took = time.perf_counter() - began
        print(f"[{took:5.0f} s] {result.area}: {result.name}: {shown}", file=sys.stderr, flush=True)
    if not found:
        print(f"error: no line has {' or '.join(options.only) or 'been found'}", file=sys.stderr)
        return 1
    took = time.perf_counter() - began
    print(f"{table.text(found)}\n\n{table.summary(found)}; measured in {took:.0f} s")
    kept = results.record(found, options.full)
    if options.json:
        results.write(kept, options.json)
    failed = [result for result in found if result.failed]
    for result in failed:
        print(f"error: {result.area}: {result.name}: {result.failed}", file=sys.stderr)
    if options.page and not failed:
        results.write(kept, results.file_of(kept))
        write_page(kept)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
