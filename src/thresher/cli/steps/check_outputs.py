"""Check output files before training starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from thresher.atomic import check_place
from thresher.cli.render.output import leave_output
from thresher.errors import ParameterError
from thresher.file_access import stream_of


def check_outputs(results: Mapping[str, str | None], others: Mapping[str, str | None]) -> None:
    """Raise an error if a result cannot be written, or two outputs are the same file.

    Parameters
    ----------
    results : mapping of str to path
        Files written at the end, by option. None: the option was not given.
    others : mapping of str to path
        Files written during the run, by option. They may exist already.
    """
    known: dict[str, str] = {}
    for option, path in {**results, **others}.items():
        if path is None:
            continue
        if path == "-" and option in results:
            raise ParameterError(f"{option} -: give the name of a file, or /dev/stdout")
        for other, other_path in known.items():
            if _same_file(path, other_path):
                raise ParameterError(
                    f"{option} {path} is also the file of {other}; give two different files"
                )
        known[option] = path
    for path in results.values():
        if path is not None:
            check_place(path)
            if stream_of(path) == 1:
                leave_output()


def quarantine_of(reading: Mapping[str, Any]) -> str | None:
    """Return the file for malformed lines (--on-bad-line quarantine=FILE), if there is one.

    Parameters
    ----------
    reading : mapping
        How files are read, as `scan` takes it.
    """
    return str(reading.get("on_bad_line", "")).partition("=")[2] or None


def _same_file(a: str, b: str) -> bool:
    """Tell whether two paths are the same file, also by links; devices never are."""
    if os.path.exists(a) and os.path.exists(b):
        return os.path.isfile(a) and os.path.samefile(a, b)
    return os.path.realpath(a) == os.path.realpath(b)
