"""`compare`: an interrupted comparison continues from its checkpoint."""

from __future__ import annotations

import errno
import json
import os

import numpy as np
import pytest

import thresher
from support.comparisons import plain, problem
from support.slices import sliced
from thresher import DataError, ParameterError
from thresher.comparison import checkpoint
from thresher.comparison.checkpoint import ComparisonCheckpoint, support_to_text
from thresher.comparison.rows import _digest


class Killed(BaseException):
    """Ends the comparison as if the process were killed."""


@pytest.mark.parametrize("after", sliced([1, 3, 5, 7], 2))
def test_an_interrupted_comparison_gives_the_same_results(tmp_path, after):
    X, y = problem(rows=150)
    given = {"rules": ["ftrl", "stabilized-paper"], "orders": 3, "folds": 2}
    whole = thresher.compare(X, y, **given)
    path = tmp_path / "compare.json"
    told = []

    def stop(progress):
        told.append(progress)
        if len(told) == after:
            raise Killed

    with pytest.raises(Killed):
        thresher.compare(X, y, checkpoint=path, callback=stop, **given)
    resumed = []
    found = thresher.compare(X, y, checkpoint=path, callback=resumed.append, **given)
    assert [plain(row) for row in found] == [plain(row) for row in whole]
    asked = {(p.rule, p.doing, p.number) for p in told[:-1] if p.row is None}
    again = {(p.rule, p.doing, p.number) for p in resumed if p.row is None}
    assert not asked & again  # no finished work is repeated
    finished = thresher.compare(X, y, checkpoint=path, **given)
    assert list(finished) == list(found)  # equal seconds: nothing was fitted
    assert [p.name for p in tmp_path.iterdir()] == ["compare.json"]


def test_a_checkpoint_of_other_data_or_settings_is_refused(tmp_path):
    X, y = problem(rows=100)
    path = tmp_path / "compare.json"
    given = {"rules": ["sgd"], "orders": 1, "folds": 2, "checkpoint": path}
    thresher.compare(X, y, **given)
    kept = path.read_bytes()
    for change, name in (
        ({"orders": 2}, "orders is 1, but here it is 2"),
        ({"seed": 1}, "seed is 0"),
        ({"choose": "sparsest"}, "choose is 'best'"),
        ({"scale": "unit-norm"}, "scale is None"),
        ({"loss": "hinge"}, "loss is None"),
        ({"test_share": 0.5}, "test_share is 0.25"),
    ):
        with pytest.raises(ParameterError, match=f"belongs to another comparison: its {name}"):
            thresher.compare(X, y, **{**given, **change})
    other = X.copy()
    other[0, 0] += 1e-9
    with pytest.raises(ParameterError, match=r"its (training|test) rows is '"):
        thresher.compare(other, y, **given)
    assert path.read_bytes() == kept
    more = thresher.compare(X, y, **{**given, "rules": ["sgd", "ftrl"]})  # other rules may be added
    assert {row.rule for row in more} == {"sgd", "ftrl"}


def test_a_file_that_is_not_a_checkpoint_is_not_changed(tmp_path):
    X, y = problem(rows=60)
    path = tmp_path / "precious.json"
    kept = {"format": 1, "identity": {}, "rules": {}}
    spoiled = (
        *(["sgd"], {"sgd": 1}, {"sgd": {"row": {"rule": "sgd"}}}, {"sgd": {"search": {}}}),
        {"sgd": {"orders": [{"support": "AAAA"}]}},
    )
    search = {"chosen": {}, "grid": {}, "notes": [], "cv_error": 1.0, "cv_standard_error": 0.0}
    order = {
        "nonzeros": 1.0,
        "seconds": 1.0,
        "support": support_to_text(np.ones(3, bool)),
        "warnings": [],
    }
    for other in ({"error": 1.0}, {"nonzeros": "many"}, {"support": "?"}, {"warnings": 1}):
        orders = [order, {**order, **other}]
        spoiled += ({"sgd": {"search": search, "orders": orders}},)
    damaged = [json.dumps({**kept, "rules": rules}) for rules in spoiled]
    damaged.append(json.dumps({**kept, "identity": []}))
    for text in ('{"a": 1}', "precious", "[]", *damaged):
        path.write_text(text)
        with pytest.raises(DataError, match="not a checkpoint of a comparison"):
            thresher.compare(X, y, rules=["sgd"], orders=1, folds=2, checkpoint=path)
        assert path.read_text() == text
    with pytest.raises(FileNotFoundError):
        ComparisonCheckpoint(tmp_path / "missing" / "a.json", {})


def test_a_rule_that_failed_is_tried_again(tmp_path, monkeypatch):
    X, y = problem(rows=60)
    given = {"rules": ["stabilized"], "orders": 1, "folds": 2, "checkpoint": tmp_path / "kept.json"}
    with monkeypatch.context() as patch:
        patch.setattr(thresher.StabilizedClassifier, "fit", lambda self, X, y: 1 / 0)
        assert thresher.compare(X, y, **given)[0].failure
    assert thresher.compare(X, y, **given)[0].measured


def test_digests_differ_for_similar_labels():
    X = np.eye(2)
    labels = (["a", "b\0c"], ["a\0b", "c"], ["1", "2"], [1, 2])
    assert len({_digest(X, np.array(y)) for y in labels}) == 4
    assert _digest(X, np.array([1, 2])) != _digest(X.astype(np.float32), np.array([1, 2]))


def test_a_full_disk_does_not_end_a_comparison(tmp_path, monkeypatch):
    """It warns once; a later checkpoint has all results."""
    X, y = problem(rows=100)
    path = tmp_path / "kept.json"
    given = {"rules": ["sgd", "ftrl"], "orders": 2, "folds": 2}
    attempts, write = [], checkpoint.write_whole

    def full(path, content):
        attempts.append(path)
        if len(attempts) < 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path))
        write(path, content)

    monkeypatch.setattr(checkpoint, "write_whole", full)
    with pytest.warns(UserWarning, match="no checkpoint was written") as told:
        found = thresher.compare(X, y, checkpoint=path, **given)
    words = (
        f"no checkpoint was written: {path}: No space left on device; the run goes on, and tries"
    )
    assert [str(one.message) for one in told] == [f"{words} again"]
    assert len(attempts) > 4
    monkeypatch.undo()
    assert list(thresher.compare(X, y, checkpoint=path, **given)) == list(found)
