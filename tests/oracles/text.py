"""Naive parsers of svmlight and VW text, and the hash of names, by their definitions.

A parser reads one line by position, and raises `Bad(column)` if the line is not an example.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SALT = (
    0x6A09E667F3BCC909,
    0xBB67AE8584CAA73B,
    0x3C6EF372FE94F82B,
    0xA54FF53A5F1D36F1,
    0x510E527FADE682D1,
    0x9B05688C2B3E6C1F,
)
FULL = (1 << 64) - 1
NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE = re.compile(rb"[0-9]+")
HEADER = re.compile(rb"[ \t]*[0-9]+[ \t]+[0-9]+[ \t]+[0-9]+[ \t]*")


def fold(a: int, b: int) -> int:
    product = a * b
    return (product & FULL) ^ (product >> 64)


def hash64(text: bytes) -> int:
    def word(at: int, size: int = 8) -> int:
        return int.from_bytes(text[at : at + size], "little")

    n, h, at = len(text), SALT[4], 0
    if n <= 16:
        a, b = word(0), word(8)
    else:
        if n > 64:
            lanes = [h, *SALT[1:4]]
            while n - at > 64:
                lanes = [
                    fold(word(at + 16 * i) ^ SALT[i], word(at + 16 * i + 8) ^ lanes[i])
                    for i in range(4)
                ]
                at += 64
            h = fold(lanes[0] ^ SALT[5], lanes[1]) ^ fold(lanes[2] ^ SALT[5], lanes[3])
        while n - at > 16:
            h = fold(word(at) ^ SALT[0], word(at + 8) ^ h)
            at += 16
        a, b = word(n - 16), word(n - 8)
    return fold(fold(a ^ SALT[1], b ^ h) ^ SALT[2], n ^ SALT[3])


def mix(a: int, b: int) -> int:
    product = (a ^ SALT[0]) * (b ^ SALT[1])
    return fold((product & FULL) ^ SALT[2], (product >> 64) ^ SALT[3])


class Bad(Exception):
    """A bad line; the argument is the column, from 1."""


@dataclass
class Row:
    """An example: its line (from 1), labels, weight, tag, and keys with values."""

    line: int
    labels: list[float]
    cells: list[tuple[int, Any]]
    weight: float = 1.0
    tag: bytes = b""


@dataclass
class Parsed:
    """The contents of a file."""

    rows: list[Row] = field(default_factory=list)
    bad: list[tuple[int, int]] = field(default_factory=list)  # line and column, from 1
    names: dict[int, set[bytes]] = field(default_factory=dict)


class Line:
    """A line with a position."""

    def __init__(self, text: bytes, stops: bytes) -> None:
        self.text, self.at, self.stops = text, 0, stops

    def peek(self) -> bytes:
        return self.text[self.at : self.at + 1]

    def over(self, stops: bytes | None = None) -> bool:
        return self.at == len(self.text) or self.peek() in (self.stops if stops is None else stops)

    def bad(self, at: int | None = None) -> Bad:
        return Bad((self.at if at is None else at) + 1)

    def skip_blanks(self) -> None:
        while self.peek() and self.peek() in b" \t":
            self.at += 1

    def number(self, real: type = float, factor: float = 1.0) -> tuple[float, Any]:
        match = NUMBER.match(self.text, self.at)
        if not match or not math.isfinite(float(match[0])):
            raise self.bad()
        if real is not float or factor != 1.0:
            begin, self.at = self.at, match.end()
            if not self.over():
                raise self.bad()
            self.at = begin
        value = float(match[0]) * factor
        with np.errstate(over="ignore"):
            if not math.isfinite(real(value)):
                raise self.bad()
        self.at = match.end()
        return value, real(value)

    def whole(self) -> int:
        match = WHOLE.match(self.text, self.at)
        if not match or int(match[0]) > FULL:
            raise self.bad()
        self.at = match.end()
        return int(match[0])


def merged(cells: list[tuple[int, Any]], bits: int) -> list[tuple[int, Any]]:
    """Reduce keys to `bits` bits, and add the values of repeated keys, in their type."""
    sums: dict[int, Any] = {}
    for key, value in cells:
        key = key & ((1 << bits) - 1) if bits else key
        with np.errstate(over="ignore"):
            sums[key] = sums[key] + value if key in sums else value
    if any(not math.isfinite(value) for value in sums.values()):
        raise Bad(1)
    return list(sums.items())


def parse(data: bytes, line_of: Callable[[bytes, bool, Parsed], Row | None], bits: int) -> Parsed:
    """Parse all lines of a file."""
    parsed = Parsed()
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, text in enumerate(lines, 1):
        try:
            row = line_of(text[:-1] if text.endswith(b"\r") else text, number == 1, parsed)
            if row is not None:
                row.line, row.cells = number, merged(row.cells, bits)
                parsed.rows.append(row)
        except Bad as bad:
            parsed.bad.append((number, bad.args[0]))
    return parsed


def svmlight(
    data: bytes,
    dtype: str = "float32",
    bits: int = 0,
    zero_based: bool = False,
    multilabel: bool = False,
) -> Parsed:
    """Parse svmlight text."""
    real = np.dtype(dtype).type
    base = 0 if zero_based else 1

    def labels_of(line: Line) -> list[float]:
        labels: list[float] = []
        first = line.at
        while True:
            begin = line.at
            label, _ = line.number()
            if line.peek() == b":" and begin == first:
                if not multilabel:
                    raise line.bad(first)
                line.at = first
                return []
            labels.append(label)
            if line.over():
                return labels
            if line.peek() != b"," or not multilabel:
                raise line.bad()
            line.at += 1

    def line_of(text: bytes, first: bool, parsed: Parsed) -> Row | None:
        if multilabel and first and HEADER.fullmatch(text):
            return None
        line = Line(text, b" \t#")
        line.skip_blanks()
        row = Row(0, [], [])
        if not line.over(b"#"):
            if not (multilabel and line.at > 0):
                row.labels = labels_of(line)
            line.skip_blanks()
            if line.text.startswith(b"qid:", line.at):
                line.at += 4
                begin = line.at
                line.whole()
                if not line.over():
                    raise line.bad(begin)
            while True:
                line.skip_blanks()
                if line.over(b"#"):
                    break
                begin = line.at
                index = line.whole()
                if index < base:
                    raise line.bad(begin)
                if line.peek() != b":":
                    raise line.bad()
                line.at += 1
                row.cells.append((index - base, line.number(real)[1]))
                if not line.over():
                    raise line.bad()
        else:
            row = None  # type: ignore[assignment]
        if b"\0" in line.text[line.at :]:
            raise line.bad(line.text.index(b"\0", line.at))
        return row

    return parse(data, line_of, bits)


def vw(
    data: bytes,
    dtype: str = "float32",
    bits: int = 0,
    interactions: Sequence[bytes] = (),
) -> Parsed:
    """Parse VW text."""
    real = np.dtype(dtype).type

    def head(line: Line) -> tuple[float, float, bytes]:
        numbers: list[float] = []

        def with_tag(tag: bytes) -> tuple[float, float, bytes]:
            label, weight = [*numbers[:2], *(math.nan, 1.0)[len(numbers) :]]
            return label, weight, tag

        while True:
            line.skip_blanks()
            if line.peek() == b"|":
                return with_tag(b"")
            begin = line.at
            while not line.over() and line.peek() != b"\0":
                line.at += 1
            if line.peek() == b"\0" or line.at == begin:
                raise line.bad()
            word = line.text[begin : line.at]
            if line.peek() == b"|" or word.startswith(b"'"):
                line.skip_blanks()
                if line.peek() != b"|":
                    raise line.bad()
                return with_tag(word[1:] if word.startswith(b"'") else word)
            if len(numbers) == 3:
                raise line.bad(begin)
            end, line.at = line.at, begin
            numbers.append(line.number()[0])
            if line.at != end:
                raise line.bad()
            if (len(numbers) == 2 and numbers[1] < 0) or any(numbers[2:]):
                raise line.bad(begin)

    def name_of(line: Line) -> bytes:
        begin = line.at
        while not line.over() and line.peek() not in b":\0":
            line.at += 1
        return line.text[begin : line.at]

    def line_of(text: bytes, first: bool, parsed: Parsed) -> Row | None:
        line = Line(text, b" \t|")
        line.skip_blanks()
        if line.over(b""):
            return None
        label, weight, tag = head(line)
        # letter, full key, value, name, and whether it is named
        terms: list[tuple[bytes, int, Any, bytes, bool]] = []
        while line.peek() == b"|":
            line.at += 1
            space, factor, nameless = name_of(line), 1.0, 0
            if line.peek() == b":":
                line.at += 1
                factor, _ = line.number(real)
                if not line.over():
                    raise line.bad()
            elif line.peek() == b"\0":
                raise line.bad()
            while True:
                line.skip_blanks()
                name = name_of(line)
                if line.peek() == b":":
                    if not name:
                        name = b"%d" % nameless
                        nameless += 1
                    line.at += 1
                    _, value = line.number(real, factor)
                    if not line.over():
                        raise line.bad()
                elif not name:
                    break
                else:
                    value = real(factor)
                if line.peek() == b"\0":
                    raise line.bad()
                plain = not space and re.fullmatch(rb"0|[1-9][0-9]*", name) and int(name) <= FULL
                shown = space + b"^" + name if space else name
                key = int(name) if plain else hash64(shown)
                terms.append((space[:1] or b" ", key, value, shown, not plain))
        if line.at != len(line.text):
            raise line.bad()
        cells = [(key, value) for _, key, value, _, _ in terms]
        named = [(key, shown) for _, key, _, shown, is_named in terms if is_named]
        for pair in interactions:
            left, right = pair[:1], pair[1:]
            for i, (a, a_key, a_value, a_name, _) in enumerate(terms):
                for j, (b, b_key, b_value, b_name, _) in enumerate(terms):
                    if left not in (b":", a) or right not in (b":", b):
                        continue
                    both = right in (b":", a) and left in (b":", b)
                    # bytes from 0x80 on come first
                    if both and ((b[0] ^ 0x80), j) < ((a[0] ^ 0x80), i):
                        continue
                    with np.errstate(over="ignore"):
                        product = real(float(a_value) * float(b_value))
                    if not math.isfinite(product):
                        raise Bad(1)
                    cells.append((mix(a_key, b_key), product))
                    named.append((mix(a_key, b_key), a_name + b"*" + b_name))
        row = Row(0, [label], merged(cells, bits), weight, tag)
        for key, shown in named:
            parsed.names.setdefault(key & ((1 << bits) - 1) if bits else key, set()).add(shown)
        return row

    return parse(data, line_of, bits)
