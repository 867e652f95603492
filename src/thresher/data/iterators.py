"""Rows from iterators of batches, or of examples as dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.arrays import is_sparse
from thresher.data.bad_lines import BadCells
from thresher.data.block import Block, Position
from thresher.data.columns import entries_of_column, single
from thresher.data.dict_features import features_of
from thresher.data.features import (
    FeatureEntries,
    NamesWanted,
    fold,
    hashed,
    join,
    key_of,
    rows_of_entries,
)
from thresher.data.frames import arrow_table
from thresher.errors import DataError, Explained, ParameterError
from thresher.sparse_checks import refuse_malformed

__all__ = ["IteratorSource", "checked_targets"]

EXAMPLES = 1000  # examples per block


class IteratorSource:
    """Rows from an iterator.

    Items are batches `(X, y)` or `(X, y, weights)`, with X a CSR matrix, an array or a DataFrame;
    or examples `(features, label)` or `(features, label, weight)`, with a dict of features. In the
    dict, numbers and booleans are values, a string makes a feature "name^string" with value 1, a
    list of strings one for each, and None makes no feature (see `thresher.data.dict_features`). A
    key that is an integer, or a string of digits, is the number of the feature.

    Parameters
    ----------
    items : iterable, or callable that returns an iterator
        An iterator can be read only once.
    bits : int, optional
        Only the lowest `bits` bits of keys are used.
    name : str
        Its name in messages.

    Attributes
    ----------
    named : bool
        Whether features have names. Features of examples and DataFrames have names, features of
        matrices and arrays have numbers. The first item decides.

    Examples
    --------
    >>> clicks = [({"age": 31, "city": "Rome"}, 1), ({"city": "Oslo"}, -1)]
    >>> for block in IteratorSource(clicks).blocks(names=True):
    ...     print(block.labels, block.native.starts, sorted(n for _, n in block.native.names))
    [ 1. -1.] [0 2 3] [b'age', b'city^Oslo', b'city^Rome']
    """

    size: int | None = None

    def __init__(
        self,
        items: Iterable[Any] | Callable[[], Iterable[Any]],
        bits: int | None = None,
        name: str = "iterator",
    ):
        if not callable(items) and not isinstance(items, Iterable):
            raise ParameterError(
                f"expected an iterator or a callable that returns one; got {type(items).__name__}"
            )
        self._items = items
        self.bits = bits
        self.name = name
        self._begun: Iterator[Any] | None = None  # an iterator whose first item was peeked at
        self.named = self._peek()

    def _peek(self) -> bool:
        """Tell whether features of the first item have names, without losing the item."""
        items = self._opened()
        first = list(islice(items, 1))
        if callable(self._items) or items is self._items:
            self._begun = chain(first, items)
        return any(_has_names(item) for item in first)

    def _opened(self) -> Iterator[Any]:
        """Return an iterator over all items."""
        if self._begun is not None:
            items, self._begun = self._begun, None
            return items
        return iter(self._items() if callable(self._items) else self._items)

    @property
    def rereadable(self) -> bool:
        """Whether the rows can be read more than once."""
        return callable(self._items) or not isinstance(self._items, Iterator)

    def blocks(
        self, after: Position | None = None, dtype: str = "float32", names: NamesWanted = False
    ) -> Iterator[Block]:
        """Yield the rows as blocks: one per batch, or one per 1000 examples; see `Source.blocks`.

        `names` may be an array: the keys of the features that need names.
        """
        after = after or Position()
        items = self._opened()
        for _ in islice(items, after.offset):
            pass
        item, rows = after.offset, after.line
        for group in _grouped(items):
            example = _is_example(group[0])
            what = "example" if example else "batch"
            if not self.named and _has_names(group[0]):
                raise DataError(
                    f"{self.name}: {what} {item + 1}: its features have names, but the features "
                    f"of the first batch are numbered"
                )
            try:
                fields = (
                    self._of_examples(group, dtype, names)
                    if example
                    else self._of_batch(group[0], dtype, names)
                )
            except BadCells as bad:
                row = int(bad.rows[0])
                place = f"example {item + row + 1}" if example else f"batch {item + 1}, row {row}"
                raise DataError(
                    f"{self.name}: {place}, feature '{bad.column}': {bad.what(0)}"
                ) from None
            except (DataError, ParameterError) as error:
                place = f"{self.name}: {what} {item + 1}"
                if isinstance(error, Explained):
                    raise error.at(place) from None
                raise type(error)(f"{place}: {error}") from None
            count = len(fields["starts"]) - 1
            item, rows = item + len(group), rows + count
            text_labels = fields.pop("text_labels")
            native = _core.make_block(**fields, first_line=rows - count + 1)
            yield Block(native, self.name, Position(0, item, rows), text_labels)

    def _of_batch(self, item: Any, dtype: str, names: NamesWanted) -> dict[str, Any]:
        X, y, weights = _unpacked(item)
        if is_sparse(X):
            refuse_malformed(X)
            fields = self._of_csr(X.tocsr(), dtype)
        elif _is_frame(X):
            table = arrow_table(X)
            columns: list[FeatureEntries] = []
            for name in table.column_names:
                columns += entries_of_column(name, single(table.column(name)), False, 1, False)
            fields = rows_of_entries(columns, table.num_rows, dtype, self.bits, names)
        else:
            fields = self._of_array(X, dtype)
        rows = len(fields["starts"]) - 1
        return {**fields, **checked_targets(y, weights, rows)}

    def _of_csr(self, X: Any, dtype: str) -> dict[str, Any]:
        starts = np.asarray(X.indptr, np.int64)
        rows = np.repeat(np.arange(X.shape[0]), np.diff(starts))
        return self._numbered(starts, rows, np.asarray(X.indices), X.data, X.shape[1], dtype)

    def _of_array(self, X: Any, dtype: str) -> dict[str, Any]:
        X = np.asarray(X)
        if X.ndim != 2:
            raise DataError(f"X must have rows and columns; its shape is {X.shape}")
        if X.dtype.kind not in "fiub":
            raise DataError(f"X must hold numbers; its type is {X.dtype}")
        rows, columns = np.nonzero(X)
        starts = np.zeros(len(X) + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=len(X)), out=starts[1:])
        return self._numbered(starts, rows, columns, X[rows, columns], X.shape[1], dtype)

    def _numbered(
        self,
        starts: NDArray[np.int64],
        rows: NDArray[np.intp],
        columns: NDArray[Any],
        values: NDArray[Any],
        width: int,
        dtype: str,
    ) -> dict[str, Any]:
        with np.errstate(over="ignore"):
            cast = np.asarray(values).astype(dtype)
        for i in np.flatnonzero(~np.isfinite(cast))[:1]:
            raise DataError(
                f"row {rows[i]}, column {columns[i]}: {values[i]} is not a finite {dtype}"
            )
        keys = fold(columns.astype(np.int64).view(np.uint64), self.bits)
        return {
            "starts": starts,
            "keys": keys.view(np.int64),
            "values": cast,
            "columns": width if self.bits is None else 1 << self.bits,
        }

    def _of_examples(self, group: list[Any], dtype: str, names: NamesWanted) -> dict[str, Any]:
        rows: list[int] = []
        shown: list[bytes] = []
        values: list[float] = []
        labels, weights = [], []
        for row, item in enumerate(group):
            features, label, weight = _unpacked(item)
            labels.append(np.nan if label is None else label)
            weights.append(weight)
            for name, value in features.items():
                for feature, number in features_of(row, name, value):
                    rows.append(row)
                    shown.append(feature)
                    values.append(number)
        entries = FeatureEntries(
            np.array(rows, np.int64),
            _keys(shown),
            np.array(values, np.float64),
            lambda at: [shown[i] for i in at],
        )
        bad = np.flatnonzero(~np.isfinite(entries.values))
        if len(bad):
            name = shown[bad[0]].decode("utf-8", "backslashreplace")
            raise BadCells(
                entries.rows[bad], name, lambda i: f"{values[bad[i]]} is not a finite number"
            )
        given = [1.0 if weight is None else weight for weight in weights]
        none = all(weight is None for weight in weights)
        return {
            **rows_of_entries([entries], len(group), dtype, self.bits, names),
            **checked_targets(labels, None if none else given, len(group)),
        }


def _is_example(item: Any) -> bool:
    return isinstance(item, Mapping) or (
        isinstance(item, tuple | list) and len(item) > 0 and isinstance(item[0], Mapping)
    )


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") or hasattr(X, "column_names")


def _has_names(item: Any) -> bool:
    """Tell whether the features of an example or a batch have names."""
    X = item[0] if isinstance(item, tuple | list) and len(item) else item
    return _is_example(item) or _is_frame(X)


def _grouped(items: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield examples in groups, and batches one by one."""
    group: list[Any] = []
    for item in items:
        if _is_example(item):
            group.append(item)
            if len(group) == EXAMPLES:
                yield group
                group = []
        else:
            if group:
                yield group
                group = []
            yield [item]
    if group:
        yield group


