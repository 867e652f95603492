"""Rows in memory as a source: not copied, and visited in any order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.arrays import as_batch, is_sparse, nonzeros
from thresher.data.block import Position
from thresher.data.orders import orders
from thresher.data.visits import Order, Visit
from thresher.errors import DataError

_CHUNK = 1 << 22  # nonzeros per visit; training can be stopped between visits
_FEW = 1024  # rows in the first part of `heads`


class LabelArray:
    """Labels in memory, with the same methods as the labels of a `Block`.

    Parameters
    ----------
    y : array of shape (rows,), or CSR matrix of shape (rows, labels)
        Labels; a matrix of 0 and 1 has one column per label.
    """

    def __init__(self, y: Any) -> None:
        self.rows, self.y = int(y.shape[0]), y
        self.labels: NDArray[Any] | None = None if is_sparse(y) else y
        self._sets = y if is_sparse(y) else None

    def label_sets(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return where each row's labels begin, and the labels; see `Block.label_sets`."""
        if self._sets is None:
            assert self.labels is not None
            return np.arange(self.rows + 1, dtype=np.int64), self.labels
        return self._sets.indptr.astype(np.int64), self._sets.indices

    def place(self, row: int) -> str:
        """Return the place of a row for an error."""
        return f"row {row}"

    label_place = place


