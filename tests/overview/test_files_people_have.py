"""The generator of files: what it writes reads back as its facts say."""

from __future__ import annotations

import csv
import gzip
import io

import pyarrow.ipc as ipc
import pyarrow.parquet as parquet
import pytest

from support.files_people_have import KINDS, all_kinds

ODD = {
    "latin1",
    "utf16",
    "nul_bytes",
    "ragged_lines",
    "label_tab_text_with_quotes",
    "aligned_by_spaces",
}


@pytest.mark.parametrize("name", all_kinds())
def test_the_same_seed_gives_the_same_bytes(name, tmp_path):
    (tmp_path / "again").mkdir()
    first = KINDS[name](tmp_path, seed=3)
    again = KINDS[name](tmp_path / "again", seed=3)
    assert first.path.read_bytes() == again.path.read_bytes()
    assert first.rows == again.rows


@pytest.mark.parametrize("name", sorted(set(all_kinds()) - ODD))
def test_rows_and_labels_are_as_told(name, tmp_path):
    made = KINDS[name](tmp_path, seed=1)
    rows, head = _read(made)
    if rows is None:
        return
    assert len(rows) == made.rows
    known = set(made.columns) | ({made.label} - {None})
    if head is not None:
        assert known <= set(head)
    if made.labels and made.label is not None and made.task != "multilabel":
        at = head.index(made.label) if head else made.label
        assert {str(row[at]) for row in rows} == {str(label) for label in made.labels}


def _read(made):
    """Return rows and names, by other readers than those of Thresher."""
    if made.format == "parquet":
        table = parquet.read_table(made.path)
        return [list(row.values()) for row in table.to_pylist()], table.column_names
    if made.format == "arrow":
        table = ipc.open_stream(made.path).read_all()
        return [list(row.values()) for row in table.to_pylist()], table.column_names
    if made.format in ("svmlight", "vw"):
        data = made.path.read_bytes()
        lines = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode().splitlines()
        return [line.split() for line in lines if ":one" not in line], None
    if made.format != "csv":
        return None, None
    text = made.path.read_text("utf-8-sig")
    headed = not any(isinstance(name, int) for name in (made.label, *made.columns))
    rows = list(csv.reader(io.StringIO(text), delimiter=made.more.get("delimiter", ",")))
    return (rows[1:], rows[0] if rows else []) if headed else (rows, None)


def test_ragged_lines_have_other_lengths(tmp_path):
    made = KINDS["ragged_lines"](tmp_path)
    lengths = [len(row) for row in csv.reader(made.path.open())]
    bad = [line for line, length in enumerate(lengths, 1) if length != lengths[0]]
    assert (len(bad), bad[0]) == (made.more["bad_lines"], made.more["first_bad_line"])
    assert len(lengths) - 1 - len(bad) == made.rows


def test_missing_and_mixed_cells_are_counted(tmp_path):
    made = KINDS["mixed_types"](tmp_path)
    rows = list(csv.DictReader(made.path.open()))
    assert sum(not row["income"].isdigit() for row in rows) == made.more["words"] > 10
    made = KINDS["missing_values"](tmp_path)
    rows = list(csv.DictReader(made.path.open()))
    cities = [row["city"] for row in rows]
    assert sum(not city.isalpha() or city in ("NA", "null", "NULL", "None", "nan", "NaN")
               for city in cities) == made.more["missing"]["city"]  # fmt: skip


def test_encodings(tmp_path):
    assert "Köln" in KINDS["latin1"](tmp_path).path.read_text("latin-1")
    assert "Köln" in KINDS["utf16"](tmp_path).path.read_text("utf-16")
    with pytest.raises(UnicodeDecodeError):
        KINDS["latin1"](tmp_path).path.read_text("utf-8")
    made = KINDS["nul_bytes"](tmp_path)
    assert made.path.read_bytes().count(b"\0") == made.more["nul"]
    made = KINDS["label_tab_text_with_quotes"](tmp_path)
    assert made.path.read_text().count('\t"') == made.more["quotes"]
    made = KINDS["duplicated_rows"](tmp_path)
    lines = made.path.read_text().splitlines()[1:]
    assert len(lines) - len(set(lines)) == made.more["duplicates"]
