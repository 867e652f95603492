"""Random blocks for tests of caches and of text."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from thresher import _core

FIELDS = ["rows", "nonzeros", "width", "starts", "keys", "labels", "weights", "label_starts"]
FIELDS += ["label_values", "tags", "offset", "bytes", "first_line", "line_count", "digest", "names"]


def fields(block: _core.Block) -> dict[str, Any]:
    """Return a block without its values, in types that compare by `==`, also with NaN."""
    found = {}
    for name in FIELDS:
        value = getattr(block, name)
        if isinstance(value, np.ndarray):
            whole = value.dtype.kind != "f"
            value = value.astype(np.int64).tolist() if whole else value.tobytes()
        found[name] = value
    found["lines"] = [block.line(row) for row in range(block.rows)]
    if block.weights is not None and np.all(block.weights == 1):
        found["weights"] = None
    return found


def values(block: _core.Block, dtype: str) -> bytes:
    """Return the bytes of a block's values in a dtype."""
    with np.errstate(over="ignore"):
        return np.asarray(block.values).astype(dtype).tobytes()


KEYS = {
    "small": st.integers(0, 9),
    "int32": st.integers(0, 2**31 - 1),
    "int64": st.integers(0, 2**63 - 2),
    "any": st.integers(0, 2**64 - 1) | st.integers(2**64 - 3, 2**64 - 1),
}
NUMBERS = {
    "ones": st.just(1.0),
    "floats": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "doubles": st.floats(allow_nan=False, allow_infinity=False),
    "decimals": st.integers(-(10**7), 10**7).map(lambda n: n / 1000),
}


@st.composite
def blocks(
    draw: st.DrawFn,
    labels: tuple[str, ...] = ("plain", "missing", "lists", "none"),
    weighted: bool = True,
    tagged: bool = True,
) -> _core.Block:
    """Draw a block; the keys of a row are distinct, in any order."""
    counts = draw(st.lists(st.integers(0, 5), max_size=6))
    rows, kind = len(counts), draw(st.sampled_from(sorted(KEYS)))
    keys = [
        key
        for count in counts
        for key in draw(st.lists(KEYS[kind], min_size=count, max_size=count, unique=True))
    ]
    number = NUMBERS[draw(st.sampled_from(sorted(NUMBERS)))]
    dtype = draw(st.sampled_from(["float32", "float64"]))
    with np.errstate(over="ignore"):
        cast = np.array([draw(number) for _ in keys], np.float64).astype(dtype)
    cast[~np.isfinite(cast)] = 3
    given: dict[str, Any] = {}
    finite = st.floats(allow_nan=False, allow_infinity=False)
    choice = draw(st.sampled_from(labels))
    if choice in ("plain", "missing"):
        one = finite | st.just(np.nan) if choice == "missing" else finite
        given["labels"] = np.array([draw(one) for _ in counts], np.float64)
    elif choice == "lists":
        lists = [draw(st.lists(st.integers(0, 10**6), max_size=3)) for _ in counts]
        given["label_starts"] = np.cumsum([0, *map(len, lists)])
        given["label_values"] = np.array([label for some in lists for label in some], np.float64)
    if weighted and choice == "plain" and draw(st.booleans()):
        weight = st.sampled_from([0.0, 1.0, 0.1, 2.5])
        given["weights"] = np.array([draw(weight) for _ in counts], np.float64)
    if tagged and draw(st.booleans()):
        given["tags"] = [
            draw(st.binary(max_size=4)).translate(None, b" |\t\n\v\f\r\0") for _ in counts
        ]
    if draw(st.booleans()):
        given["lines"] = np.cumsum([draw(st.integers(0, 3)) for _ in counts]).astype(np.uint32)
    if draw(st.booleans()):
        pair = st.tuples(st.integers(0, 2**64 - 1), st.binary(max_size=9))
        given["names"] = draw(st.lists(pair, max_size=4))
    large = st.integers(0, 2**64 - 1)
    for name in ("offset", "bytes", "line_count", "digest"):
        given[name] = draw(large)
    given["first_line"] = draw(st.integers(1, 2**60))
    if kind == "small" and draw(st.booleans()):
        given["columns"] = 1000  # larger than necessary
    wide = kind in ("int64", "any") or draw(st.booleans())
    as_keys = np.array(keys, np.uint64).view(np.int64)
    assert rows == len(counts)
    return _core.make_block(
        np.cumsum([0, *counts]).astype(draw(st.sampled_from([np.int32, np.int64]))),
        as_keys if wide else as_keys.astype(np.int32),
        cast,
        **given,
    )


def rows_of(source, **options):
    """Return rows as plain values, with their places."""
    found = []
    for block in source.blocks(**options):
        native = block.native
        starts, keys, values = (np.asarray(a) for a in (native.starts, native.keys, native.values))
        label_starts, labels = block.label_sets()
        for row in range(block.rows):
            cells = slice(starts[row], starts[row + 1])
            found.append(
                (
                    block.place(row),
                    labels[label_starts[row] : label_starts[row + 1]].tolist(),
                    keys[cells].astype(np.int64).tolist(),
                    values[cells].tolist(),
                    1.0 if block.weights is None else float(block.weights[row]),
                    "" if block.tags is None else block.tags[row],
                )
            )
    return found
