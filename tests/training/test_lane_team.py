"""Lanes on several threads give the same results as on one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from thresher import _core, rules
from thresher.data import as_batch
from thresher.rules import core_args
from thresher.training.lane_bytes import bytes_per_feature
from thresher.training.lane_turns import Turns
from thresher.training.lanes import Lane, LaneTeam, make_lanes

ROWS, WIDTH, CLOCKS = 90, 12, 3


def defaults(rule: str, **given: Any) -> dict[str, Any]:
    """Return the parameters of a classifier."""
    table = rules.RULES[rule].parameters
    return {name: p.default_for("classifier") for name, p in table.items()} | given


def some_lanes(count: int) -> list[Lane]:
    """Return lanes with several clocks, periods and penalties."""
    return [
        Lane(
            *core_args.core_parameters(
                "truncated-gradient",
                defaults("truncated-gradient", gravity=0.01 * i, period=1 + i % 2),
                ROWS,
            ),
            clock=i % CLOCKS,
        )
        for i in range(count)
    ]


@pytest.fixture
def rows() -> tuple[Any, Any, Any]:
    """Return rows, labels, and an array that says which clocks see which rows."""
    rng = np.random.default_rng(0)
    X = sp.random_array((ROWS, WIDTH), density=0.4, rng=rng, format="csr")
    y = np.where(rng.random(ROWS) < 0.5, 1.0, -1.0)
    return X, y, (rng.random((ROWS, CLOCKS)) < 0.7).astype(np.uint8)


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 50])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_number_of_threads_changes_nothing(rows: Any, n_jobs: int, dtype: str) -> None:
    """All results of a team equal those of the core's lanes, in the same order."""
    X, y, seen = rows
    lanes, batch = some_lanes(11), as_batch(X, y)
    alone = make_lanes("truncated_gradient", "dense", dtype, WIDTH, lanes)
    with LaneTeam("truncated_gradient", "dense", dtype, WIDTH, lanes, n_jobs) as team:
        assert len(team) == 11
        first = team.learn(batch, None, 0, ROWS, seen, before=True)
        np.testing.assert_array_equal(first, alone.learn(batch, None, 0, ROWS, seen, before=True))
        team.next_pass()
        alone.next_pass()
        order = np.random.default_rng(1).permutation(ROWS)
        assert team.learn(batch, order, 0, 50, seen) is None
        alone.learn(batch, order, 0, 50, seen)
        some = np.array([7, 0, 10, 3], np.int64)
        np.testing.assert_array_equal(team.predict(batch), alone.predict(batch))
        np.testing.assert_array_equal(
            team.predict(batch, some, order[:5]), alone.predict(batch, some, order[:5])
        )
        for name in ("nonzeros", "intercepts", "steps", "loss_sums", "weight_sums"):
            np.testing.assert_array_equal(getattr(team, name)(), getattr(alone, name)())
        for lane in range(11):
            for ours, theirs in zip(team.weights(lane), alone.weights(lane), strict=True):
                np.testing.assert_array_equal(ours, theirs)
        assert team.divergences == [""] * 11
        assert team.store_bytes > 0


def test_a_bad_row_stops_all_threads_before_it(rows: Any) -> None:
    """The error names the row, and every lane has learned the rows before it."""
    X, y, _ = rows
    bad = X.toarray()
    bad[40, 3] = np.nan
    with LaneTeam("truncated_gradient", "dense", "float64", WIDTH, some_lanes(6), 2) as team:
        with pytest.raises(_core.DataError, match="row 40"):
            team.learn(as_batch(bad, y))
        assert team.steps().tolist() == [40] * 6


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(1, 8), st.integers(0, 9))
def test_threads_have_about_the_same_work(clocks: list[int], threads: int, seed: int) -> None:
    """Each lane is in one part, whose pieces have all rows; none waits for one that comes later."""
    turns = Turns.of(clocks, threads)
    assert sorted(lane for part in turns.parts for lane in part) == list(range(len(clocks)))
    of_part: dict[int, list[Any]] = {}
    work = (np.random.default_rng(seed).random(len(turns.parts)) * 10).tolist()
    most = max(sum(work) / turns.threads, max(work))
    for own in turns.pieces(work):
        done = sum(work[part] * (end - begin) for part, begin, end in own)
        assert done <= (1 + 0.06 * turns.threads) * most
        for place, piece in enumerate(own):
            of_part.setdefault(piece.part, []).append((piece.begin, piece.end, place))
    for pieces in of_part.values():
        (first, *later), ends = sorted(pieces), [piece[1] for piece in sorted(pieces)]
        assert (first[0], ends[-1]) == (0.0, 1.0)
        assert len(later) < 2
        assert [piece[0] for piece in later] == ends[:-1]
        assert not later or first[2] == 0


@pytest.mark.parametrize("bad", [2, 80])
def test_a_bad_row_in_turns(rows: Any, bad: int) -> None:
    """A clock whose first rows fail in one thread does not learn its last rows in the other."""
    X, y, _ = rows
    spoiled = X.toarray()
    spoiled[bad, 3] = np.nan
    with LaneTeam("truncated_gradient", "dense", "float64", WIDTH, some_lanes(12), 2) as team:
        assert len(team.states()) == CLOCKS
        with pytest.raises(_core.DataError, match=f"row {bad}"):
            team.learn(as_batch(spoiled, y))
        assert team.steps().tolist() == [bad] * 12


@pytest.mark.parametrize("store", ["dense", "hashed"])
@pytest.mark.parametrize("rule", ["truncated-gradient", "ftrl", "averaged-sgd", "dual-averaging"])
@pytest.mark.parametrize("count", [1, 3, 20])
def test_memory_is_close_to_the_estimate(rule: str, store: str, count: int) -> None:
    """A store with every feature needs at most 1.2 times the estimate, and at least a quarter."""
    name = rules.RULES[rule].rate_from_rows
    params = defaults(rule) | ({name: 1.0} if name else {})
    lane = Lane(*core_args.core_parameters(rule, params, ROWS))
    lanes, width, core = [lane] * count, 270_000, rules.RULES[rule].core
    X = sp.csr_array((np.ones(width), np.arange(width), [0, width]), shape=(1, width))
    estimate = bytes_per_feature(core, store, "float32", lanes) * width
    made = make_lanes(core, store, "float32", width, lanes)
    made.learn(as_batch(X, np.ones(1)))
    assert made.store_bytes <= 1.2 * estimate
    if store == "hashed":  # a hashed store of a known width may become an array
        made = make_lanes(core, store, "float32", 0, lanes)
        made.learn(as_batch(X, np.ones(1)))
    assert estimate / 4 <= made.store_bytes <= 1.2 * estimate
