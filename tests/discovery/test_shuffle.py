"""A crossfit of small files reads them in random order, so that sorted files do not matter."""

from __future__ import annotations

import numpy as np
import pytest

import thresher
from support.files import svmlight
from thresher.data.shuffled import ShuffledSource
from thresher.data.writing import write
from thresher.discovery import FeatureDiscovery
from thresher.discovery.inputs import labels_of_source, plan_of, shuffled_source
from thresher.errors import ModelFileError, ParameterError, ReadOnceError

pytestmark = pytest.mark.filterwarnings("ignore::thresher.discovery.DiscoveryWarning")


@pytest.fixture
def rows(tmp_path):
    """A file sorted by label: one feature of 40 has an effect."""
    rng = np.random.default_rng(0)
    X = rng.random((1500, 40)) < 0.2
    y = np.where(3 * X[:, 3] + rng.logistic(size=1500) > 0.6, 1, -1)
    lines = [f"{y[i]} " + " ".join(f"{j + 1}:1" for j in np.flatnonzero(X[i])) for i in range(1500)]
    path = tmp_path / "rows.svm"
    path.write_text("\n".join(sorted(lines)) + "\n")
    return path


def shuffles(path, **options):
    """Tell whether a discovery of a file is shuffled."""
    discovery, source = FeatureDiscovery(**options), thresher.scan(path)
    plan = plan_of(discovery, source, labels_of_source(discovery, source, None))
    return isinstance(shuffled_source(discovery, source, plan), ShuffledSource)


def test_which_files_are_shuffled(rows, monkeypatch):
    assert shuffles(rows)
    assert shuffles(rows, form="joint")
    assert not shuffles(rows, form="stream")
    assert shuffles(rows, form="stream", shuffle=True)
    assert not shuffles(rows, shuffle=False)
    monkeypatch.setattr("thresher.discovery.inputs._SMALL", 1000)
    assert not shuffles(rows)
    assert shuffles(rows, shuffle=True)


def test_a_parquet_file_counts_as_compressed(tmp_path, monkeypatch):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    table = pa.table({"label": [0, 1] * 500, "a": np.arange(1000.0)})
    parquet.write_table(table, path, compression="none")
    size = path.stat().st_size
    monkeypatch.setattr("thresher.discovery.inputs._SMALL", 8 * size)
    assert shuffles(path)
    monkeypatch.setattr("thresher.discovery.inputs._SMALL", 8 * size - 1)
    assert not shuffles(path)


def test_a_sorted_file_gives_the_features_with_effect(rows):
    found = FeatureDiscovery(fdr=0.05, random_state=0).fit(thresher.scan(rows))
    sorted_rows = FeatureDiscovery(fdr=0.05, random_state=0, shuffle=False).fit(thresher.scan(rows))
    assert 3 in found.selected_
    assert len(found.selected_) <= 3
    assert len(sorted_rows.selected_) > 10
    checks = {check.name: check for check in found.checks_}
    assert checks["order of labels"].fine
    assert not {check.name: check for check in sorted_rows.checks_}["order of labels"].fine


def test_a_resumed_run_gives_the_same_bits(rows, tmp_path):
    class Stop(thresher.Observer):
        readings = 0

        def tell(self, event, **facts):
            self.readings = facts.get("number", self.readings)

        def stops(self):
            return self.readings == 2

    kept = tmp_path / "checkpoint"
    whole = FeatureDiscovery(random_state=0).fit(thresher.scan(rows))
    with pytest.raises(thresher.Interrupted):
        FeatureDiscovery(random_state=0).fit(thresher.scan(rows), observer=Stop(), checkpoint=kept)
    again = FeatureDiscovery(random_state=0).fit(thresher.scan(rows), checkpoint=kept, resume=True)
    np.testing.assert_array_equal(again.z_, whole.z_)
    assert again.checks_ == whole.checks_
    rows.write_text(rows.read_text() + "1 1:1\n")
    with pytest.raises(ModelFileError, match="the rows are not those of the run"):
        FeatureDiscovery(random_state=0).fit(thresher.scan(rows), checkpoint=kept, resume=True)


def test_an_error_names_the_file_and_the_line(tmp_path, rows):
    other = svmlight(tmp_path / "other.svm", rows=20)
    lines = other.read_text().splitlines()
    lines[6] = "2.5" + lines[6][lines[6].index(" ") :]
    other.write_text("\n".join(lines) + "\n")
    with pytest.raises(thresher.DataError, match=r"other\.svm:7.*2\.5"):
        FeatureDiscovery(task="classification").fit(thresher.scan([rows, other]), classes=[-1, 1])


def test_what_cannot_be_shuffled(rows):
    with pytest.raises(ParameterError, match="shuffle"):
        FeatureDiscovery(shuffle="rows").fit(thresher.scan(rows))
    pipe = thresher.scan(iter([(np.eye(4), np.array([0.0, 1.0, 0.0, 1.0]))]))
    with pytest.raises(ReadOnceError, match="can be read only once"):
        FeatureDiscovery(shuffle=True).fit(pipe)


def test_a_cache_that_is_removed_during_the_run_is_still_shuffled(rows, tmp_path):
    """Its size is that of the file that is open."""
    path = tmp_path / "rows.cache"
    write(thresher.scan(rows), str(path), "cache")
    discovery, source = FeatureDiscovery(), thresher.scan(path)
    plan = plan_of(discovery, source, labels_of_source(discovery, source, None))
    path.unlink()
    shuffled = shuffled_source(discovery, source, plan)
    assert isinstance(shuffled, ShuffledSource)
    assert sum(block.rows for block in shuffled.blocks()) == len(rows.read_text().splitlines())


def test_a_file_that_grows_has_the_size_of_its_first_reading(rows):
    source = thresher.scan(rows)
    source.labels()
    size = rows.stat().st_size
    rows.write_text(rows.read_text() * 2)
    assert source.parts[0].size == size
