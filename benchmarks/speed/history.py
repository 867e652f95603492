"""`make bench-history`: measure this version, record it, and draw the ratios of all versions.

The results go to benchmarks/results (one file for each machine and version) and to airspeed
velocity (benchmarks/results/asv), which can compare commits and make web pages: `asv.conf.json`.
The picture is docs/plots/speed-history.svg.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from speed import __main__ as bench
from speed import results
from speed.environment import borrowing, command, pip_install
from speed.machine import machine, short_name
from speed.page import PICTURE
from speed.results import ROOT, Result, git, results_in, version_of

ASV = ROOT / "build" / "asv"
ASV_RESULTS = ROOT / "benchmarks" / "results" / "asv"
ASV_VERSION = "asv>=0.6.4"


def margin(result: Result) -> float:
    """Return the ratio in units of what must be reached: 1 or more is reached.

    Examples
    --------
    >>> margin(Result("fit", "fit", must=4.0, ratio=5.0))
    1.25
    >>> margin(Result("fit", "fit in units", must=1.2, ratio=2.4, unit=True))
    0.5
    """
    return result.must / result.ratio if result.unit else result.ratio / result.must


def draw(kept: Sequence[dict[str, Any]], file: Path = PICTURE) -> None:
    """Draw how the ratios changed with the versions: one panel for each area."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    from thresher.plots import style

    names = {(r.area, r.name) for one in kept for r in results_in(one) if r.measured and r.must > 0}
    areas = sorted({area for area, _ in names})
    mpl.rcParams.update({"svg.hashsalt": "thresher", "svg.fonttype": "none"})
    size = (9.0, 2.6 * len(areas) + 0.6)
    figure, grid = pyplot.subplots(len(areas), 1, figsize=size, layout="constrained", squeeze=False)
    versions = [version_of(one) for one in kept]
    for ax, area in zip(grid[:, 0], areas, strict=True):
        for number, name in enumerate(sorted(name for of, name in names if of == area)):
            found = [_find(one, area, name) for one in kept]
            at = [k for k, result in enumerate(found) if result is not None]
            known = [result for result in found if result is not None]
            sign = "at most " if known[-1].unit else ""
            label = f"{name}: {known[-1].ratio:.3g} (must: {sign}{known[-1].must:g})"
            ax.plot(at, [margin(result) for result in known], label=label, **style.series(number))
        ax.axhline(1.0, color=style.SOFT, linewidth=1)
        ax.set_yscale("log")
        ax.set_title(area, loc="left")
        ax.set_ylabel("ratio / must")
        ax.set_xticks(range(len(versions)), versions if area == areas[-1] else [""] * len(versions))
        ax.tick_params(axis="x", rotation=20)
        ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    place = kept[-1]["machine"]
    figure.suptitle(f"{place['cpu']}, {place['cores']} cores; above 1: reached", fontsize=10)
    file.parent.mkdir(parents=True, exist_ok=True)
    pyplot.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
    pyplot.close(figure)


def _find(one: dict[str, Any], area: str, name: str) -> Result | None:
    lines = [r for r in results_in(one) if (r.area, r.name) == (area, name) and r.measured]
    return lines[0] if lines else None


def tell_asv(file: Path, kept: dict[str, Any]) -> None:
    """Let airspeed velocity record the results in a file, for the commit that was measured."""
    if kept["changed"] or not kept["commit"]:
        print("asv records nothing: src or cpp has changes without a commit", file=sys.stderr)
        return
    python = borrowing(ASV / "venv")
    if not (ASV / "venv" / "bin" / "asv").exists():
        pip_install(python, ASV_VERSION)
    name = short_name(kept["machine"])
    env = {"HOME": str(ASV), "THRESHER_SPEED": str(file.resolve())}  # asv writes a file to HOME
    asv = [str(python), "-m", "asv"]
    config = ["--config", str(ROOT / "asv.conf.json")]
    command(*asv, "machine", *config, "--yes", "--machine", name, **env)
    commit = git("rev-parse", kept["commit"])
    here = ["--python=same", "--set-commit-hash", commit, "--machine", name]
    command(*asv, "run", *config, *here, "--quick", **env)
    for written in (ASV_RESULTS / name).glob(f"{commit[:8]}-existing-*.json"):
        _without_path(written, str(python))


def _without_path(file: Path, python: str) -> None:
    """Give a result of asv a name without the path of the interpreter, which differs anywhere."""
    short = f"python{sys.version_info.major}.{sys.version_info.minor}"
    env_name = f"existing-py{python.replace('/', '_')}"
    text = file.read_text(encoding="utf-8").replace(env_name, short).replace(python, short)
    file.unlink()
    (file.parent / f"{file.name[:8]}-{short}.json").write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, record and draw."""
    parser = argparse.ArgumentParser(prog="make bench-history", description=__doc__)
    parser.add_argument("--full", action="store_true", help="the sizes of make bench-full")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="5 by default")
    parser.add_argument(
        "--from", dest="file", type=Path, metavar="FILE",
        help="take what make bench BENCH_ARGS='--json FILE' wrote; measure nothing",
    )  # fmt: skip
    parser.add_argument("--draw", action="store_true", help="only draw")
    parser.add_argument("--no-asv", action="store_true", help="record nothing with asv")
    options = parser.parse_args(arguments)
    if not options.draw:
        file = options.file or ROOT / "build" / "bench" / "history.json"
        if options.file is None:
            file.unlink(missing_ok=True)
            full = ["--full"] if options.full else []
            code = bench.main([*full, "--repeats", str(options.repeats), "--json", str(file)])
            if code:
                return code
        kept = json.loads(file.read_text(encoding="utf-8"))
        results.write(kept, results.file_of(kept))
        if not options.no_asv:
            tell_asv(file, kept)
    found = results.read_all(options.full, short_name(machine()))
    if not found:
        print("error: there are no results of this machine to draw", file=sys.stderr)
        return 1
    draw(found)
    print(f"{PICTURE}: {len(found)} version{'s' * (len(found) > 1)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
