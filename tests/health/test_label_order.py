"""The watch of the order of labels: equal to a naive count, and silent about random orders."""

from __future__ import annotations

import json
import warnings
from itertools import groupby

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher import (
    FTRLClassifier,
    FTRLRegressor,
    OnePassClassifier,
    OnePassSearchCV,
    SparsityPath,
    StabilizedClassifier,
    TruncatedGradientClassifier,
    scan,
)
from thresher.health import LabelOrderWarning
from thresher.health.label_order import LabelOrder
from thresher.health.label_runs import ClassRuns, neighbour_z
from thresher.health.mean_drift import MeanDrift
from thresher.stability import StreamingStabilitySelection

codes = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40)), max_size=12).map(
    lambda runs: np.array([code for code, times in runs for _ in range(times)], np.int64)
)
cuts = st.lists(st.integers(0, 480), max_size=6)


def naive(labels):
    """Return counts, longest runs and their beginnings by code, and the number of runs."""
    found, at, runs = {}, 0, 0
    for code, group in groupby(labels.tolist()):
        length = len(list(group))
        count, longest, begin = found.get(code, (0, 0, 0))
        if length > longest:
            longest, begin = length, at
        found[code] = (count + length, longest, begin)
        at, runs = at + length, runs + 1
    return found, runs


def pieces(labels, at):
    return np.split(labels, sorted(min(cut, len(labels)) for cut in at))


def check_runs(runs, labels):
    found, count = naive(labels)
    assert (runs.rows, runs.runs) == (len(labels), count)
    for code, (rows, longest, begin) in found.items():
        assert runs.counts[code] == rows
        assert runs.longest[code] == longest
        assert runs.begins[code] == begin
    assert runs.counts.sum() == len(labels)


@given(codes, cuts)
def test_runs_equal_a_naive_count_for_any_blocks_and_resume_points(labels, at):
    runs = ClassRuns()
    for piece in pieces(labels, at):
        runs.add(piece)
        saved = json.loads(json.dumps(runs.state))
        runs = ClassRuns()
        runs.state = saved
    check_runs(runs, labels)


@given(codes, cuts)
def test_runs_of_appended_parts_equal_those_of_the_whole(labels, at):
    runs, whole = ClassRuns(), ClassRuns()
    whole.add(labels)
    for piece in pieces(labels, at):
        part = ClassRuns()
        part.add(piece)
        runs.append(part)
    check_runs(runs, labels)
    assert runs.state == whole.state


@given(st.lists(st.floats(-1e6, 1e6), max_size=400), cuts)
def test_drift_has_the_same_bits_for_any_blocks_and_resume_points(values, at):
    values = np.array(values, np.float64)
    whole, drift = MeanDrift(), MeanDrift()
    whole.add(values)
    for piece in pieces(values, at):
        drift.add(piece)
        saved = json.loads(json.dumps(drift.state))
        drift = MeanDrift()
        drift.state = saved
    assert drift.state == whole.state


