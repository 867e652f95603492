"""Tells whether a cache is current: made from these files, unchanged, with the same options.

A cache holds a header: a version number, the options with which its source was read, and a
fingerprint of each file. A cache that is not current is never used; it is made again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from thresher import _core

VERSION = 1
_END = 64 << 10  # bytes that are hashed at each end of a file

Fingerprint: TypeAlias = list[dict[str, Any]]


def fingerprint(paths: Iterable[str | os.PathLike[str]]) -> Fingerprint:
    """Return a fingerprint of files, which differs if a file was changed.

    Parameters
    ----------
    paths : paths of regular files
        In the order in which they are read. The order and the paths as given are part of the
        fingerprint.

    Returns
    -------
    list of dict
        For each file: its path, its size, the time of its last change in nanoseconds, and a hash
        of its first and last 64 KiB.

    Raises
    ------
    OSError
        A file cannot be read.
    """
    found = []
    for path in paths:
        with open(path, "rb") as file:
            about = os.fstat(file.fileno())
            ends = hashlib.blake2b(file.read(_END), digest_size=16)
            if about.st_size > _END:
                file.seek(max(_END, about.st_size - _END))
                ends.update(file.read(_END))
        found.append(
            {
                # A name that is not UTF-8 has surrogates; JSON writes them as escapes.
                "path": os.fsdecode(path),
                "size": about.st_size,
                "mtime_ns": about.st_mtime_ns,
                "ends": ends.hexdigest(),
            }
        )
    return found


def about(
    sources: Fingerprint, options: Mapping[str, Any], words: Sequence[str] | None = None
) -> str:
    """Return the header of a cache, which `is_current` reads.

    Parameters
    ----------
    sources : fingerprint of the files that are read
    options : mapping of str to JSON types
        All options that change which rows are read from the same bytes: format, bits, zero_based,
        interactions.
    words : sequence of str, optional
        The labels, if they are words; the rows have their places in this list.
    """
    text: dict[str, Any] = {"version": VERSION, "options": dict(options), "sources": sources}
    if words is not None:
        text["words"] = list(words)
    return json.dumps(text, sort_keys=True, allow_nan=False)


def is_current(
    path: str | os.PathLike[str], sources: Fingerprint, options: Mapping[str, Any]
) -> bool | str:
    """Tell whether a cache can be read instead of its sources, or why not.

    Parameters
    ----------
    path : path of the cache
    sources : fingerprint of the files as they are now
    options : mapping
        Options with which they are read now.

    Returns
    -------
    True or str
        True, or the reason why not, as a clause that follows "because". It is never False: test
        ``is_current(...) is True``.

    Raises
    ------
    OSError
        The cache exists and cannot be read. If it does not exist, the result says so.
    """
    try:
        text = _core.CacheReader(path).about
    except FileNotFoundError:
        return "there is no cache yet"
    except _core.CacheError as error:
        return str(error)
    try:
        then = json.loads(text)
        if then["version"] != VERSION:
            return "another version of Thresher made the cache"
        before, past = dict(then["options"]), list(then["sources"])
    except (ValueError, KeyError, TypeError):
        return "the cache does not say what it was made from"
    now = json.loads(json.dumps(dict(options)))  # tuples become lists, as in the cache
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            return f"{name} was {_shown(before, name)} and is {_shown(now, name)}"
    if [source["path"] for source in past] != [source["path"] for source in sources]:
        return "it was made from other files"
    for was, source in zip(past, sources, strict=True):
        if was != source:
            return f"{source['path']} changed"
    return True


def _shown(options: Mapping[str, Any], name: str) -> str:
    return json.dumps(options[name]) if name in options else "not given"
