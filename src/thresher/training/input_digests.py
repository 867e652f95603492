"""Digests of the input read so far: by them a resumed run knows its input again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from thresher import _core
from thresher.errors import DataError

if TYPE_CHECKING:
    from thresher.data.block import Block

_MOST = 512  # entries; then every second one goes


class Trail:
    """A chain of the digests of all blocks of a pass, with entries along the way.

    The first pass lays the trail, later and resumed ones compare what they read with it: at the
    first entry that differs they say between which lines the input has changed.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, str, int]] = []  # blocks, chain, file, its lines
        self.spacing = 1
        self.begin()

    def begin(self) -> None:
        """Start a pass."""
        self.blocks, self.chain = 0, 0

    def see(self, block: Block, compare: bool = True) -> None:
        """Follow the trail by a block, or lay it on.

        Passes that read blocks in orders of their own are not compared with each other.
        Raises DataError where the block is not what the trail says.
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
            f"{file}: the input has changed since it was read before: lines {first} to {line} "
            f"are not what they were"
        )

    @property
    def state(self) -> dict[str, Any]:
        """As JSON can carry it."""
        return dict(vars(self))

    @state.setter
    def state(self, saved: Mapping[str, Any]) -> None:
        vars(self).update(saved)
        self.entries = [(b, c, f, n) for b, c, f, n in saved["entries"]]
