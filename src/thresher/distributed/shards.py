"""Divide files into parts: each part has the rows of some files, or of a span of one file.

A shard is a file, or a span of one, that all workers can read. `engine/executor.py` assigns parts
to workers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from thresher.data import open_streams, paths
from thresher.data.detect import detect_format
from thresher.data.formats import FORMATS
from thresher.data.parts import Part, part_of
from thresher.data.read_options import ColumnKinds, ReadOptions
from thresher.data.source import Source
from thresher.data.spans import Span, extent
from thresher.distributed.splitting import (
    TooFewLines,
    allocate_spans,
    find_line_starts,
    group_evenly,
    snap_to_start,
    split_evenly,
    split_lines,
)
from thresher.errors import ParameterError, setting


@dataclass(frozen=True)
class Shard:
    """A file, or a span of one.

    Attributes
    ----------
    path : str
    format : str
        A format of `scan`.
    begin, end : int or None
        In bytes of plain text, rows of Parquet, or blocks of a cache. None for other files, which
        can only be read as a whole.
    bytes : int
        Approximate size on disk.
    """

    path: str
    format: str
    begin: int | None
    end: int | None
    bytes: int

    @property
    def span(self) -> Span | None:
        """The span of the file; None for the whole file."""
        return None if self.begin is None or self.end is None else Span(self.begin, self.end)

    def __str__(self) -> str:
        if self.begin is None:
            return self.path
        unit = {"parquet": "rows", "cache": "blocks"}.get(self.format, "bytes")
        return f"{self.path} ({unit} {self.begin} to {self.end})"


@dataclass(frozen=True)
class Shards:
    """The shards of all parts. `find_shards` makes them.

    Attributes
    ----------
    groups : tuple of tuples of Shard
        The shards of each part, in the order of their rows.
    reading : dict
        Options of `scan`, including the kinds of all columns of tables.
    """

    groups: tuple[tuple[Shard, ...], ...]
    reading: dict[str, Any]

    @property
    def parts(self) -> int:
        """Number of parts."""
        return len(self.groups)

    @property
    def files(self) -> list[str]:
        """All files, in the order of their rows."""
        return list(dict.fromkeys(shard.path for group in self.groups for shard in group))

    @property
    def bytes(self) -> int:
        """Approximate size of all shards on disk."""
        return sum(shard.bytes for group in self.groups for shard in group)

    def single_part(self, part: int) -> Shards:
        """Return the shards of one part, to be sent to a worker."""
        return Shards((self.groups[part],), self.reading)

    def source(self, part: int, piece: int = 0, pieces: int = 1) -> Source:
        """Return the rows of a part, or one of the `pieces` pieces into which it is divided.

        Pieces are consecutive and have about the same number of bytes. A piece may be empty: a file
        that can only be read as a whole is in the piece in which it begins.
        """
        shards = self.groups[part]
        if pieces > 1:
            shards = _shards_of_piece(shards, piece, pieces)
        reading = ReadOptions.of(**self.reading)
        kinds = ColumnKinds(dict(reading.kinds))
        found = [
            part_of(shard.path, replace(reading, format=shard.format), kinds, shard.span)
            for shard in shards or self.groups[part][:1]
        ]
        return Source(found if shards else [EmptyPart(found[0])], reading)

    def to_json(self) -> dict[str, Any]:
        """Return an object for `json.dump`."""
        return {
            "groups": [[asdict(shard) for shard in group] for group in self.groups],
            "reading": self.reading,
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Shards:
        """Return the shards that `to_json` described."""
        groups = (tuple(Shard(**shard) for shard in group) for group in fields["groups"])
        return cls(tuple(groups), dict(fields["reading"]))


class EmptyPart(Part):
    """A part of a source without rows."""

    def __init__(self, part: Part) -> None:
        self.name, self.named, self.first = part.name, part.named, part.first

    def blocks(self, *_: Any) -> Any:
        """Yield no blocks."""
        return iter(())


def _shards_of_piece(shards: Sequence[Shard], piece: int, pieces: int) -> tuple[Shard, ...]:
    """Return the shards of a piece. A cut depends on its number only, so pieces do not overlap."""
    total = sum(shard.bytes for shard in shards)
    low, high = total * piece // pieces, total * (piece + 1) // pieces
    found, after = [], 0
    for shard in shards:
        before, after = after, after + shard.bytes
        if shard.begin is None:
            if low <= before < high:
                found.append(shard)
        elif low < after and before < high:
            begin = _position(shard, low - before, total // pieces)
            end = _position(shard, high - before, total // pieces)
            if begin < end:
                size = min(high, after) - max(low, before)
                found.append(replace(shard, begin=begin, end=end, bytes=size))
    return tuple(found)


def _position(shard: Shard, offset: int, piece: int) -> int:
    """Return the position of a byte offset in a shard, in the shard's own unit."""
    assert shard.begin is not None
    assert shard.end is not None
    if offset <= 0:
        return shard.begin
    if offset >= shard.bytes:
        return shard.end
    size = shard.end - shard.begin
    at = shard.begin + size * offset // shard.bytes
    if shard.format != "parquet":
        return at
    from thresher.data.table_files import row_groups

    starts = [row for row in row_groups(shard.path) if shard.begin <= row <= shard.end]
    return snap_to_start(at, starts, size * piece // shard.bytes // 4)


def find_shards(
    data: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    reading: dict[str, Any] | None = None,
    parts: int | None = None,
    most: int | None = None,
) -> Shards:
    """Find files, and make parts of them.

    Parameters
    ----------
    data : path or sequence of paths
        Files and globs, as for `scan`, that all workers can read. Names of local files are made
        absolute, as workers have other working folders.
    reading : dict, optional
        Options of `scan`; by default each part is read by one thread.
    parts : int, optional
        Number of parts. They have about the same number of bytes, and consist of whole files, or of
        spans if there are fewer files. By default each file is a part.
    most : int, optional
        Largest number of parts. Without `parts`, several files form a part if necessary.

    Raises
    ------
    ParameterError
        The data are not files that can be read several times, or `parts` is too large.
    FileNotFoundError
        A file does not exist, or a glob matches none.
    """
    if (reading or {}).get("scale") is not None:
        raise ParameterError(
            (setting("scale"), " cannot be used on a cluster: use a rule that does not depend on "
             "the scale of columns, or scale the rows before"),
            parameter="scale",
        )  # fmt: skip
    for name, value in (("parts", parts), ("most", most)):
        if value is not None and not (type(value) is int and value >= 1):
            raise ParameterError(parameter=name, value=value, allowed="a whole number of 1 or more")
    if parts is not None and most is not None and parts > most:
        raise ParameterError(parameter="parts", value=parts, allowed=f"at most {most} here")
    options = {"threads": 1, **(reading or {})}
    checked = ReadOptions.of(**options)
    if checked.on_bad_line.startswith("quarantine"):
        raise ParameterError(
            parameter="on_bad_line",
            value=checked.on_bad_line,
            allowed="error or skip: many workers cannot write one file",
        )
    files = _files(data)
    whole = [_whole_file(name, checked) for name in files]
    whole = [shard for shard in whole if shard.end != 0] or whole  # without empty files
    if any(FORMATS[shard.format].kind == "table" for shard in whole):
        source = Shards((tuple(whole),), options).source(0)
        options["kinds"] = source.kinds
        options |= _decided(source.settled(), options)
    return Shards(_make_parts(whole, parts, most), options)


def _decided(settled: ReadOptions, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of tables that the first file decided: all parts must share them."""
    names = ("label", "weight", "text", "ignore", "header", "columns", "delimiter")
    found = {name: getattr(settled, name) for name in (*names, "label_separator")}
    return {name: value for name, value in found.items() if name in given or value}


def _files(data: Any) -> list[str]:
    """Return the names of files that all workers can read, several times."""
    given = [data] if isinstance(data, str | os.PathLike) else data
    if not isinstance(given, list | tuple) or not all(
        isinstance(name, str | os.PathLike) for name in given
    ):
        raise ParameterError(
            f"data must be names of files that all workers can read; got {type(data).__name__}"
        )
    if not given:
        raise ParameterError("data must name at least one file; got none")
    files = paths.expand(given)
    for name in files:
        if not paths.can_reopen(name):
            what = "standard input" if name == paths.STANDARD_INPUT else name
            raise ParameterError(
                f"data must be files that all workers can read; {what} can be read only once, and "
                f"only here"
            )
    return [name if paths.is_remote(name) else os.path.abspath(name) for name in files]


def _whole_file(name: str, reading: ReadOptions) -> Shard:
    format = reading.format or detect_format(name)
    size, units = open_streams.stored_size(name) or 0, extent(name, format)
    return Shard(name, format, None if units is None else 0, units, size)


def _make_parts(
    files: list[Shard], parts: int | None, most: int | None
) -> tuple[tuple[Shard, ...], ...]:
    count = min(len(files), most or len(files)) if parts is None else parts
    if count <= len(files):
        runs = group_evenly([shard.bytes for shard in files], count)
        return tuple(tuple(files[i] for i in run) for run in runs)
    sizes = [shard.bytes for shard in files]
    limits = [1 if shard.end is None else max(shard.end, 1) for shard in files]
    try:
        return _split_all(files, allocate_spans(sizes, limits, count), count)
    except TooFewLines:  # a text has fewer lines than bytes
        limits = [
            len(find_line_starts(shard.path))
            if FORMATS[shard.format].kind == "text" and n > 1
            else n
            for shard, n in zip(files, limits, strict=True)
        ]
    if sum(limits) < count:
        what = "the file" if len(files) == 1 else f"the {len(files)} files"
        raise ParameterError(
            parameter="parts",
            value=count,
            allowed=f"at most {sum(limits)}: {what} cannot be divided into more",
        )
    return _split_all(files, allocate_spans(sizes, limits, count), count)


def _split_all(files: list[Shard], counts: list[int], count: int) -> tuple[tuple[Shard, ...], ...]:
    if sum(counts) < count:
        raise TooFewLines
    return tuple((cut,) for file, n in zip(files, counts, strict=True) for cut in _split(file, n))


def _split(file: Shard, count: int) -> list[Shard]:
    if count == 1 or file.end is None:
        return [file]
    if file.format == "cache":
        spans = split_evenly(file.end, count)
    elif file.format == "parquet":
        from thresher.data.table_files import row_groups

        spans = split_evenly(file.end, count, row_groups(file.path))
    else:
        spans = split_lines(file.path, file.end, count)
    return [
        replace(file, begin=s.begin, end=s.end, bytes=file.bytes * s.size // file.end)
        for s in spans
    ]
