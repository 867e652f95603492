"""Parquet and Arrow files, whose columns have types."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as parquet

from support.file_facts import CITIES, FileFacts, classes_of, kind, numbers, rng_of, sentence


def _table(seed: int, rows: int) -> pa.Table:
    rng = rng_of(seed)
    X = numbers(rng, rows, 2)
    y = classes_of(rng, X)
    days = [date(2022, 1, 1) + timedelta(int(d)) for d in rng.integers(0, 700, rows)]
    at = [datetime(2022, 1, 1) + timedelta(minutes=int(m)) for m in rng.integers(0, 10**6, rows)]
    tags = [[str(t) for t in rng.choice(["x", "y", "z"], rng.integers(0, 4))] for _ in range(rows)]
    a = [None if rng.random() < 0.1 else float(x) for x in X[:, 0]]
    return pa.table(
        {
            "a": pa.array(a, pa.float64()),
            "b": pa.array(X[:, 1]),
            "city": pa.array([str(c) for c in rng.choice(CITIES, rows)]).dictionary_encode(),
            "member": pa.array((rng.random(rows) < 0.5).tolist(), pa.bool_()),
            "tags": pa.array(tags, pa.list_(pa.string())),
            "day": pa.array(days, pa.date32()),
            "at": pa.array(at, pa.timestamp("us")),
            "review": pa.array([sentence(rng, bool(label)) for label in y]),
            "nothing": pa.nulls(rows, pa.string()),
            "label": pa.array(y.astype(np.int64)),
        }
    )


_COLUMNS = {
    "a": "number",
    "b": "number",
    "city": "category",
    "member": "truth",
    "tags": "list",
    "day": "date",
    "at": "date",
    "review": "text",
    "nothing": "empty",
}
_OPTIONS = ("--text review", "--missing indicator", "--dates parts")


def _facts(path: Path, format: str, table: pa.Table) -> FileFacts:
    return FileFacts(
        path,
        format=format,
        rows=table.num_rows,
        labels=(0, 1),
        columns=_COLUMNS,
        options=_OPTIONS,
        more={"missing": {"a": table.column("a").null_count, "nothing": table.num_rows}},
    )


@kind
def parquet_with_types(folder: Path, seed: int = 0, rows: int = 600) -> FileFacts:
    table, path = _table(seed, rows), folder / "typed.parquet"
    parquet.write_table(table, path, row_group_size=256)
    return _facts(path, "parquet", table)


@kind
def arrow_stream(folder: Path, seed: int = 0, rows: int = 600) -> FileFacts:
    table, path = _table(seed, rows), folder / "typed.arrow"
    with ipc.new_stream(path, table.schema) as out:
        out.write_table(table, max_chunksize=256)
    return _facts(path, "arrow", table)


@kind
def parquet_with_label_lists(folder: Path, seed: int = 0, rows: int = 600) -> FileFacts:
    rng = rng_of(seed)
    topics = ("art", "food", "music")
    own = [
        sorted(str(t) for t in rng.choice(topics, rng.integers(0, 3), replace=False))
        for _ in range(rows)
    ]
    texts = [f"{sentence(rng, True)} {' '.join(labels)}" for labels in own]
    path = folder / "labels.parquet"
    parquet.write_table(
        pa.table({"text": texts, "topics": pa.array(own, pa.list_(pa.string()))}), path
    )
    return FileFacts(
        path,
        format="parquet",
        rows=rows,
        label="topics",
        task="multilabel",
        labels=topics,
        columns={"text": "text"},
        options=("--label topics", "--multilabel", "--text text"),
        more={"without_labels": sum(not labels for labels in own)},
    )
