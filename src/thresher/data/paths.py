"""Paths that a user gives: files, globs, standard input and URLs."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable
from typing import Any

from thresher.errors import ParameterError

__all__ = ["STANDARD_INPUT", "can_reopen", "expand", "file_system", "is_remote"]

STANDARD_INPUT = "-"


def is_remote(path: str) -> bool:
    """Tell whether a path is a URL."""
    return "://" in path


def can_reopen(path: str) -> bool:
    """Tell whether a path can be read more than once: not a pipe, nor standard input."""
    return path != STANDARD_INPUT and (is_remote(path) or stat.S_ISREG(os.stat(path).st_mode))


def expand(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return the files that paths and globs stand for.

    Parameters
    ----------
    paths : path or paths
        Files, globs (matches in sorted order; `**` is any number of folders), `-` for standard
        input, and URLs for fsspec.

    Raises
    ------
    FileNotFoundError
        A file does not exist, or a glob has no match.
    ParameterError
        A path is a folder, standard input is named twice, or fsspec is needed and not installed.

    Examples
    --------
    >>> expand("-")
    ['-']
    >>> expand("no-such-folder/*.vw")
    Traceback (most recent call last):
        ...
    FileNotFoundError: no file matches no-such-folder/*.vw
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    files = [file for path in paths for file in _expand_one(os.fspath(path))]
    if files.count(STANDARD_INPUT) > 1:
        raise ParameterError("standard input (-) is named more than once; it can be read only once")
    return files


def _expand_one(path: str) -> list[str]:
    if path == STANDARD_INPUT:
        return [path]
    if is_remote(path):
        return _expand_remote(path)
    if os.path.isdir(path):
        pattern = os.path.join(path, "*")
        raise ParameterError(f"{path} is a folder; name its files, for example with '{pattern}'")
    if os.path.exists(path):
        return [path]
    if not glob.has_magic(path):
        raise FileNotFoundError(f"{path}: no such file")
    files = sorted(file for file in glob.glob(path, recursive=True) if not os.path.isdir(file))
    if not files:
        raise FileNotFoundError(f"no file matches {path}")
    return files


def _expand_remote(path: str) -> list[str]:
    system, inner = file_system(path)
    if not glob.has_magic(inner):
        if not system.exists(inner):
            raise FileNotFoundError(f"{path}: no such file")
        if system.isdir(inner):
            raise ParameterError(
                f"{path} is a folder; name its files, for example with '{path.rstrip('/')}/*'"
            )
        return [path]
    files = sorted(file for file in system.glob(inner) if not system.isdir(file))
    if not files:
        raise FileNotFoundError(f"no file matches {path}")
    return [system.unstrip_protocol(file) for file in files]


def file_system(path: str) -> tuple[Any, str]:
    """Return the fsspec file system of a URL, and the path in it."""
    try:
        import fsspec
    except ImportError:
        raise ParameterError(
            f"{path}: remote paths need the package fsspec: pip install fsspec"
        ) from None
    try:
        system, inner = fsspec.core.url_to_fs(path)
    except (ImportError, ValueError) as error:  # the protocol needs a package, or does not exist
        raise ParameterError(f"{path}: {error}") from error
    return system, inner
