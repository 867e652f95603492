"""A process that runs our calls of the lines when told to; `compare` starts one for each version.

It reads commands from standard input, one on each line, and answers each with a line of JSON:

    area NAME    begin with the lines of this area
    next         make the next line: {"name": ...}, {"skipped": ...}, {"end": true}
    run          run our call once: {"seconds": ...}

An answer {"failed": ...} says that this version cannot do it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from speed import peers
from speed.areas import lines_of
from speed.line import Line, Skipped, timed


class Server:
    """The state between commands: the lines that are left, and the present one."""

    def __init__(self, full: bool, package: str) -> None:
        self.full, self.package = full, package
        self.lines: Iterator[Line | Skipped] = iter(())
        self.line: Line | None = None

    def area(self, name: str) -> dict[str, Any]:
        """Begin with an area."""
        self.line, self.lines = None, lines_of(name, self.full, self.package)
        return {}

    def next(self) -> dict[str, Any]:
        """Make the next line; the data of the line before is released first."""
        self.line = None
        found = next(self.lines, None)
        if found is None:
            return {"end": True}
        if isinstance(found, Skipped):
            return {"name": found.name, "skipped": found.reason}
        self.line = found
        return {"name": found.name}

    def run(self) -> dict[str, Any]:
        """Run our call once."""
        assert self.line is not None
        return {"seconds": timed(self.line.ours).seconds}

    def answer(self, command: str, *arguments: str) -> dict[str, Any]:
        """Answer a command."""
        known: dict[str, Callable[..., dict[str, Any]]] = {
            "area": self.area,
            "next": self.next,
            "run": self.run,
        }
        try:
            return known[command](*arguments)
        except Exception as error:  # this version may be too old for this line
            return {"failed": f"{type(error).__name__}: {error}".splitlines()[0]}


def main() -> None:
    """Serve until the input ends. What calls print goes to standard error."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--package", default="speed")
    options = parser.parse_args()
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    peers.find()
    server = Server(options.full, options.package)
    for command in sys.stdin:
        print(json.dumps(server.answer(*command.split())), file=replies, flush=True)


if __name__ == "__main__":
    main()
