"""Shortcuts for two classes and similar columns give what the general way gives."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from thresher import _core
from thresher.data.label_checks import distinct, places_of, two_targets
from thresher.data.matrix_source import MatrixBlock
from thresher.data.targets import Targets
from thresher.health import column_scales

INTEGERS = st.sampled_from([np.int8, np.uint8, np.int64, np.bool_])


@given(st.data(), INTEGERS)
def test_distinct_labels_are_those_of_unique(data, dtype):
    elements = st.booleans() if dtype is np.bool_ else st.integers(0, 3)
    labels = data.draw(arrays(dtype, st.integers(0, 30), elements=elements))
    found = distinct(labels)
    assert found.dtype == labels.dtype
    assert found.tolist() == np.unique(labels).tolist()


@given(arrays(np.float64, st.integers(0, 30), elements=st.sampled_from([-1.0, 0.0, 1.0, np.nan])))
def test_places_among_two_classes(labels):
    for classes in (np.array([-1, 1]), np.array([0.0, 1.0])):
        numbers, known = places_of(classes, labels)
        assert known.tolist() == np.isin(labels, classes).tolist()
        assert classes[numbers[known]].tolist() == labels[known].tolist()


NUMBERS = st.sampled_from([-1.0, 0.0, 1.0, np.nan])


@given(arrays(np.float64, st.integers(0, 30), elements=NUMBERS), st.booleans())
def test_targets_of_two_classes(labels, whole):
    classes = np.array([-1, 1]) if whole else np.array([0.0, 1.0])
    made = two_targets(classes, labels, -1.0)
    assert (made is None) == (not np.isin(labels, classes).all())
    if made is not None:
        assert made.tolist() == np.where(labels == 1, 1.0, -1.0).tolist()


@given(arrays(np.int64, st.integers(0, 30), elements=st.integers(0, 2)))
def test_targets_of_whole_numbers(labels):
    made = two_targets(np.array([0, 2]), labels, 0.0)
    assert (made is None) == (1 in labels)
    if made is not None:
        assert made.tolist() == (labels == 2).astype(float).tolist()


@pytest.mark.parametrize(
    "labels",
    [np.array([0, 1], np.int8), np.array(["a", "b"]), np.arange(4)[::2], np.array([0.5, 1.0])],
)
def test_targets_of_other_labels_take_the_general_way(labels):
    assert two_targets(np.array([0, 1]), labels, -1.0) is None


@given(arrays(np.float64, st.integers(0, 30), elements=NUMBERS))
def test_two_values(values):
    found, distinct_values = _core.two_values(values), np.unique(values)
    if np.isnan(values).any() or len(distinct_values) not in (1, 2):
        assert found is None
    else:
        low, high = distinct_values[0], distinct_values[-1]
        assert found == (low, high, np.count_nonzero(values == high))


def test_a_third_value_in_a_later_block():
    values = np.arange(10_000) % 2
    assert _core.two_values(values) == (0, 1, 5000)
    values[-1] = 2
    assert _core.two_values(values) is None


SIZES = st.sampled_from([0.0, -0.5, 2.0, np.nan, np.inf])


@given(arrays(np.float32, (12, 3), elements=SIZES), st.integers(0, 14), st.booleans())
def test_the_range_of_values_in_some_rows(table, rows, sparse):
    X = sp.csr_matrix(table) if sparse else table
    block = MatrixBlock(X, np.zeros(12))
    spread = block.spread(rows)
    seen = np.concatenate([part.first_values(rows)[1] for part in (block, spread) if part])
    sizes = np.abs(seen)[np.abs(seen) > 0]
    expected = (sizes.min(initial=np.inf), sizes.max(initial=0.0))
    assert block.value_range(rows) == expected


def test_the_range_of_values_needs_rows_of_the_batch():
    batch = MatrixBlock(np.ones((3, 2)), np.zeros(3)).batch
    assert batch.value_range(2, 2) == (1.0, 1.0)
    for count, step in ((4, 1), (2, 3), (1, 0), (-1, 1)):
        with pytest.raises(ValueError, match="rows of the batch"):
            batch.value_range(count, step)
    empty = MatrixBlock(np.ones((0, 2)), np.zeros(0)).batch
    with pytest.raises(ValueError, match="rows of the batch"):
        empty.value_range(1, 2)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared"])
@given(values=st.lists(st.sampled_from([-1.0, 1.0]), min_size=1, max_size=50))
def test_the_loss_of_predicting_zero(loss, values):
    def losses(raw, targets):
        return _core.loss_values(loss, 0.1, 0.5, raw, targets)[0]

    targets = np.array(values)
    expected = losses(np.zeros(len(targets)), targets).mean()
    assert Targets.of_values(targets).zero_loss(losses, None) == pytest.approx(expected)


@given(
    keys=arrays(np.int64, 60, elements=st.integers(0, 8)),
    logs=arrays(np.float64, 60, elements=st.floats(0, 3.5)),
)
def test_a_column_differs_only_if_its_mean_does(keys, logs):
    """Columns with at least 10 values: the shortcut never hides one that differs."""
    values = np.exp(logs)
    columns = np.unique(keys)
    mean = np.array([values[keys == column].mean() for column in columns])
    many = np.array([np.count_nonzero(keys == column) >= 10 for column in columns])
    usual = np.sort(mean)[(len(mean) - 1) // 2]
    expected = bool((many & (mean / usual >= 25)).any())
    found = column_scales.different_column(keys, values)
    assert (found is not None) == expected


@pytest.mark.parametrize("rows", [0, 1, 3, 10])
def test_the_first_rows_of_a_sparse_matrix_are_those_of_a_slice(rows):
    X = sp.csr_matrix([[0, 0, 0], [1, 0, 2], [0, 3, 0], [0, 0, 0], [4, 5, 6]], dtype=np.float32)
    block, part = MatrixBlock(X, np.zeros(5)), X[:rows]
    starts, values = block.first_values(rows)
    assert starts.tolist() == part.indptr.tolist()
    assert values.dtype == np.float64
    assert values.tolist() == part.data.tolist()
    assert block.first_keys(rows).tolist() == part.indices.tolist()
