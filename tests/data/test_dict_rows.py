"""Rows given as dicts: their features, and errors that name the feature."""

from __future__ import annotations

from collections import OrderedDict
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import dok_matrix

import thresher
from support.dict_cases import ROWS
from thresher import OnePassClassifier, TruncatedGradientRegressor
from thresher.data.dict_rows import DictRows, is_dict_rows, plain


def features(row):
    """Return names and values of the features of a row."""
    native = next(iter(DictRows([row]).blocks(names=True))).native
    names = dict(native.names)
    keys = np.asarray(native.keys).astype(np.int64).view(np.uint64).tolist()
    return {names[key]: v for key, v in zip(keys, native.values.tolist(), strict=True)}


def test_features_of_each_type():
    row = {"n": 2, "s": "red", "b": True, "none": None, "words": ["a", "b", "a"], 7: 1.5}
    assert features(row) == {
        b"n": 2.0, b"s^red": 1.0, b"b": 1.0, b"words^a": 2.0, b"words^b": 1.0, b"7": 1.5,
    }  # fmt: skip
    assert features({"ids": [3, 4]}) == {b"ids^3": 1.0, b"ids^4": 1.0}
    assert features({"v": (0.5, None, 2)}) == {b"v^0": 0.5, b"v^2": 2.0}
    assert features({"n": np.float32(0.5), "i": np.int64(3), "t": np.bool_(True)}) == {
        b"n": 0.5, b"i": 3.0, b"t": 1.0,
    }  # fmt: skip


@given(ROWS)
def test_plain_rows_have_the_same_features(row):
    changed = {
        name: tuple(value) if isinstance(value, list) else value for name, value in row.items()
    }
    usual = plain(MappingProxyType(changed))
    if usual is not None:
        assert features(usual) == features(row)


def test_plain_leaves_out_what_it_cannot_change():
    assert plain({"a": 1.0}) is None
    assert plain([1.0]) is None
    assert plain({"v": [0.5], "v^0": 1.0}) is None
    assert plain({"v": ["a", 1]}) is None
    assert plain(OrderedDict(a=1.0)) is None
    assert plain({"v": [0.5, 2.0]}) == {"v^0": 0.5, "v^1": 2.0}


BAD = [
    ({"ok": 1.0, "x": float("nan")}, r"feature 'x': nan is not a finite number"),
    ({"x": float("inf")}, "feature 'x': inf is not a finite number"),
    ({"x": 1e300}, r"feature 'x': 1e\+300 is too large for float32"),
    ({"x": 10**400}, "feature 'x': the number is too large"),
    ({"x": {"y": 1.0}}, "feature 'x': expected a number, .* found dict"),
    ({"x": b"bytes"}, "feature 'x': expected a number, .* found bytes"),
    ({"x": ["a", 1]}, "feature 'x': a list must hold only strings or only numbers; found str"),
    ({"x": [["a"]]}, "feature 'x': a list must hold .* found list"),
    ({"x": 1j}, "feature 'x': expected a number, .* found complex"),
    ({"x": np.array([1.0])}, "feature 'x': expected a number, .* found ndarray"),
    ({1.5: 1.0}, r"feature '1\.5': a name must be a string or a whole number; found float"),
    ({("a", "b"): 1.0}, "a name must be a string or a whole number; found tuple"),
    ({True: 1.0}, "a name must be a string or a whole number; found bool"),
    ({"x": "\ud800"}, "feature 'x': its text is not valid Unicode"),
]


@pytest.mark.parametrize(("row", "message"), BAD)
def test_bad_values_name_the_feature_and_nothing_is_learned(row, message):
    estimator = OnePassClassifier()
    with pytest.raises(thresher.DataError, match=message):
        estimator.learn_one(row, True)
    assert estimator.predict_one({"ok": 1.0}) is None
    estimator.learn_one({"ok": 1.0}, True).learn_one({"ok": -1.0}, False)
    before = estimator.state_.outputs.states()
    with pytest.raises(thresher.DataError, match=message):
        estimator.learn_one(row, True)
    with pytest.raises(thresher.DataError, match=message):
        estimator.partial_fit([{"ok": 1.0}, row], [True, False])
    assert estimator.state_.outputs.states() == before
    if "float32" not in message:
        with pytest.raises(thresher.DataError, match=message):
            estimator.predict_one(row)
        with pytest.raises(thresher.DataError, match=message):
            estimator.model_.predict_proba_one(row)
        with pytest.raises(thresher.DataError, match=message):
            estimator.predict([row])
    estimator.learn_one({"ok": 1.0}, True)
    assert estimator.state_.outputs_steps == 3


def test_bad_labels_and_weights_learn_nothing():
    estimator = TruncatedGradientRegressor().learn_one({"a": 1.0}, 1.0)
    for y, w, message in [
        (float("nan"), 1.0, "the row has no label"),
        (None, 1.0, "the row has no label"),
        (float("inf"), 1.0, "the label is inf"),
        ("word", 1.0, "the label is 'word'; a number was expected"),
        (1.0, -1.0, "a weight must be finite and 0 or more"),
        (1.0, float("nan"), "a weight must be finite and 0 or more"),
    ]:
        with pytest.raises(thresher.DataError, match=message):
            estimator.learn_one({"a": 1.0}, y, w)
    with pytest.raises(thresher.ParameterError, match="one label, not several"):
        estimator.learn_one({"a": 1.0}, [1.0])
    for row in ([1.0], "text", None, 3):
        with pytest.raises(thresher.ParameterError, match="a row must be a dict"):
            estimator.learn_one(row, 1.0)
        with pytest.raises(thresher.ParameterError, match="a row must be a dict"):
            estimator.predict_one(row)
    assert estimator.state_.outputs_steps == 1
    two = OnePassClassifier().learn_one({"a": 1.0}, True)
    with pytest.raises(thresher.DataError, match="the label 2 is not among the classes"):
        two.learn_one({"a": 1.0}, 2)


def test_numbers_of_labels_and_rows_must_match():
    with pytest.raises(thresher.DataError, match="expected 2 labels, one for each row; found 1"):
        TruncatedGradientRegressor().partial_fit([{"a": 1.0}, {"b": 1.0}], [1.0])
    with pytest.raises(thresher.DataError, match="with one number or string each"):
        TruncatedGradientRegressor().partial_fit([{"a": 1.0}], [[1.0, 2.0]])
    with pytest.raises(thresher.DataError, match="example 2 is not a dict"):
        TruncatedGradientRegressor().partial_fit([{"a": 1.0}, [1.0]], [1.0, 2.0])
    one = TruncatedGradientRegressor().partial_fit({"a": 1.0}, 2.0, sample_weight=3.0)
    other = TruncatedGradientRegressor().learn_one({"a": 1.0}, 2.0, w=3.0)
    assert one.state_.outputs.states() == other.state_.outputs.states()


@given(st.sampled_from([[], [[1.0]], np.zeros((1, 1)), dok_matrix((1, 1)), "text", None, 3]))
def test_other_inputs_are_not_dicts(X):
    assert not is_dict_rows(X)
