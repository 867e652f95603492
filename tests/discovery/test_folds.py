"""Folds: balanced within strata, independent of blocks, never dividing a group."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from thresher.discovery.folds import FoldDealer


@given(
    strata=st.lists(st.integers(0, 3), min_size=1, max_size=80),
    folds=st.integers(2, 9),
    seed=st.integers(0, 2**63 - 1),
    cut=st.integers(0, 80),
)
def test_folds_are_balanced_and_independent_of_blocks(strata, folds, seed, cut):
    strata = np.array(strata, np.int64)
    found = FoldDealer(folds, seed).deal(strata)
    assert found.dtype == np.int64
    assert ((found >= 0) & (found < folds)).all()
    for stratum in set(strata.tolist()):
        sizes = np.bincount(found[strata == stratum], minlength=folds)
        assert sizes.max() - sizes.min() <= 1
    dealer = FoldDealer(folds, seed)
    first = dealer.deal(strata[:cut])
    other = FoldDealer(folds, seed)
    other.state = json.loads(json.dumps(dealer.state))
    np.testing.assert_array_equal(np.concatenate([first, other.deal(strata[cut:])]), found)
    dealer.restart()
    np.testing.assert_array_equal(dealer.deal(strata), found)


@given(st.integers(2, 9), st.integers(0, 2**63 - 1), st.integers(0, 2**32))
def test_groups_are_not_divided(folds, seed, draw):
    groups = np.random.default_rng(draw).integers(0, 30, 200)
    found = FoldDealer(folds, seed).deal(np.arange(200) % 2, groups)
    for group in set(groups.tolist()):
        assert len(set(found[groups == group].tolist())) == 1
    again = FoldDealer(folds, seed).deal(np.zeros(200, np.int64), groups)
    np.testing.assert_array_equal(again, found)
    sizes = np.bincount(found, minlength=folds)
    assert sizes.max() - sizes.min() <= np.bincount(groups).max()


@given(st.integers(2, 9), st.integers(0, 2**63 - 1), st.integers(0, 20))
def test_few_groups_use_all_folds(folds, seed, more):
    groups = np.repeat(np.arange(folds + more), np.arange(1, folds + more + 1))
    found = FoldDealer(folds, seed).deal(np.zeros(len(groups), np.int64), groups)
    assert set(found.tolist()) == set(range(folds))


def test_folds_are_random():
    strata = np.zeros(5000, np.int64)
    found = FoldDealer(5, 1).deal(strata)
    assert (found != FoldDealer(5, 2).deal(strata)).mean() > 0.75
    together = np.zeros((5, 5))
    np.add.at(together, (found[:-1], found[1:]), 1)
    assert np.abs(together / 1000 - 0.24)[~np.eye(5, dtype=bool)].max() < 0.06
    assert 0.03 < together.diagonal().sum() / 5000 < 0.05  # only between two turns: 4 %
    both = FoldDealer(5, 1).deal(np.arange(5000) % 2)
    assert abs((both[::2] == both[1::2]).mean() - 0.2) < 0.04  # strata differ
    grouped = FoldDealer(5, 3).deal(strata, np.arange(5000))
    assert np.bincount(grouped).tolist() == [1000] * 5
    other = FoldDealer(5, 4).deal(strata, np.arange(5000))
    assert (grouped != other).mean() > 0.75
    together = np.zeros((5, 5))
    np.add.at(together, (grouped[:-1], grouped[1:]), 1)
    assert np.abs(together / 1000 - 0.2).max() < 0.06
