"""Writes the rows of a source to a file: svmlight, VW text, a table, or a cache."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from thresher import _core
from thresher.atomic import written_whole
from thresher.data import cache
from thresher.data.block import Block
from thresher.data.cache_writer import CacheWriter
from thresher.data.cached_words import numbered, words_of
from thresher.data.formats import FORMATS, compression_of, suffix_of
from thresher.data.source import Source
from thresher.errors import DataError, ParameterError, setting

WRITTEN = tuple(name for name, format in FORMATS.items() if format.written)
_SUFFIXES = {suffix: name for name in WRITTEN for suffix in FORMATS[name].suffixes}
_WIDEST = 10_000  # most columns of a CSV file


def format_of(path: str) -> str:
    """Return the format by the suffix of a file's name.

    Examples
    --------
    >>> format_of("clicks.vw.gz")
    'vw'
    """
    suffix = suffix_of(path)
    if suffix not in _SUFFIXES:
        raise ParameterError(
            (
                f"the format is not clear from the name; use a suffix of {', '.join(_SUFFIXES)}, "
                f"or set ",
                setting("format", call="write"),
            ),
            place=path,
        )
    return _SUFFIXES[suffix]


def write(
    source: Source,
    path: str,
    format: str,
    see: Callable[[Block], None] | None = None,
    dtype: str = "float64",
    at_end: Callable[[], None] | None = None,
) -> int:
    """Write all rows of a source to a file; return their number.

    If it fails, no file is written.

    Parameters
    ----------
    source : Source
    path : str
    format : str
        One of `WRITTEN`.
    see : function, optional
        Called with each block that was written.
    dtype : {"float32", "float64"}
        Number type of the values in a cache; float64 keeps the values of the text exactly.
    at_end : function, optional
        Called when all rows have been read. If it raises an error, no file is written.
    """
    writer = {"parquet": _write_parquet, "csv": _write_csv}.get(format)
    if format in ("cache", "parquet") and compression_of(path):
        raise ParameterError(f"{path}: a {format} file cannot be compressed")
    blocks = _blocks(source, FORMATS[format].named or format == "cache", see, dtype, at_end)
    if format == "cache":
        return _write_cache(source, blocks, path, dtype)
    return writer(source, blocks, path) if writer else _write_text(source, blocks, path, format)


def _blocks(
    source: Source,
    names: bool,
    see: Callable[[Block], None] | None,
    dtype: str,
    at_end: Callable[[], None] | None,
) -> Iterator[Block]:
    # A cache is for training; other files may have rows without a label.
    for block in source.blocks(dtype=dtype, names=names and source.named, labelled=names):
        yield block
        if see is not None:
            see(block)
    if at_end is not None:
        at_end()


def _write_cache(source: Source, blocks: Iterator[Block], path: str, dtype: str) -> int:
    rows = 0
    words = words_of(source)
    with CacheWriter(path, cache_about(source, dtype, words)) as writer:
        for block in blocks:
            writer.add(numbered(block, words))
            rows += block.rows
        writer.finish(source.sketch)
    return rows


def cache_about(source: Source, dtype: str, words: list[str] | None = None, **more: Any) -> str:
    """Return the header of a cache of a source: its files, the options of reading, and words.

    `more` are further facts that a current cache must have.
    """
    return cache.about(_local(source), _options(source, dtype) | more, words)


def why_not_current(path: str, source: Source, dtype: str = "float64", **more: Any) -> str | None:
    """Return why a cache cannot replace a source with values of this type; None if it can.

    `more` are further facts that the cache must have.
    """
    if not source.rereadable:
        return "standard input may have other rows than before"
    files = _local(source)
    if cache.is_current(path, files, _options(source, "float64") | more) is True:
        return None
    current = cache.is_current(path, files, _options(source, dtype) | more)
    return None if current is True else str(current)


def _options(source: Source, dtype: str) -> dict[str, Any]:
    reading = source.reading.plain() | {"named": source.named, "first": source.first}
    del reading["threads"], reading["shuffle_buffer"]
    return reading | {"kinds": source.kinds, "dtype": dtype}


def _local(source: Source) -> cache.Fingerprint:
    return cache.fingerprint(part.name for part in source.parts if part.facts() is not None)


def _write_text(source: Source, blocks: Iterator[Block], path: str, format: str) -> int:
    rows, names = 0, _core.VwNames()
    with written_whole(path) as file, _compressed(file, path) as out:
        for block in blocks:
            if block.words is not None or block.sets is not None:
                raise DataError(f"{block.place(0)}: labels are words; {format} needs numbers")
            try:
                if FORMATS[format].named:
                    names.add(block.native)
                    out.write(_core.vw_text(block.native, names))
                else:
                    out.write(_core.svmlight_text(block.native, source.reading.zero_based))
            except _core.DataError as error:
                raise block.located(error) from None
            rows += block.rows
    return rows


@contextlib.contextmanager
def _compressed(file: IO[bytes], path: str) -> Iterator[Any]:
    """Yield a file that compresses what is written to it, by the suffix of the path."""
    suffix = compression_of(path)
    if suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as out:
            yield out
    elif suffix == ".bz2":
        with bz2.BZ2File(file, "wb") as out:
            yield out
    elif suffix == ".xz":
        with lzma.LZMAFile(file, "wb", preset=1) as out:
            yield out
    elif suffix == ".zst":
        try:
            import zstandard
        except ImportError:
            raise ParameterError(
                f"{path}: needs the package zstandard: pip install 'thresher[zstd]'"
            ) from None
        with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as out:
            yield out
    else:
        yield file


# ---- tables --------------------------------------------------------------------------------------


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise ParameterError("tables need pyarrow: pip install 'thresher[arrow]'") from None
    return pyarrow


def _targets(block: Block, pa: Any) -> dict[str, Any]:
    """Return the columns of labels and weights."""
    if block.labels is None:
        starts, values = block.label_sets()
        label = pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), pa.array(values))
    else:
        labels = np.asarray(block.labels)
        missing = np.isnan(labels) if labels.dtype.kind == "f" else None
        label = pa.array(labels, mask=missing)
    weights = np.ones(block.rows) if block.weights is None else block.weights
    return {"label": label, "weight": pa.array(weights)}


def _write_parquet(source: Source, blocks: Iterator[Block], path: str) -> int:
    """Write the columns label, weight, keys and values; the last two hold lists."""
    pa, rows, writer = _arrow(), 0, None
    with written_whole(path) as file, contextlib.ExitStack() as closing:
        for block in blocks:
            starts = np.asarray(block.native.starts).astype(np.int64)
            keys = np.asarray(block.native.keys).astype(np.int64).view(np.uint64)
            lists = {
                "keys": pa.LargeListArray.from_arrays(pa.array(starts), pa.array(keys)),
                "values": pa.LargeListArray.from_arrays(
                    pa.array(starts), pa.array(np.asarray(block.native.values))
                ),
            }
            table = pa.table({**_targets(block, pa), **lists})
            if writer is None:
                schema = table.schema.with_metadata({"thresher": "rows"})
                writer = closing.enter_context(_closed(pa.parquet.ParquetWriter(file, schema)))
            writer.write_table(table.cast(writer.schema))
            rows += block.rows
        if writer is None:
            raise DataError(f"{source}: no rows to write")
        writer.close()
    return rows


@contextlib.contextmanager
def _closed(writer: Any) -> Iterator[Any]:
    """Close a writer after an error: else it warns when it is garbage collected."""
    try:
        yield writer
    except BaseException:
        with contextlib.suppress(Exception):
            writer.close()
        raise


def _write_csv(source: Source, blocks: Iterator[Block], path: str) -> int:
    """Write one column per feature, named by its number; cells without a value are empty."""
    pa, rows = _arrow(), 0
    if not source.rereadable:
        raise ParameterError("to write CSV, the rows are read twice; a pipe can be read only once")
    width = source.width()
    if not 0 < width <= _WIDEST:
        raise ParameterError(
            f"a CSV file has one column per feature, at most {_WIDEST:,}; the rows have {width:,} "
            f"features",
            hint=("set ", setting("bits", call="scan"), " to reduce them"),
        )
    with written_whole(path) as file, _compressed(file, path) as out:
        for block in blocks:
            targets = _targets(block, pa)
            if block.weights is None:
                targets.pop("weight")
            starts, keys = np.asarray(block.native.starts), np.asarray(block.native.keys)
            at = np.repeat(np.arange(block.rows), np.diff(starts)), keys
            cells = np.zeros((block.rows, width))
            absent = np.ones((block.rows, width), bool)
            cells[at], absent[at] = np.asarray(block.native.values), False
            columns = {
                str(k): pa.array(cells[:, k], mask=absent[:, k], type=pa.float64())
                for k in range(width)
            }
            options = pa.csv.WriteOptions(include_header=rows == 0)
            pa.csv.write_csv(pa.table({**targets, **columns}), out, options)
            rows += block.rows
    return rows
