"""Our parser of VW text against VW's own (`make bench-peers` installs it), for whole lines.

The hashes of names differ, so labels, weights and the sums of values are compared. VW leaves out
features whose value is zero, and reads values as float32.
"""

from __future__ import annotations

import importlib
import math
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

from reliability.differential import lines
from support.text_cases import read

PEERS = Path(__file__).resolve().parents[2] / "build" / "peers"


def workspace() -> Any:
    """Return VW; None if it is not installed."""
    sys.path.append(str(PEERS))
    try:
        return importlib.import_module("vowpalwabbit").Workspace("--quiet --noconstant")
    except ImportError:
        return None
    finally:
        sys.path.remove(str(PEERS))


def theirs(peer: Any, line: str) -> tuple[float, float, float]:
    """Return the label, the weight and the sum of values that VW reads."""
    example = peer.parse(line)
    total = sum(
        example.feature_weight(space, place)
        for space in range(example.num_namespaces())
        for place in range(example.num_features_in(space))
    )
    found = example.get_simplelabel_label(), example.get_simplelabel_weight(), total
    peer.finish_example(example)
    return found


def ours(line: str) -> tuple[float, float, float] | None:
    """Return the same of our parser; None if it refuses the line."""
    [block] = read(line.encode(), "vw", dtype="float64")
    if block.rows == 0:
        return None
    weight = 1.0 if block.weights is None else float(block.weights[0])
    return float(block.labels[0]), weight, float(np.sum(block.values))


def differs(peer: Any, line: str) -> str | None:
    """Return what differs in a line."""
    mine = ours(line)
    if mine is None:
        return "we refuse it"
    label, weight, total = theirs(peer, line)
    unlabelled = label > 3e38 or math.isnan(label)
    pairs = [(mine[1], weight), (mine[2], total)]
    pairs += [] if unlabelled and math.isnan(mine[0]) else [(mine[0], label)]
    close = all(math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-3) for a, b in pairs)
    return None if close else f"we read {mine}, VW reads {label, weight, total}"


def tried(count: int, seed: int) -> tuple[int, list[str]]:
    """Compare `count` lines; return that number and what was wrong."""
    peer = workspace()
    assert peer is not None, "VW is not installed: make bench-peers"
    rng = random.Random(seed)
    found: list[str] = []
    done = 0
    while done < count:
        for line in lines(rng).decode().split("\n"):
            done += 1
            if what := differs(peer, line):
                found.append(f"{line!r}: {what}")
    return done, found
