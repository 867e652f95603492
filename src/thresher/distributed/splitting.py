"""How files are divided into shards of about equal size, none of them empty."""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from thresher.data.spans import Span, line_start

_READ = 1 << 20  # bytes read at a time to find all lines


class TooFewLines(Exception):
    """A text has fewer lines than the wanted number of spans."""


def group_evenly(sizes: Sequence[int], count: int) -> list[range]:
    """Divide things with these sizes into `count` runs of about equal size, none of them empty.

    Examples
    --------
    >>> group_evenly([5, 1, 1, 1], 2)
    [range(0, 1), range(1, 4)]
    """
    sums = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    cuts = [0]
    for part in range(1, count):
        allowed = range(cuts[-1] + 1, len(sizes) - count + part + 1)
        off = [abs(sums[at] * count - sums[-1] * part) for at in allowed]
        cuts.append(allowed[off.index(min(off))])
    return [range(a, b) for a, b in zip(cuts, [*cuts[1:], len(sizes)], strict=True)]


def allocate_spans(sizes: Sequence[int], most: Sequence[int], count: int) -> list[int]:
    """Return the number of spans of each file, such that the largest span is small.

    Each file has at least one span and at most `most`. The total is `count`, or the largest
    possible number below it.

    Examples
    --------
    >>> allocate_spans([100, 10, 60], [9, 9, 1], 5)
    [3, 1, 1]
    """
    counts = [1] * len(sizes)
    waiting = [(-float(size), at) for at, size in enumerate(sizes) if most[at] > 1]
    heapq.heapify(waiting)
    for _ in range(count - len(sizes)):
        if not waiting:
            break
        _, at = heapq.heappop(waiting)
        counts[at] += 1
        if counts[at] < most[at]:
            heapq.heappush(waiting, (-sizes[at] / counts[at], at))
    return counts


def snap_to_start(at: int, starts: Sequence[int], reach: int) -> int:
    """Return the nearest of the increasing starts if it is within reach; otherwise `at` itself."""
    right = bisect_left(starts, at)
    near = [start for start in starts[max(right - 1, 0) : right + 1] if abs(start - at) <= reach]
    return min(near, key=lambda start: abs(start - at), default=at)


def split_evenly(size: int, count: int, starts: Sequence[int] = ()) -> list[Span]:
    """Divide `size` rows or blocks into `count` equal spans, with cuts at near starts if possible.

    Examples
    --------
    >>> [(span.begin, span.end) for span in split_evenly(100, 3, [0, 30, 60, 90, 100])]
    [(0, 30), (30, 60), (60, 100)]
    """
    reach = size // count // 4
    inner = [snap_to_start(size * i // count, starts, reach) for i in range(1, count)]
    return _between([0, *inner, size])


def split_lines(name: str, size: int, count: int) -> list[Span]:
    """Divide a plain text into spans of about equal bytes, each with at least one line start.

    Raises TooFewLines if that is impossible.
    """
    cuts = [0, *(line_start(name, size * i // count) for i in range(1, count)), size]
    if all(a < b for a, b in itertools.pairwise(cuts)):
        return _between(cuts)
    starts = find_line_starts(name)  # few, as lines are longer than the spans
    if len(starts) < count:
        raise TooFewLines
    cuts = [0]
    for i in range(1, count):
        at = int(np.searchsorted(starts, size * i // count))
        cuts.append(min(max(at, cuts[-1] + 1), len(starts) - count + i))
    return _between([*starts[cuts].tolist(), size])


def find_line_starts(name: str) -> NDArray[np.int64]:
    """Return the positions where the lines of a plain text start."""
    found, at = [np.zeros(1, np.int64)], 0
    with open(name, "rb", buffering=0) as file:
        while piece := file.read(_READ):
            found.append(np.flatnonzero(np.frombuffer(piece, np.uint8) == 10) + (at + 1))
            at += len(piece)
    starts = np.concatenate(found)
    return starts[starts < at]


def _between(cuts: Sequence[int]) -> list[Span]:
    return [Span(a, b) for a, b in itertools.pairwise(cuts)]
