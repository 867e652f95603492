"""The areas of the table: the modules of this package that have a function `lines`."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from speed import peers
from speed.line import Line, Skipped


def areas(package: str = "speed") -> list[str]:
    """Return the names of the modules of a package that define `lines`, without importing them."""
    folders = importlib.import_module(package).__path__
    return sorted(
        name
        for folder in folders
        for _, name, _ in pkgutil.iter_modules([folder])
        if _defines_lines(Path(folder, f"{name}.py"))
    )


def _defines_lines(file: Path) -> bool:
    if not file.exists():
        return False
    body = ast.parse(file.read_text(encoding="utf-8")).body
    return any(isinstance(node, ast.FunctionDef) and node.name == "lines" for node in body)


def lines_of(area: str, full: bool, package: str = "speed") -> Iterator[Line | Skipped]:
    """Yield the lines of an area; if one of its imports is missing, one `Skipped`."""
    try:
        yield from importlib.import_module(f"{package}.{area}").lines(full)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", package, "thresher"):
            raise
        yield Skipped(area, peers.missing(missing))


def select(only: Sequence[str], names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split `--only` into areas to run and parts of names of lines; no parts: all lines.

    Examples
    --------
    >>> select(["fit"], ["fit", "search"])
    (['fit'], [])
    >>> select(["2^20"], ["fit", "search"])
    (['fit', 'search'], ['2^20'])
    >>> select(["fit", "2^20"], ["fit", "search"])
    (['fit'], ['2^20'])
    """
    chosen = [name for name in names if name in only]
    parts = [part for part in only if part not in names]
    return chosen or list(names), parts


def chosen(name: str, parts: Sequence[str]) -> bool:
    """Return whether a name has one of the parts; upper and lower case are the same."""
    return not parts or any(part.lower() in name.lower() for part in parts)
