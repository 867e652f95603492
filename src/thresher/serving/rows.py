"""The rows of a request: dicts of named features, arrays of numbers, or lines of text."""

from __future__ import annotations

import itertools
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.bad_lines import BadCells
from thresher.data.block import Block
from thresher.data.detect import format_of_bytes
from thresher.data.dict_features import features_of
from thresher.data.parts import BlockRequest
from thresher.data.text_rows import LINE_FORMATS, TextRows, options_for_lines
from thresher.errors import DataError, ParameterError
from thresher.model.contributions import Entries, entries_of_block
from thresher.model.links import scores
from thresher.model.model import Model
from thresher.model.one_row import rows_for
from thresher.model.predict import predictor_of
from thresher.serving.known_features import KnownFeatures
from thresher.serving.refusal import Refusal

_NUMBERS = {int, float, bool}
_FEW = 64  # dicts that a model reads one by one, in the core; more of them make a source
_HEAD = 1 << 16  # bytes that decide the format
_WIDEST = 1 << 24  # columns of a model that takes arrays


Shown = Callable[[int], str | int]
"""Type of a function that returns the name, or the number, that a request has for a feature."""


class Rows(ABC):
    """Rows of a request; errors are raised as `Refusal` with the place.

    Attributes
    ----------
    count : int
    """

    count: int

    @abstractmethod
    def decision(self, model: Model) -> NDArray[np.float64]:
        """Return the decision values, as `Model.decision_function` does."""

    @abstractmethod
    def unknown(self, model: Model, known: KnownFeatures) -> list[list[str]]:
        """Return for each row the features that the model does not have."""

    @abstractmethod
    def entries(self, model: Model) -> tuple[Entries, Shown]:
        """Return the features of all rows, and how to show them."""


class NamedRows(Rows):
    """Rows as dicts {name: value}.

    Parameters
    ----------
    rows : list of dict
    """

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows, self.count = rows, len(rows)

    def decision(self, model: Model) -> NDArray[np.float64]:
        """Return the decision values."""
        try:
            found = [
                model.decision_function(self.rows[begin : begin + _FEW])
                for begin in range(0, self.count, _FEW)
            ]
            return found[0] if len(found) == 1 else np.concatenate(found)
        except (DataError, ParameterError, OverflowError) as error:
            raise self._refusal(model, error) from None

    def unknown(self, model: Model, known: KnownFeatures) -> list[list[str]]:
        """Return for each row the features that the model does not have."""
        return [known.unknown_in(row) for row in self.rows]

    def entries(self, model: Model) -> tuple[Entries, Shown]:
        """Return the features of all rows, and how to show them."""
        blocks = list(rows_for(model, self.rows).blocks(names=True))
        names = {key: name for block in blocks for key, name in block.names}
        own = model.names or {}
        return joined(blocks), lambda key: own.get(key) or names.get(key) or model.name(key)

    def _refusal(self, model: Model, error: Exception) -> Refusal:
        """Return the refusal of the first bad row, found by trying each one alone."""
        for number, row in enumerate(self.rows, 1):
            try:
                model.decision_function([row])
            except (DataError, ParameterError, OverflowError) as one:
                feature, what = bad_feature(row)
                text = what or re.sub(r"^rows: example 1(?:, |: )", "", str(one))
                if isinstance(one, ParameterError):  # the model does not take dicts at all
                    return Refusal(422, text)
                return Refusal(422, text, row=number, feature=feature)
        return Refusal(422, str(error))


def bad_feature(row: dict[str, Any]) -> tuple[str | None, str]:
    """Return the first feature of a row that has no valid value, and what is wrong with it."""
    for name, value in row.items():
        try:
            found = features_of(0, name, value)
        except BadCells as error:
            return name, error.what(0)
        for _, number in found:
            if not math.isfinite(number):
                return name, f"{number} is not a finite number"
            if not math.isfinite(number * number):
                return name, f"{number} is too large: its square must be finite"
    return None, ""


