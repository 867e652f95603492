"""Tables whose strings are views, as polars writes them: the same rows as with plain strings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thresher import FTRLClassifier, scan
from thresher.data.arrow_views import without_views

pytestmark = pytest.mark.skipif(not hasattr(pa, "string_view"), reason="this pyarrow has no views")

WORDS = ["x", None, "a word of many letters", "x", "", "y"]
LABELS = ["yes", "no", "yes", "no", "no", "yes"]


def table(view: bool) -> pa.Table:
    """Return a table with strings in all places; `view`: they are views."""

    def strings(some: list[Any]) -> pa.Array:
        made = pa.array(some, pa.string())
        return made.cast(pa.string_view()) if view else made

    columns = {
        "word": strings(WORDS),
        "bytes": pa.array([w and w.encode() for w in WORDS], pa.binary()),
        "n": pa.array(range(6)),
        "list": pa.ListArray.from_arrays([0, 1, 1, 3, 4, 6, 6], strings([*WORDS[2:], "u", "v"])),
        "large": pa.LargeListArray.from_arrays([0, 2, 2, 2, 4, 5, 6], strings(["t"] * 6)),
        "category": pa.DictionaryArray.from_arrays([0, 1, 0, None, 1, 1], strings(["p", "q"])),
        "ordered": pa.DictionaryArray.from_arrays(
            pa.array([1, 0, None, 1, 0, 0]), strings(["low", "high"]), ordered=True
        ),
        "fixed": pa.FixedSizeListArray.from_arrays(strings([*WORDS, *WORDS]), 2),
        "map": pa.MapArray.from_arrays(
            [0, 1, 1, 2, 2, 2, 3], strings(["k", "l", "m"]), pa.array([1.5, 2, 3])
        ),
        "label": strings(LABELS),
    }
    if view:
        columns["bytes"] = columns["bytes"].cast(pa.binary_view())
    return pa.table(columns)


def rows(source: Any) -> list[Any]:
    found: list[Any] = []
    for block in source.blocks(names="blocks"):
        native = block.native
        found += [native.starts.tolist(), native.keys.tolist(), native.values.tolist()]
        found += [sorted(block.names), [str(label) for label in block.labels]]
    return found


class Stream:
    """An object that has only the Arrow C stream."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.rows.__arrow_c_stream__(requested_schema)


FRAMES = {
    "table": lambda t: t,
    "batch": lambda t: t.combine_chunks().to_batches()[0],
    "reader": lambda t: t.to_reader(),
    "stream": Stream,
    "pandas": lambda t: t.to_pandas(types_mapper=pd.ArrowDtype),
    "slices": lambda t: pa.concat_tables([t.slice(0, 2), t.slice(2)]),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("missing", ["zero", "indicator"])
def test_frames(make: Any, missing: str) -> None:
    plain, views = (scan(make(table(view)), missing=missing) for view in (False, True))
    assert rows(views) == rows(plain)


@pytest.mark.parametrize("options", [{}, {"text": ["word"]}, {"ignore": ["word"]}])
@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_files(tmp_path: Path, options: Any, kind: str) -> None:
    found = []
    for view in (False, True):
        path, content = str(tmp_path / f"a.{kind}"), table(view)
        if kind == "parquet":
            content = content.drop(["category", "ordered", "fixed", "map"])
            pq.write_table(content, path)
            assert ("view" in str(pq.read_table(path).schema)) == view
        else:
            with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, content.schema) as writer:
                writer.write_table(content)
        found.append(rows(scan(path, **options)))
    assert found[0] == found[1]


def test_files_of_polars(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"word": WORDS * 20, "list": [["a", "b"], [], ["c"]] * 40, "label": LABELS * 20}
    ).with_columns(
        category=pl.col("word").cast(pl.Categorical),
        ordered=pl.col("label").cast(pl.Enum(["no", "yes"])),
        fixed=pl.concat_list("label", "label").list.to_array(2),
    )
    frame.write_ipc(path := tmp_path / "rows.arrow")
    assert "view" in str(pa.ipc.open_file(str(path)).schema)
    from_file, from_frame = (
        FTRLClassifier(passes=2, store="hashed", shuffle=False).fit(scan(given, missing="zero"))
        for given in (path, frame)
    )
    assert from_file.model_.weights.tolist() == from_frame.model_.weights.tolist()
    assert len(from_file.model_.weights) > 2


def test_bad_rows_are_left_out() -> None:
    source = scan(table(True).select(["word", "n", "label"]), missing="error", on_bad_line="skip")
    (block,) = source.blocks()
    assert (block.rows, source.bad_lines.count) == (5, 1)


def test_tables_without_views_are_not_copied() -> None:
    plain = table(False)
    assert without_views(plain) is plain
    views = table(True)
    made = without_views(views)
    assert "view" not in str(made.schema)
    assert made.column("n").chunk(0).buffers()[1].address == (
        views.column("n").chunk(0).buffers()[1].address
    )
    assert made.drop(["category"]).to_pylist() == plain.drop(["category"]).to_pylist()
    assert made.column("category").to_pylist() == plain.column("category").to_pylist()
