"""Sources whose columns are scaled, so that all have about the same size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.arrays import as_batch, is_sparse
from thresher.data.block import Block
from thresher.data.column_scales import SCALES, ColumnScales
from thresher.data.matrix_source import MatrixSource
from thresher.data.source import Source
from thresher.data.visits import Visit
from thresher.errors import ParameterError, ReadOnceError, setting


@dataclass(frozen=True)
class _ScaledBlock(Block):
    """A block whose values are scaled; `origin` has its lines and its digest."""

    origin: Block | None = None

    @property
    def digest(self) -> int:
        """Digest of the block before it was scaled."""
        assert self.origin is not None
        return self.origin.digest

    @property
    def stored_digest(self) -> int:
        """The digest before it was scaled, as in checkpoints of earlier versions."""
        assert self.origin is not None
        return self.origin.stored_digest

    def place(self, row: int) -> str:
        """Return the place of a row for an error."""
        assert self.origin is not None
        return self.origin.place(row)

    def label_place(self, row: int) -> str:
        """Return the place of a row's label."""
        assert self.origin is not None
        return self.origin.label_place(row)

    @property
    def labels(self) -> NDArray[Any] | None:
        """One label per row; None if rows have lists of labels."""
        assert self.origin is not None
        return self.origin.labels

    def label_sets(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the labels of all rows in one array, and where each row's labels begin in it."""
        assert self.origin is not None
        return self.origin.label_sets()


class ScaledSource(Source):
    """The rows of a source, with columns divided by their sizes; made by ``scan(..., scale=...)``.

    The sizes are measured by one more reading, when rows are first needed. An estimator that
    learns from it divides its weights by the same numbers, so that its model predicts rows that
    are not scaled.

    Parameters
    ----------
    source : Source
        Can be read more than once.
    how : {"variance", "max", "standard"}
        As for `scan`.
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
            raise ParameterError(
                parameter="scale", value=how, allowed=f"one of {', '.join(SCALES)}"
            )
        if not source.rereadable and scales is None:
            raise ReadOnceError(
                (setting("scale"), f" reads the rows twice, and {source} can be read only once: ",
                 "make a cache of it"),
                source=str(source),
                parameter="scale",
                value=how,
            )  # fmt: skip
        vars(self).update(vars(source))
        self._plain, self.how, self._scales, self.traced = source, how, scales, source.traced

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
        for block in self.plain.blocks(*args, **options):
            yield scaled_block(block, scales)

    def visits(self, *args: Any, **options: Any) -> Iterator[Visit]:
        """Yield the blocks of a pass, scaled; see `Source.visits`."""
        scales = self.scales
        for visit in self.plain.visits(*args, **options):
            yield visit._replace(block=scaled_block(visit.block, scales))

    def over(self, source: Source) -> ScaledSource:
        """Return another source of the same rows, such as a shuffled one, scaled in the same way.

        Parameters
        ----------
        source : Source
        """
        made = ScaledSource(source, self.how, self._scales)
        made.stops = self.stops
        return made

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
            starts, keys, values = self.scales.apply(X.indptr, X.indices, X.data)
            X = type(X)((values, keys, starts), X.shape)
        else:
            columns = np.arange(X.shape[1])
            X = (X - self.scales.centres_of(columns)) / self.scales.of(columns)
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

    @property
    def distinct(self) -> int | None:
        """Estimated number of different features read so far, if a sketch counted them."""
        return self.plain.distinct

    def facts(self) -> list[Any]:
        """Return facts about the input as JSON types, for `is_unchanged`."""
        return self.plain.facts()

    def is_unchanged(self, facts: Sequence[Any]) -> bool:
        """Tell whether the input has certainly not changed since `facts` returned these facts."""
        return self.plain.is_unchanged(facts)

    @property
    def reading_state(self) -> dict[str, Any]:
        """State of reading as JSON types, for a checkpoint."""
        return self.plain.reading_state

    @reading_state.setter
    def reading_state(self, saved: Mapping[str, Any]) -> None:
        self.plain.reading_state = saved

    def identity(self) -> dict[str, Any]:
        """Return the options of reading that a resumed run must use again."""
        return {**self.plain.identity(), "scale": self.how}


def scaled_block(block: Block, scales: ColumnScales) -> Block:
    """Return a block with scaled values.

    Parameters
    ----------
    block : Block
    scales : ColumnScales
    """
    native = block.native
    starts, keys, values = np.asarray(native.starts), np.asarray(native.keys), native.values
    starts, keys, values = scales.apply(starts, keys, np.asarray(values))
    made = _core.make_block(
        starts=starts,
        keys=keys,
        values=np.ascontiguousarray(values),
        labels=native.labels,
        weights=native.weights,
        label_starts=native.label_starts,
        label_values=native.label_values,
        tags=native.tags,  # type: ignore[arg-type]
        names=native.names,
        columns=block.width and max(block.width, int(keys.max(initial=0)) + 1),
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


__all__ = ["ScaledSource", "refuse_scaled", "same_scale", "scaled_block"]
