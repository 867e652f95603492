"""Sources whose columns are divided by their sizes, so that all columns have about the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.arrays import as_batch, is_sparse
from thresher.data.block import Block
from thresher.data.matrix_source import MatrixSource
from thresher.data.source import Source
from thresher.errors import DataError, ParameterError, ReadOnceError, setting

SCALES = ("variance", "max")
MIN_COUNT = 20  # as in `thresher.preprocessing.UnitVarianceScaler`
_DENSE = 1 << 22  # features with larger numbers are counted by sorting
_NEW = 1 << 20  # values that are kept before they are merged: merging sorts all keys


@dataclass(frozen=True)
class ColumnScales:
    """What the columns of a source are divided by.

    Attributes
    ----------
    keys : array of uint64
        The features that have values, in increasing order.
    scales : array
        The scale of each; that of all other features is 1.
    """

    keys: NDArray[np.uint64]
    scales: NDArray[np.float64]

    def of(self, keys: NDArray[Any]) -> NDArray[np.float64]:
        """Return the scales of these features."""
        if not len(self.keys):
            return np.ones(len(keys))
        wanted = np.asarray(keys).astype(np.int64).view(np.uint64)
        at = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[at] == wanted, self.scales[at], 1.0)

    @classmethod
    def measured(cls, blocks: Iterable[Block], how: str, min_count: int = MIN_COUNT) -> Any:
        """Read all rows; return the scales of their columns.

        Parameters
        ----------
        blocks : iterable of Block
            With values of type float64.
        how : {"variance", "max"}
            "variance": the root mean square about zero, as `UnitVarianceScaler` computes it.
            "max": the largest absolute value.
        min_count : int
            For "variance", features with fewer nonzeros are scaled as if they had this many.
        """
        sums, rows = _Sums(), 0
        for block in blocks:
            rows += block.rows
            keys = np.asarray(block.native.keys).astype(np.int64).view(np.uint64)
            sizes = np.abs(np.asarray(block.native.values, np.float64))
            bad = np.flatnonzero(~np.isfinite(sizes))
            if len(bad):
                starts = np.asarray(block.native.starts)
                row = int(np.searchsorted(starts, bad[0], side="right")) - 1
                raise DataError(f"{block.place(row)}: a value is not finite")
            sums.add(keys[sizes > 0], sizes[sizes > 0])
        keys, counts, squares, largest = sums.result()
        if how == "max":
            return cls(keys, largest)
        raised = np.maximum(counts, min(min_count, rows)) / max(rows - 1, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            scales = np.sqrt(squares / np.maximum(counts, 1) * raised)
        plain = np.isfinite(scales) & (squares > 0)  # otherwise squares are too large or too small
        return cls(keys, np.where(plain, scales, largest * np.sqrt(np.minimum(raised, 1.0))))


class _Sums:
    """Number, sum of squares and maximum of the absolute values of each feature."""

    def __init__(self) -> None:
        self.keys = np.zeros(0, np.uint64)
        self.facts = np.zeros((3, 0))  # counts, squares, maxima
        self._dense = np.zeros((3, 0))  # of small feature numbers, by number
        self._new: list[tuple[NDArray[np.uint64], NDArray[np.float64]]] = []
        self._count = 0

    def add(self, keys: NDArray[np.uint64], sizes: NDArray[np.float64]) -> None:
        width = int(keys.max(initial=0)) + 1
        if width > _DENSE:
            self._new.append((keys, sizes))
            self._count += len(keys)
            if self._count > max(_NEW, 3 * len(self.keys)):
                self._merge()
            return
        if width > self._dense.shape[1]:
            grown = max(width, min(_DENSE, 2 * self._dense.shape[1]))
            self._dense = np.pad(self._dense, ((0, 0), (0, grown - self._dense.shape[1])))
        at = keys.astype(np.intp)
        with np.errstate(over="ignore"):
            self._dense[0, :width] += np.bincount(at, minlength=width)
            self._dense[1, :width] += np.bincount(at, sizes * sizes, width)
        np.maximum.at(self._dense[2], at, sizes)

    def _merge(self, *more: tuple[NDArray[np.uint64], NDArray[np.float64]]) -> None:
        new_keys = np.concatenate([self.keys[:0], *(keys for keys, _ in self._new)])
        sizes = np.concatenate([np.zeros(0), *(sizes for _, sizes in self._new)])
        with np.errstate(over="ignore"):
            new = np.stack([np.ones(len(sizes)), sizes * sizes, sizes])
        parts = [(self.keys, self.facts), (new_keys, new), *more]
        found, at = np.unique(np.concatenate([keys for keys, _ in parts]), return_inverse=True)
        facts = np.concatenate([facts for _, facts in parts], axis=1)
        with np.errstate(over="ignore"):
            sums = [np.bincount(at, facts[row], len(found)) for row in (0, 1)]
        largest = np.zeros(len(found))
        np.maximum.at(largest, at, facts[2])
        self.keys, self.facts = found, np.stack([*sums, largest])
        self._new, self._count = [], 0

    def result(self) -> tuple[NDArray[np.uint64], Any, Any, Any]:
        """Return the features, and their counts, squares and maxima."""
        used = np.flatnonzero(self._dense[0])
        self._merge((used.astype(np.uint64), self._dense[:, used]))
        counts, squares, largest = self.facts
        return self.keys, counts, squares, largest


@dataclass(frozen=True)
class _ScaledBlock(Block):
    """A block whose values are scaled; `origin` has its lines and its digest."""

    origin: Block | None = None

    @property
    def digest(self) -> int:
        """Digest of the block before it was scaled."""
        assert self.origin is not None
        return self.origin.digest

    def place(self, row: int) -> str:
        """Return the place of a row for an error."""
        assert self.origin is not None
        return self.origin.place(row)

    def label_place(self, row: int) -> str:
        """Return the place of a row's label."""
        assert self.origin is not None
        return self.origin.label_place(row)


