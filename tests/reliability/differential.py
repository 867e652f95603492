"""Our parser of VW text against the naive one and, where it is installed, against VW's own.

Inputs are those that fuzzing found and random lines of the grammar, changed at random places.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oracles import text as oracle
from support.text_cases import assert_same, read

ROOT = Path(__file__).resolve().parents[2]
CORPORA = (ROOT / "tests" / "corpus" / "vw", ROOT / "build" / "fuzz" / "corpus" / "vw")
LEVELS = ("auto", "avx2", "portable", "none")
OPTIONS: list[dict[str, Any]] = [
    {},
    {"dtype": "float64", "bits": 5},
    {"interactions": [b"ab", b": ", b"cc"]},
    {"dtype": "float64", "bits": 40, "interactions": [b"::"]},
]
WORDS = [
    *(b" ", b"\t", b"\n", b"\r\n", b"|", b":", b"'", b"|a ", b"| ", b" |b:0.5 ", b"1 ", b"-1 2 "),
    *(b"a", b"b:", b":1", b"x:1.5", b"7", b"18446744073709551615", b"18446744073709551616"),
    *(b"1e38", b"3.5e38", b"1e-320", b"1e400", b"-0", b"+.5", b"0x1p3", b"nan", b"inf", b"\0"),
    *(b"\x80", "é".encode(), b"a_rather_long_name_of_a_feature", b"12345678", b"123456789"),
]


def lines(rng: random.Random) -> bytes:
    """Return a few lines of the grammar."""

    def number() -> str:
        form = rng.choice(["{:.3g}", "{:.9f}", "{:e}", "{:+.0f}"])
        return form.format(rng.choice([-1, 1]) * 10 ** rng.uniform(-3, 3))

    def feature() -> str:
        size = rng.choice([0, 1, 2, 7, 8, 9, 15, 16, 17, 40])
        name = "".join(rng.choices("abcxyz0123456789_^*", k=size))
        return name + (f":{number()}" if not name or rng.random() < 0.4 else "")

    def space() -> str:
        head = rng.choice(["|", "|a", "|b", f"|c:{number()}"])
        return " ".join([head, *(feature() for _ in range(rng.randint(0, 12)))])

    def line() -> str:
        head = rng.choice(["", "1", "-1", number(), f"{number()} 2", "1 0.5 'tag", "1 'tag", "tag"])
        return (
            head
            + rng.choice([" ", ""]) * (head != "tag")
            + " ".join(space() for _ in range(rng.randint(1, 3)))
        )

    return "\n".join(line() for _ in range(rng.randint(1, 5))).encode()


def changed(data: bytes, rng: random.Random) -> bytes:
    """Insert words of the grammar, delete and copy parts."""
    for _ in range(rng.choice([0, 1, 1, 2, 5])):
        at, end = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
        end = min(end, at + 20)
        part = rng.choice([rng.choice(WORDS), b"", data[at:end] * 2])
        data = data[:at] + part + data[end if rng.random() < 0.5 else at :]
    return data[:600]


def inputs(seed: int) -> Iterator[bytes]:
    """Yield inputs without end."""
    rng = random.Random(seed)
    found = [path for folder in CORPORA if folder.exists() for path in sorted(folder.iterdir())]
    while True:
        from_corpus = found and rng.random() < 0.5
        data = rng.choice(found).read_bytes()[:600] if from_corpus else lines(rng)
        yield changed(data, rng)


def compare(data: bytes, turn: int) -> None:
    """Assert that our parser reads what the naive one reads."""
    options = OPTIONS[turn % len(OPTIONS)]
    if len(data) > 200 and "interactions" in options:
        options = OPTIONS[turn % 2]
    level = LEVELS[turn // len(OPTIONS) % len(LEVELS)]
    block_bytes = (1 << 20, 20, 100)[turn % 3]
    blocks = read(data, "vw", block_bytes=block_bytes, level=level, **options)
    assert_same(blocks, oracle.vw(data, **options), options.get("dtype", "float32"))


def tried(count: int, seed: int) -> tuple[int, list[str]]:
    """Compare `count` inputs; return that number and what was wrong."""
    failures = []
    for turn, data in zip(range(count), inputs(seed), strict=False):
        try:
            compare(data, turn)
        except Exception as error:  # any error is a failure of the parser
            failures.append(f"seed {seed}, input {turn}: {data!r}: {error}"[:2000])
    return count, failures


if __name__ == "__main__":
    count, failures = tried(int(sys.argv[1]), int(sys.argv[2]))
    print(*failures, f"{count} inputs, {len(failures)} differ", sep="\n")
