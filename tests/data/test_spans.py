"""Spans of files: spans that cover a file contain each of its rows once, in order."""

import gzip
import io
import itertools
import os
import pathlib
import tempfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.blocks import rows_of
from support.files import svmlight, vw
from thresher import _core, scan
from thresher.data import tables
from thresher.data.block import Position
from thresher.data.cache_writer import CacheWriter
from thresher.data.parts import part_of
from thresher.data.read_options import ColumnKinds, ReadOptions
from thresher.data.source import Source
from thresher.data.spans import Span, extent, line_start
from thresher.data.writing import write
from thresher.errors import DataError, ParameterError


def spanned(path, spans, **options):
    """Return a source of spans of a file, one after the other."""
    reading = ReadOptions.of(**{"threads": 1, **options})
    kinds = ColumnKinds({})
    return Source([part_of(str(path), reading, kinds, span) for span in spans], reading)


def between(cuts):
    return [Span(a, b) for a, b in itertools.pairwise(cuts)]


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield pathlib.Path(name)


LINES = {
    "svmlight": [b"1 3:0.5 7:2", b"-1 1:1 # why", b"", b"# nothing", b"2.5 12:1e-3", b"  ", b"1"],
    "vw": [b"1 |a x y:2", b"-1 0.5 'tag|b z", b"", b"1 |a x |b long^name:3", b" |a y"],
}


@pytest.mark.parametrize("format", ["svmlight", "vw"])
@given(data=st.data())
def test_spans_of_text(folder, format, data):
    lines = data.draw(st.lists(st.sampled_from(LINES[format]), max_size=12))
    newline = data.draw(st.sampled_from([b"\n", b"\r\n"]))
    text = newline.join(lines) + (newline if data.draw(st.booleans()) else b"")
    path = folder / f"rows.{format}"
    path.write_bytes(text)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    threads = data.draw(st.sampled_from([1, 2]))
    source = spanned(path, between([0, *cuts, len(text)]), format=format, threads=threads)
    assert rows_of(source) == rows_of(scan(path, format=format, threads=1))
    assert source.size == len(text)


def test_a_line_belongs_to_the_span_of_its_first_byte(folder):
    path = folder / "three.svm"
    path.write_bytes(b"1 1:1\n2 2:2\n3 3:3")
    for begin, end in itertools.combinations_with_replacement(range(18), 2):
        expected = [label for label, at in ((1.0, 0), (2.0, 6), (3.0, 12)) if begin <= at < end]
        found = rows_of(spanned(path, [Span(begin, end)], format="svmlight"))
        assert [row[1] for row in found] == [[label] for label in expected]


def test_only_the_first_line_of_a_file_can_be_a_header(folder):
    path = folder / "many.svm"
    path.write_bytes(b"2 10 3\n0,2 1:1\n1 10 3:1\n")
    whole = scan(path, format="svmlight", multilabel=True, on_bad_line="skip")
    cut = spanned(
        path, between([0, 15, 24]), format="svmlight", multilabel=True, on_bad_line="skip"
    )
    assert rows_of(cut) == rows_of(whole)
    assert cut.bad_lines.count == whole.bad_lines.count == 1


def test_line_starts_after_long_lines(folder):
    path = folder / "long"
    path.write_bytes(b"x" * 200_000 + b"\n" + b"y" * 70_000)
    assert [line_start(str(path), at) for at in (0, 1, 200_001, 200_002, 10**9)] == [
        0,
        200_001,
        200_001,
        270_001,
        270_001,
    ]


