"""A simulated disk: what may be on it after a power cut, by the log of a run.

A sync of a file writes its bytes. A sync of a folder writes the names in it. Everything else may or
may not be on the disk: bytes that were not synced may be missing, or half of them may be there;
names that were not synced may be there or not, each for itself, also without their bytes.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Event = tuple[list[str], bytes]
FEW = 5  # changes of which all subsets are tried
State = dict[str, bytes | None]  # the bytes of each file; None for a folder


@dataclass(eq=False)
class File:
    """The bytes of a file: now, and at its last sync."""

    now: bytearray = field(default_factory=bytearray)
    synced: bytes = b""

    def content(self, unsynced: str) -> bytes:
        """Return what is on the disk: `unsynced` bytes are "lost", "kept" or "half" there."""
        if unsynced == "lost" or self.is_synced:
            return self.synced
        if unsynced == "kept":
            return bytes(self.now)
        first = len(self.synced) if self.now.startswith(self.synced) else 0  # bytes were added
        return bytes(self.now[: (first + len(self.now)) // 2])

    @property
    def is_synced(self) -> bool:
        """Whether all bytes are on the disk."""
        return self.synced == bytes(self.now)


@dataclass(frozen=True)
class Change:
    """Names that are not yet on the disk: some are removed, and some are added, at once."""

    removed: tuple[str, ...] = ()
    added: tuple[tuple[str, File | None], ...] = ()

    def apply(self, names: dict[str, File | None]) -> None:
        """Change the names; None is a folder."""
        for path in self.removed:
            names.pop(path, None)
        names.update(self.added)


class Disk:
    """The files of a folder.

    Parameters
    ----------
    folder : Path
        What is in it is on the disk.
    """

    def __init__(self, folder: Path) -> None:
        self.root = str(folder)
        self.names: dict[str, File | None] = {self.root: None}
        for path in folder.rglob("*"):
            content = None if path.is_dir() else path.read_bytes()
            self.names[str(path)] = None if content is None else File(bytearray(content), content)
        self.synced = dict(self.names)
        self.changes: list[Change] = []
        self.handles: dict[int, File | str] = {}
        self.appending: set[int] = set()  # handles that write at the end

    def apply(self, event: Event) -> None:
        """Apply an event of the log."""
        (kind, *words), content = event
        getattr(self, f"_{kind}")(*words, *([content] if kind == "write" else []))

    def _open(self, handle: str, flags: str, path: str) -> None:
        path, number = os.path.normpath(path), int(flags)
        opened: File | str | None = self.names.get(path)
        if number & os.O_TMPFILE == os.O_TMPFILE:
            opened = File()
        elif path in self.names and opened is None:
            opened = path  # a folder
        elif opened is None and number & os.O_CREAT:
            opened = File()
            self._change(Change(added=((path, opened),)))
        if isinstance(opened, File) and number & os.O_TRUNC:
            opened.now.clear()
        if opened is not None:
            self.handles[int(handle)] = opened
        self.appending.discard(int(handle))
        if number & os.O_APPEND:
            self.appending.add(int(handle))

    def _close(self, handle: str) -> None:
        self.handles.pop(int(handle), None)

    def _write(self, handle: str, at: str, size: str, content: bytes) -> None:
        file = self.handles[int(handle)]
        assert isinstance(file, File)
        begin = len(file.now) if int(handle) in self.appending else int(at)
        file.now[begin : begin + int(size)] = content

    def _size(self, handle: str, size: str) -> None:
        file = self.handles[int(handle)]
        assert isinstance(file, File)
        file.now[:] = file.now[: int(size)].ljust(int(size), b"\0")

    def _sync(self, handle: str) -> None:
        opened = self.handles[int(handle)]
        if isinstance(opened, File):
            opened.synced = bytes(opened.now)
            return
        for path in [*self.synced, *self.names]:
            if os.path.dirname(path) == opened:
                if path in self.names:
                    self.synced[path] = self.names[path]
                else:
                    del self.synced[path]
        self.changes = [change for change in self.changes if _folder(change) != opened]

    def _link(self, handle: str, path: str) -> None:
        file = self.handles[int(handle)]
        assert isinstance(file, File)
        self._change(Change(added=((os.path.normpath(path), file),)))

    def _rename(self, old: str, new: str) -> None:
        old, new = os.path.normpath(old), os.path.normpath(new)
        self._change(Change((old,), ((new, self.names[old]),)))

    def _mkdir(self, path: str) -> None:
        self._change(Change(added=((os.path.normpath(path), None),)))

    def _remove(self, path: str) -> None:
        self._change(Change((os.path.normpath(path),)))

    def _change(self, change: Change) -> None:
        change.apply(self.names)
        self.changes.append(change)

    def states(self) -> Iterator[State]:
        """Yield what may be on the disk if the power is cut now."""
        for chosen in self._choices():
            names = dict(self.synced)
            for change in chosen:
                change.apply(names)
            files = [file for file in names.values() if file is not None]
            whole = all(file.is_synced for file in files)
            for unsynced in ("kept",) if whole else ("lost", "half", "kept"):
                yield self._state(names, unsynced)

    def _choices(self) -> Iterator[Sequence[Change]]:
        """Yield the changes of names that may be on the disk, in their order.

        Of a few changes these are all subsets; of more, the first ones, and each alone.
        """
        if len(self.changes) <= FEW:
            for count in range(len(self.changes) + 1):
                yield from itertools.combinations(self.changes, count)
        else:
            yield from (self.changes[:count] for count in range(len(self.changes) + 1))
            yield from ([change] for change in self.changes[1:])

    def _state(self, names: dict[str, File | None], unsynced: str) -> State:
        found: State = {}
        for path in sorted(names):  # a folder comes before its files
            file, name = names[path], os.path.relpath(path, self.root)
            if name != "." and (os.path.dirname(name) or None) in (None, *found):
                found[name] = None if file is None else file.content(unsynced)
        return found


def _folder(change: Change) -> str:
    return os.path.dirname((*change.removed, *(path for path, _ in change.added))[0])


def events(log: bytes) -> list[Event]:
    """Return the events of a log that the preloaded library wrote."""
    found, at = [], 0
    while at < len(log):
        end = log.index(b"\n", at)
        words = log[at:end].decode("utf-8", "surrogateescape").split("\t")
        at = end + 1
        size = int(words[3]) if words[0] == "write" else 0
        found.append((words, log[at : at + size]))
        at += size
    return found


def write_state(state: State, folder: Path) -> None:
    """Write a state to an empty folder."""
    for name, content in state.items():
        if content is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(content)
