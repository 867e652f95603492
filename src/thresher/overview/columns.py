"""What a column of a table holds: counted batch by batch, in bounded memory."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.columns import arrow, integers, is_number, is_string, plain, strings
from thresher.data.row_folds import mixed
from thresher.overview.column_types import is_list, is_usable
from thresher.overview.distinct import DistinctCount

__all__ = ["MISSING", "TRUTHS", "ColumnCounter", "cell_strings", "filled", "shown"]

MISSING = ("", "NA", "N/A", "n/a", "na", "null", "NULL", "None", "none", "nan", "NaN", "NAN", "?",
           "--", "missing", "#N/A", "NaT")  # fmt: skip
TRUTHS = ("true", "True", "TRUE", "false", "False", "FALSE")
_NUMBER = r"^\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*$"
_DATE = (
    r"^\s*(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|"
    r"\d{1,2}[- ](?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*[- ]\d{2,4})"
    r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?(?:\s*(?:Z|[-+]\d{2}:?\d{2}|[AP]M))?\s*$"
)
_DASH = 0.3  # a smaller share of "-" is of missing cells, a larger one of a value
_LONGEST_DATE = 40  # letters


class ColumnCounter:
    """Counts the cells of one column.

    Parameters
    ----------
    name : str
    position : int
        From 0.
    columns : int
        Number of columns of the table: of many, less is kept for each.

    Attributes
    ----------
    rows, missing, numbers, truths, dates, words : int
        Cells of each sort; `words` are those that are none of the others.
    missing_words : Counter
        How missing cells are written; None is written for nulls of typed tables.
    values : Counter or None
        Rows of each different value; None if there are too many.
    sample : list of str
        The first cells that are not missing and not numbers.
    """

    def __init__(self, name: str, position: int, columns: int = 1) -> None:
        self.name, self.position = name, position
        self._most_values = _share(1 << 20, columns, 64, 4096)  # that are counted one by one
        self._most_samples = _share(1 << 18, columns, 20, 4000)  # cells that are kept
        self.type = ""  # type of the column in a typed table
        self.usable = True  # whether cells of this type can be features
        self.rows = self.missing = self.numbers = self.truths = self.dates = self.words = 0
        self.lists = self.items = 0
        self.missing_words: Counter[str] = Counter()
        self.values: Counter[Any] | None = Counter()
        self.distinct = DistinctCount(_share(1 << 22, columns, 1 << 12, 1 << 16))
        self.sample: list[str] = []
        self.letters = self.tokens = 0  # of all words
        self.first_words: list[int] = []  # rows of the first cells that are words
        self.infinite = 0
        self.low, self.high, self.largest, self.smallest = np.inf, -np.inf, 0.0, np.inf
        self.total = 0.0
        self.whole = True  # whether all numbers are whole
        self.signs = False  # whether a number is written with leading zeros or a plus sign
        self.step: float | None = None  # constant difference of consecutive numbers
        self._last: float | None = None

    @property
    def dashes(self) -> int:
        """Cells "-" that are missing values: a few, and not the opposite of "+"."""
        if self.values is None or "-" not in self.values or "+" in self.values:
            return 0
        found = self.values["-"]
        return found if found <= _DASH * (self.rows - self.missing) else 0

    def add(self, column: Any) -> NDArray[np.uint64]:
        """Add the next cells; return a hash of each cell."""
        pa = arrow("reading tables")
        kind = column.type
        types = pa.types
        if not is_string(kind) and not types.is_dictionary(kind):
            self.type = str(kind)
        if types.is_dictionary(kind) and is_string(kind.value_type):
            self.type = "dictionary"
            return self._add_strings(column)
        if is_string(kind):
            found = self._add_fast(column)
            return self._add_strings(column.dictionary_encode()) if found is None else found
        if types.is_dictionary(kind):
            return self.add(column.dictionary_decode())
        if types.is_boolean(kind):
            self.truths += len(column) - column.null_count
            return self._add_numbers(column.cast(pa.int8()), counted=False)
        if is_number(kind) or types.is_decimal(kind):
            return self._add_numbers(column.cast(pa.float64(), safe=False))
        if types.is_date(kind) or types.is_timestamp(kind):
            self.dates += len(column) - column.null_count
            ticks = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
            self._keep(column)
            return self._add_numbers(ticks, counted=False)
        self.usable = is_usable(kind)
        if is_list(kind) or not self.usable:
            return self._add_lists(column)
        return self._add_strings(shown(column).dictionary_encode())

    def _add_fast(self, column: Any) -> NDArray[np.uint64] | None:
        """Add strings that are all numbers, as in the rows before; None if they are not."""
        pa = arrow("reading tables")
        if self.values is not None or self.numbers < 0.9 * self.rows:
            return None
        try:
            numbers = column.cast(pa.float64())
        except pa.ArrowInvalid:
            return None
        return self._add_numbers(numbers, null="")

    # ---- strings ---------------------------------------------------------------------------------

    def _add_strings(self, encoded: Any) -> NDArray[np.uint64]:
        """Add strings as indices into different values: only the values are looked at."""
        pa = arrow("reading tables")
        pc = pa.compute
        values = encoded.dictionary.cast(pa.large_string())
        null = _mask(encoded.indices.is_null())
        places = plain(filled(encoded.indices), np.int64)
        counts = np.bincount(places[~null], minlength=len(values))
        before = self.rows
        self.rows += len(places)
        nulls = int(null.sum())
        self.missing += nulls
        self.missing_words.update({"": nulls} if nulls else {})
        hashes = _hashed(values)
        trimmed = pc.utf8_trim_whitespace(values)
        if not len(values):
            return np.zeros(len(places), np.uint64)
        used = counts > 0
        lacks = _mask(pc.is_in(trimmed, cell_strings(MISSING))) & used
        if lacks.any():
            self.missing += int(counts[lacks].sum())
            for at in np.flatnonzero(lacks).tolist():
                self.missing_words[trimmed[at].as_py()] += int(counts[at])
        present = used & ~lacks
        is_float, floats = _floats(trimmed, present)
        if is_float.any():
            hashes[is_float] = _hashed_numbers(floats[is_float])
            self._count_numbers(floats[is_float], counts[is_float])
            self._steps(floats, is_float, places, null)
        self.distinct.add(hashes[present])
        rest = present & ~is_float
        if rest.any():
            self._count_words(values, trimmed, rest, counts, places, null, before)
        self._count_values(trimmed, present, counts, is_float, floats)
        found: NDArray[np.uint64] = hashes[places]
        found[null] = 0
        return found

    def _count_words(
        self,
        values: Any,
        trimmed: Any,
        rest: NDArray[np.bool_],
        counts: NDArray[np.int64],
        places: NDArray[np.int64],
        null: NDArray[np.bool_],
        before: int,
    ) -> None:
        """Count the values that are neither missing nor numbers."""
        pa = arrow("reading tables")
        pc = pa.compute
        own = _picked(trimmed, rest)
        times = counts[rest]
        truths = _mask(pc.is_in(own, cell_strings(TRUTHS)))
        letters = int(plain(pc.utf8_length(own), np.int64) @ times)
        dates = np.zeros(len(truths), bool)
        if letters <= _LONGEST_DATE * int(times.sum()):
            dates = _mask(pc.match_substring_regex(own, _DATE)) & ~truths
        words = ~truths & ~dates
        self.truths += int(times[truths].sum())
        self.dates += int(times[dates].sum())
        self.words += int(times[words].sum())
        self.letters += letters
        spaces = plain(pc.count_substring(own, " "), np.int64)
        self.tokens += int((spaces + 1) @ times)
        if len(self.sample) < self._most_samples or len(self.first_words) < 3:
            rows = np.flatnonzero(~null & rest[places])[: self._most_samples]
            self.first_words += (before + rows[:3]).tolist()
            more = values.take(integers(places[rows[: self._most_samples - len(self.sample)]]))
            self.sample += [str(cell) for cell in more.to_pylist()]

    def _count_values(
        self,
        trimmed: Any,
        present: NDArray[np.bool_],
        counts: NDArray[np.int64],
        is_float: NDArray[np.bool_],
        floats: NDArray[np.float64],
    ) -> None:
        """Count the rows of each value, as long as there are few values."""
        if self.values is None:
            return
        if int(present.sum()) > self._most_values:
            self.values = None
            return
        words = _picked(trimmed, present).to_pylist()
        for word, times, number, value in zip(
            words, counts[present].tolist(), is_float[present].tolist(), floats[present].tolist(),
            strict=True,
        ):  # fmt: skip
            self.values[value if number else word] += times
        if len(self.values) > self._most_values:
            self.values = None

    # ---- numbers ---------------------------------------------------------------------------------

    def _add_numbers(
        self, column: Any, counted: bool = True, null: str = "null"
    ) -> NDArray[np.uint64]:
        """Add numbers; `null` is how nulls are written, `counted` whether they are numbers."""
        lost = _mask(column.is_null())
        exact = plain(filled(column), np.float64)
        lacks = lost | np.isnan(exact)
        self.rows += len(exact)
        self.missing += int(lacks.sum())
        if lost.any():
            self.missing_words[null] += int(lost.sum())
        if (lacks & ~lost).any():
            self.missing_words["nan"] += int((lacks & ~lost).sum())
        hashes = _hashed_numbers(exact)
        present = exact[~lacks]
        self.distinct.add(hashes[~lacks])
        if self.values is not None:
            different, counts = np.unique(present, return_counts=True)
            if len(different) > self._most_values or len(self.values) > self._most_values:
                self.values = None
            else:
                self.values.update(dict(zip(different.tolist(), counts.tolist(), strict=True)))
        if counted and len(present):
            self._count_numbers(present)
            self._steps(exact, ~lacks, np.arange(len(exact)), lost)
        hashes[lacks] = 0
        return hashes

    def _count_numbers(
        self, values: NDArray[np.float64], counts: NDArray[np.int64] | None = None
    ) -> None:
        """Count numbers, each as often as `counts` says."""
        if counts is None:
            counts = np.ones(len(values), np.int64)
        finite = np.isfinite(values)
        self.numbers += int(counts.sum())
        if not finite.all():
            self.infinite += int(counts[~finite].sum())
            values, counts = values[finite], counts[finite]
        if not len(values):
            return
        self.low, self.high = min(self.low, values.min()), max(self.high, values.max())
        self.total += float(values @ counts)
        sizes = np.abs(values[values != 0])
        if len(sizes):
            self.largest = max(self.largest, float(sizes.max()))
            self.smallest = min(self.smallest, float(sizes.min()))
        self.whole = self.whole and bool(np.all(values == np.floor(values)))

    def _steps(
        self,
        values: NDArray[np.float64],
        usable: NDArray[np.bool_],
        places: NDArray[np.int64],
        null: NDArray[np.bool_],
    ) -> None:
        """Follow the difference of consecutive numbers; 0 once it changed."""
        if self.step == 0.0 or not self.whole:
            return
        rows = places[~null & usable[places]] if len(places) else places
        series = values[rows]
        if self._last is not None:
            series = np.concatenate([[self._last], series])
        if len(series) < 2:
            return
        with np.errstate(invalid="ignore", over="ignore"):
            steps = np.diff(series)
        first = self.step if self.step is not None else float(steps[0])
        self.step = first if first and bool(np.all(steps == first)) else 0.0
        self._last = float(series[-1])

    # ---- lists -----------------------------------------------------------------------------------

    def _add_lists(self, column: Any) -> NDArray[np.uint64]:
        """Add cells of lists or maps, or of a type that cannot be used."""
        pa = arrow("reading tables")
        null = _mask(column.is_null())
        self.rows += len(column)
        self.missing += int(null.sum())
        if null.any():
            self.missing_words["null"] += int(null.sum())
        cells = shown(column)
        if self.usable:
            self.lists += int((~null).sum())
        if self.usable and not pa.types.is_map(column.type):
            items = pa.compute.list_flatten(column)
            self.items += len(items)
            if self.values is not None:
                for one in pa.compute.value_counts(items):
                    self.values[one["values"].as_py()] += one["counts"].as_py()
                if len(self.values) > self._most_values:
                    self.values = None
        hashes = _hashed(_present_cells(cells).cast(pa.large_string()))
        self.distinct.add(hashes[~null])
        self._keep(column)
        hashes[null] = 0
        return hashes

    def _keep(self, column: Any) -> None:
        if len(self.sample) < 20:
            self.sample += [str(cell) for cell in column[:20].drop_null().to_pylist()]


def _share(all_of: int, columns: int, least: int, most: int) -> int:
    return max(min(all_of // max(columns, 1), most), least)


def cell_strings(words: tuple[str, ...]) -> Any:
    """Return strings as an Arrow array of the type of cells."""
    pa = arrow("reading tables")
    return strings(words).cast(pa.large_string())


def filled(column: Any) -> Any:
    """Return numbers with 0 in place of nulls; `Array.fill_null` imports pandas for its value."""
    if not column.null_count:
        return column
    zero = integers(np.zeros(1, np.int64)).cast(column.type)
    return arrow("reading tables").compute.fill_null(column, zero[0])


def _present_cells(cells: Any) -> Any:
    """Return strings with an empty one in place of nulls."""
    return arrow("reading tables").compute.fill_null(cells, strings([""])[0])


def _mask(column: Any) -> NDArray[np.bool_]:
    return plain(column, np.int64).astype(bool)


def _picked(values: Any, mask: NDArray[np.bool_]) -> Any:
    return values.take(integers(np.flatnonzero(mask)))


def _hashed(values: Any) -> NDArray[np.uint64]:
    """Return well mixed hashes of large strings without nulls."""
    if not len(values):
        return np.zeros(0, np.uint64)
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    held = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return mixed(_core.hash_strings(np.ascontiguousarray(ends), held, b"c^"))


def _hashed_numbers(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    return mixed((values + 0.0).view(np.uint64))


def _floats(
    trimmed: Any, present: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which of the present values are numbers, and the numbers."""
    pa = arrow("reading tables")
    floats = np.zeros(len(trimmed))
    try:
        floats[present] = plain(_picked(trimmed, present).cast(pa.float64()), np.float64)
    except pa.ArrowInvalid:
        found = _mask(pa.compute.match_substring_regex(trimmed, _NUMBER)) & present
        if found.any():
            written = pa.compute.replace_substring_regex(
                _picked(trimmed, found), pattern=r"^\+", replacement=""
            )
            floats[found] = plain(written.cast(pa.float64()), np.float64)
        return found, floats
    return present.copy(), floats


def shown(column: Any) -> Any:
    """Return a column of any type as strings."""
    pa = arrow("reading tables")
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return strings(["" if cell is None else str(cell) for cell in column.to_pylist()])
