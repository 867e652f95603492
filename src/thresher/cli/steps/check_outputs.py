"""Where results go: checked before rows are read, not after hours of work."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from thresher.atomic import check_place
from thresher.errors import ParameterError


def check_outputs(results: Mapping[str, str | None], others: Mapping[str, str | None]) -> None:
    """Raise an error where a result cannot be written, or two outputs are one file.

    Parameters
    ----------
    results : mapping of str to path
        Files written at the end, by their options; None: not wanted.
    others : mapping of str to path
        Files written meanwhile, which may be there already.
    """
    known: dict[str, str] = {}
    for option, path in {**results, **others}.items():
        if path is None:
            continue
        for other, there in known.items():
            if _same_file(path, there):
                raise ParameterError(
                    f"{option} {path} is the file of {other} too; each needs one of its own"
                )
        known[option] = path
    for path in results.values():
        if path is not None:
            check_place(path)


def aside_of(reading: Mapping[str, Any]) -> str | None:
    """Return the file that bad lines are put aside in, where there is one.

    Parameters
    ----------
    reading : mapping
        How files are read, as `scan` takes it.
    """
    return str(reading.get("on_bad_line", "")).partition("=")[2] or None


def _same_file(a: str, b: str) -> bool:
    """Tell whether two paths lead to one file, be it by links; devices take all that comes."""
    if os.path.exists(a) and os.path.exists(b):
        return os.path.isfile(a) and os.path.samefile(a, b)
    return os.path.realpath(a) == os.path.realpath(b)
