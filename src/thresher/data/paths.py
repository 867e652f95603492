"""Paths that a user gives: files, globs, standard input and URLs."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable
from typing import Any

from thresher.data.formats import FORMATS, suffix_of
from thresher.errors import ParameterError

__all__ = ["STANDARD_INPUT", "can_reopen", "expand", "file_system", "is_remote"]

STANDARD_INPUT = "-"
_DEPTH, _FOLDERS = 6, 100  # levels of folders, and folders of a level, that a message is made of
_READ = {suffix for one in FORMATS.values() for suffix in (*one.suffixes, *one.only_read)}


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
        raise _refusal(path, [path])
    if os.path.exists(path):
        return [path]
    if not glob.has_magic(path):
        raise FileNotFoundError(f"{path}: no such file")
    found = glob.glob(path, recursive=True)
    files = sorted(file for file in found if not os.path.isdir(file))
    if found and not files:
        raise _refusal(path, sorted(found))
    if not files:
        raise FileNotFoundError(f"no file matches {path}")
    return files


def _refusal(path: str, folders: list[str]) -> ParameterError:
    """Return the error of a path that is a folder, or matches only folders."""
    several = glob.has_magic(path)
    what = f"{path} matches only folders" if several else f"{path} is a folder"
    depth, inner = 0, folders
    while inner and depth < _DEPTH:
        level = [entry for folder in inner[:_FOLDERS] for entry in _entries(folder)]
        files = [entry.name for entry in level if not entry.is_dir()]
        if any(suffix_of(name) in _READ for name in files) or (files and not (depth or several)):
            pattern = os.path.join(path, *["*"] * (depth + 1))
            return ParameterError(f"{what}; name its files, for example with '{pattern}'")
        if files:
            return ParameterError(
                f"{path} {'matches' if several else 'has'} folders of files; a table with a column "
                "of labels and a column of text is needed: see docs/text.md"
            )
        depth, inner = depth + 1, [entry.path for entry in level]
    return ParameterError(f"{what} without files")


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """Return what is in a folder, without hidden files; nothing if it cannot be read."""
    try:
        with os.scandir(folder) as found:
            return [entry for entry in found if not entry.name.startswith(".")]
    except OSError:
        return []


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
