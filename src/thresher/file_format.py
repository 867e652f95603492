"""The format of a file that Thresher has written, and which version wrote it.

A file says its format, a whole number, and the version of Thresher that wrote it. A format is
raised only where earlier versions cannot read the file: they read one with an additional entry.
Every version reads all formats up to its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from thresher._version import __version__

EARLY = "0.1.0 or earlier"  # these versions did not say who they were


def writer_of(about: Mapping[str, Any]) -> str:
    """Return the version of Thresher that wrote a file.

    Parameters
    ----------
    about : mapping
        What the file says of itself.

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
    """Raise an error where a file is of a format that only a newer version reads.

    Parameters
    ----------
    path : path
        As the error names it.
    about : mapping
        What the file says of itself: "format", and "version" unless it is early.
    newest : int
        The newest format that this version reads.
    error : type
        Of the error that is raised.

    Raises
    ------
    ValueError
        The format is no whole number of 1 or more: the file is damaged.
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
