"""Files that change while `tune`, `convert`, names and `refit` use them: an error, no result."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.changing_files import Once, replaced, rewritten, write_rows
from thresher import DataError, FeatureDiscovery, FTRLClassifier, OnePassSearchCV, _core, scan
from thresher.data.writing import write

ROWS = 30_000  # several blocks
CHANGED = r"rows\.vw: the input has changed"
CACHE_CHANGED = r"rows\.cache: .*has changed while (it|the cache) is in use"
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


class TestCaches:
    """A cache that becomes another valid cache while it is read, in the same file."""

    @pytest.fixture
    def caches(self, path: Path) -> tuple[Path, bytes]:
        """A cache, and the bytes of one whose labels are others."""
        first, other = path.with_name("rows.cache"), path.with_name("other.cache")
        lines = path.read_bytes().splitlines(keepends=True)
        signs = [b"-1" if line.startswith(b"-1") else b"+1" for line in lines]
        for file, other_sign in ((first, False), (other, True)):
            labels = [b"-1" if (sign == b"+1") == other_sign else b"+1" for sign in signs]
            rows = zip(labels, lines, strict=True)
            path.write_bytes(b"".join(label + line[line.index(b" ") :] for label, line in rows))
            write(scan(path), str(file), "cache")
        return first, other.read_bytes()

    @staticmethod
    def overwrite(file: Path, some: bytes) -> None:
        """Write into the same file, and restore its time."""
        times = file.stat()
        with file.open("r+b") as out:
            out.write(some)
            out.truncate()
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    def test_in_its_only_reading(self, caches):
        file, other = caches
        blocks = scan(file).blocks()
        next(blocks)
        self.overwrite(file, other)
        with pytest.raises(_core.CacheError, match=CACHE_CHANGED):
            list(blocks)

    def test_before_its_first_block(self, caches):
        file, other = caches
        source = scan(file)
        self.overwrite(file, other + other[-8:])
        with pytest.raises(_core.CacheError, match=r"rows\.cache: "):
            list(source.blocks())

    @pytest.mark.parametrize("shuffle", [False, "blocks", "each"])
    def test_training(self, caches, shuffle):
        file, other = caches
        source, given = scan(file), []
        blocks = source.blocks

        def changing(*args, **options):
            for block in blocks(*args, **options):
                yield block
                given.append(block.rows)
                if len(given) == 1:
                    self.overwrite(file, other)

        source.blocks = changing
        rule = FTRLClassifier(store="hashed", passes=1, shuffle=shuffle, random_state=0)
        with pytest.raises(_core.CacheError, match=CACHE_CHANGED):
            rule.fit(source)
        assert len(given) > 1

    def test_a_conversion(self, caches):
        file, other = caches
        blocks: list[object] = []

        def see(block: object) -> None:
            blocks.append(block)
            if len(blocks) == 1:
                self.overwrite(file, other)

        with pytest.raises(_core.CacheError, match=CACHE_CHANGED):
            write(scan(file), str(file.with_name("out")), "svmlight", see)
        assert not file.with_name("out").exists()

    @pytest.mark.parametrize(
        "change",
        [
            os.utime,
            lambda file: file.chmod(0o600),
            lambda file: os.link(file, file.with_name("link")),
            lambda file: TestCaches.overwrite(file, file.read_bytes()),
            lambda file: os.replace(file.with_name("other.cache"), file),
            os.unlink,
        ],
    )
    def test_changes_that_leave_the_rows_as_they_were(self, caches, change):
        file, _ = caches
        expected = [block.labels.tolist() for block in scan(file).blocks()]
        blocks = scan(file).blocks()
        found = [next(blocks).labels.tolist()]
        change(file)
        assert found + [block.labels.tolist() for block in blocks] == expected


class TestStatus:
    """What the system says about a file decides whether it is read once more."""

    def test_an_edit_whose_time_is_restored(self, path):
        blocks = scan(path, threads=1).blocks()
        next(blocks)
        times, whole = path.stat(), path.read_bytes()
        path.write_bytes(whole.replace(b"x3:", b"x4:"))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        with pytest.raises(DataError, match=CHANGED):
            list(blocks)

    @pytest.mark.parametrize(
        "change",
        [lambda file: file.chmod(0o600), lambda file: os.link(file, file.with_name("link"))],
    )
    def test_other_rights_and_links_are_no_error(self, path, change):
        rows = sum(block.rows for block in scan(path).blocks())
        blocks = scan(path, threads=1).blocks()
        found = next(blocks).rows
        change(path)
        assert found + sum(block.rows for block in blocks) == rows == ROWS