class MatrixBlock(LabelArray):
    """All rows of a matrix as one block, with the same methods as `Block`.

    Parameters
    ----------
    X : CSR matrix or array of shape (rows, features)
    y : array of shape (rows,), or CSR matrix of shape (rows, labels)
        Labels; a matrix of 0 and 1 has one column per label.
    weights : array of shape (rows,), optional
    """

    digest = stored_digest = 0  # `MatrixSource.facts` has a digest of all rows

    def __init__(self, X: Any, y: Any, weights: NDArray[np.float64] | None = None) -> None:
        super().__init__(y)
        self.X, self.weights, self.width = X, weights, int(X.shape[1])
        self.batch = as_batch(X)

    def located(self, error: _core.DataError) -> DataError:
        """Return an error of the core about a row; the message has the row's number."""
        return DataError(str(error))

    def first_values(self, rows: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return where the values of each of the first rows begin, and their values."""
        X = self.X
        if is_sparse(X):  # a slice of a SciPy matrix takes 0.1 ms
            starts = X.indptr[: rows + 1].astype(np.int64)
            return starts, np.asarray(X.data[: starts[-1]], np.float64)
        X = X[:rows]
        return np.arange(len(X) + 1, dtype=np.int64) * self.width, np.asarray(X, np.float64).ravel()

    def first_keys(self, rows: int) -> NDArray[Any]:
        """Return the column of each of the `first_values`."""
        if is_sparse(self.X):
            keys: NDArray[Any] = self.X.indices[: self.X.indptr[: rows + 1][-1]]
            return keys
        return np.tile(np.arange(self.width), len(self.X[:rows]))

    def spread(self, rows: int) -> MatrixBlock | None:
        """Return about `rows` rows from all parts of the matrix; None: it has not many more."""
        step = self._step(rows)
        X = self.X[::step] if step > 1 else None
        return None if X is None else MatrixBlock(X, np.zeros(X.shape[0]))

    def value_range(self, rows: int) -> tuple[float, float]:
        """Return the least and the largest absolute value, of the first rows and of `spread`.

        Values of 0 and NaN do not count; without others it is (inf, 0).
        """
        rows, step = min(rows, self.rows), self._step(rows)
        least, most = self.batch.value_range(rows)
        if step > 1:
            spread = self.batch.value_range(rows, step)
            least, most = min(least, spread[0]), max(most, spread[1])
        return least, most

    def _step(self, rows: int) -> int:
        return self.rows // max(rows, 1)

    def heads(self) -> Iterator[tuple[int, _core.Batch]]:
        """Yield the number of rows and a batch: of the first rows, then of all rows.

        The first rows often suffice.
        """
        if self.rows > _FEW:
            yield _FEW, as_batch(self.X[:_FEW])
        yield self.rows, self.batch

    def sums(self, keys: NDArray[np.uint64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for each row, the sum of `sizes` over its nonzero features among `keys`."""
        by_column = np.zeros(self.width)
        by_column[keys.astype(np.intp)] = sizes
        found = [np.zeros(0)]
        step = max(1, _CHUNK * self.rows // max(nonzeros(self.X), 1))
        for first in range(0, self.rows, step):
            part = self.X[first : first + step]
            if is_sparse(part):
                ones = (part.data != 0).astype(np.float64)
                part = type(part)((ones, part.indices, part.indptr), shape=part.shape)
                found.append(part @ by_column)
            else:
                found.append(np.where(part != 0, by_column, 0.0).sum(axis=1))
        return np.concatenate(found)

    def take(self, rows: NDArray[np.int64]) -> _core.Batch:
        """Return a copy of some rows as a batch."""
        return as_batch(self.X[rows])


class MatrixSource:
    """Rows in memory as a source, without a copy.

    Parameters
    ----------
    X : CSR matrix or array of shape (rows, features)
    y : array of shape (rows,), or CSR matrix of shape (rows, labels)
    weights : array of shape (rows,), optional
    only : array of int64, optional
        The rows to visit, in this order; by default all.

    Attributes
    ----------
    chunk : int
        Approximate number of nonzeros per visit.
    """

    rereadable, named, traced, shuffles = True, False, False, True
    keeps_names = False
    bits: int | None = None
    size: int | None = None
    distinct: int | None = None
    first = 0
    kinds: Mapping[str, str] = {}
    columns: Sequence[str] = ()
    column_names: Any = None  # if known
    labels_given = True

    def __init__(
        self,
        X: Any,
        y: Any,
        weights: NDArray[np.float64] | None = None,
        only: NDArray[np.int64] | None = None,
    ) -> None:
        self.block = MatrixBlock(X, y, weights)
        self.multilabel = is_sparse(y)
        self.only, self.chunk = only, _CHUNK
        self.rows: int | None = self.block.rows if only is None else len(only)
        self._orders: tuple[Any, Iterator[Order]] | None = None
        self._facts: list[Any] | None = None
        self._next = 0  # the pass whose order `_orders` yields next

    def visits(
        self,
        number: int,
        shuffle: str | bool,
        seed: int,
        after: Position | None = None,
        blocks_before: int = 0,
        **reading: Any,
    ) -> Iterator[Visit]:
        """Yield the rows of a pass, about `chunk` nonzeros at a time; see `Source.visits`."""
        order = self.order(number, shuffle, seed)
        rows = self.block.rows if order is None else len(order)
        per_row = max(1.0, nonzeros(self.block.X) / max(self.block.rows, 1))
        step = max(1, int(self.chunk / per_row))
        first = 0 if after is None else after.offset
        while first < rows:
            last = min(rows, first + step)
            yield Visit(self.block, order, first, last, Position(0, last, last))
            first = last

    def order(self, number: int, shuffle: str | bool, seed: int) -> Order:
        """Return the order of the rows in a pass; None: the stored order."""
        if shuffle is False:
            return self.only
        if self._orders is None or self._orders[0] != (shuffle, seed) or number < self._next:
            rng = np.random.default_rng(seed)
            assert self.rows is not None
            self._orders, self._next = ((shuffle, seed), orders(shuffle, self.rows, rng)), 0
        order = next(islice(self._orders[1], number - self._next, None))
        self._next = number + 1
        if self.only is None:
            return order
        return self.only if order is None else self.only[order]

    def blocks(self, **reading: Any) -> Iterator[MatrixBlock]:
        """Yield all rows as one block."""
        if self.block.rows:
            yield self.block

    def width(self) -> int:
        """Return the number of features."""
        return self.block.width

    def label_counts(self) -> tuple[NDArray[Any], tuple[NDArray[np.int64], int]]:
        """Return the labels, in increasing order, the number of rows of each, and of all rows."""
        labels, counts = np.unique(self.block.label_sets()[1], return_counts=True)
        return labels, (counts.astype(np.int64), self.block.rows)

    def mean(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Return the features with a nonzero mean over all rows, and these means."""
        mean = _core.mean_row(self.block.batch)
        keys = np.flatnonzero(mean).astype(np.uint64)
        return keys, mean[keys]

    def facts(self) -> list[Any]:
        """Return a digest of the rows as JSON types, for `is_unchanged`."""
        if self._facts is None:
            self._facts = self._digested()
        return self._facts

    def _digested(self) -> list[Any]:
        X, digest = self.block.X, hashlib.blake2b(digest_size=16)
        starts, labels = self.block.label_sets()
        arrays = [X.indptr, X.indices, X.data] if is_sparse(X) else [X]
        text = repr(labels.tolist()).encode() if labels.dtype.kind == "O" else labels
        for array in (*arrays, starts, text, self.block.weights):
            if array is not None:
                whole = array if isinstance(array, bytes) else np.ascontiguousarray(array).data
                digest.update(whole)
        return [list(X.shape), str(X.dtype), digest.hexdigest()]

    def is_unchanged(self, facts: Any) -> bool:
        """Tell whether the rows are the same as when `facts` returned these facts."""
        return list(facts) == self.facts()

    @property
    def reading_state(self) -> dict[str, Any]:
        """State of reading, for a checkpoint: empty."""
        return {}

    @reading_state.setter
    def reading_state(self, saved: Mapping[str, Any]) -> None:
        pass

    def identity(self) -> dict[str, Any]:
        """Return the options of reading: rows in memory have none."""
        return {}

    described = identity

    def names(self, keys: Any, kinds: Any = None) -> dict[int, str]:
        """Return an empty dict: the features of a matrix have no names."""
        return {}

    def __str__(self) -> str:
        return "the rows"
