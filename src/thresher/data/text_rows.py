"""Lines of text in memory as a source: svmlight or VW."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from thresher import _core
from thresher.data.bad_lines import BadLines
from thresher.data.block import Block, Position
from thresher.data.formats import FORMATS
from thresher.data.parts import BlockRequest, Part
from thresher.data.read_options import ReadOptions
from thresher.data.source import Source
from thresher.errors import ParameterError

__all__ = ["LINE_FORMATS", "TextRows", "options_for_lines"]

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
        reader = _core.Reader(
            io.BytesIO(self.text[begin.offset :]),
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
                yield Block(native, self.name, end, raw=end.offset)
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
