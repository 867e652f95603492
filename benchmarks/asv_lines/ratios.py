"""The lines of the table for airspeed velocity: one `track_` function for each line.

A function returns our seconds in units of the peer's seconds, so less is better for every line.
Both calls must be measured in turn, and asv cannot do that. So `make bench-history` measures first,
and asv records what is in the file that the variable THRESHER_SPEED names.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))


def functions(file: Path) -> dict[str, Callable[[], float]]:
    """Return a function for each line that was measured, by name."""
    import json

    from speed.results import Result, results_in

    def track(result: Result) -> Callable[[], float]:
        def ratio() -> float:
            return result.ours / result.peer

        ratio.__name__ = f"track_{result.area}_{_word(result.name)}"
        ratio.version = "1"  # type: ignore[attr-defined]  # asv compares only equal versions
        ratio.__doc__ = f"{result.name}, against {result.peer_name}"
        ratio.unit = "of the peer's seconds"  # type: ignore[attr-defined]
        ratio.pretty_name = f"{result.area}: {result.name}"  # type: ignore[attr-defined]
        return ratio

    found = results_in(json.loads(file.read_text(encoding="utf-8")))
    tracks = [track(result) for result in found if result.measured]
    return {ratio.__name__: ratio for ratio in tracks}


def _word(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


if "THRESHER_SPEED" in os.environ:
    globals().update(functions(Path(os.environ["THRESHER_SPEED"])))
