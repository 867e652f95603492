"""The check of columns that are correlated with selected columns."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from thresher import FeatureDiscovery
from thresher.data.matrix_source import MatrixSource
from thresher.discovery import DiscoveryWarning, correlated
from thresher.discovery.correlated import correlated_columns, correlations

RNG = np.random.default_rng(0)


def rows(n=600):
    """Return columns of which 1 and 4 have a correlation of about 0.98."""
    X = RNG.normal(size=(n, 12))
    X[:, 4] = X[:, 1] + 0.2 * X[:, 4]
    return X


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("part", [100, 1 << 22])
def test_correlations_are_those_of_numpy(form, part, monkeypatch):
    monkeypatch.setattr(correlated, "_PART", part)
    X = rows() + 3.0
    at = np.array([1, 4, 9])
    found = correlations(form(X), at)
    np.testing.assert_allclose(found, np.corrcoef(X.T)[at], atol=1e-9)
    X[:, [2, 4]] = 7.1  # constant columns
    found = correlations(form(X), at)
    assert np.isfinite(found).all()
    assert not found[:, 2].any()
    assert not found[1].any()


def test_strong_correlations_fail():
    X = rows()
    source = MatrixSource(X, X[:, 0] > 0)
    assert correlated_columns(source, [0, 2, 3]).fine
    check = correlated_columns(source, [0, 1])
    assert not check.fine
    assert check.value == 0.5
    assert "1 of 2 selected features have a correlation above 0.8" in check.message
    assert "columns 1 and 4: 0.98" in check.message
    assert "knockoffs" in check.message
    few = correlated_columns(source, [0, 1, 2, 3, 5, 6, 7, 8, 9, 10])  # 10 %
    assert few.fine
    assert correlated_columns(source, [1, 4], np.arange(12) % 3).fine  # of one group
    assert correlated_columns(source, []).fine


def test_rows_of_weight_0_do_not_count():
    X, weights = rows(), np.ones(600)
    X[:300, 4] = RNG.normal(size=300)
    weights[:300] = 0
    assert correlated_columns(MatrixSource(X, X[:, 0] > 0), [1]).fine
    assert not correlated_columns(MatrixSource(X, X[:, 0] > 0, weights), [1]).fine


def test_what_is_not_checked(monkeypatch):
    X = rows()
    source = MatrixSource(X, X[:, 0] > 0)
    monkeypatch.setattr(correlated, "_WIDEST", 11)
    check = correlated_columns(source, [1])
    assert (check.result, check.to_json()["value"]) == ("not checked", None)
    assert "more than 11 columns" in check.message
    monkeypatch.undo()
    monkeypatch.setattr(correlated, "_WORK", 100)
    assert correlated_columns(source, [1]).result == "not checked"
    assert correlated_columns(None, [1]).result == "not checked"


def test_a_discovery_warns():
    X = rows(2000)
    y = X[:, 1] + RNG.logistic(size=2000) > 0
    with pytest.warns(DiscoveryWarning, match="correlated columns: "):
        found = FeatureDiscovery(random_state=0).fit(X, y)
    names = [check["name"] for check in json.loads(found.to_json())["checks"]]
    assert names[-2:] == ["correlated columns", "near-copies"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscoveryWarning)
        groups = np.array([0, 1, 2, 3, 1, *range(5, 12)])
        found = FeatureDiscovery(feature_groups=groups, random_state=0).fit(X, y)
    assert {check.name: check for check in found.checks_}["correlated columns"].fine
