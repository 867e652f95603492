"""Digests of the input read so far: later readings use them to check that it has not changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from thresher import _core
from thresher.data.block import Block
from thresher.errors import DataError

__all__ = ["InputDigests"]

_MOST = 512  # entries; when there are more, every second one is dropped


class _Entry(NamedTuple):
    """The digest of the first blocks of a reading, and where the last of them ends."""

    blocks: int
    chain: int | None  # None: it is not known, only the number of blocks and lines
    file: str
    line: int


class InputDigests:
    """A running digest of all blocks of a pass, with its value at some of them.

    The first pass records the values; later passes and resumed runs compare with them. At the
    first value that differs, the error names the lines between which the input has changed.

    Parameters
    ----------
    most : int
        Number of values that are kept.
    """

    def __init__(self, most: int = _MOST) -> None:
        self.entries: list[_Entry] = []
        self.spacing, self.most = 1, most
        self.total: _Entry | None = None  # of the first complete pass
        # Whether digests are of the bytes read from a cache, not those of its text stored in it.
        self.computed = True
        self.begin()

    def begin(self) -> None:
        """Start a pass."""
        self.blocks, self.chain = 0, 0
        self.last = ("", 0)  # file and line after the last block

    def again(self) -> InputDigests:
        """Return digests for one more pass over the input."""
        made = InputDigests(self.most)
        made.computed = self.computed
        made.entries, made.spacing, made.total = self.entries, self.spacing, self.total
        return made

    def add(self, block: Block, compare: bool = True, cells: bool = False) -> None:
        """Add a block, and compare with the recorded value or record a new one.

        Raises DataError if the digest differs from the recorded value.

        Parameters
        ----------
        block : Block
        compare : bool
            False if each pass reads the blocks in another order.
        cells : bool
            Whether the digest of a block of a table is that of its cells, which is the same for
            all types of numbers and kinds of columns. Checkpoints have the digests of rows.
        """
        self.blocks += 1
        if cells and block.cells:
            digest = block.cells
        else:
            digest = block.digest if self.computed else block.stored_digest
        self.chain = _core.mix_keys(self.chain, digest)
        self.last = block.file, block.end.line
        if self.blocks % self.spacing or not compare:
            return
        at = self.blocks // self.spacing - 1
        if at < len(self.entries):
            if self.entries[at].chain != self.chain:
                raise self._changed(self.entries[at], at)
            return
        if self.total is None or self.total.chain is None:  # else `end` reports more blocks
            self.entries.append(_Entry(self.blocks, self.chain, *self.last))
        if len(self.entries) > self.most:
            self.entries = self.entries[1::2]
            self.spacing *= 2

    def end(self, compare: bool = True) -> None:
        """End a complete pass; raise DataError if the first one had other blocks.

        A run that is resumed at this point ends the pass again: only `begin` starts the next one.

        Parameters
        ----------
        compare : bool
            As for `add`.
        """
        now = _Entry(self.blocks, self.chain if compare else None, *self.last)
        before = self.total or (self.entries[-1] if self.entries else now)
        if self.total is None and before.blocks <= now.blocks:  # older checkpoints have no total
            self.total = before = now
        known = compare and before.chain is not None
        if before.blocks != now.blocks or (known and before.chain != now.chain):
            raise self._changed(before, min(now.blocks // self.spacing, len(self.entries)))
        if before.chain is None and compare:
            if before.line != now.line:
                raise self._changed(before, 0)
            self.total = now

    def _changed(self, before: _Entry, at: int) -> DataError:
        """Return the error: blocks after those of entry `at` - 1 are not those of `before`."""
        file, line = before.file, before.line
        same_file = at > 0 and self.entries[at - 1].file == file
        first = self.entries[at - 1].line + 1 if same_file else 1
        if line < first and self.last[0] != file:  # a later file had no rows, and has some now
            file, line, first = self.last[0], 0, 1
        last = self.last[1] if self.last[0] == file else 0
        what = f"lines {first} to {max(line, last)} differ"
        if last < first:
            what = f"lines {first} to {line} are missing"
        elif line < first:
            what = f"lines {first} to {last} are new"
        return DataError(f"{file}: the input has changed since it was last read: {what}")

    @property
    def state(self) -> dict[str, Any]:
        """All attributes, in types that JSON has."""
        return dict(vars(self))

    @state.setter
    def state(self, saved: Mapping[str, Any]) -> None:
        # Checkpoints of earlier versions have digests that are stored in a cache, and no total.
        vars(self).update({**vars(InputDigests()), "computed": False, **saved})
        self.entries = [_Entry(*entry) for entry in saved["entries"]]
        self.total = None if self.total is None else _Entry(*self.total)
        self.last = (self.last[0], self.last[1])
