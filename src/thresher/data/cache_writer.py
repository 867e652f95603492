"""Writes a cache, completely or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Self

from thresher import _core
from thresher.atomic import NewFile, put_in_place


class CacheWriter:
    """A new cache. It gets its path when it is finished; after an error, no file is left.

    Parameters
    ----------
    path : path
    about : str
        The header.
    """

    def __init__(self, path: str | os.PathLike[str], about: str = "{}") -> None:
        self._new = NewFile(path)
        try:
            self._core = _core.CacheWriter(self._new.handle, path, about)
        except BaseException:
            self._new.discard()
            raise

    def add(self, block: _core.Block) -> None:
        """Append a block."""
        with self._complete_or_abandoned():
            self._core.add(block)

    def finish(self, sketch: bytes = b"") -> None:
        """Write the index, and give the file its path when it is on the disk."""
        with self._complete_or_abandoned():
            self._core.finish(sketch)
            put_in_place([self._new])

    def abandon(self) -> None:
        """Remove the file if it is not finished."""
        self._core.abandon()
        self._new.discard()

    @contextlib.contextmanager
    def _complete_or_abandoned(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.abandon()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        self.abandon()