def _unpacked(item: Any) -> tuple[Any, Any, Any]:
    """Return features, labels and weights of an item; None for those that it does not have."""
    if not isinstance(item, tuple | list):
        return item, None, None
    if not 1 <= len(item) <= 3:
        raise DataError(f"expected (X, y) or (X, y, weights); found a tuple of length {len(item)}")
    X, y, weights = (*item, None, None)[:3]
    return X, y, weights


def _keys(shown: list[bytes]) -> NDArray[np.uint64]:
    keys = hashed(*join(shown))
    for i, name in enumerate(shown):
        if name.isdigit():
            keys[i] = key_of(name)
    return keys


def checked_targets(y: Any, weights: Any, rows: int) -> dict[str, Any]:
    """Return labels, as numbers or as strings, and weights."""
    try:
        labels = np.full(rows, np.nan) if y is None else np.asarray(y)
    except ValueError:  # lists of different lengths
        raise DataError("labels must be all numbers, or all strings") from None
    _check_length("labels", labels, rows)
    text = None
    if labels.dtype.kind not in "fiub":
        labels = np.asarray(y, dtype=object)
        if all(isinstance(label, str) for label in labels):
            text = labels
        else:
            try:
                labels = labels.astype(np.float64)
            except (TypeError, ValueError):
                raise DataError("labels must be all numbers, or all strings") from None
    if weights is not None:
        weights = np.ascontiguousarray(weights, np.float64)
        _check_length("weights", weights, rows)
        for i in np.flatnonzero(~((weights >= 0) & np.isfinite(weights)))[:1]:
            raise DataError(f"row {i}: a weight must be finite and 0 or more; found {weights[i]}")
    numeric = None if text is not None else np.ascontiguousarray(labels, np.float64)
    if numeric is not None:
        for i in np.flatnonzero(np.isinf(numeric))[:1]:
            raise DataError(f"row {i}: the label is {numeric[i]}")
    return {"labels": numeric, "text_labels": text, "weights": weights}


def _check_length(what: str, given: NDArray[Any], rows: int) -> None:
    if given.shape != (rows,):
        raise DataError(f"expected {rows} {what}, one for each row; found {given.shape}")
