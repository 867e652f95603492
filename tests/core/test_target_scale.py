"""The native standardisation of targets, against NumPy."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher import _core
from thresher.training.target_scale import TargetScale, merged

VALUES = st.floats(-1e6, 1e6)
EXTREMES = st.floats(-1e300, 1e300)


def naive(y, weights, centred):
    """Return y', sd after each row, by sums in extended precision over all rows so far."""
    labels, sds = [], []
    y, weights = np.asarray(y, np.longdouble), np.asarray(weights, np.longdouble)
    for t in range(1, len(y) + 1):
        w, seen = weights[:t], y[:t]
        total = w.sum()
        mean = (w @ seen) / total if centred and total > 0 else np.longdouble(0)
        variance = w @ (seen - mean) ** 2 / total if total > 0 else np.longdouble(0)
        sds.append(float(np.sqrt(variance)))
        labels.append(float((y[t - 1] - mean) / np.sqrt(variance)) if variance > 0 else 0.0)
    return np.array(labels), np.array(sds)


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(VALUES, st.sampled_from([0.0, 0.5, 1.0, 7.0])), min_size=1),
    centred=st.booleans(),
)
def test_it_equals_sums_over_all_rows_so_far(rows, centred):
    y, weights = (np.array(column) for column in zip(*rows, strict=True))
    made = TargetScale(2, centred).standardise(y, weights)
    labels, sds = naive(y, weights, centred)
    size = np.abs(y).max() * 1e-9  # the naive sums cancel
    assert made.end == len(y)
    assert np.allclose(made.sds[:, 0], sds, rtol=1e-6, atol=size)
    clear = sds > 100 * size
    assert np.allclose(made.labels[clear, 0], labels[clear], rtol=1e-5, atol=1e-5)
    assert np.array_equal(made.units, made.sds * made.sds)


@settings(deadline=None)
@given(
    y=st.lists(EXTREMES, min_size=1).map(np.array),
    cuts=st.lists(st.integers(0, 100), max_size=3),
    seed=st.integers(0, 9),
)
def test_it_does_not_depend_on_the_cuts(y, cuts, seed):
    order = np.random.default_rng(seed).permutation(len(y))
    whole, pieces = TargetScale(1, True), TargetScale(1, True)
    wanted = whole.standardise(y, None, order)
    edges = sorted({0, len(y), *(cut % (len(y) + 1) for cut in cuts)})
    found = np.full(len(y), np.nan)
    for first, last in itertools.pairwise(edges):
        rows = order[first:last]
        found[rows] = pieces.standardise(y[rows]).labels[:, 0]
    assert np.array_equal(found, wanted.labels[:, 0])
    assert np.isfinite(found).all()
    assert np.array_equal(pieces.table, whole.table)


@settings(deadline=None)
@given(
    y=st.lists(st.integers(-100, 100), min_size=2, max_size=30),
    power=st.integers(-900, 900),
    shift=st.integers(-1000, 1000),
)
def test_targets_are_equivariant(y, power, shift):
    y = np.array(y, float)
    plain = TargetScale(2, True).standardise(y)
    scaled = TargetScale(2, True).standardise(np.ldexp(y, power))
    assert np.array_equal(scaled.labels, plain.labels)  # powers of two change no bit
    shifted = TargetScale(2, True).standardise(y + shift)
    assert np.allclose(shifted.labels, plain.labels, atol=1e-9)
    alone = TargetScale(2, False).standardise(np.ldexp(y, power))
    assert np.array_equal(alone.labels, TargetScale(2, False).standardise(y).labels)


def test_constant_targets_are_zero():
    scale = TargetScale(2, True)
    made = scale.standardise(np.full(50, 0.1), np.linspace(0.0, 3.0, 50))
    assert not made.labels.any()
    assert not made.sds.any()
    assert scale.restored(np.array([3.0])).tolist() == [0.1]


def test_rows_of_weight_zero_do_not_count():
    scale = TargetScale(2, True)
    made = scale.standardise(np.array([5.0, 1.0, 9.0, 3.0]), np.array([0.0, 1.0, 0.0, 1.0]))
    assert made.labels.ravel().tolist() == [0.0, 0.0, 0.0, 1.0]
    assert scale.known == (2.0, 2.0, 1.0)


def test_a_repeated_row_ends_a_call():
    scale, order = TargetScale(2, True), np.array([0, 2, 0, 1])
    y = np.array([1.0, 2.0, 3.0])
    assert scale.standardise(y, None, order).end == 2
    assert scale.standardise(y, None, order, 2).end == 4
    assert scale.table[0, 3] == 4


def test_a_bad_row_keeps_its_target():
    scale = TargetScale(2, True)
    made = scale.standardise(np.array([1.0, np.inf, 2.0]))
    assert made.end == 2
    assert made.labels[1, 0] == np.inf
    y = np.array([1.0, 1e307])
    assert TargetScale(2, True).standardise(y).end == 1
    with pytest.raises(_core.DataError, match=r"row 1: the label is 1e\+307; its magnitude"):
        TargetScale(2, True).standardise(y, None, None, 1)


def test_clocks_count_the_rows_they_see():
    rng = np.random.default_rng(0)
    y, seen = rng.normal(size=40), rng.integers(0, 2, (40, 3)).astype(np.uint8)
    scale = TargetScale(1, True, clocks=3)
    made = scale.standardise(y, None, None, 0, 40, seen)
    for clock in range(3):
        rows = np.flatnonzero(seen[:, clock])
        alone = TargetScale(1, True).standardise(y[rows])
        assert np.array_equal(made.labels[rows, clock], alone.labels[:, 0])
        assert np.array_equal(made.units[rows, clock], alone.units[:, 0])


@given(st.lists(VALUES, min_size=1, max_size=20), st.lists(VALUES, min_size=1, max_size=20))
def test_parts_are_merged(one, other):
    parts = [TargetScale.of(2, True, np.array(y), None).known for y in (one, other)]
    whole = TargetScale.of(2, True, np.array(one + other), None).known
    assert np.allclose(merged(*parts), whole, rtol=1e-9, atol=1e-7)
    assert merged(parts[0], (0.0, 0.0, 0.0)) == parts[0]


def test_a_state_is_restored():
    scale, other = TargetScale(2, True), TargetScale(2, True)
    scale.standardise(np.array([0.1, 0.7, 1e300]))
    other.restore(scale.state())
    assert np.array_equal(other.table, scale.table)
    with pytest.raises(ValueError, match="damaged"):
        other.restore(b"{}")
    with pytest.raises(ValueError, match="of other models"):
        TargetScale(2, True, clocks=2).restore(scale.state())
