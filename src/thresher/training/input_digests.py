"""Digests of the input read so far: a resumed run uses them to check that it has not changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from thresher import _core
from thresher.errors import DataError

if TYPE_CHECKING:
    from thresher.data.block import Block

_MOST = 512  # entries; when there are more, every second one is dropped


class InputDigests:
    """A running digest of all blocks of a pass, with its value at some of them.

    The first pass records the values; later passes and resumed runs compare with them. At the
    first value that differs, the error names the lines between which the input has changed.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, str, int]] = []  # blocks, digest, file, lines of it
        self.spacing = 1
        self.begin()

    def begin(self) -> None:
        """Start a pass."""
        self.blocks, self.chain = 0, 0

    def add(self, block: Block, compare: bool = True) -> None:
        """Add a block, and compare with the recorded value or record a new one.

        `compare` is False if each pass reads the blocks in another order. Raises DataError if the
        digest differs from the recorded value.
        """
        self.blocks += 1
        self.chain = _core.mix_keys(self.chain, block.digest)
        if self.blocks % self.spacing or not compare:
            return
        at = self.blocks // self.spacing - 1
        if at < len(self.entries):
            if self.entries[at][1] != self.chain:
                raise DataError(self._changed(at))
            return
        self.entries.append((self.blocks, self.chain, block.file, block.end.line))
        if len(self.entries) > _MOST:
            self.entries = self.entries[1::2]
            self.spacing *= 2

    def _changed(self, at: int) -> str:
        _, _, file, line = self.entries[at]
        first = self.entries[at - 1][3] + 1 if at and self.entries[at - 1][2] == file else 1
        return (
            f"{file}: the input has changed since it was last read: lines {first} to {line} differ"
        )

    @property
    def state(self) -> dict[str, Any]:
        """All attributes, in types that JSON has."""
        return dict(vars(self))

    @state.setter
    def state(self, saved: Mapping[str, Any]) -> None:
        vars(self).update(saved)
        self.entries = [(b, c, f, n) for b, c, f, n in saved["entries"]]
