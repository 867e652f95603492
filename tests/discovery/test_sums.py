"""Sums of evidence: the sum over two parts of the rows is that over all rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.discovery_cases import Rows, core, rows_of
from thresher import ParameterError
from thresher.discovery import EvidenceSums

TASKS = ("classification", "regression")


def scored(rows: Rows, task: str, parts: list[np.ndarray], redraws: int = 6):
    """Return the sums of each part of the rows, with models without weights."""
    found = []
    for part in parts:
        made = core(task, rows.X.shape[1], folds=2, redraws=redraws, seed=5)
        made.finish(0), made.finish(1)
        for t in part:  # one row a time: the calibration of this row alone
            alone = core(task, rows.X.shape[1], folds=2, redraws=redraws, seed=5)
            alone.finish(0), alone.finish(1)
            one = Rows(rows.X[[t]], rows.y[[t]], rows.h[[t]], rows.order, rows.folds)
            alone.score(one.batch(), np.zeros(1, np.int64), int(t))
            found.append(EvidenceSums.of_core(alone.sums(), redraws))
    return found


def test_sums_of_rows_make_the_sum_of_all():
    """Rows whose models and numbers are the same add up to the sums of one reading."""
    task = "classification"  # in a regression, a row alone has no evidence
    rows = rows_of(3, task, weights="fractions")
    rows.y = np.round(rows.y)
    alone = scored(rows, task, [np.arange(60)])
    total = EvidenceSums.total(alone)
    halves = EvidenceSums.total(alone[:23]) + EvidenceSums.total(alone[23:])
    for name in ("keys", "rows", "S", "realised", "predicted", "redrawn_S"):
        np.testing.assert_allclose(
            getattr(halves, name), getattr(total, name), rtol=1e-5, atol=1e-5
        )
    np.testing.assert_array_equal(total.rows, [
        np.count_nonzero(rows.X[rows.h > 0, j]) for j in total.keys.astype(int)
    ])  # fmt: skip
    h, x = rows.h[:, None], rows.X[:, total.keys.astype(int)]
    # Every p is 0.5.
    np.testing.assert_allclose(total.S, (h * x * (rows.y[:, None] - 0.5)).sum(axis=0))
    np.testing.assert_allclose(total.predicted, (h * h * x * x / 4).sum(axis=0))
    np.testing.assert_allclose(total.redrawn_D, 0.0)


@given(
    seed=st.integers(0, 2**32), task=st.sampled_from(TASKS), redraws=st.integers(1, 5),
    few=st.booleans(),
)  # fmt: skip
def test_sums_are_added_by_key(seed, task, redraws, few):
    rng = np.random.default_rng(seed)

    def part(n):
        D = None if task == "regression" else rng.normal(size=(n, redraws)).astype(np.float32)
        keys = np.sort(rng.choice(2**62, n, replace=False)).astype(np.uint64)
        keys[: n // 2] = np.arange(n // 2)
        S = rng.normal(size=(n, redraws)).astype(np.float32)
        return EvidenceSums(np.sort(keys), *rng.random((4, n)), S, D)

    parts = [part(n) for n in ((0, 3, 5) if few else (4, 9, 2))]
    total = EvidenceSums.total(parts)
    expected: dict[int, float] = {}
    for each in parts:
        for key, value in zip(each.keys.tolist(), each.S.tolist(), strict=True):
            expected[key] = expected.get(key, 0.0) + value
    assert total.keys.tolist() == sorted(expected)
    np.testing.assert_allclose(total.S, [expected[key] for key in sorted(expected)])
    swapped = parts[1] + parts[0]
    np.testing.assert_array_equal((parts[0] + parts[1]).redrawn_S, swapped.redrawn_S)
    assert total.redraws == redraws
    assert (total.redrawn_D is None) == (task == "regression")


def test_z_by_its_definition():
    sums = EvidenceSums(
        np.arange(3, dtype=np.uint64), np.ones(3), np.array([2.0, -3.0, 1.0]),
        np.array([1.0, 2.0, 0.0]), np.array([1.0, 0.5, 0.0]),
        np.array([[1.0, -1.0], [2.0, 0.0], [0.0, 0.0]], np.float32),
        np.array([[0.3, -0.3], [0.0, 0.6], [0.0, 0.0]], np.float32),
    )  # fmt: skip
    np.testing.assert_allclose(sums.z(), [2.0, -3.0, 0.0])
    expected = [[1 / np.sqrt(1.1), 1 / np.sqrt(0.9)], [2 / np.sqrt(0.5), 0.0], [0.0, 0.0]]
    np.testing.assert_allclose(sums.redrawn_z(), expected, rtol=1e-6)
    flipped = EvidenceSums(*(getattr(sums, n) for n in (
        "keys", "rows", "S", "realised", "predicted", "redrawn_S",
    )), None)  # fmt: skip
    np.testing.assert_allclose(flipped.redrawn_z()[:2], [[1.0, 1.0], [2.0, 0.0]])


def test_sums_of_other_redraws_or_tasks_are_refused():
    one = EvidenceSums(*np.ones((5, 1)), np.ones((1, 2)), np.zeros((1, 2)))
    more = EvidenceSums(*np.ones((5, 1)), np.ones((1, 3)), np.zeros((1, 3)))
    other = EvidenceSums(*np.ones((5, 1)), np.ones((1, 2)), None)
    for wrong in (more, other):
        with pytest.raises(ParameterError, match="same task and number of redraws"):
            one + wrong
