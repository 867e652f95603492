"""The margin perceptron with features in blocks (R-9.6); a batch uses the weights before it.

    Block of a feature: its key mixed by SplitMix64, modulo the number of blocks.

    For a batch of rows, with w and b before the batch:
        q_i^k = sum over the features j of block k of w_j x_ij   (+ b in block 0)
        p_i = sum over k of q_i^k

    Then each block k learns the rows of the batch in their order, independently of other blocks.
    A row makes the steps of `repeats`; a slope of 1 moves the prediction by r eta ||x_i^k||^2.
    With q' its share of the prediction with its current weights, r = ||x_i||^2 / ||x_i^k||^2 (the
    intercept is a feature of block 0 with x = 1; single precision, at most 1e9; 0 if the row has no
    features in the block, 1 if it has none in any block) and e = eta s, s the weight of a step:
        if y_i (p_i + r (q'_i^k - q_i^k)) <= tau:   an update of block k
            w_j = soft(w_j + e y_i x_ij, l1) where x_ij != 0, or for all j of the block; in block 0
            b = b + e y_i

If a row that is not empty has no features in a block, the block makes no update; with shrink="all"
it only shrinks. A row makes an update if any block does. The bound of ||w||^2 + b^2 is the sum over
blocks and their updates of e^2 ||x^k||^2 + 2 e y q' - eps (R-9.8 for each block's features).
Training stops after a batch that brings the density to ``max_density``, after a scan without an
update, or when the order ends. A batch of one row is ``margin_perceptron``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .margin_perceptron import shrinkage
from .operators import soft
from .repeats import repeats, slope
from .result import Matrix, Order, Vector

_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class ColumnsResult:
    """The model, and why training ended."""

    weights: Vector
    intercept: float
    updates: int
    bound: float
    scan_losses: list[float]
    """Mean progressive loss of each whole scan."""
    stop: str
    """Why it ended: "density", "no update" (in a whole scan) or "order"."""


def block_of(key: int, blocks: int) -> int:
    """Return the block of a feature."""
    z = (key + 0x9E3779B97F4A7C15) & _WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
    return (z ^ (z >> 31)) % blocks


def margin_columns(
    X: Matrix,
    y: Vector,
    order: Order,
    *,
    batch: int,
    blocks: int,
    keys: Any = None,
    margin: float = 0.0,
    eta: float = 1.0,
    l1: float = 0.0,
    shrink: str = "touched",
    max_density: float | None = None,
    fit_intercept: bool = False,
    sample_weight: Vector | None = None,
    dtype: Any = np.float64,
) -> ColumnsResult:
    """Learn from the rows of X, whose columns have these keys (by default their numbers)."""
    real = np.dtype(dtype).type
    X = np.asarray(X, dtype=dtype)
    s = np.ones(len(X)) if sample_weight is None else sample_weight
    names = range(X.shape[1]) if keys is None else keys
    home = np.array([block_of(int(key), blocks) for key in names])

    w = np.zeros(X.shape[1], dtype=dtype)
    b, bound, updates, stop = 0.0, 0.0, 0, "order"
    scan_losses: list[float] = []

    def share(block: int, row: int) -> float:
        mine = home == block
        return float(w[mine] @ X[row, mine]) + (b if block == 0 else 0.0)

    def reach(block: int, row: int) -> float:
        one = 1.0 if fit_intercept else 0.0
        own = sum(float(v) ** 2 for v in X[row, home == block]) + (one if block == 0 else 0.0)
        whole = norm_of(row) + one
        return float(np.float32(min(whole / own, 1e9))) if own > 0 else float(whole == 0)

    def norm_of(row: int) -> float:
        return sum(float(v) ** 2 for v in X[row])

    for rows in order:
        updates_before, loss = updates, 0.0
        for first in range(0, len(rows), batch):
            taken = rows[first : first + batch]
            shares = [[share(block, row) for row in taken] for block in range(blocks)]
            sums = [sum(found) for found in zip(*shares, strict=True)]
            loss += sum(
                s[row] * max(0.0, margin - y[row] * p) for row, p in zip(taken, sums, strict=True)
            )
            updated = np.zeros(len(taken), bool)
            for block in range(blocks):
                mine = home == block
                for i, row in enumerate(taken):
                    label, x, r = float(y[row]), X[row], reach(block, row)
                    norm = sum(float(v) ** 2 for v in x[mine])
                    norm += 1 if block == 0 and fit_intercept else 0
                    J = mine & (x != 0) if shrink == "touched" else mine
                    if shrink == "touched" and r == 0:
                        continue
                    for weight, _ in repeats(s[row]):
                        now = share(block, row)
                        p = sums[i] + r * (now - shares[block][i])
                        e = eta * abs(slope("margin", p, label, weight, r * eta * norm, margin))
                        if e == 0:
                            continue
                        wt = w + real(e * label) * x
                        w = np.where(J, soft(wt, l1), w)
                        if block == 0 and fit_intercept:
                            b = b + e * label
                        bound += e * e * norm + 2 * e * label * now - shrinkage(wt[J], l1)
                        updated[i] = True
            updates += int(updated.sum())
            if max_density is not None and np.count_nonzero(w) / len(w) >= max_density:
                stop = "density"
                break
        else:
            scan_losses.append(loss / float(np.sum(s[rows])) if np.sum(s[rows]) > 0 else 0.0)
            if updates == updates_before:
                stop = "no update"
        if stop != "order":
            break
    return ColumnsResult(w, b, updates, bound, scan_losses, stop)
