"""Small caches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from thresher import _core
from thresher.data.cache_writer import CacheWriter


def plain_block(rows: int = 3, seed: int = 0) -> _core.Block:
    rng = np.random.default_rng(seed)
    X = sp.random(rows, 40, 0.2, "csr", np.float64, rng)
    y = rng.choice([-1.0, 1.0], rows)
    return _core.make_block(
        X.indptr,
        X.indices,
        X.data,
        y,
        tags=[b"t%d" % i for i in range(rows)],
        names=[(3, b"three")],
    )


def write_cache(path: Path, *some: _core.Block, about: str = "{}", sketch: bytes = b"") -> bytes:
    with CacheWriter(path, about) as writer:
        for block in some:
            writer.add(block)
        writer.finish(sketch)
    return path.read_bytes()
