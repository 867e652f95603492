"""The format number of files that Thresher writes, and the version that wrote them.

Each file holds its format, a whole number, and the version of Thresher that wrote it. The format
number increases only when earlier versions cannot read the file; they can read a file with an
additional entry. Every version reads all formats up to its own.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from thresher._version import __version__

EARLY = "0.1.0 or earlier"  # these versions did not write their version


class RepeatedEntryError(ValueError):
    """A description has two values for one entry: other programs may read the other one."""


def from_json(text: str) -> Any:
    """Return what a text in JSON says; no entry of an object may occur twice.

    Raises
    ------
    RepeatedEntryError
        An entry occurs twice.
    ValueError
        The text is not JSON.
    """
    return json.loads(text, object_pairs_hook=_without_repeats)


def _without_repeats(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        repeated = next(name for name, count in counts.items() if count > 1)
        raise RepeatedEntryError(f"the entry {repeated[:40]!r} occurs twice")
    return found


def writer_of(about: Mapping[str, Any]) -> str:
    """Return the version of Thresher that wrote a file.

    Parameters
    ----------
    about : mapping
        The header of the file.

    Examples
    --------
    >>> writer_of({"format": 1, "version": "0.2.0"}), writer_of({"format": 1})
    ('0.2.0', '0.1.0 or earlier')
    """
    version = about.get("version")
    return version if isinstance(version, str) else EARLY


def check_format(
    path: str | os.PathLike[str],
    about: Mapping[str, Any],
    newest: int,
    error: type[Exception],
) -> None:
    """Raise an error if only a newer version can read a file.

    Parameters
    ----------
    path : path
        Name of the file in the error.
    about : mapping
        The header of the file: "format", and "version" unless it is early.
    newest : int
        The newest format that this version reads.
    error : type
        Class of the error.

    Raises
    ------
    ValueError
        The format is not a whole number >= 1: the file is damaged.
    """
    found = about.get("format")
    if type(found) is not int or found < 1:
        raise ValueError(f"its format is {found!r}")
    if found > newest:
        writer = f"Thresher {about['version']}" if "version" in about else "a newer Thresher"
        raise error(
            f"{os.fspath(path)}: written by {writer} in format {found}; this is Thresher "
            f"{__version__}, which reads formats up to {newest}; use a newer version"
        )
