"""The first lines of a CSV file, which decide its layout."""

from __future__ import annotations

from collections.abc import Callable

from thresher.data.open_streams import peek_bytes

__all__ = ["head_of"]

_HEAD = 1 << 16  # bytes of the head
_LONGEST = 1 << 18  # bytes of the head if its first line is long
_LONGEST_DATA = 1 << 22  # the same if the first line is data
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def head_of(
    path: str, encoding: str | None, waiting: Callable[[], None] | None, data: bool = False
) -> tuple[str, str, int | None]:
    """Return the first lines of a file, their encoding, and their limit in bytes.

    The limit is None if the lines are the whole file. Without a line end before the limit, they are
    a part of the first line.

    Parameters
    ----------
    path : str
    encoding : str or None
        None: UTF-16 if the file begins with its mark, else UTF-8.
    waiting : callable or None
        Called from time to time while a pipe has nothing to read.
    data : bool, default=False
        Whether the first line is data.
    """
    size = _HEAD
    raw = peek_bytes(path, size, waiting)
    found = encoding or ("utf-16" if raw.startswith(_UTF16) else "utf-8")
    if len(raw) >= size and raw.count(b"\n") < 2:
        size = _LONGEST
        raw = peek_bytes(path, size, waiting)
    if data and len(raw) >= size and not any(end in raw for end in (b"\n", b"\r")):
        size = _LONGEST_DATA
        raw = peek_bytes(path, size, waiting)
    text = raw.decode(found, "replace").removeprefix("\ufeff").lstrip("\r\n")
    if len(raw) >= size:
        text = text[: text.rfind("\n") + 1] or text
    return text, found, None if len(raw) < size else size
