"""Feature discovery of parts: their evidence is added."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import thresher
from support.distributed_rows import rows_of, write_shards
from thresher.discovery import Evidence, FeatureDiscovery
from thresher.discovery.evidence import calibration
from thresher.discovery.inputs import labels_of_source, plan_of, shuffled_source
from thresher.discovery.readings import Readings
from thresher.distributed import discover
from thresher.errors import ParameterError
from thresher.training.run_options import RunOptions

pytestmark = pytest.mark.filterwarnings("ignore::thresher.discovery.DiscoveryWarning")


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("shards"), *rows_of(rows=800))


def evidence_of(file, number, discovery):
    """Return the evidence of one file, as a worker measures it."""
    source = thresher.scan(file)
    labels = labels_of_source(discovery, source, None)
    plan = plan_of(discovery, source, labels)
    seeded = type(plan)(**{**vars(plan), "seed": plan.seed + (number << 32)})
    readings = Readings(seeded, labels)
    readings.run(shuffled_source(discovery, source, plan), RunOptions())
    return readings.evidence()


@pytest.mark.parametrize("form", ["crossfit", "stream"])
def test_the_evidence_of_all_files_is_added(shards, form):
    found = discover(FeatureDiscovery(form=form, random_state=3), shards, workers=0)
    one = FeatureDiscovery(form=form, random_state=3)
    files = [shards.replace("*", str(number)) for number in range(4)]
    parts = [evidence_of(file, number, one) for number, file in enumerate(files)]
    S = np.zeros((4, 60))
    V = np.zeros((4, 60))
    for number, part in enumerate(parts):
        (sums,) = part.sums
        at = sums.keys.astype(int)
        S[number, at] = sums.S
        V[number, at] = (sums.realised + 2 * sums.predicted) / 3
    expected = S.sum(axis=0) / np.sqrt(V.sum(axis=0))
    np.testing.assert_allclose(found.z_, expected, rtol=1e-12)
    assert found.n_rows_ == 800
    assert found.selected_.tolist() == one.take(Evidence.total(parts)).selected_.tolist()


def test_parts_find_what_all_rows_together_find(shards):
    whole = FeatureDiscovery(random_state=0).fit(thresher.scan(shards))
    parts = discover(FeatureDiscovery(random_state=0), shards, workers=0)
    strong = np.flatnonzero(np.abs(whole.z_) > 5)
    assert len(strong) >= 3
    assert set(strong) <= set(parts.selected_)
    assert np.corrcoef(whole.z_, parts.z_)[0, 1] > 0.9


def test_the_number_of_parts_may_differ_from_that_of_files(shards):
    found = discover(FeatureDiscovery(random_state=0), shards, workers=0, parts=2)
    assert found.n_rows_ == 800
    assert len(found.selected_) >= 3


def test_the_redraws_of_parts_differ(tmp_path):
    X, y = rows_of(rows=300)
    twice = write_shards(tmp_path / "twice", np_vstack(X), np.r_[y, y], files=2)
    found = discover(FeatureDiscovery(random_state=0), twice, workers=0)
    one = FeatureDiscovery(random_state=0)
    parts = [evidence_of(twice.replace("*", str(k)), k, one).sums[0] for k in range(2)]
    assert not np.array_equal(parts[0].redrawn_S, parts[1].redrawn_S)
    assert found.n_rows_ == 600


def np_vstack(X):
    """Return the rows of X twice."""
    import scipy.sparse as sp

    return sp.vstack([X, X]).tocsr()


def test_a_failed_part_changes_nothing(shards, tmp_path):
    bad = tmp_path / "rows-9.svm"
    bad.write_text("1 1:x\n")
    discovery = FeatureDiscovery(random_state=0)
    with pytest.raises(thresher.DataError, match=r"rows-9.svm:1"):
        discover(discovery, [shards, str(bad)], workers=0)
    assert not hasattr(discovery, "n_rows_")


def test_an_unknown_option_of_reading_is_refused(shards):
    with pytest.raises(ParameterError, match="colour"):
        discover(FeatureDiscovery(), shards, workers=0, colour="red")


def test_checks_of_parts_are_those_of_the_worst_part(tmp_path):
    X, y = rows_of(rows=2000)
    order = np.r_[np.arange(1000), 1000 + np.argsort(y[1000:], kind="stable")]
    files = write_shards(tmp_path / "sorted", X[order], y[order], files=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = discover(FeatureDiscovery(shuffle=False, random_state=0), files, workers=0)
    failed = {check.name for check in found.checks_ if not check.fine}
    assert "order of labels" in failed
    assert any("order of labels" in str(warning.message) for warning in caught)


def test_a_part_may_have_one_class(tmp_path):
    X, y = rows_of(rows=2000)
    ones, rest = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    order = np.r_[ones[:500], rest, ones[500:]]  # the first of four files has only label 1
    for name, labels in (("two", y), ("three", y + 1)):
        files = write_shards(tmp_path / name, X[order], labels[order], files=4)
        found = discover(FeatureDiscovery(random_state=0, shuffle=False), files, workers=0)
        assert found.n_rows_ == 2000
        assert found.classes_.tolist() == [labels.min(), labels.max()]
        (number,) = [check for check in found.checks_ if check.name == "number of rows"]
        assert not number.fine
        assert "2,000 rows; a part has only 500 rows, 0 of the rarest class" in number.message


def test_all_parts_with_one_class_are_refused(tmp_path):
    X, _ = rows_of(rows=400)
    files = write_shards(tmp_path / "one", X, np.ones(400, int), files=2)
    with pytest.raises(thresher.DataError, match=r"at least 2 classes; found \[1\]"):
        discover(FeatureDiscovery(random_state=0), files, workers=0)


def test_parts_with_different_labels_are_refused(tmp_path):
    X, y = rows_of(rows=400)
    y = np.r_[y[:200], 2 * y[200:] - 1]
    files = write_shards(tmp_path / "mixed", X, y, files=2)
    with pytest.raises(thresher.DataError, match="-1 and 1 in some parts, and 0 and 1 in others"):
        discover(FeatureDiscovery(random_state=0), files, workers=0)


def test_the_worst_slope_is_the_farthest_from_1(shards):
    one = FeatureDiscovery(random_state=3)
    part = evidence_of(shards.replace("*", "0"), 0, one)

    def with_slope(slope):
        checks = [check for check in part.checks if check.name != "calibration"]
        fact = {"slope": slope, "slope_error": 0.01}
        return replace(part, checks=[*checks, calibration([fact])])

    for slopes, worst in (([2.5, 0.1], 0.1), ([0.4, 3.0], 3.0), ([0.8, 1.1], 0.8)):
        total = Evidence.total([with_slope(slope) for slope in slopes])
        assert total.checks[-1].name == "calibration"
        assert total.checks[-1].value == worst
