"""A cluster warns if its rows are ordered by their labels, within a part or over parts."""

import warnings

import numpy as np
import pytest

from thresher import FTRLClassifier, FTRLRegressor
from thresher.distributed import fit
from thresher.health import LabelOrderWarning
from thresher.health.label_order import order_of_parts
from thresher.health.label_runs import ClassRuns
from thresher.health.mean_drift import MeanDrift


def files_of(folder, labels, parts):
    rng = np.random.default_rng(0)
    lines = [f"{label} {1 + rng.integers(20)}:1 {21 + rng.integers(20)}:1\n" for label in labels]
    made = []
    for number, some in enumerate(np.array_split(np.array(lines), parts)):
        made.append(folder / f"rows-{number}.svm")
        made[-1].write_text("".join(some))
    return made


def messages(estimator, files):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(estimator, files, workers=0)
    return [str(w.message) for w in caught if isinstance(w.message, LabelOrderWarning)]


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_sorted_classes(tmp_path, parts):
    files = files_of(tmp_path, np.repeat([1, -1], 600), parts)
    (message,) = messages(FTRLClassifier(passes=1), files)
    assert "rows 1 to 600 of the first 1,200 have the label 1" in message
    assert message.endswith("shuffle the rows over all files before")
    mixed = np.random.default_rng(1).permutation(np.repeat([1, -1], 600))
    assert not messages(FTRLClassifier(passes=1), files_of(tmp_path, mixed, parts))


@pytest.mark.parametrize("parts", [1, 3])
def test_sorted_numbers(tmp_path, parts):
    files = files_of(tmp_path, np.arange(1500) / 100, parts)
    (message,) = messages(FTRLRegressor(passes=1), files)
    assert "of the variance" in message
    mixed = np.random.default_rng(1).permutation(1500) / 100
    assert not messages(FTRLRegressor(passes=1), files_of(tmp_path, mixed, parts))


def test_parts_may_have_their_own_codes():
    whole = ClassRuns()
    whole.add(np.repeat([0, 1, 0, 2], 40))
    first, second = ClassRuns(), ClassRuns()
    first.add(np.repeat([0, 1], 40))  # a, b
    second.add(np.repeat([1, 0], 40))  # c is 0, a is 1
    parts = [(first, {"a": 0, "b": 1}, MeanDrift()), (second, {"c": 0, "a": 1}, MeanDrift())]
    assert order_of_parts(parts) == whole.alarm().worded("a")
