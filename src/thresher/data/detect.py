"""Detects the format of a file by its first bytes."""

from __future__ import annotations

import re

from thresher.data.csv_layout import TAG
from thresher.data.formats import FORMATS, suffix_of
from thresher.data.open_streams import peek_bytes
from thresher.errors import DataError, InputError, setting

_TAR = (b"ustar\x0000", b"ustar  \0")  # at byte 257: POSIX, GNU
_HEAD = 1 << 16
_LINES = 32
_MAGICS = {magic: format.name for format in FORMATS.values() for magic in format.magics}
# Formats without fixed first bytes, by suffix.
_SUFFIXES = {
    suffix: format.name
    for format in FORMATS.values()
    if not format.magics
    for suffix in (*format.suffixes, *format.only_read)
}

# Digits can be matched in one way only: else a row of many numbers would take very long.
_NUMBER = rb"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_SVMLIGHT = re.compile(
    rb"\s*(?:%b(?:,%b)*)?(?:\s+qid:\d+)?(?:(?:^|\s+)\d+:%b)+\s*(?:#.*)?" % ((_NUMBER,) * 3)
)
# Numbers, and optionally a tag, before the bar. A tag directly before the bar needs no quote.
_VW = re.compile(rb"\s*(?:%b\s+){0,3}(?:'\S*\s*)?\|" % _NUMBER)
_VW_TAG = re.compile(rb"\s*(?:%b\s+){0,3}[^\s|,;]+\|\S*\s" % _NUMBER)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_SEPARATOR = re.compile(rb"[,\t;]")


def detect_format(path: str, otherwise: str | None = None) -> str:
    """Return the format of a file: one of `FORMATS`.

    The name of the file decides only if its bytes do not. The first bytes of a pipe are not lost:
    `open_bytes` returns them again.

    Parameters
    ----------
    path : str
        A path that `expand` returned.
    otherwise : str, optional
        The format if it is not clear; by default that is an error.

    Raises
    ------
    DataError
        The format is not clear.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks"
    >>> _ = path.write_bytes(b"-1 3:0.5 17:1")
    >>> detect_format(str(path))
    'svmlight'
    """
    return format_of_bytes(peek_bytes(path, _HEAD), path, otherwise)


def format_of_bytes(head: bytes, path: str, otherwise: str | None = None) -> str:
    """Return the format of a file by its first bytes.

    Parameters
    ----------
    head : bytes
    path : str
        Its name: it decides if the bytes do not, and errors have it.
    otherwise : str, optional
        As for `detect_format`.
    """
    for magic, name in _MAGICS.items():
        if head.startswith(magic):
            return name
    if head[8:9] == b"{" and b'"thresher' in head[:256]:
        raise DataError(f"{path}: this is a model or a checkpoint of Thresher, not data")
    if is_tar(head):
        raise DataError(f"{path} is an archive (tar): unpack it first")
    if head.startswith(_UTF16):
        return "csv"  # a text as some programs export it; no other format has this encoding
    lines = _first_lines(head.removeprefix(b"\xef\xbb\xbf"))
    by_name = _SUFFIXES.get(suffix_of(path))
    if not lines:
        return by_name or "svmlight"  # an empty file has no rows in any format
    first = lines[0]
    if by_name == "csv" and _SEPARATOR.search(first) and not is_row(first):
        return "csv"  # its other lines may be those of a quoted text, which can look like anything
    # The majority of lines decides; the reader reports the others as bad lines.
    if sum(line.startswith(TAG.encode()) for line in lines) > 0.9 * len(lines):
        return "csv"  # lines of fastText: labels and a text
    tags = (lambda line: None) if by_name == "csv" else _VW_TAG.match
    vw = sum(bool(_VW.match(line) or tags(line)) for line in lines)
    svmlight = sum(bool(_SVMLIGHT.fullmatch(line)) for line in lines)
    if 2 * max(vw, svmlight) > len(lines):
        return "vw" if vw > svmlight else "svmlight"
    if _SEPARATOR.search(first) and b"|" not in first and b"\0" not in first:
        return "csv"
    if by_name or otherwise:
        return by_name or str(otherwise)
    if _is_cut_evenly(lines):
        return "csv"
    shown = first[:40].decode("utf-8", "backslashreplace")
    raise InputError(
        f'its format is not clear from its first line, "{shown}"',
        place=path,
        parameter="format",
        allowed=f"one of {', '.join(FORMATS)}",
        hint=("name it with ", setting("format"), f", one of {', '.join(FORMATS)}"),
    )


def is_row(line: bytes) -> bool:
    """Tell whether a line is a row of VW text or svmlight."""
    return bool(_VW.match(line) or _SVMLIGHT.fullmatch(line))


def is_tar(head: bytes) -> bool:
    """Tell whether the first bytes of a file, decompressed, are those of a tar archive."""
    return head[257:265] in _TAR


def _is_cut_evenly(lines: list[bytes]) -> bool:
    """Tell whether tabs, bars, or spaces between numbers cut all lines into as many cells."""
    counts = ({line.count(mark) for line in lines} for mark in (b"\t", b"|"))
    if any(len(found) == 1 and found != {0} for found in counts):
        return True
    numbers = re.compile(rb"\s*%b(?:\s+%b)+\s*" % (_NUMBER, _NUMBER))
    return len({len(line.split()) for line in lines}) == 1 and all(map(numbers.fullmatch, lines))


def _first_lines(head: bytes) -> list[bytes]:
    """Return the first lines that are not empty or comments, without an incomplete last line."""
    if len(head) >= _HEAD:
        head = head[: head.rfind(b"\n") if b"\n" in head else head.rfind(b" ")]
    lines = head.split(b"\n")
    used = (line.rstrip() for line in lines if line.strip() and not line.lstrip().startswith(b"#"))
    return list(used)[:_LINES]