class ScaledSource(Source):
    """The rows of a source, with columns divided by their sizes; made by ``scan(..., scale=...)``.

    The sizes are measured by one more reading, when rows are first needed. An estimator that
    learns from it divides its weights by the same numbers, so that its model predicts rows that
    are not scaled. Zeros stay zeros: columns are not centred.

    Parameters
    ----------
    source : Source
        Can be read more than once.
    how : {"variance", "max"}
        What columns are divided by: their root mean square about zero, as in `UnitVarianceScaler`,
        or their largest absolute value.
    scales : ColumnScales, optional
        The scales, if they are those of other rows.

    Attributes
    ----------
    plain : Source
        The source without scaling.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import scan
    >>> source = scan(lambda: [(np.array([[3.0, 0.0], [4.0, 5e6]]), [0, 1])], scale="max")
    >>> [np.asarray(block.native.values).tolist() for block in source.blocks()]
    [[0.75, 1.0, 1.0]]
    """

    def __init__(self, source: Source, how: str, scales: ColumnScales | None = None) -> None:
        if how not in SCALES:
            raise ParameterError(parameter="scale", value=how, allowed="'variance' or 'max'")
        if not source.rereadable and scales is None:
            raise ReadOnceError(
                (setting("scale"), f" reads the rows twice, and {source} can be read only once: ",
                 "make a cache of it"),
                source=str(source),
                parameter="scale",
                value=how,
            )  # fmt: skip
        vars(self).update(vars(source))
        self._plain, self.how, self._scales = source, how, scales

    @property
    def plain(self) -> Source:
        """The source without scaling."""
        self._plain.stops = self.stops
        return self._plain

    @property
    def scales(self) -> ColumnScales:
        """The scales of the columns; the rows are read when it is first used."""
        if self._scales is None:
            blocks = self.plain.blocks(dtype="float64")
            self._scales = ColumnScales.measured(blocks, self.how)
        return self._scales

    def blocks(self, *args: Any, **options: Any) -> Iterator[Block]:
        """Read the rows, scaled; see `Source.blocks`."""
        scales = self.scales
        for block in super().blocks(*args, **options):
            yield scaled_block(block, scales)

    def like(self, other: Source | MatrixSource) -> Source | MatrixSource:
        """Return other rows, for example to validate on, with the same scales.

        Parameters
        ----------
        other : Source or MatrixSource
        """
        if not isinstance(other, MatrixSource):
            return ScaledSource(other.plain, self.how, self.scales)
        X, made = other.block.X, copy(other)
        if is_sparse(X):
            X = type(X)((X.data / self.scales.of(X.indices), X.indices, X.indptr), X.shape)
        else:
            X = X / self.scales.of(np.arange(X.shape[1]))
        made.block = copy(other.block)
        made.block.X, made.block.batch = X, as_batch(X)
        return made

    # ---- readings that need no scales ----------------------------------------------------------

    def names(self, keys: Iterable[int], kinds: Mapping[str, str] | None = None) -> dict[int, str]:
        """Read the source again until the names of all these features are found; return them."""
        return self.plain.names(keys, kinds)

    def label_counts(self) -> tuple[NDArray[Any], tuple[NDArray[np.int64], int]]:
        """Read all rows; return the labels, the number of rows of each, and of all rows."""
        return self.plain.label_counts()

    def width(self) -> int:
        """Read all rows; return the number of features."""
        return self.plain.width()

    def identity(self) -> dict[str, Any]:
        """Return the options of reading that a resumed run must use again."""
        return {**super().identity(), "scale": self.how}


def scaled_block(block: Block, scales: ColumnScales) -> Block:
    """Return a block with scaled values.

    Parameters
    ----------
    block : Block
    scales : ColumnScales
    """
    native = block.native
    values, keys = np.asarray(native.values), np.asarray(native.keys)
    with np.errstate(over="ignore"):
        scaled = (values / scales.of(keys)).astype(values.dtype)
    made = _core.make_block(
        starts=native.starts,  # type: ignore[arg-type]
        keys=keys,
        values=np.ascontiguousarray(scaled),
        labels=native.labels,
        weights=native.weights,
        label_starts=native.label_starts,
        label_values=native.label_values,
        tags=native.tags,  # type: ignore[arg-type]
        names=native.names,
        columns=native.width,
        distinct=True,
        first_line=native.first_line,
    )
    fields = {**vars(block)}
    kept = {name: fields[name] for name in ("file", "end", "words", "lines", "raw", "counted")}
    return _ScaledBlock(made, origin=block, **kept)


def refuse_scaled(source: Any, owner: str, why: str) -> None:
    """Raise ParameterError if the columns of a source are scaled.

    Parameters
    ----------
    source : object
        Other than a source, it is not refused.
    owner : str
    why : str
        The end of the message.
    """
    if isinstance(source, ScaledSource):
        what = setting("scale", source.how, call="scan"), f" cannot be used here: {why}"
        raise ParameterError(what, owner=owner, parameter="scale", value=source.how)


def same_scale(source: Any, valid: Any) -> Any:
    """Return validation rows with the scales of a source, if it has scales; else unchanged."""
    return source.like(valid) if isinstance(source, ScaledSource) and valid is not None else valid


__all__ = ["SCALES", "ColumnScales", "ScaledSource", "refuse_scaled", "same_scale", "scaled_block"]