@given(data=st.data())
def test_spans_of_parquet(folder, data):
    pa = pytest.importorskip("pyarrow", reason="needs the extra arrow")
    import pyarrow.parquet as parquet

    count = data.draw(st.integers(0, 60))
    table = pa.table(
        {
            "x": [i / 7 for i in range(count)],
            "word": [f"w{i % 5}" for i in range(count)],
            "label": [float(i % 3) for i in range(count)],
        }
    )
    path = folder / "rows.parquet"
    parquet.write_table(table, path, row_group_size=data.draw(st.sampled_from([1, 7, 100])))
    assert extent(str(path), "parquet") == count
    cuts = sorted(data.draw(st.lists(st.integers(0, count), max_size=5)))
    batch = data.draw(st.sampled_from([3, 8192]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "BATCH_ROWS", batch)
        source = spanned(path, between([0, *cuts, count]))
        assert rows_of(source) == rows_of(scan(path))
        for block in list(source.blocks()):  # resume after each block
            left = [b.rows for b in source.blocks(block.end)]
            before = [b.rows for b in source.blocks() if _order(b.end) <= _order(block.end)]
            assert sum(left) + sum(before) == count


def _order(position: Position):
    return position.file, position.offset


@given(data=st.data())
def test_spans_of_a_cache(folder, data):
    count = data.draw(st.integers(1, 6))
    path, size = folder / "rows.cache", 4
    writer = CacheWriter(str(path))
    for at in range(count):
        values = np.arange(size, dtype=np.float64) + at
        writer.add(
            _core.make_block(
                np.arange(size + 1), np.arange(size), values, labels=values, first_line=1 + 4 * at
            )
        )
    writer.finish()
    assert extent(str(path), "cache") == count
    cuts = sorted(data.draw(st.lists(st.integers(0, count), max_size=4)))
    source = spanned(path, between([0, *cuts, count]))
    assert rows_of(source) == rows_of(scan(path))
    span = spanned(path, [Span(0, cuts[0] if cuts else count)])
    assert sorted(rows_of(span, order=(3, 1))) == sorted(rows_of(span))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("threads", [1, 3])
def test_errors_name_the_true_line(tmp_path, newline, threads):
    path = tmp_path / "bad.svm"
    lines = [f"{i % 2} {i % 9 + 1}:1" for i in range(200)]
    lines[150] = "1 5:x"
    path.write_bytes(newline.join(lines).encode())
    begin = path.stat().st_size // 2
    source = spanned(path, [Span(begin, path.stat().st_size)], threads=threads)
    with pytest.raises(DataError) as error:
        rows_of(source)
    with pytest.raises(DataError) as whole:
        rows_of(scan(path))
    assert str(error.value) == str(whole.value)
    assert str(error.value).startswith(f"{path}:151:5: ")
    skipping = spanned(
        path, [Span(begin, path.stat().st_size)], on_bad_line="skip", threads=threads
    )
    rows_of(skipping)
    assert skipping.bad_lines.warning == f"1 bad line left out: {whole.value}"


def test_errors_of_tables_name_the_true_row(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="needs the extra arrow")
    import pyarrow.parquet as parquet

    path = tmp_path / "bad.parquet"
    values = [1.0] * 40
    values[33] = float("inf")
    parquet.write_table(pa.table({"x": values, "label": [1.0] * 40}), path, row_group_size=9)
    with pytest.raises(DataError, match=rf"{path}:34: column 'x'"):
        rows_of(spanned(path, [Span(20, 40)]))
    assert len(rows_of(spanned(path, [Span(0, 33), Span(34, 40)]))) == 39


def test_resuming_within_a_span(tmp_path):
    path = svmlight(tmp_path / "rows.svm", rows=300, repeat=150)
    size = path.stat().st_size
    source = spanned(path, between([0, size // 3, size]))
    blocks = list(source.blocks())
    assert len(blocks) > 2
    for at, block in enumerate(blocks):
        rest = [b.digest for b in source.blocks(block.end)]
        assert rest == [b.digest for b in blocks[at + 1 :]]
    assert size - 200 < blocks[-1].raw <= size


def test_input_that_cannot_be_read_in_spans(tmp_path):
    text = vw(tmp_path / "rows.vw", rows=20)
    compressed = tmp_path / "rows.vw.gz"
    compressed.write_bytes(gzip.compress(text.read_bytes()))
    assert extent(str(compressed), "vw") is None
    assert extent(str(text), "vw") == text.stat().st_size
    with pytest.raises(ParameterError, match="compressed text cannot be read in spans"):
        rows_of(spanned(compressed, [Span(0, 10)]))
    with pytest.raises(ParameterError, match="a span must begin at 0"):
        Span(4, 3)
    table = tmp_path / "rows.csv"
    table.write_text("x,label\n1,2\n")
    assert extent(str(table), "csv") is None
    with pytest.raises(ParameterError, match="csv cannot be read in spans"):
        spanned(table, [Span(0, 1)])
    with pytest.raises(ValueError, match="end needs a path"):
        _core.Reader(io.BytesIO(b""), "vw", end=3)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ParameterError, match="only a local file"):
        spanned(tmp_path / "pipe", [Span(0, 1)], format="vw")


def test_a_file_that_became_smaller_is_an_error(tmp_path):
    text = svmlight(tmp_path / "rows.svm", rows=20)
    size = text.stat().st_size
    with pytest.raises(DataError, match=f"has {size} bytes, but bytes up to {size + 1} are"):
        rows_of(spanned(text, [Span(0, size + 1)]))
    cache = tmp_path / "rows.cache"
    write(scan(text), str(cache), "cache")
    with pytest.raises(DataError, match="has 1 blocks"):
        spanned(cache, [Span(0, 2)])
    pytest.importorskip("pyarrow", reason="needs the extra arrow")
    table = tmp_path / "rows.parquet"
    write(scan(text), str(table), "parquet")
    with pytest.raises(DataError, match="has 20 rows"):
        rows_of(spanned(table, [Span(0, 21)]))


def test_facts_of_different_spans_differ(tmp_path):
    path = svmlight(tmp_path / "rows.svm", rows=20)
    first, second = (spanned(path, [Span(0, end)]) for end in (10, 20))
    assert first.is_unchanged(first.facts())
    assert not first.is_unchanged(second.facts())
