"""Runs exported models: in onnxruntime, in SQLite and in DuckDB."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest


def inferred(model, folder, rows, **options):
    """Write a model as ONNX; return the outputs of onnxruntime for a matrix or a list of dicts."""
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    model.to_onnx(folder / "model.onnx", **options)
    session = runtime.InferenceSession(str(folder / "model.onnx"))
    if isinstance(rows, list):
        found = [session.run(None, {"X": row}) for row in rows]
        return [np.concatenate(column) for column in zip(*found, strict=True)]
    return session.run(None, {"X": np.asarray(rows, np.float32)})


def in_sqlite(cells, names, query):
    """Return the names and the rows of a query over the table "the rows", in SQLite."""
    connection = sqlite3.connect(":memory:")
    shown = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    connection.execute(f'CREATE TABLE "the rows" ({shown})')
    connection.executemany(f'INSERT INTO "the rows" VALUES ({", ".join("?" * len(names))})', cells)
    found = connection.execute(query)
    return [head[0] for head in found.description], found.fetchall()


def in_duckdb(cells, names, query):
    """Return the names and the rows of a query over the table "the rows", in DuckDB."""
    duckdb, pa = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    connection = duckdb.connect(":memory:")
    columns = [pa.array(column) for column in zip(*cells, strict=True)]
    connection.register("the rows", pa.table(columns, names=list(names)))
    found = connection.execute(query)
    return [head[0] for head in found.description], found.fetchall()


DIALECT = {in_sqlite: "sqlite", in_duckdb: "duckdb"}


def answers(engine, model, cells, names, given=False):
    """Return the columns of the query that `Model.to_sql` writes, for a table of these rows."""
    query = model.to_sql(DIALECT[engine], table="the rows", names=names if given else None)
    query = f"SELECT * FROM ({query}) AS found ORDER BY place"
    rows = [[place, *line] for place, line in enumerate(cells)]
    heads, found = engine(rows, ["place", *names], query)
    return dict(zip(heads, map(np.array, zip(*found, strict=True)), strict=True))
