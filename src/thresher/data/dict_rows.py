"""Rows given as dicts {name: value} as a source, and for a model that was trained before."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thresher.data.arrays import is_sparse
from thresher.data.bad_lines import BadCells
from thresher.data.dict_features import features_of
from thresher.data.features import key_of
from thresher.data.parts import IteratorPart
from thresher.data.read_options import ReadOptions
from thresher.data.source import Source
from thresher.errors import DataError, ParameterError

__all__ = ["DictReading", "DictRows", "is_dict_rows", "plain"]

_ASCII_WORD = re.compile("[0-9a-z_]+")


def is_dict_rows(X: Any) -> bool:
    """Tell whether X is a dict, or a list or tuple of dicts.

    Examples
    --------
    >>> is_dict_rows({"a": 1.0}), is_dict_rows([{"a": 1.0}]), is_dict_rows([[1.0]])
    (True, True, False)
    """
    if isinstance(X, list | tuple):
        return len(X) > 0 and isinstance(X[0], Mapping)
    return isinstance(X, Mapping) and not is_sparse(X)  # a DOK matrix is a mapping


def plain(row: Any) -> dict[Any, Any] | None:
    """Return a row in the types that the core reads, with the same features.

    Numbers of NumPy, tuples, lists of numbers, and other mappings are replaced.

    Returns
    -------
    dict or None
        None if the row has other types, or needs no change.

    Examples
    --------
    >>> plain({"a": np.float32(0.5), "b": [1, 2], "c": [0.5, 1.0]})
    {'a': 0.5, 'b': ['1', '2'], 'c^0': 0.5, 'c^1': 1.0}
    """
    if not isinstance(row, Mapping):
        return None
    found: dict[Any, Any] = {}
    try:
        for name, value in row.items():
            if isinstance(value, np.generic):
                found[name] = value.item()
            elif not isinstance(value, list | tuple):
                found[name] = value
            elif not isinstance(name, str):
                return None
            else:
                features = [(f.decode(), number) for f, number in features_of(0, name, value)]
                if all(number == 1.0 for _, number in features):
                    found[name] = [feature[len(name) + 1 :] for feature, _ in features]
                    continue
                if any(feature in row for feature, _ in features):
                    return None
                found.update(features)
    except BadCells:
        return None
    same = isinstance(row, dict) and found.keys() == row.keys()
    return None if same and all(found[name] is row[name] for name in found) else found


# ---- a source of rows ----------------------------------------------------------------------------


class DictRows(Source):
    """Rows given as dicts, as a source.

    Parameters
    ----------
    rows : dict or sequence of dicts
    labels : sequence, optional
        One for each row.
    weights : sequence of float, optional
        One for each row.
    reading : DictReading, optional
        How a model was trained, which these rows are for.

    Examples
    --------
    >>> rows = DictRows([{"age": 31, "city": "Rome"}, {"city": "Oslo"}], [1, -1])
    >>> next(rows.blocks()).labels.tolist()
    [1.0, -1.0]
    """

    keeps_names = True  # names of features are kept as rows come, not looked up afterwards

    def __init__(
        self,
        rows: Any,
        labels: Any = None,
        weights: Any = None,
        reading: DictReading | None = None,
    ) -> None:
        reading = reading or DictReading()
        rows = [rows] if isinstance(rows, Mapping) else list(rows)
        for i, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise DataError(f"rows: example {i + 1} is not a dict: {type(row).__name__}")
        prepared = map(reading.prepared, rows)
        columns = [_one_each("labels", labels, len(rows)), _one_each("weights", weights, len(rows))]
        options = ReadOptions(bits=reading.bits)
        part = IteratorPart(list(zip(prepared, *columns, strict=True)), options, "rows")
        super().__init__([part], options)


def _one_each(what: str, given: Any, rows: int) -> list[Any]:
    if given is None:
        return [None] * rows
    if np.ndim(given) == 0:
        given = [given]
    items = given.tolist() if hasattr(given, "tolist") else list(given)
    if len(items) != rows:
        raise DataError(f"expected {rows} {what}, one for each row; found {len(items)}")
    if any(isinstance(item, list | tuple | dict | set) for item in items):
        raise DataError(f"rows given as dicts need {what} with one number or string each")
    return items


# ---- rows for a trained model --------------------------------------------------------------------


@dataclass(frozen=True)
class DictReading:
    """How dicts become rows for a model that was trained before, on dicts or on something else.

    Attributes
    ----------
    bits : int or None
        The bits of keys that are used.
    text : frozenset of str
        Columns whose strings are split into words.
    ngrams : int
        Sequences of up to this many words are features, too.
    kinds : mapping of str to {"number", "truth", "string"}
        The kinds of columns of the table that the model was trained on.
    left_out : frozenset of str
        Columns that are not features: the label, the weight, and ignored ones.
    numbered : mapping of str to int
        The number of each named column, if the model was trained on a matrix with named columns.
    missing : {"zero", "indicator"} or None
        What None and NaN are if the model was trained on a table: no feature, or "name^missing", as
        its missing cells. Without it, None is no feature, and NaN is an error.
    """

    bits: int | None = None
    text: frozenset[str] = frozenset()
    ngrams: int = 1
    kinds: Mapping[str, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    numbered: Mapping[str, int] = field(default_factory=dict)
    missing: str | None = None

    @classmethod
    def of(cls, reading: Mapping[str, Any], names: Mapping[int, str] | None = None) -> DictReading:
        """Return it for the options of reading that a model or a state has.

        Parameters
        ----------
        reading : mapping
            The parameters of a model, or the attribute `reading` of a state.
        names : mapping, optional
            The names of the model's features.
        """
        if _listed(reading, "interactions"):
            raise ParameterError(
                "the model was trained with interactions of namespaces, which dicts do not have",
                hint="give it rows of scan",
            )
        bits: int | None = reading.get("bits")
        columns = (reading.get("label"), reading.get("weight"), *_listed(reading, "ignore"))
        kinds = reading.get("kinds") or {}
        missing = reading.get("missing")
        return cls(
            bits=bits,
            text=frozenset(_listed(reading, "text")),
            ngrams=int(reading.get("ngrams") or 1),
            kinds=json.loads(kinds) if isinstance(kinds, str) else kinds,
            left_out=frozenset(column for column in columns if column),
            numbered=_numbered(names or {}, bits),
            missing=missing if kinds and missing in ("zero", "indicator") else None,
        )

    @property
    def converts(self) -> bool:
        """Whether `prepared` changes rows that have no names of columns of a matrix."""
        return bool(self.text or self.kinds or self.left_out)

    def prepared(self, row: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """Return a row with the names and values that the model's training data had."""
        if self.converts:
            row = self.converted(row)
        return self._with_numbers(row) if self.numbered else row

    def converted(self, row: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return a row whose values have the kinds of the columns of a table."""
        found = {}
        for name, value in row.items():
            if name in self.left_out:
                continue
            if name in self.text and isinstance(value, str):
                value = _words(value, self.ngrams)
            elif name in self.kinds and not _is_missing(value):
                value = _typed(name, value, self.kinds[name])
            if self.missing and _is_missing(value):
                # The word "missing" makes the feature "name^missing", as a table has it.
                value = "missing" if self.missing == "indicator" else None
            found[name] = value
        return found

    def _with_numbers(self, row: Mapping[Any, Any]) -> dict[int, float]:
        """Return the row by numbers of columns; names that the model does not have are left out."""
        found: dict[int, float] = {}
        for name, value in row.items():
            for feature, number in features_of(0, name, value):
                text = feature.decode(errors="replace")
                key = self.numbered.get(text, self.numbered.get(text.replace("^", "=", 1)))
                if key is not None:
                    found[key] = found.get(key, 0.0) + number
        return found


def _listed(reading: Mapping[str, Any], name: str) -> Iterable[str]:
    """Return an option that is a list, or text that JSON wrote."""
    value = reading.get(name) or ()
    return json.loads(value) if isinstance(value, str) else value


def _numbered(names: Mapping[int, str], bits: int | None) -> dict[str, int]:
    """Return the columns by name; empty if the keys are made of the names."""
    mask = 2**64 - 1 if bits is None else (1 << bits) - 1
    if any(key_of(name.encode()) & mask == key for key, name in names.items()):
        return {}
    return {name: key for key, name in names.items()}


def _words(text: str, ngrams: int) -> list[str]:
    """Return the words of a text column, and sequences of words, as a table has them."""
    if text.isascii():
        words = _ASCII_WORD.findall(text.lower())
    else:
        from thresher.data.columns import strings, words_of

        words = words_of(strings([text]))
    return words + [
        " ".join(words[i : i + length])
        for length in range(2, ngrams + 1)
        for i in range(len(words) - length + 1)
    ]


def _is_missing(value: Any) -> bool:
    """Tell whether a value is None or NaN."""
    return value is None or (isinstance(value, float | np.floating) and bool(np.isnan(value)))


def _typed(name: str, value: Any, kind: str) -> Any:
    """Return a value of the kind of its column: rows of csv.DictReader have strings only."""
    if kind == "string" or not isinstance(value, str):
        whole = isinstance(value, int | float) and not isinstance(value, bool)
        return str(value) if kind == "string" and whole else value
    from thresher.data.table_files import MISSING, NO_NUMBER, TRUTH

    value = value.strip()
    if not value or value in MISSING or (kind == "number" and value in NO_NUMBER):
        return None
    convert: Callable[[str], Any] = TRUTH.__getitem__ if kind == "truth" else float
    try:
        return convert(value)
    except (KeyError, ValueError):
        expected = "true or false" if kind == "truth" else "a number"
        raise DataError(f"feature '{name}': expected {expected}; found {value!r}") from None
