"""Parts of shards: whole files, or spans of files, that all workers can read."""

import gzip
import itertools
import os
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.blocks import rows_of
from support.files import svmlight, vw
from thresher import _core, scan
from thresher.data.cache_writer import CacheWriter
from thresher.distributed.ray.dataset import dataset_to_files, is_dataset
from thresher.distributed.shards import Shards, find_shards
from thresher.distributed.splitting import allocate_spans, group_evenly, split_evenly, split_lines
from thresher.errors import DataError, ModelFileError, ParameterError


def all_rows(shards, pieces=1):
    return [
        row
        for part in range(shards.parts)
        for piece in range(pieces)
        for row in rows_of(shards.source(part, piece, pieces))
    ]


def cached(path, blocks=7, size=5):
    writer = CacheWriter(str(path))
    for at in range(blocks):
        values = np.arange(size, dtype=np.float64) + at + 1
        first = 1 + size * at
        labels = values % 2
        writer.add(
            _core.make_block(
                np.arange(size + 1), np.arange(size), values, labels=labels, first_line=first
            )
        )
    writer.finish()
    return path


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Files of several formats, with the same labels."""
    folder = tmp_path_factory.mktemp("mixed")
    svmlight(folder / "a.svm", rows=30)
    svmlight(folder / "b.svm", rows=11, seed=1)
    cached(folder / "c.cache")
    packed = svmlight(folder / "plain", rows=9, seed=2)
    (folder / "d.svm.gz").write_bytes(gzip.compress(packed.read_bytes()))
    return folder


def files_in(folder):
    return sorted(str(path) for path in folder.iterdir() if "." in path.name)


def test_each_file_is_a_part(mixed):
    shards = find_shards(mixed / "*.*")
    assert shards.files == files_in(mixed)
    assert [[shard.path for shard in group] for group in shards.groups] == [
        [file] for file in files_in(mixed)
    ]
    formats = ["svmlight", "svmlight", "cache", "svmlight"]
    assert [group[0].format for group in shards.groups] == formats
    assert [group[0].end is None for group in shards.groups] == [False, False, False, True]
    assert shards.bytes == sum(os.path.getsize(file) for file in files_in(mixed))
    assert all_rows(shards) == rows_of(scan(files_in(mixed)))


@pytest.mark.parametrize("pieces", [1, 2, 5, 40])
@pytest.mark.parametrize("parts", [1, 2, 3, 4, 5, 9, 20])
def test_parts_and_pieces_have_all_rows_in_order(mixed, parts, pieces):
    shards = find_shards(str(mixed / "*.*"), {}, parts)
    assert shards.parts == parts
    assert pickle.loads(pickle.dumps(shards)) == shards
    assert Shards.from_json(shards.to_json()) == shards
    assert all_rows(shards, pieces) == rows_of(scan(files_in(mixed)))
    assert all(rows_of(shards.source(part)) for part in range(parts))
    for part in range(parts):
        assert rows_of(shards.single_part(part).source(0)) == rows_of(shards.source(part))


def test_parts_have_about_the_same_size(tmp_path):
    for number, rows in enumerate([300, 10, 200, 100]):
        svmlight(tmp_path / f"{number}.svm", rows=rows)
    for parts in (6, 20):
        shards = find_shards(tmp_path / "*.svm", parts=parts)
        sizes = [sum(shard.bytes for shard in group) for group in shards.groups]
        fair = shards.bytes / parts
        assert max(sizes) < 1.5 * fair
        assert sum(sizes) == shards.bytes
    pieces = [shards.source(0, piece, 4).size for piece in range(4)]
    assert max(pieces) - min(pieces) <= 1


def test_most_limits_parts(mixed):
    assert find_shards(mixed / "*.*", most=3).parts == 3
    assert find_shards(mixed / "*.*", most=9).parts == 4
    assert find_shards(mixed / "*.*", parts=5, most=9).parts == 5
    with pytest.raises(ParameterError, match="parts must be at most 4 here; got 5"):
        find_shards(mixed / "*.*", parts=5, most=4)


def test_parts_that_would_be_empty(tmp_path):
    path = tmp_path / "four.svm"
    path.write_text("1 1:1\n-1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1 10:1 11:1 12:1\n1 1:1\n1 2:1")
    shards = find_shards(path, parts=4)
    assert [len(rows_of(shards.source(part))) for part in range(4)] == [1, 1, 1, 1]
    with pytest.raises(ParameterError, match="parts must be at most 4: the file cannot be divided"):
        find_shards(path, parts=5)
    with pytest.raises(ParameterError, match=r"parts must be at most 4: .*; got 1000"):
        find_shards(path, parts=1000)
    cached(tmp_path / "five.cache", blocks=5)
    with pytest.raises(
        ParameterError, match="parts must be at most 9: the 2 files cannot be divided"
    ):
        find_shards(tmp_path / "f*", parts=10)
    assert find_shards(tmp_path / "f*", parts=9).parts == 9


@given(
    sizes=st.lists(st.integers(0, 50), min_size=1, max_size=9),
    count=st.integers(1, 9),
)
def test_group_evenly(sizes, count):
    count = min(count, len(sizes))
    runs = group_evenly(sizes, count)
    assert len(runs) == count
    assert all(len(run) for run in runs)
    assert [i for run in runs for i in run] == list(range(len(sizes)))


@given(
    files=st.lists(st.tuples(st.integers(1, 99), st.integers(1, 9)), min_size=1, max_size=6),
    count=st.integers(1, 60),
)
def test_allocate_spans(files, count):
    sizes, most = zip(*files, strict=True)
    counts = allocate_spans(sizes, most, count)
    assert all(1 <= n <= m for n, m in zip(counts, most, strict=True))
    assert sum(counts) == max(len(files), min(count, sum(most)))


@given(lines=st.lists(st.integers(0, 40), min_size=1, max_size=12), count=st.integers(1, 12))
def test_spans_of_lines_are_never_empty(tmp_path_factory, lines, count):
    path = tmp_path_factory.getbasetemp() / "lines"
    path.write_bytes(b"".join(b"x" * n + b"\n" for n in lines))
    count = min(count, len(lines))
    spans = split_lines(str(path), path.stat().st_size, count)
    starts = list(itertools.accumulate((n + 1 for n in lines), initial=0))
    assert len(spans) == count
    assert {cut for span in spans for cut in (span.begin, span.end)} <= set(starts)
    assert all(span.size > 0 for span in spans)
    assert (spans[0].begin, spans[-1].end) == (0, path.stat().st_size)


@given(size=st.integers(1, 200), count=st.integers(1, 20), group=st.integers(1, 60))
def test_even_spans_are_never_empty(size, count, group):
    count = min(size, count)
    spans = split_evenly(size, count, [*range(0, size, group), size])
    assert len(spans) == count
    assert all(span.size > 0 for span in spans)
    assert [span.end for span in spans[:-1]] == [span.begin for span in spans[1:]]


# ---- tables --------------------------------------------------------------------------------------


def parquet_file(path, rows, group):
    pa = pytest.importorskip("pyarrow", reason="needs the extra arrow")
    import pyarrow.parquet as parquet

    table = pa.table(
        {"x": [i / 3 for i in range(rows)], "label": [float(i % 2) for i in range(rows)]}
    )
    parquet.write_table(table, path, row_group_size=group)
    return path


def test_parquet_is_divided_between_row_groups_if_there_are_enough(tmp_path):
    path = parquet_file(tmp_path / "many.parquet", 1000, 25)
    shards = find_shards(path, parts=7)
    assert all(group[0].begin % 25 == 0 for group in shards.groups)
    assert all_rows(shards) == rows_of(scan(path))
    few = parquet_file(tmp_path / "few.parquet", 100, 100)
    shards = find_shards(few, parts=7)
    assert all_rows(shards, 3) == rows_of(scan(few))
    with pytest.raises(ParameterError, match="parts must be at most 100"):
        find_shards(few, parts=101)


def test_kinds_of_columns_are_the_same_in_all_parts(tmp_path):
    pytest.importorskip("pyarrow", reason="needs the extra arrow")
    (tmp_path / "a.csv").write_text("color,label\nred,1\nblue,0\n")
    (tmp_path / "b.csv").write_text("color,size,label\n1,2,1\n2,x,0\n")
    shards = find_shards(tmp_path / "*.csv")
    assert shards.reading["kinds"] == {"color": "string", "size": "string", "label": "number"}
    assert all_rows(shards) == rows_of(scan(tmp_path / "*.csv"))
    assert find_shards(tmp_path / "b.csv").reading["kinds"]["color"] == "number"
    with pytest.raises(ParameterError, match="parts must be at most 2"):
        find_shards(tmp_path / "*.csv", parts=3)
    # A piece in which no file begins has no rows, but it is a source.
    pieces = [shards.source(0, piece, 3) for piece in range(3)]
    assert [len(rows_of(piece)) for piece in pieces] == [2, 0, 0]
    assert all(piece.named for piece in pieces)


def test_names_and_options_are_those_of_scan(tmp_path):
    vw(tmp_path / "a.vw", rows=40)
    shards = find_shards(tmp_path / "a.vw", {"bits": 8, "interactions": ["wa"]}, parts=3)
    assert all_rows(shards) == rows_of(scan(tmp_path / "a.vw", bits=8, interactions=["wa"]))
    assert shards.source(1).named
    assert shards.source(1).bits == 8
    assert shards.source(2).reading.workers == 1


# ---- errors --------------------------------------------------------------------------------------


def test_data_that_are_not_files(tmp_path, monkeypatch):
    path = svmlight(tmp_path / "a.svm", rows=5)
    os.mkfifo(tmp_path / "pipe")
    for data, message in [
        ("-", "standard input can be read only once"),
        (tmp_path / "pipe", "pipe can be read only once"),
        (iter([]), "data must be names of files that all workers can read; got"),
        (np.ones((2, 2)), "workers can read; got ndarray"),
        ([], "data must name at least one file"),
        (tmp_path, "is a folder"),
    ]:
        with pytest.raises(ParameterError, match=message):
            find_shards(data)
    with pytest.raises(FileNotFoundError, match="no file matches"):
        find_shards(tmp_path / "*.vw")
    with pytest.raises(ParameterError, match="on_bad_line must be error or skip"):
        find_shards(path, {"on_bad_line": "quarantine=bad.txt"})
    for wrong in (0, -1, 2.0, True, "3"):
        with pytest.raises(ParameterError, match="parts must be a whole number of 1 or more"):
            find_shards(path, parts=wrong)
    monkeypatch.chdir(tmp_path)
    assert find_shards("a.svm").files == [str(path)]


def test_skipped_lines(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\nbad\n-1 2:1\n")
    assert len(all_rows(find_shards(path, {"on_bad_line": "skip"}))) == 2


# ---- Ray Datasets --------------------------------------------------------------------------------


class Dataset:
    """The method of a Ray Dataset that `dataset_to_files` uses."""

    def __init__(self, sizes):
        self.sizes, self.writes = sizes, 0

    def write_parquet(self, folder):
        self.writes += 1
        for number, rows in enumerate(self.sizes):
            parquet_file(os.path.join(folder, f"x_{number:06}.parquet"), rows, 100)


Dataset.__module__ = "ray.data.dataset"


def test_a_dataset_is_written_once(tmp_path):
    pytest.importorskip("pyarrow", reason="needs the extra arrow")
    dataset = Dataset([5, 0, 7])
    folder = tmp_path / "checkpoint"
    files = dataset_to_files(dataset, folder)
    assert [len(rows_of(scan(file))) for file in files] == [5, 7]
    assert dataset_to_files(dataset, folder, resume=True) == files
    assert dataset.writes == 1
    (
        folder / "dataset" / "whole.json"
    ).unlink()  # as if the run was killed before all files were written
    assert len(dataset_to_files(dataset, folder, resume=True)) == 2
    assert dataset.writes == 2
    os.truncate(files[1], 10)
    with pytest.raises(DataError, match="is missing or has changed"):
        dataset_to_files(dataset, folder, resume=True)
    assert dataset_to_files(dataset, folder) == files
    (folder / "manifest.json").write_text("{}")
    with pytest.raises(ModelFileError, match=r"manifest.json: cannot be read, or is damaged"):
        dataset_to_files(dataset, folder)
    with pytest.raises(DataError, match="the dataset has no rows"):
        dataset_to_files(Dataset([0]), tmp_path / "other")
    assert not is_dataset(files)
    with pytest.raises(ParameterError, match="dataset must be a Ray Dataset; got list"):
        dataset_to_files(files, tmp_path / "other")
