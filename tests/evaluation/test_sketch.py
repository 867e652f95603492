"""Metrics of more rows than are kept: within the bound that is reported."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thresher
from support.score_models import identity_model
from thresher.evaluation import rank_scores
from thresher.evaluation.curves import (
    Curve,
    average_precision_bound,
    lift,
    lift_bound,
    roc_auc_bound,
)
from thresher.evaluation.rank_scores import RankScores

SEEDS = st.integers(0, 2**20)
NAMES = ("roc_auc", "average_precision")
LIFTS = ("lift_at_0.01", "lift_at_0.1", "lift_at_0.2")


def rows_of(seed, shift):
    """Return scores and labels; the scores of later rows are shifted."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3000, 1)) * 2
    X[600:] += shift
    X[::7] = X[::7].round()
    p = 1 / (1 + np.exp(-(X[:, 0] - shift * (np.arange(3000) > 600))))
    return X, (rng.random(3000) < p).astype(int), rng.uniform(0.1, 3, 3000)


@given(SEEDS, st.sampled_from([0.0, 5.0, -40.0, 1e6]), st.booleans())
def test_a_sketch_is_within_its_bound(seed, shift, weighted):
    X, y, w = rows_of(seed, shift)
    w = w if weighted else None
    model = identity_model(1, [0, 1])
    exact = thresher.evaluate(model, X, y, w, replicates=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank_scores, "_BINS", 512)  # few, so that bins have several scores
        found = thresher.evaluate(model, X, y, w, replicates=0, exact=500)
    for name in LIFTS:
        assert abs(found[name] - exact[name]) <= found.metrics[name].bound + 1e-9
        assert exact.metrics[name].bound == 0
    for name in NAMES:
        bound = found.metrics[name].bound
        assert abs(found[name] - exact[name]) <= bound + 1e-12
        assert exact.metrics[name].bound == 0
        if shift in (0.0, 5.0):
            assert 0 < bound < 0.05
    assert any("counted in bins" in remark for remark in found.remarks)
    assert found["accuracy"] == pytest.approx(exact["accuracy"])


def test_scores_that_are_equal_have_no_error():
    rng = np.random.default_rng(0)
    X = rng.integers(-5, 6, (4000, 1)).astype(float)
    y = (X[:, 0] + rng.normal(size=4000) > 0).astype(int)
    model = identity_model(1, [0, 1])
    found = thresher.evaluate(model, X, y, exact=100)
    exact = thresher.evaluate(model, X, y)
    for name in NAMES:
        assert found.metrics[name].bound == 0
        assert found[name] == pytest.approx(exact[name])
        low, high = exact.metrics[name].low, exact.metrics[name].high
        assert (found.metrics[name].low, found.metrics[name].high) == pytest.approx((low, high))


@given(SEEDS)
def test_several_columns(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5000, 3))
    y = (X + rng.normal(size=X.shape)).argmax(axis=1)
    model = identity_model(3, ["a", "b", "c"])
    labels = np.array(["a", "b", "c"])[y]
    exact = thresher.evaluate(model, X, labels, replicates=5)
    found = thresher.evaluate(model, X, labels, replicates=5, exact=3000)
    for name in NAMES:
        assert abs(found[name] - exact[name]) <= found.metrics[name].bound + 1e-12
        assert found.metrics[name].bound < 1e-3
        change = found.metrics[name].replicates - exact.metrics[name].replicates
        assert np.abs(change).max() < 0.002


@given(SEEDS)
def test_bounds_hold_for_every_order_inside_of_a_group(seed):
    rng = np.random.default_rng(seed)
    scores = np.sort(rng.normal(size=12))
    positive = rng.random(12) < 0.5
    positive[:2] = True, False
    weights = rng.uniform(0.5, 2, 12)
    groups = np.repeat([0, 1, 2], 4)
    coarse = Curve.of(groups.astype(float), positive, weights)
    coarse = Curve(coarse.thresholds, coarse.hits, coarse.misses, np.ones(3, bool))
    from thresher.evaluation.curves import average_precision, roc_auc

    for trial in range(20):
        order = np.concatenate([4 * g + rng.permutation(4) for g in range(3)])
        if trial < 2:  # the best and the worst order
            order = np.lexsort((positive if trial else ~positive, groups))
        exact = Curve.of(scores, positive[order], weights[order])
        for metric, bound in (
            (roc_auc, roc_auc_bound(coarse)),
            (average_precision, average_precision_bound(coarse)),
            *((partial(lift, share=s), lift_bound(coarse, s)) for s in (0.05, 0.4, 0.7, 1.0)),
        ):
            assert abs(metric(exact) - metric(coarse)) <= bound + 1e-12


def test_kept_rows_are_not_copied_forever():
    """Scores take 13 bytes a row without weights: score, class and number of the row."""
    ranks = RankScores(1, 10_000, None)
    for start in range(0, 5000, 500):
        numbers = np.arange(start, start + 500)
        ranks.add(np.ones((500, 1)), np.ones(500, np.intp), None, numbers, None)
    assert ranks.exact
    kept = ranks.kept()
    assert sum(part.itemsize for part in kept if part is not None) == 13
    assert kept[2] is None
    assert kept[3].tolist() == list(range(5000))
