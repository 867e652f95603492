"""Rows dealt at random into buckets: in memory, or in a cache on disk.

Each pass visits the buckets in a new order, and the rows of each bucket in a new order. Few rows
are one bucket in memory. Many rows are dealt into buckets of a cache. The bucket of a row is a hash
of its number, so it does not depend on the sizes of blocks, on threads or on the seed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.cache_writer import CacheWriter
from thresher.data.row_arrays import RowArrays, joined
from thresher.data.row_folds import mixed

BATCH = 1 << 26  # bytes of rows that are dealt at a time
FEWEST, MOST = 256, 4096  # buckets on disk
_ROWS = 1 << 14  # of a block
_SALT = np.uint64(0x5DEECE66D)


class PassOrder(NamedTuple):
    """The order of rows in a pass.

    Attributes
    ----------
    seed, number : int
        Seed, and number of the pass.
    replace : bool
        Whether the rows of a bucket are drawn with replacement.
    """

    seed: int
    number: int = 0
    replace: bool = False

    def of_buckets(self, count: int) -> NDArray[np.int64]:
        """Return the order of buckets."""
        return np.random.default_rng([self.seed, self.number, count]).permutation(count)

    def of_rows(self, bucket: int, rows: int, alone: bool) -> NDArray[np.int64]:
        """Return the order of the rows of a bucket; `alone`: it has all rows."""
        first = alone and self.number == 0
        rng = np.random.default_rng(self.seed if first else [self.seed, self.number, bucket])
        return rng.integers(0, rows, rows) if self.replace else rng.permutation(rows)


class Chunk(NamedTuple):
    """Some rows of a pass.

    Attributes
    ----------
    first : int
        The number of rows of the pass before it.
    rows : RowArrays
    numbers : Numbers
        Tells the number of each row in the source.
    """

    first: int
    rows: RowArrays
    numbers: Numbers


class Numbers(NamedTuple):
    """The numbers of some rows in the source, computed when they are needed.

    Attributes
    ----------
    order : array of int
        Places of the rows in their bucket.
    segments : list of _core.Block
        The segments of the bucket; empty: places are numbers.
    """

    order: NDArray[np.int64]
    segments: list[_core.Block]

    def number(self, row: int) -> int:
        """Return the number of a row in the source, from 0."""
        at = int(self.order[row])
        for segment in self.segments:
            if at < segment.rows:
                return int(segment.line(at))
            at -= segment.rows
        return at


class Buckets(ABC):
    """All rows of a source, in buckets."""

    sizes: list[int]  # rows of each bucket

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(self.sizes)

    @abstractmethod
    def load(self, bucket: int, dtype: str) -> tuple[RowArrays, list[_core.Block]]:
        """Return the rows of a bucket in memory, and the segments that they come from."""

    def chunks(self, order: PassOrder, first: int, dtype: str) -> Iterator[Chunk]:
        """Yield the rows of a pass, from a number of rows on.

        Parameters
        ----------
        order : PassOrder
        first : int
            Number of rows of the pass that are left out.
        dtype : {"float32", "float64"}
            Number type of the values.
        """
        begin = 0
        for bucket in order.of_buckets(len(self.sizes)).tolist():
            size = self.sizes[bucket]
            if size and first < begin + size:
                rows, segments = self.load(bucket, dtype)
                places = order.of_rows(bucket, size, len(self.sizes) == 1)
                for at in range(max(first - begin, 0), size, _ROWS):
                    some = places[at : at + _ROWS]
                    yield Chunk(begin + at, rows.take(some), Numbers(some, segments))
            begin += size


class MemoryBucket(Buckets):
    """All rows in memory, as one bucket.

    Parameters
    ----------
    rows : RowArrays
    """

    def __init__(self, rows: RowArrays) -> None:
        self.all, self.sizes = rows, [rows.rows]

    def load(self, bucket: int, dtype: str) -> tuple[RowArrays, list[_core.Block]]:
        """Return all rows."""
        return self.all, []


class FileBuckets(Buckets):
    """Buckets in a cache. Its block k is a segment of the bucket k modulo the number of buckets.

    Parameters
    ----------
    path : str
    count : int
        Number of buckets.
    """

    def __init__(self, path: str, count: int) -> None:
        self.reader, self.count = _core.CacheReader(path), count
        blocks = range(self.reader.blocks)
        self.sizes = [sum(map(self.reader.rows_of, blocks[b::count])) for b in range(count)]

    def load(self, bucket: int, dtype: str) -> tuple[RowArrays, list[_core.Block]]:
        """Read the segments of a bucket."""
        numbers = [k for k in range(bucket, self.reader.blocks, self.count)]
        found = [self.reader.block(k, dtype, False) for k in numbers if self.reader.rows_of(k)]
        return joined([RowArrays.of_native(native) for native in found]), found

    def names(self, dtype: str) -> Iterator[_core.Block]:
        """Yield all blocks, with the names of features."""
        for number in range(self.reader.blocks):
            yield self.reader.block(number, dtype, True)


class BucketWriter:
    """Deals rows into the buckets of a new cache.

    Parameters
    ----------
    path : str
    about : str
        The header of the cache.
    count : int
        Number of buckets.
    """

    def __init__(self, path: str, about: str, count: int) -> None:
        self.path, self.count, self.rows = path, count, 0
        self._folder = os.path.dirname(os.path.abspath(path))
        with self._explained():
            self._writer = CacheWriter(path, about)

    def deal(self, rows: RowArrays, names: list[tuple[int, bytes]] | None = None) -> None:
        """Deal rows that come after all rows so far; the names of features are stored too."""
        if shutil.disk_usage(self._folder).free < rows.bytes:
            raise OSError(errno.ENOSPC, self._no_space(), self.path)
        numbers = np.arange(self.rows, self.rows + rows.rows, dtype=np.uint64)
        bucket = (mixed(numbers ^ _SALT) % np.uint64(self.count)).astype(np.int64)
        order = np.argsort(bucket, kind="stable")
        ends = np.cumsum(np.bincount(bucket, minlength=self.count)).tolist()
        dealt, begin = rows.take(order), 0
        for number, end in enumerate(ends):
            part = dealt.part(begin, end)
            with self._explained():
                self._writer.add(
                    part.native(
                        first_line=self.rows,
                        lines=order[begin:end].astype(np.uint32),
                        names=names if number == 0 else None,
                    )
                )
            begin = end
        self.rows += rows.rows

    def finish(self, sketch: bytes = b"") -> FileBuckets:
        """Complete the file, and open it."""
        with self._explained():
            self._writer.finish(sketch)
        return FileBuckets(self.path, self.count)

    def abandon(self) -> None:
        """Remove the unfinished file."""
        self._writer.abandon()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Say what to do about a full disk."""
        try:
            yield
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise OSError(error.errno, self._no_space(), self.path) from None

    def _no_space(self) -> str:
        return (
            f"the folder {self._folder} has no space for the shuffled rows: set the environment "
            f"variable TMPDIR to another folder, or keep the rows in a cache elsewhere"
        )


class TemporaryBuckets(BucketWriter):
    """Deals rows into a temporary file, which has no name any more when it is complete.

    So it disappears however the process ends.

    Parameters
    ----------
    count : int
        Number of buckets.
    """

    def __init__(self, count: int) -> None:
        self._place = tempfile.mkdtemp(prefix="thresher-shuffle-")
        try:
            super().__init__(os.path.join(self._place, "rows"), "{}", count)
        except BaseException:
            self._remove()
            raise

    def finish(self, sketch: bytes = b"") -> FileBuckets:
        """Complete the file, open it, and remove its name."""
        try:
            return super().finish(sketch)
        finally:
            self._remove()

    def abandon(self) -> None:
        """Remove the unfinished file."""
        super().abandon()
        self._remove()

    def _remove(self) -> None:
        shutil.rmtree(self._place, ignore_errors=True)


def bucket_count(size: int | None) -> int:
    """Return the number of buckets for a source of this size in bytes; None: not known.

    Parameters
    ----------
    size : int or None

    Examples
    --------
    >>> bucket_count(None), bucket_count(100 << 30)
    (256, 1600)
    """
    return min(MOST, max(FEWEST, (size or 0) // BATCH))
