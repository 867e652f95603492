"""Until the core has them: hashes and blocks in plain Python, under the core's names."""

import hashlib
from itertools import pairwise

import numpy as np

from thresher import _core


def hash_name(name):
    return int.from_bytes(hashlib.blake2b(bytes(name), digest_size=8).digest(), "little")


def hash_strings(offsets, data, prefix):
    text = np.asarray(data).tobytes()
    ends = np.asarray(offsets).tolist()
    hashes = [hash_name(prefix + text[a:b]) for a, b in pairwise(ends)]
    return np.array(hashes, np.uint64)


class Block:
    def __init__(self, starts, keys, values, labels, weights, names, columns, first_line):
        self.starts, self.keys, self.values = starts, keys, values
        self.labels, self.weights, self.names = labels, weights, names or []
        self.width, self.first_line = columns, first_line
        self.rows = len(starts) - 1

    @property
    def batch(self):
        columns = self.width or 1 << 62
        return _core.sparse_batch(
            self.starts, self.keys, self.values, columns, self.labels, self.weights
        )

    def line(self, row):
        if not 0 <= row < self.rows:
            raise IndexError("row")
        return self.first_line + row


def make_block(
    starts,
    keys,
    values,
    labels=None,
    weights=None,
    label_starts=None,
    label_values=None,
    tags=None,
    names=None,
    columns=0,
    distinct=False,
    first_line=1,
):
    assert starts.dtype == np.int64
    assert keys.dtype in (np.int32, np.int64)
    assert len(keys) == len(values) == starts[-1]
    for column in (labels, weights):
        assert column is None or (column.dtype == np.float64 and len(column) == len(starts) - 1)
    block = Block(starts, keys, values, labels, weights, names, columns, first_line)
    block.label_starts, block.label_values = label_starts, label_values
    return block


def install():
    for part in (hash_name, hash_strings, make_block):
        if not hasattr(_core, part.__name__):
            setattr(_core, part.__name__, part)
