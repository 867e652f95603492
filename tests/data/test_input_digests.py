"""Digests of passes: an error names the lines that differ, are new or are missing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from thresher.data.input_digests import InputDigests
from thresher.errors import DataError

Block = tuple[str, int, int]  # file, its last line, digest


def blocks_of(*files: int, lines: int = 10) -> list[Block]:
    """Return blocks of files with these numbers of blocks."""
    return [
        (f"{name}.svm", lines * (at + 1), 1000 * name + at)
        for name, count in enumerate(files)
        for at in range(count)
    ]


def one_pass(digests: InputDigests, blocks: list[Block], compare: bool = True) -> None:
    for file, line, digest in blocks:
        end = SimpleNamespace(line=line)
        made: Any = SimpleNamespace(
            file=file, end=end, digest=digest, stored_digest=~digest & 0xFF, cells=0
        )
        digests.add(made, compare=compare)
    digests.end(compare)
    digests.begin()


def other(blocks: list[Block], at: int) -> list[Block]:
    """Return the blocks with another digest of one of them."""
    return [(file, line, digest + 7 * (k == at)) for k, (file, line, digest) in enumerate(blocks)]


@pytest.mark.parametrize(
    ("now", "what"),
    [
        (other(blocks_of(3, 3), 0), "0.svm: .*: lines 1 to 10 differ"),
        (other(blocks_of(3, 3), 2), "0.svm: .*: lines 21 to 30 differ"),
        (other(blocks_of(3, 3), 4), "1.svm: .*: lines 11 to 20 differ"),
        (blocks_of(3, 2), "1.svm: .*: lines 21 to 30 are missing"),
        (blocks_of(3), "1.svm: .*: lines 1 to 30 are missing"),
        (blocks_of(3, 4), "1.svm: .*: lines 31 to 40 are new"),
        (blocks_of(3, 3, 1), "2.svm: .*: lines 1 to 10 are new"),
        ([], "1.svm: .*: lines 1 to 30 are missing"),
    ],
)
def test_what_has_changed(now, what):
    digests = InputDigests()
    one_pass(digests, blocks_of(3, 3))
    one_pass(digests, blocks_of(3, 3))
    with pytest.raises(DataError, match=what):
        one_pass(digests, now)


@pytest.mark.parametrize("count", [5, 8, 9, 64, 100])
def test_of_many_blocks_few_values_are_kept(count):
    first = InputDigests(most=4)
    blocks = blocks_of(count)
    one_pass(first, blocks)
    one_pass(first, blocks)
    assert len(first.entries) <= 4
    for at in range(count):
        digests = first.again()
        with pytest.raises(DataError, match=r"differ$") as caught:
            one_pass(digests, other(blocks, at))
        begin, end = (int(word) for word in str(caught.value).split() if word.isdigit())
        assert begin <= 10 * at + 1 < 10 * (at + 1) <= end
        assert end - begin < 10 * count / 2 + 10


def test_passes_in_another_order_have_only_a_number_of_blocks():
    blocks = blocks_of(4)
    digests = InputDigests()
    one_pass(digests, blocks[::-1][1:] + blocks[-1:], compare=False)
    one_pass(digests, other(blocks, 1), compare=False)
    assert not digests.entries
    one_pass(digests, blocks)  # the first whose digests are known
    one_pass(digests, blocks)
    with pytest.raises(DataError, match="lines 11 to 20 differ"):
        one_pass(digests, other(blocks, 1))
    digests, many = InputDigests(most=2), blocks_of(11)
    one_pass(digests, many, compare=False)
    one_pass(digests, many)
    assert len(digests.entries) <= 2
    with pytest.raises(DataError, match=r"lines \d+ to 110 differ"):  # only the total says so
        one_pass(digests, other(many, 10))
    for compare in (False, True):
        digests = InputDigests()
        one_pass(digests, blocks, compare=False)
        with pytest.raises(DataError, match="the input has changed"):
            one_pass(digests, blocks[:3], compare)
    digests = InputDigests()
    one_pass(digests, blocks, compare=False)
    with pytest.raises(DataError, match="lines 1 to 40 differ"):
        one_pass(digests, blocks_of(4, lines=9))


def test_a_resumed_run_continues_a_pass():
    blocks = blocks_of(6)
    digests = InputDigests()
    one_pass(digests, blocks)
    saved = {**digests.state, "entries": [list(e) for e in digests.entries]}
    resumed = InputDigests()
    resumed.state = {**saved, "total": list(saved["total"]), "last": list(saved["last"])}
    resumed.begin()
    one_pass(resumed, blocks)
    with pytest.raises(DataError, match="lines 31 to 40 differ"):
        one_pass(resumed, other(blocks, 3))
    early = InputDigests()  # of an earlier version: no total, and digests that a cache stores
    early.state = {name: saved[name] for name in ("entries", "spacing", "most")}
    assert not early.computed
    assert early.total is None
