"""Files that change while `tune`, `convert`, names and `refit` use them: an error, no result."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.changing_files import Once, replaced, rewritten, write_rows
from thresher import DataError, FeatureDiscovery, FTRLClassifier, OnePassSearchCV, scan
from thresher.data.writing import write

ROWS = 30_000  # several blocks
CHANGED = r"rows\.vw: the input has changed"
TABLE_CHANGED = r"rows\.\S+: the input has changed"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of rows with names."""
    file = tmp_path / "rows.vw"
    write_rows(file, ROWS)
    return file


@pytest.mark.parametrize("change", [replaced, rewritten])
def test_a_search_whose_file_changes_after_its_first_reading(path, change):
    source = scan(path)
    source.labels()
    change(path, ROWS, 1)
    search = OnePassSearchCV(FTRLClassifier(store="hashed"), {"l1": [0.1, 1.0]}, cv=2)
    with pytest.raises(DataError, match=CHANGED):
        search.fit(source)
    assert not hasattr(search, "best_params_")


@pytest.mark.parametrize("format", ["cache", "svmlight", "parquet", "vw"])
def test_a_conversion_whose_file_changes_while_it_is_read(path, format):
    blocks: list[int] = []

    def see(block: object) -> None:
        blocks.append(1)
        if len(blocks) == 1:
            rewritten(path, ROWS, 1)

    out = path.with_name("out")
    out.write_bytes(b"before")
    with pytest.raises(DataError, match=CHANGED):
        write(scan(path, threads=1), str(out), format, see)
    assert out.read_bytes() == b"before"
    assert sorted(file.name for file in path.parent.iterdir() if file.name.startswith("out")) == [
        "out"
    ]


def test_names_of_a_file_that_has_changed(path):
    source = scan(path)
    fitted = FTRLClassifier(store="hashed", passes=1).fit(source)
    keys = fitted.model_.indices.tolist()
    assert len(source.names(keys)) == len(keys)
    replaced(path, ROWS, 1)
    path.write_bytes(path.read_bytes().replace(b"x3", b"y3"))
    with pytest.raises(DataError, match=CHANGED):
        source.names(keys)


@pytest.mark.parametrize("change", [replaced, rewritten])
def test_a_refit_whose_file_changes_after_training(path, change):
    rule = FTRLClassifier(store="hashed", passes=1, target_nnz=5, refit=True, shuffle=False)
    observer = Once(lambda: change(path, ROWS, 1))
    with pytest.raises(DataError, match=CHANGED):
        rule.fit(scan(path), observer=observer)
    assert observer.done
    assert not hasattr(rule, "model_")


class TestTables:
    """A later reading of a table may ask for other kinds and another type of numbers."""

    @pytest.fixture(params=["csv", "parquet", "arrow"])
    def table(self, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
        """A table of some blocks."""
        file = tmp_path / f"rows.{request.param}"
        write_rows(file, ROWS)
        return file

    @pytest.mark.parametrize("change", [replaced, rewritten])
    def test_a_refit(self, table, change):
        rule = FTRLClassifier(store="hashed", passes=1, target_nnz=5, refit=True, shuffle=False)
        observer = Once(lambda: change(table, ROWS, 1))
        with pytest.raises(DataError, match=TABLE_CHANGED):
            rule.fit(scan(table), observer=observer)
        assert observer.done

    def test_a_reading_with_kinds_and_narrow_numbers(self, table):
        source = scan(table)
        before = [block.labels.tolist() for block in source.blocks(dtype="float64")]
        kinds = source.kinds
        again = [block.labels.tolist() for block in source.blocks(dtype="float32", kinds=kinds)]
        assert again == before
        replaced(table, ROWS, 1)
        with pytest.raises(DataError, match=TABLE_CHANGED):
            list(source.blocks(dtype="float32", kinds=kinds))

    def test_a_search(self, table):
        source = scan(table)
        source.labels()
        replaced(table, ROWS, 1)
        search = OnePassSearchCV(FTRLClassifier(store="hashed"), {"l1": [0.1, 1.0]}, cv=2)
        with pytest.raises(DataError, match=TABLE_CHANGED):
            search.fit(source)

    def test_a_discovery_in_one_reading(self, table):
        source = scan(table)
        source.labels()
        replaced(table, ROWS, 1)
        with pytest.raises(DataError, match=TABLE_CHANGED):
            FeatureDiscovery(form="stream", random_state=0).fit(source)
