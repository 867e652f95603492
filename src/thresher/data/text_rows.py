"""Lines of text as a source: in memory, or of a pipe as they come; svmlight or VW."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from thresher import _core
from thresher.data.bad_lines import BadLines
from thresher.data.block import Block, Position
from thresher.data.detect import format_of_bytes
from thresher.data.formats import FORMATS
from thresher.data.parts import BlockRequest, Part
from thresher.data.paths import STANDARD_INPUT
from thresher.data.read_options import ReadOptions
from thresher.data.source import Source
from thresher.errors import DataError, ParameterError
from thresher.file_access import naming

__all__ = ["LINE_FORMATS", "LinesAsTheyCome", "TextRows", "options_for_lines"]

_PIECE = 1 << 16  # bytes of a pipe that are read at a time
_LONGEST = 1 << 25  # bytes of a line, as for files

LINE_FORMATS = tuple(name for name, format in FORMATS.items() if format.kind == "text")
"""The formats in which each line is a row, whatever stands in other lines."""


class TextRows(Source):
    r"""Rows given as lines of text, in memory.

    Parameters
    ----------
    text : bytes
        Complete lines.
    reading : ReadOptions
        With a format.
    name : str
        Its name in errors.
    first_line : int
        The number of the first line in errors.

    Examples
    --------
    >>> rows = TextRows(b"1 |ad sport\n-1 |ad loan\n", ReadOptions(format="vw"))
    >>> block = next(rows.blocks(names=True))
    >>> block.rows, sorted(name for _, name in block.names)
    (2, ['ad^loan', 'ad^sport'])
    """

    def __init__(
        self, text: bytes, reading: ReadOptions, name: str = "rows", first_line: int = 1
    ) -> None:
        super().__init__([_TextPart(text, reading, name, first_line)], reading)


class _TextPart(Part):
    """The only part of `TextRows`."""

    def __init__(self, text: bytes, reading: ReadOptions, name: str, first_line: int) -> None:
        if reading.format not in LINE_FORMATS:
            raise ParameterError(
                parameter="format",
                value=reading.format,
                allowed=f"one of {', '.join(LINE_FORMATS)} for lines in memory",
            )
        self.text, self.name, self.first_line = text, name, first_line
        self.named = FORMATS[reading.format].named
        self.first = 0 if reading.zero_based or self.named else 1

    @property
    def size(self) -> int:
        """Bytes of the lines."""
        return len(self.text)

    def blocks(
        self,
        number: int,
        after: Position | None,
        reading: ReadOptions,
        bad_lines: BadLines,
        wanted: BlockRequest,
    ) -> Iterator[Block]:
        """Parse the lines."""
        begin = after or Position(line=self.first_line - 1)
        yield from _parsed(self.text, self.name, number, begin, reading, wanted)


class LinesAsTheyCome(Source):
    r"""Lines of a pipe or a terminal, in blocks of those that have come: none waits for the next.

    Parameters
    ----------
    handle : int
        The file to read from; it is read until its end.
    reading : ReadOptions
        Without a format, the first lines decide.
    name : str
        Its name in errors.

    Examples
    --------
    >>> import os
    >>> out, into = os.pipe()
    >>> _ = os.write(into, b"|ad sport\n|ad loan\n|ad s")
    >>> blocks = LinesAsTheyCome(out, ReadOptions(format="vw")).blocks()
    >>> next(blocks).rows
    2
    >>> _ = os.write(into, b"ea\n"), os.close(into)
    >>> next(blocks).rows
    1
    """

    def __init__(self, handle: int, reading: ReadOptions, name: str = STANDARD_INPUT) -> None:
        part = _StreamPart(handle, reading, name)
        super().__init__([part], replace(reading, format=part.format))


class _StreamPart(Part):
    """The only part of `LinesAsTheyCome`."""

    rereadable = False

    def __init__(self, handle: int, reading: ReadOptions, name: str) -> None:
        self.handle, self.name = handle, name
        self._ready, self._rest, self._ended = b"", b"", False
        if reading.format is None:
            self._ready = self._next()
        self.format = reading.format or format_of_bytes(self._ready, name)
        if self.format not in LINE_FORMATS:
            raise ParameterError(
                f"lines of the format {self.format} cannot be read as they come",
                place=name, parameter="format", value=self.format,
                hint=f"{' and '.join(LINE_FORMATS)} can",
            )  # fmt: skip
        self.named = FORMATS[self.format].named
        self.first = 0 if reading.zero_based or self.named else 1

    def _next(self) -> bytes:
        """Wait for complete lines, and return all that have come; none at the end."""
        if self._ready:
            text, self._ready = self._ready, b""
            return text
        while not self._ended:
            with naming(self.name):
                piece = os.read(self.handle, _PIECE)
            self._ended = not piece
            text = self._rest + piece
            if len(text) > _LONGEST:
                raise DataError(f"{self.name}: a line has more than {_LONGEST:,} bytes")
            end = len(text) if self._ended else text.rfind(b"\n") + 1
            self._rest = text[end:]
            if end:
                return text[:end]
        return b""

    def blocks(
        self,
        number: int,
        after: Position | None,
        reading: ReadOptions,
        bad_lines: BadLines,
        wanted: BlockRequest,
    ) -> Iterator[Block]:
        """Parse the lines as they come."""
        line = 0
        while text := self._next():
            yield from _parsed(text, self.name, number, Position(line=line), reading, wanted)
            line += text.count(b"\n")


def _parsed(
    text: bytes,
    name: str,
    number: int,
    begin: Position,
    reading: ReadOptions,
    wanted: BlockRequest,
) -> Iterator[Block]:
    reader = _core.Reader(
        io.BytesIO(text[begin.offset :]),
        str(reading.format),
        dtype=wanted.dtype,
        bits=reading.bits or 0,
        zero_based=reading.zero_based,
        multilabel=reading.multilabel,
        interactions=[pair.encode() for pair in reading.interactions],
        names=wanted.names is True,
        names_again=wanted.names == "blocks",
        wanted=wanted.names if isinstance(wanted.names, _core.WantedNames) else None,
        first=wanted.names if isinstance(wanted.names, _core.FirstNames) else None,
        keep_going=reading.keeps_going,
        threads=1,
        offset=begin.offset,
        first_line=begin.line + 1,
    )
    try:
        while (native := reader.next()) is not None:
            end = Position(
                number,
                native.offset + native.bytes,
                native.first_line + native.line_count - 1,
            )
            yield Block(native, name, end, raw=end.offset)
    finally:
        reader.close()


def options_for_lines(parameters: Mapping[str, Any], format: str, **more: Any) -> ReadOptions:
    """Return the options to read lines for a model: as in its training.

    Parameters
    ----------
    parameters : mapping
        Parameters of the model.
    format : str
        One of `LINE_FORMATS`.
    **more
        Options that replace those of the model.

    Examples
    --------
    >>> options_for_lines({"bits": 18, "interactions": '["ab"]'}, "vw").interactions
    ('ab',)
    """
    known = {"bits": parameters.get("bits"), "zero_based": bool(parameters.get("zero_based"))}
    known["multilabel"] = bool(parameters.get("multilabel"))
    known["interactions"] = tuple(json.loads(str(parameters.get("interactions") or "[]")))
    return ReadOptions.of(**{**known, "format": format, "labelled": False, **more})
