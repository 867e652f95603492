"""Checks of the rows: each finds what it is for, and is fine with independent rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.discovery import row_checks
from thresher.discovery.row_checks import Check, RowChecks

ROWS = 3000


def data(task="classification", seed=0, rows=ROWS):
    """Return targets, predictions, row lengths and hashes without any fault."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.2, 0.8, (1, rows))
    y = (rng.random((1, rows)) < p).astype(float)
    if task == "regression":
        y = 100 + 5 * (p + rng.normal(size=(1, rows)))
        p = 100 + 5 * p
    return y, p, rng.integers(1, 50, rows).astype(float), rng.integers(0, 2**63, rows, np.uint64)


def checked(y, p, lengths, hashes, task="classification", shuffled=False):
    checks = RowChecks(len(y), task == "classification", shuffled)
    checks.add(y, p, lengths, hashes)
    return checks


def failed(checks):
    return [check.name for check in checks.checks() if not check.fine]


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("seed", range(5))
def test_independent_rows_are_fine(task, seed):
    assert failed(checked(*data(task, seed), task)) == []


def test_sorted_and_alternating_labels():
    y, p, lengths, hashes = data()
    order = np.argsort(y[0], kind="stable")
    once = checked(y[:, order], p[:, order], lengths, hashes)
    assert "order of labels" in failed(once)
    assert "drift" in failed(once)
    found = {check.name: check for check in once.checks()}["order of labels"]
    assert "neighbouring rows have similar labels" in found.message
    assert "shuffle the rows" in found.message
    shuffled = checked(y[:, order], p[:, order], lengths, hashes, shuffled=True)
    assert "order of labels" not in failed(shuffled)
    result = {check.name: check.result for check in shuffled.checks()}
    assert result["order of labels"] == result["repeated rows"] == "fine"
    assert result["order of residuals"] == result["drift"] == "not checked"
    turns = (np.arange(ROWS) % 2).astype(float)[None]
    other = checked(turns, np.full((1, ROWS), 0.5), lengths, hashes)
    assert "labels alternate" in {c.name: c for c in other.checks()}["order of labels"].message


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_runs_of_residuals(task):
    y, p, lengths, hashes = data(task)
    pairs = np.arange(ROWS) // 2 * 2  # each row twice
    assert "order of residuals" in failed(checked(y[:, pairs], p[:, pairs], lengths, hashes, task))


def test_drift_of_the_labels():
    rng = np.random.default_rng(0)
    _, p, lengths, hashes = data()
    y = (rng.random((1, ROWS)) < np.linspace(0.3, 0.7, ROWS)).astype(float)
    found = checked(y, np.full((1, ROWS), 0.5), lengths, hashes)
    assert "drift" in failed(found)
    assert "3,000 rows" in str({c.name: c for c in found.checks()}["drift"])
    assert p.shape == y.shape


def test_repeated_rows(monkeypatch):
    y, p, lengths, hashes = data()
    few = hashes.copy()
    few[:100] = few[100:200]
    assert failed(checked(y, p, lengths, few)) == []
    many = np.repeat(hashes[:1000], 3)
    once = checked(y, p, lengths, many)
    assert failed(once) == ["repeated rows"]
    found = {c.name: c for c in once.checks()}["repeated rows"]
    assert found.value == pytest.approx(2 / 3)
    assert "66.7% of the rows" in found.message
    monkeypatch.setattr(row_checks, "_MOST_HASHES", 500)  # only the first rows are compared
    limited = RowChecks(1, True)
    for part in np.array_split(np.arange(ROWS), 7):
        limited.add(y[:, part], p[:, part], lengths[part], many[part])
    assert limited.hashed == 500


@pytest.mark.parametrize("origin", [0.0, 1e9, -1e14])
def test_targets_far_from_0(origin):
    """The first row of a stream has the prediction 0."""
    y, p, lengths, hashes = data("regression")
    y, p = y + origin, p + origin
    p[0, 0] = 0.0
    assert failed(checked(y, p, lengths, hashes, "regression")) == []
    order = np.argsort(y[0] - p[0])
    order = np.r_[0, order[order != 0]]
    found = failed(checked(y[:, order], p[:, order], lengths, hashes, "regression"))
    assert {"order of residuals", "drift"} <= set(found)


def test_row_length():
    rng = np.random.default_rng(1)
    _, p, lengths, hashes = data()
    y = (rng.random((1, ROWS)) < 1 / (1 + 10 / lengths)).astype(float)
    found = checked(y, np.full((1, ROWS), y.mean()), lengths, hashes)
    assert "row length" in failed(found)
    assert p.shape == y.shape


def test_number_of_rows():
    y, p, lengths, hashes = data(rows=300)
    assert failed(checked(y, p, lengths, hashes)) == ["number of rows"]
    rare = np.zeros((1, ROWS))
    rare[0, ::100] = 1
    found = checked(rare, np.full((1, ROWS), 0.01), *data()[2:])
    assert "number of rows" in failed(found)
    number = {c.name: c for c in found.checks()}["number of rows"]
    assert "3,000 rows, 30 of the rarest class" in number.message
    reg = checked(*data("regression", rows=300), "regression")
    assert failed(reg) == ["number of rows"]


def test_several_outputs_and_no_rows():
    y, p, lengths, hashes = data()
    both = checked(np.r_[y, np.sort(y)], np.r_[p, p], lengths, hashes)
    assert "order of labels" in failed(both)
    empty = RowChecks(2, True)
    empty.add(np.zeros((2, 0)), np.zeros((2, 0)), np.zeros(0), np.zeros(0, np.uint64))
    assert failed(empty) == ["number of rows"]


@given(st.lists(st.integers(0, 200), max_size=4), st.sampled_from(["classification", "regression"]))
def test_blocks_and_states_change_nothing(cuts, task):
    y, p, lengths, hashes = data(task, rows=200)
    whole, parts = checked(y, p, lengths, hashes, task), RowChecks(1, task == "classification")
    for rows in np.split(np.arange(200), sorted(cuts)):
        parts.add(y[:, rows], p[:, rows], lengths[rows], hashes[rows])
        other = RowChecks(1, task == "classification")
        other.restore(json.loads(json.dumps(parts.state)), parts.hashes)
        parts = other
    for one, two in zip(whole.checks(), parts.checks(), strict=True):
        assert one.value == pytest.approx(two.value, rel=1e-6, abs=1e-6)
        assert (one.name, one.fine) == (two.name, two.fine)


def test_a_check_as_json_and_text():
    check = Check("drift", 1.5, True, "residuals do not drift over the rows (z = 1.5)")
    assert json.loads(json.dumps(check.to_json())) == check.to_json()
    assert str(check) == "drift: residuals do not drift over the rows (z = 1.5)"
