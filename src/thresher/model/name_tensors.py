"""Names of features as arrays: a million names in JSON would take seconds to read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

TENSORS = {"named": np.uint64, "name_ends": np.int64, "name_text": np.uint8}


def to_tensors(names: Mapping[int, bytes]) -> dict[str, NDArray[Any]]:
    """Return the features, the end of each name, and all names joined."""
    features = sorted(names)
    texts = [names[feature] for feature in features]
    return {
        "named": np.array(features, np.uint64),
        "name_ends": np.cumsum([len(text) for text in texts], dtype=np.int64),
        "name_text": np.frombuffer(b"".join(texts), np.uint8),
    }


def from_tensors(tensors: Mapping[str, NDArray[Any]]) -> dict[int, bytes]:
    """Return the names; raise ValueError if the arrays do not match."""
    named, ends, text = (tensors[name] for name in TENSORS)
    if any(
        tensors[name].dtype != kind or tensors[name].ndim != 1 for name, kind in TENSORS.items()
    ):
        raise ValueError("its names have a wrong type or shape")
    last = int(ends[-1]) if len(ends) else 0
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64) if len(ends) else ends
    if len(named) != len(ends) or last != len(text) or (ends < starts).any() or (starts < 0).any():
        raise ValueError("the arrays of its names do not match")
    content = text.tobytes()
    found = {
        feature: content[start:end]
        for feature, start, end in zip(named.tolist(), starts.tolist(), ends.tolist(), strict=True)
    }
    if len(found) < len(named):
        raise ValueError("a feature has two names")
    return found
