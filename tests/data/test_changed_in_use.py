"""Files that change while `tune`, `convert`, names and `refit` use them: an error, no result."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.changing_files import Once, replaced, rewritten, write_rows
from thresher import DataError, FeatureDiscovery, FTRLClassifier, OnePassSearchCV, _core, scan
from thresher.data.source import Source
from thresher.data.writing import write

ROWS = 30_000  # several blocks
CHANGED = r"rows\.vw: the input has changed"
# The thread that reads ahead may read a block while it is overwritten.
CACHE_CHANGED = r"rows\.cache: .*(has changed while (it|the cache) is in use|is damaged)"
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


def other_labels(path: Path) -> None:
    """Put a table with the same cells and other labels in the place of a table."""
    new = path.with_name("new")
    if path.suffix == ".csv":
        head, *lines = path.read_text().splitlines()
        flipped = [line[:-1] + str(1 - int(line[-1])) for line in lines]
        new.write_text("\n".join([head, *flipped]) + "\n")
    else:
        table = pq.read_table(path)
        labels = pa.array(1 - table["label"].to_numpy())
        place = table.column_names.index("label")
        pq.write_table(table.set_column(place, "label", labels), new)
    os.replace(new, path)


def changed_before(source: Source, reading: int, change: Callable[[], None]) -> list[int]:
    """Call `change` before one of the readings of a source; return the numbers of those begun."""
    part, begun = source.parts[0], list[int]()
    watched = part.watched

    def counted(*args: Any, **options: Any) -> Any:
        begun.append(len(begun) + 1)
        if len(begun) == reading:
            change()
        return watched(*args, **options)

    part.watched = counted  # type: ignore[method-assign]
    return begun


class TestTables:
    """A later reading of a table may ask for other kinds and another type of numbers."""

    @pytest.fixture(params=["csv", "parquet"])
    def table(self, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
        """A table of some blocks."""
        file = tmp_path / f"rows.{request.param}"
        write_rows(file, ROWS)
        return file

    def test_a_reading_with_kinds_and_narrow_numbers(self, table):
        source = scan(table)
        before = [block.labels.tolist() for block in source.blocks(dtype="float64")]
        kinds = source.kinds
        again = [block.labels.tolist() for block in source.blocks(dtype="float32", kinds=kinds)]
        assert again == before
        other_labels(table)
        for dtype in ("float64", "float32"):
            for given in (kinds, None):
                with pytest.raises(DataError, match=TABLE_CHANGED):
                    list(source.blocks(dtype=dtype, kinds=given, labelled=True))

    @pytest.mark.parametrize(
        "fit",
        [
            FTRLClassifier(
                store="hashed", passes=1, target_nnz=5, refit=True, shuffle=False,
                class_weight="balanced",
            ).fit,
            OnePassSearchCV(FTRLClassifier(store="hashed"), {"l1": [0.1, 1.0]}, cv=2).fit,
            FeatureDiscovery(form="stream", random_state=0).fit,
        ],
        ids=["refit", "search", "discovery"],
    )  # fmt: skip
    def test_before_each_later_reading(self, table, fit):
        source, whole = scan(table), table.read_bytes()
        begun = changed_before(source, 0, lambda: None)
        list(source.blocks(dtype="float64"))
        fit(source)
        assert len(begun) >= 3
        for reading in begun[1:]:
            table.write_bytes(whole)
            source = scan(table)
            changed_before(source, reading, lambda: other_labels(table))
            list(source.blocks(dtype="float64"))
            with pytest.raises(DataError, match=TABLE_CHANGED):
                fit(source)


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
        assert given

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
