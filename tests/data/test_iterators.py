"""Iterators of batches and of dicts: features, labels and weights of the rows."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from thresher import _core
from thresher.data.block import Position
from thresher.data.features import key_of
from thresher.data.iterators import IteratorSource
from thresher.errors import DataError, ParameterError


def dense(block, width):
    rows = np.zeros((block.rows, width))
    starts, keys, values = block.native.starts, block.native.keys, block.native.values
    for row in range(block.rows):
        for i in range(starts[row], starts[row + 1]):
            rows[row, keys[i]] += values[i]
    return rows


def features(block):
    keys, values = block.native.keys.view(np.uint64).tolist(), block.native.values.tolist()
    starts = block.native.starts.tolist()
    return [dict(zip(keys[a:b], values[a:b], strict=True)) for a, b in itertools.pairwise(starts)]


# --- batches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.coo_array])
def test_matrices(make, dtype):
    X = np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, -3]])
    y = [1, 0, 1]
    first, second = IteratorSource([(make(X), y), (make(X[:1]), y[:1], [0.5])]).blocks(dtype=dtype)
    np.testing.assert_array_equal(dense(first, 3), X)
    assert first.native.values.dtype == dtype
    assert first.labels.tolist() == y
    assert first.native.weights is None
    assert second.native.weights.tolist() == [0.5]
    assert second.place(0) == "iterator:4"
    assert (first.end, second.end) == (Position(0, 1, 3), Position(0, 2, 4))
    assert first.native.width == 3


def test_a_batch_can_be_learned():
    (block,) = IteratorSource([(np.eye(3), [1, 0, 1])]).blocks()
    assert (block.batch.rows, block.batch.columns) == (3, 3)


def test_integers_booleans_and_lists():
    for X in ([[1, 0]], np.array([[True, False]]), np.array([[1, 0]], np.uint8)):
        (block,) = IteratorSource([(X, [1])]).blocks()
        np.testing.assert_array_equal(dense(block, 2), [[1, 0]])


def test_without_labels():
    (block,) = IteratorSource([np.eye(2)]).blocks()
    assert np.isnan(block.labels).all()
    (block,) = IteratorSource([(np.eye(2), None)]).blocks()
    assert np.isnan(block.labels).all()


def test_bits_reduce_the_column_numbers():
    X = scipy.sparse.csr_array(([1.0, 2.0], [5, 17], [0, 2]), shape=(1, 20))
    (block,) = IteratorSource([(X, [1])], bits=3).blocks()
    assert block.native.keys.tolist() == [5, 1]
    assert block.native.width == 8


@pytest.mark.parametrize("module", ["pandas", "polars", "pyarrow"])
def test_frames(module):
    frames = pytest.importorskip(module, reason=f"needs {module}")
    pytest.importorskip("pyarrow", reason="needs the extra arrow")
    make = frames.table if module == "pyarrow" else frames.DataFrame
    frame = make({"age": [31.0, None], "city": ["Rome", "Oslo"], "ok": [True, False]})
    labels = ["a", "b"] if module == "pyarrow" else frames.Series(["a", "b"])
    (block,) = IteratorSource([(frame, labels)]).blocks(names=True)
    age, ok = key_of(b"age"), key_of(b"ok")
    rome, oslo = key_of(b"city^Rome"), key_of(b"city^Oslo")
    assert features(block) == [{age: 31, rome: 1, ok: 1}, {oslo: 1, ok: 0}]
    assert dict(block.native.names)[rome] == b"city=Rome"
    assert block.labels.tolist() == ["a", "b"]


# --- examples -------------------------------------------------------------------------------------


def test_dicts():
    examples = [
        ({"age": 31, "city": "Rome", "ok": True, "none": None}, 1),
        ({7: 0.5, "8": np.float32(2), b"raw": np.int8(3)}, 0),
        ({}, None),
    ]
    (block,) = IteratorSource(iter(examples)).blocks(dtype="float64", names=True)
    raw = _core.hash_name(b"raw")
    assert features(block) == [
        {key_of(b"age"): 31, key_of(b"city^Rome"): 1, key_of(b"ok"): 1},
        {7: 0.5, 8: 2, raw: 3},
        {},
    ]
    np.testing.assert_array_equal(block.labels, [1, 0, np.nan])
    names = dict(block.native.names)
    assert names[7] == b"7"
    assert names[raw] == b"raw"


def test_examples_with_weights_and_labels_of_text():
    (block,) = IteratorSource([({"a": 1}, "cat", 2), ({"a": 1}, "dog")]).blocks()
    assert block.labels.tolist() == ["cat", "dog"]
    assert block.native.labels is None
    assert block.native.weights.tolist() == [2, 1]


@given(
    rows=st.lists(
        st.dictionaries(
            st.text(max_size=4) | st.integers(0, 2**64 - 1),
            st.floats(-1e30, 1e30) | st.text(max_size=4) | st.booleans() | st.none(),
            max_size=5,
        ),
        max_size=12,
    ),
    bits=st.none() | st.integers(1, 63),
)
def test_every_feature_has_the_key_of_its_name(rows, bits):
    blocks = list(IteratorSource([(row, 1) for row in rows], bits).blocks(dtype="float64"))
    found = [
        list(
            zip(
                block.native.keys.view(np.uint64).tolist()[a:b],
                block.native.values[a:b],
                strict=True,
            )
        )
        for block in blocks
        for a, b in zip(block.native.starts, block.native.starts[1:], strict=False)
    ]
    mask = 2 ** (bits or 64) - 1
    expected = []
    for row in rows:
        sums = {}
        for name, value in row.items():
            if isinstance(value, str):
                key, value = _core.hash_name(f"{name}^{value}".encode()) & mask, 1
            elif value is not None:
                key = key_of(str(name).encode()) & mask
            else:
                continue
            sums[key] = sums.get(key, 0.0) + float(value)  # names may have the same key
        expected.append(list(sums.items()))
    assert found == expected


def test_blocks_of_a_thousand_examples_and_resuming():
    def examples():
        for i in range(2500):
            yield {"a": i}, i % 2

    source = IteratorSource(examples)
    blocks = list(source.blocks())
    assert [block.rows for block in blocks] == [1000, 1000, 500]
    assert [block.end.offset for block in blocks] == [1000, 2000, 2500]
    (rest,) = source.blocks(after=blocks[1].end)
    np.testing.assert_array_equal(rest.native.values, blocks[2].native.values)
    assert rest.end == blocks[2].end
    assert rest.place(0) == blocks[2].place(0) == "iterator:2001"
    assert list(source.blocks(after=blocks[2].end)) == []


def test_only_iterators_cannot_be_read_again():
    assert IteratorSource([]).rereadable
    assert IteratorSource(lambda: iter([])).rereadable
    assert not IteratorSource(iter([])).rereadable
    assert IteratorSource([]).size is None
    with pytest.raises(ParameterError, match="expected an iterator or a callable"):
        IteratorSource(3)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ((np.array([[1, np.nan]]), [1]), "batch 2: row 0, column 1: nan is not a finite float32"),
        ((np.array([[1, 1e60]]), [1]), r"batch 2: row 0, column 1: 1e\+60 is not a finite float32"),
        ((scipy.sparse.csr_array([[0, np.inf]]), [1]), "batch 2: row 0, column 1: inf"),
        ((np.eye(2), [1]), r"batch 2: expected 2 labels, one for each row; found \(1,\)"),
        ((np.eye(2), [1, 0], [1]), "batch 2: expected 2 weights"),
        ((np.eye(2), [1, 0], [1, -1]), "batch 2: row 1: a weight must be finite"),
        ((np.eye(2), [1, np.inf]), "batch 2: row 1: the label is inf"),
        ((np.eye(2), ["a", None]), "batch 2: labels must be all numbers, or all strings"),
        ((np.ones(3), [1, 2, 3]), r"X must have rows and columns; its shape is \(3,\)"),
        ((np.array([["a"]]), [1]), "X must hold numbers"),
        ((np.eye(2), [1, 0], [1, 1], 3), "batch 2: expected .* found a tuple of length 4"),
        (({"a": float("nan")}, 1), "example 2, feature 'a': nan is not a finite number"),
        (({"a": 1e300}, 1), r"example 2, feature 'a': 1e\+300 is too large for float32"),
        (({"a": 10**400}, 1), "example 2, feature 'a': the number is too large"),
        (({"a": {}}, 1), "example 2, feature 'a': expected a number, string.*found dict"),
        (({"a": 1}, 1, -1), "a weight must be"),
        (({"a": 1}, [1, 2]), "labels"),
    ],
)
def test_errors_name_bad_items(item, message):
    named = isinstance(item[0], dict)
    first = ({"b": 1}, 1) if named else (np.eye(2), [1, 0])
    blocks = IteratorSource([first, item], name="clicks").blocks()
    if not named:
        next(blocks)
    with pytest.raises(DataError, match=f"clicks: .*{message}" if message[0] != "b" else message):
        next(blocks)


@pytest.mark.parametrize("make", [lambda items: items, iter, lambda items: lambda: iter(items)])
def test_the_first_item_decides_whether_features_have_names(make):
    batch, example = (np.eye(2), [1, 0]), ({"a": 1}, 1)
    frame = (pytest.importorskip("pandas").DataFrame({"a": [1, 2]}), [1, 0])
    for items, named in [([batch], False), ([example], True), ([frame], True), ([], False)]:
        source = IteratorSource(make(items * 2))
        assert source.named == named
        assert sum(block.rows for block in source.blocks()) == sum(len(x[0]) for x in items * 2)
        if source.rereadable:
            assert sum(1 for _ in source.blocks()) == sum(1 for _ in source.blocks())
    assert IteratorSource(make([scipy.sparse.csr_array(np.eye(2))])).named is False
    for other in (example, frame):
        blocks = IteratorSource(make([batch, other])).blocks()
        next(blocks)
        with pytest.raises(DataError, match=r"iterator: .* 2: its features have names"):
            next(blocks)


def test_examples_before_and_after_batches():
    frame = pytest.importorskip("pandas").DataFrame({"a": [2.0, 3.0], "b": [0.5, 0.25]})
    items = [({"a": 1.0}, 1), ({"b": 5.0}, 0), (frame, [0, 1]), ({"a": 7.0}, 1), (frame, [1, 1])]
    blocks = list(IteratorSource(items).blocks(dtype="float64"))
    assert [block.rows for block in blocks] == [2, 2, 1, 2]
    values = [value for block in blocks for value in block.native.values]
    assert sorted(values) == sorted([1, 5, 2, 0.5, 3, 0.25, 7, 2, 0.5, 3, 0.25])
    assert [label for block in blocks for label in block.labels] == [1, 0, 0, 1, 1, 1, 1]
    assert [block.place(0) for block in blocks] == [f"iterator:{row}" for row in (1, 3, 5, 6)]


def test_errors_of_frames_name_the_batch():
    pd = pytest.importorskip("pandas")
    bad = pd.DataFrame({"a": np.array([1j, 2])})
    blocks = IteratorSource([({"a": 1}, 1), (bad, [0, 1])]).blocks()
    next(blocks)
    with pytest.raises(ParameterError, match=r"^iterator: batch 2: column 'a' has type complex128"):
        next(blocks)


def test_a_function_is_called_once_for_the_first_reading():
    calls = []

    def items():
        calls.append(1)
        return iter([(np.eye(2), [1, 0])])

    source = IteratorSource(items)
    list(source.blocks())
    assert len(calls) == 1
    assert len(list(source.blocks())) == 1
    assert len(calls) == 2
