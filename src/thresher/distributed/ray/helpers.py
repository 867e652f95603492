"""The processes of Ray that a local cluster needs, and whether they still run (Linux)."""

from __future__ import annotations

import contextlib
from pathlib import Path

__all__ = ["first_ended", "helpers_of_this_process"]

_NAMES = ("gcs_server", "raylet")


def helpers_of_this_process() -> dict[int, str]:
    """Return the names of the helper processes that this process has started, by process id."""
    found = {}
    for children in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                program = Path("/proc", child, "cmdline").read_bytes().partition(b"\0")[0]
                name = Path(program.decode(errors="replace")).name
                if name in _NAMES:
                    found[int(child)] = name
    return found


def first_ended(helpers: dict[int, str]) -> str | None:
    """Return the name of a helper process that has ended, or None."""
    for process, name in helpers.items():
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return name
        if state in "ZX":  # it has ended, and nobody has asked how
            return name
    return None
