"""A check of sparse matrices before SciPy converts them: SciPy does not check its own arrays."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import DataError

_INDICES = (np.dtype(np.int32), np.dtype(np.int64))  # types that the core takes


def refuse_malformed(X: Any, *, rows_checked: bool = False) -> None:
    """Raise DataError if the arrays of a sparse matrix point outside of it; ignore all else.

    To convert such a matrix, or to take rows of it, SciPy reads and writes other memory.

    Parameters
    ----------
    X : sparse matrix of SciPy, or anything else
    rows_checked : bool
        The core gets a CSR matrix as it is, and checks it: only the types and the lengths of its
        arrays are checked here.
    """
    scipy = sys.modules.get("scipy.sparse")
    if scipy is None or not scipy.issparse(X) or X.ndim != 2:
        return
    if rows_checked and X.format == "csr" and _has_arrays(X):
        return
    try:
        _check(X)
    except DataError:
        raise
    except (AttributeError, IndexError, OverflowError, TypeError, ValueError) as error:
        raise DataError(f"the arrays of a {X.format} matrix cannot be used: {error}") from error


def _has_arrays(X: Any) -> bool:
    """Tell whether the arrays of a CSR matrix have types and lengths that the core takes."""
    numbers, starts = X.indices, X.indptr
    lines = numbers.ndim == starts.ndim == X.data.ndim == 1
    types = numbers.dtype in _INDICES and starts.dtype in _INDICES
    return lines and types and len(numbers) == len(X.data)


def _check(X: Any) -> None:
    kind, (rows, columns) = X.format, X.shape
    if kind == "csr":
        _check_lines(X, ("row", rows), ("feature", columns))
        for numbers in (X.indices, X.indptr):
            if numbers.dtype not in _INDICES:
                raise DataError(f"indices of a CSR matrix are int32 or int64; got {numbers.dtype}")
    elif kind == "csc":
        _check_lines(X, ("feature", columns), ("row", rows))
    elif kind == "bsr":
        high, wide = X.data.shape[1:] if X.data.ndim == 3 else (0, 0)
        if not high or not wide or rows % high or columns % wide:
            shape = X.data.shape[1:]
            raise DataError(f"blocks of the shape {shape} do not fill {rows} x {columns} values")
        _check_lines(X, ("row of blocks", rows // high), ("column of blocks", columns // wide))
    elif kind == "coo":
        for numbers, what, size in ((X.row, "row", rows), (X.col, "feature", columns)):
            _check_values(numbers, X.data)
            _check_numbers(numbers, what, size)
    elif kind == "lil":
        _check_lists(X, rows, columns)
    elif kind == "dok":
        places = np.array(list(X.keys()), np.int64).reshape(-1, 2)
        for at, what, size in ((0, "row", rows), (1, "feature", columns)):
            _check_numbers(places[:, at], what, size)
    elif kind == "dia":
        _check_values(X.offsets, X.data, 2)


def _check_lists(X: Any, rows: int, columns: int) -> None:
    """Check a LIL matrix, which has a list of features and one of values for each row."""
    if not len(X.rows) == len(X.data) == rows:
        raise DataError(f"expected {rows} lists; found {len(X.rows)} and {len(X.data)}")
    for row, (numbers, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if not (isinstance(numbers, list) and isinstance(values, list)):
            raise DataError(f"row {row} is not a list of indices and one of values")
        if len(numbers) != len(values):
            raise DataError(f"row {row} has {len(numbers)} indices and {len(values)} values")
        for number in (min(numbers), max(numbers)) if numbers else ():
            if not 0 <= number < columns:
                raise DataError(f"row {row}: {_outside('feature', number, columns)}")


def _check_lines(X: Any, line: tuple[str, int], across: tuple[str, int]) -> None:
    """Check rows of a CSR matrix, or columns of a CSC matrix: `line` is the name and the number."""
    starts, numbers = X.indptr, X.indices
    _check_values(numbers, X.data, 3 if X.format == "bsr" else 1)
    _check_type(starts)
    falls = np.flatnonzero(starts[1:] < starts[:-1])
    if len(starts) != line[1] + 1:
        raise DataError(f"expected {line[1] + 1} {line[0]} starts; found {len(starts)}")
    if starts[0] != 0 or len(falls):
        first = 0 if starts[0] != 0 else int(falls[0])
        raise DataError(f"{line[0]} {first}: {line[0]} starts must not decrease and begin at 0")
    if starts[-1] > len(numbers):
        raise DataError(
            f"{line[0]} starts end at {starts[-1]}, and there are {len(numbers)} values"
        )
    place = _first_outside(numbers[: starts[-1]], across[1])
    if place is not None:
        at = int(np.searchsorted(starts, place, side="right")) - 1
        raise DataError(f"{line[0]} {at}: {_outside(across[0], numbers[place], across[1])}")


def _check_numbers(numbers: NDArray[Any], what: str, size: int) -> None:
    """Check the rows or the features of values."""
    place = _first_outside(numbers, size)
    if place is not None:
        raise DataError(f"value {place}: {_outside(what, numbers[place], size)}")


def _check_values(numbers: NDArray[Any], values: NDArray[Any], dimensions: int = 1) -> None:
    """Check the lengths and the dimensions of the arrays of indices and values."""
    _check_type(numbers)
    if values.ndim != dimensions:
        raise DataError(f"the values of a sparse matrix have the shape {values.shape}")
    if len(numbers) != len(values):
        raise DataError(f"a sparse matrix has {len(numbers)} indices and {len(values)} values")


def _check_type(numbers: NDArray[Any]) -> None:
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise DataError(
            f"the indices of a sparse matrix must be whole numbers in one dimension; found "
            f"{numbers.dtype} of the shape {numbers.shape}"
        )


def _first_outside(numbers: NDArray[Any], size: int) -> int | None:
    """Return the place of the first number that is not in 0..size-1; negative ones are large."""
    unsigned = numbers.view(numbers.dtype.str.replace("i", "u"))  # in the same byte order
    if not len(unsigned) or int(unsigned.max()) < size:
        return None
    return int(np.argmax(unsigned >= size))


def _outside(what: str, number: Any, size: int) -> str:
    return f"{what} number {number} is outside 0..{size - 1}"
