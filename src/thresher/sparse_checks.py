"""A check of sparse matrices before SciPy converts them: SciPy does not check its own arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import DataError


def refuse_malformed(X: Any, *, rows_checked: bool = False) -> None:
    """Raise DataError if the arrays of a sparse matrix point outside of it; ignore all else.

    To convert such a matrix, or to take rows of it, SciPy reads and writes other memory.

    Parameters
    ----------
    X : sparse matrix, or anything else
    rows_checked : bool
        The core gets a CSR matrix as it is, and checks it: it is not checked here.
    """
    kind = getattr(X, "format", None)
    if not hasattr(X, "tocsr") or X.ndim != 2 or (rows_checked and kind == "csr"):
        return
    rows, columns = X.shape
    if kind == "csr":
        _check_lines(X, ("row", rows), ("feature", columns))
    elif kind == "csc":
        _check_lines(X, ("feature", columns), ("row", rows))
    elif kind == "bsr":
        high, wide = X.blocksize
        _check_lines(X, ("row of blocks", rows // high), ("column of blocks", columns // wide))
    elif kind == "coo":
        for numbers, what, size in ((X.row, "row", rows), (X.col, "feature", columns)):
            _check_lengths(numbers, X.data)
            place = _first_outside(numbers, size)
            if place is not None:
                raise DataError(f"value {place}: {_outside(what, numbers[place], size)}")
    elif kind == "lil":
        _check_lists(X, columns)


def _check_lists(X: Any, columns: int) -> None:
    """Check a LIL matrix, which has a list of features and one of values for each row."""
    for row, (numbers, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if len(numbers) != len(values):
            raise DataError(f"row {row} has {len(numbers)} indices and {len(values)} values")
        for number in (min(numbers), max(numbers)) if numbers else ():
            if not 0 <= number < columns:
                raise DataError(f"row {row}: {_outside('feature', number, columns)}")


def _check_lines(X: Any, line: tuple[str, int], across: tuple[str, int]) -> None:
    """Check rows of a CSR matrix, or columns of a CSC matrix: `line` is the name and the number."""
    starts, numbers = X.indptr, X.indices
    _check_lengths(numbers, X.data)
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


def _check_lengths(numbers: NDArray[Any], values: NDArray[Any]) -> None:
    if len(numbers) != len(values):
        raise DataError(f"a sparse matrix has {len(numbers)} indices and {len(values)} values")


def _first_outside(numbers: NDArray[Any], size: int) -> int | None:
    """Return the place of the first number that is not in 0..size-1; negative ones are large."""
    unsigned = numbers.view(numbers.dtype.str.replace("i", "u"))  # in the same byte order
    if not len(unsigned) or int(unsigned.max()) < size:
        return None
    return int(np.argmax(unsigned >= size))


def _outside(what: str, number: Any, size: int) -> str:
    return f"{what} number {number} is outside 0..{size - 1}"