@settings(max_examples=settings.default.max_examples)
@given(st.integers(600, 6000), st.integers(0, 100))
def test_drift_is_the_share_of_variance_between_chunks(rows, seed):
    y = np.random.default_rng(seed).normal(3.0, 2.0, rows) + np.linspace(0, seed / 10, rows)
    drift = MeanDrift()
    drift.add(y)
    used = y[: rows // drift.size * drift.size].reshape(-1, drift.size)
    share = drift.size * used.mean(1).var() * len(used) / (used.size * used.var())
    assert drift.share == pytest.approx(share)
    assert 32 <= len(used) < 64


@pytest.mark.parametrize(
    "shares", [(0.5, 0.5), (0.99, 0.01), (0.9999, 0.0001), (0.4,) * 2 + (0.1,) * 2]
)
def test_random_orders_raise_no_alarm(shares):
    rng = np.random.default_rng(len(shares))
    for trial in range(200):
        order = LabelOrder(classes=True)
        labels = rng.choice(len(shares), rng.integers(2, 30_000), p=shares)
        assert order.see(labels) is None
        assert order.conclude() is None, trial


def test_random_orders_of_numbers_raise_no_alarm():
    rng = np.random.default_rng(0)
    draws = (rng.normal, rng.standard_cauchy, lambda size: rng.integers(0, 2, size).astype(float))
    for trial in range(300):
        order = LabelOrder(classes=False)
        assert order.see(draws[trial % 3](size=rng.integers(2, 20_000))) is None
        assert order.conclude() is None, trial


def test_few_rare_labels_that_are_neighbours_raise_no_alarm():
    labels = np.zeros(100_000, np.int64)
    labels[50_000:50_005] = 1
    order = LabelOrder(classes=True)
    assert order.see(labels) is None
    assert order.conclude() is None


@pytest.mark.parametrize("classes", [2, 3, 20, 300])
def test_sorted_classes_raise_an_alarm_with_numbers(classes):
    labels = np.repeat(np.arange(classes), 100)
    order = LabelOrder(classes=True)
    alarm = order.see(labels) or order.conclude()
    assert alarm is not None
    assert "rows 1 to 100 of the first" in alarm.worded("a")
    assert alarm.code == 0


def test_a_rare_class_at_the_end_raises_an_alarm():
    order = LabelOrder(classes=True)
    order.see(np.repeat([0, 1], [99_500, 500]))
    assert order.told or order.conclude() is not None


def test_one_class_alone_is_no_order():
    order = LabelOrder(classes=True)
    assert order.see(np.ones(50_000, np.int64)) is None
    assert order.conclude() is None


def test_huge_numbers_do_not_fail():
    order = LabelOrder(classes=False)
    order.see(np.sort(np.random.default_rng(0).normal(size=3000)) * 1e307)
    order.conclude()


def test_neighbours_of_sorted_labels_agree():
    y = np.repeat([0.0, 1.0], 500)
    z = neighbour_z(1000, *(np.array([s]) for s in (y.sum(), y @ y, y[1:] @ y[:-1])))
    runs = ClassRuns()
    runs.add(y.astype(np.int64))
    assert z[0] == pytest.approx(runs.agreement * np.sqrt(999), rel=0.01)


# ---- estimators ----------------------------------------------------------------------------------


def rows_of(rows=3000, seed=0):
    X = sp.random(rows, 50, 0.2, format="csr", random_state=seed)
    y = (X @ np.random.default_rng(seed).normal(size=50) > 0).astype(int)
    return X, y


def messages(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if isinstance(w.message, LabelOrderWarning)]


def test_fit_warns_once_of_sorted_rows_and_not_of_shuffled_ones():
    X, y = rows_of()
    order = np.argsort(-y, kind="stable")
    found = messages(lambda: FTRLClassifier(passes=3, shuffle=False).fit(X[order], y[order]))
    assert len(found) == 1
    assert f"rows 1 to {y.sum():,} of the first 3,000 have the label 1" in found[0]
    assert found[0].endswith("set shuffle='each'")
    assert not messages(lambda: FTRLClassifier(passes=3, random_state=0).fit(X[order], y[order]))
    assert not messages(lambda: FTRLClassifier(passes=3, shuffle=False).fit(X, y))


def test_the_label_in_the_warning_is_that_of_the_rows():
    X, _ = rows_of()
    words = np.array(["ham", "spam", "eggs"])[np.sort(np.arange(3000) % 3)]
    clf = OnePassClassifier(shuffle=False, random_state=0)
    assert "have the label 'ham'" in messages(lambda: clf.fit(X, words))[0]


def test_a_regression_warns_of_drift():
    X, _ = rows_of()
    y = np.asarray(X.sum(axis=1)).ravel()
    order = np.argsort(y)
    found = messages(lambda: FTRLRegressor(passes=2, shuffle=False).fit(X[order], y[order]))
    assert len(found) == 1
    assert "the order explains 99% of the variance" in found[0] or "100%" in found[0]
    assert not messages(lambda: FTRLRegressor(passes=2, shuffle=False).fit(X, y))


def test_partial_fit_warns_of_calls_with_one_class_each():
    X, y = rows_of()
    clf = FTRLClassifier()
    calls = [np.flatnonzero(y == label) for label in (0, 1, 0)]
    found = [messages(lambda at=at: clf.partial_fit(X[at], y[at], classes=[0, 1])) for at in calls]
    assert [len(each) for each in found] == [0, 1, 0]
    assert "give partial_fit rows in random order" in found[1][0]


def test_partial_fit_with_mixed_calls_is_silent():
    X, y = rows_of()
    clf = FTRLClassifier()
    for first in range(0, 3000, 10):
        batch = slice(first, first + 10)
        assert not messages(lambda batch=batch: clf.partial_fit(X[batch], y[batch], classes=[0, 1]))


def test_rows_with_several_labels_are_watched_by_the_first_one(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{k // 300},{k // 300 + 7} {1 + rng.integers(9)}:1" for k in range(900)]
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    source = scan(tmp_path / "rows.svm", multilabel=True)
    clf = FTRLClassifier(passes=1, shuffle=False)
    assert "rows 1 to 300 of the first 900 have the label 0" in messages(lambda: clf.fit(source))[0]


def test_batches_of_a_stabilized_rule_may_be_sorted_within_but_not_among_them():
    X, y = rows_of()
    clf = StabilizedClassifier(random_state=0, paths=4)
    halves = np.argsort(y[:1500], kind="stable"), 1500 + np.argsort(y[1500:], kind="stable")
    for at in halves:
        assert not messages(lambda at=at: clf.partial_fit(X[at], y[at], classes=[0, 1]))
    clf = StabilizedClassifier(random_state=0, paths=4)
    found = [
        messages(lambda at=at: clf.partial_fit(X[at], y[at], classes=[0, 1]))
        for at in (np.flatnonzero(y == 0), np.flatnonzero(y == 1))
    ]
    assert [len(each) for each in found] == [0, 1]


def test_searches_and_paths_warn_once():
    X, y = rows_of()
    at = np.argsort(-y, kind="stable")
    stored, grid = FTRLClassifier(passes=2, shuffle=False), {"l1": [0.1, 1.0]}
    batches = scan(lambda: ((X[at[i : i + 500]], y[at[i : i + 500]]) for i in range(0, 3000, 500)))
    assert len(messages(lambda: OnePassSearchCV(stored, grid, refit=False).fit(X[at], y[at]))) == 1
    assert len(messages(lambda: OnePassSearchCV(stored, grid, refit=False).fit(batches))) == 1
    path = SparsityPath(TruncatedGradientClassifier(passes=1, shuffle=False))
    assert len(messages(lambda: path.fit(batches))) == 1
    halves = StreamingStabilitySelection(stored, pairs=2, random_state=0)
    assert len(messages(lambda: halves.fit(batches))) == 1
    shuffled = FTRLClassifier(passes=2, random_state=0)
    search = OnePassSearchCV(shuffled, grid)
    assert not messages(lambda: search.fit(batches))
    mixed = OnePassSearchCV(shuffled, grid).fit(X, y)
    assert search.best_score_ == pytest.approx(mixed.best_score_, abs=0.05)
    assert not messages(
        lambda: StreamingStabilitySelection(shuffled, pairs=2, random_state=0).fit(batches)
    )