class ArrayRows(Rows):
    """Rows as lists of numbers, one for each column.

    Parameters
    ----------
    rows : list of list
    """

    def __init__(self, rows: list[list[Any]]) -> None:
        self.rows, self.count = rows, len(rows)

    def matrix(self, model: Model) -> NDArray[np.float64]:
        """Return the rows as an array; refuse rows that do not fit the model."""
        width = model.n_features
        if width > _WIDEST:
            raise Refusal(422, "the model has features by name or hash: give each row as an object "
                          "{name: value}")  # fmt: skip
        for number, row in enumerate(self.rows, 1):
            if len(row) != width:
                raise Refusal(
                    422, f"expected {width} numbers, one for each column; found {len(row)}",
                    row=number,
                )  # fmt: skip
            if not set(map(type, row)) <= _NUMBERS:
                column = next(i for i, cell in enumerate(row) if type(cell) not in _NUMBERS)
                what = type(row[column]).__name__ if row[column] is not None else "null"
                raise Refusal(422, f"expected a number; found {what}", row=number,
                              column=column + 1)  # fmt: skip
        try:
            found = np.array(self.rows, np.float64)
        except OverflowError:
            raise Refusal(422, "a number is too large") from None
        if not np.isfinite(found).all():  # JSON has no NaN, but 1e999
            at, column = np.argwhere(~np.isfinite(found))[0].tolist()
            raise Refusal(422, "the number is too large", row=at + 1, column=column + 1)
        return found

    def decision(self, model: Model) -> NDArray[np.float64]:
        """Return the decision values."""
        return model.decision_function(self.matrix(model))

    def unknown(self, model: Model, known: KnownFeatures) -> list[list[str]]:
        """Return nothing: each number belongs to a column of the model."""
        return [[] for _ in self.rows]

    def entries(self, model: Model) -> tuple[Entries, Shown]:
        """Return the features of all rows, and how to show them."""
        X = self.matrix(model)
        rows, columns = np.nonzero(X)
        starts = np.searchsorted(rows, np.arange(len(X) + 1))
        return Entries(starts, columns.astype(np.uint64), X[rows, columns]), model.name


class TextLines(Rows):
    """Rows as lines of text in the format svmlight or VW.

    Parameters
    ----------
    text : bytes
    format : {"svmlight", "vw"}
    most : int
        Refuse more rows than this.
    model : Model
        Its options of reading are used.
    """

    def __init__(self, text: bytes, format: str, most: int, model: Model) -> None:
        if (lines := text.count(b"\n")) > 2 * most:
            raise Refusal(413, f"{lines:,} lines; a request may have {most:,} rows")
        self.format = format
        self.reading = options_for_lines(model.parameters, format, threads=1)
        self.text = text if text.endswith(b"\n") else text + b"\n"
        try:
            self.blocks = self._parsed()
        except (DataError, ParameterError) as error:
            raise Refusal(422, str(error)) from None
        self.count = sum(block.rows for block in self.blocks)

    def source(self) -> TextRows:
        """Return the rows as a source."""
        return TextRows(self.text, self.reading)

    def _parsed(self) -> list[Block]:
        source, found = self.source(), []
        part, bad_lines = source.parts[0], source.bad_lines
        for block in part.blocks(0, None, source.reading, bad_lines, BlockRequest()):
            for bad in block.native.bad:
                line = block.native.first_line + bad.line
                raise Refusal(422, bad.what, line=line, column=bad.column)
            found.append(block)
        return found

    def decision(self, model: Model) -> NDArray[np.float64]:
        """Return the decision values."""
        predictor = predictor_of(model)
        try:
            raw = [predictor.of_block(block) for block in self.blocks]
        except DataError as error:
            raise Refusal(422, str(error)) from None
        return scores(np.concatenate(raw), model.loss, model.classes is not None)

    def unknown(self, model: Model, known: KnownFeatures) -> list[list[str]]:
        """Return for each row the features that the model does not have."""
        found = []
        for block in self.blocks:
            starts, keys, _ = entries_of_block(block)
            absent = ~known.has(keys)
            names = self._names() if absent.any() else {}
            for begin, end in itertools.pairwise(starts):
                row = keys[begin:end][absent[begin:end]].tolist()
                found.append([str(self._shown(key, names)) for key in row])
        return found

    def entries(self, model: Model) -> tuple[Entries, Shown]:
        """Return the features of all rows, and how to show them."""
        names = self._names()
        return joined(self.blocks), lambda key: self._shown(key, names)

    def _names(self) -> dict[int, str]:
        source = self.source()
        if not source.named:
            return {}
        return {key: name for block in source.blocks(names=True) for key, name in block.names}

    def _shown(self, key: int, names: dict[int, str]) -> str | int:
        first = 0 if self.format == "vw" or self.reading.zero_based else 1
        return names.get(key, key + first)


def joined(blocks: Sequence[Block]) -> Entries:
    """Return the features of the rows of all blocks."""
    found = [entries_of_block(block) for block in blocks]
    sizes = np.concatenate([np.diff(one.starts) for one in found])
    keys, values = (np.concatenate([one[at] for one in found]) for at in (1, 2))
    return Entries(np.append(0, np.cumsum(sizes)), keys, values)


def format_of(text: bytes, given: str | None, model: Model) -> str:
    """Return the format of lines: as given, as the model was trained, or as the lines look."""
    if given is not None:
        return given
    learned = model.parameters.get("format")
    if learned in LINE_FORMATS:
        return str(learned)
    try:
        found = format_of_bytes(text[:_HEAD], "the body")
    except DataError:
        found = ""
    if found not in LINE_FORMATS:
        allowed = " or ".join(LINE_FORMATS)
        what = f"the format of the lines is not clear; give format={allowed}"
        columns = json.loads(str(model.parameters.get("text") or "[]"))
        if columns:
            example = json.dumps({"rows": [{columns[0]: "..."}]}, ensure_ascii=False)
            what += f"; for a model with a text column send JSON: {example}"
        raise Refusal(422, what, option="format")
    return found
