"""Tables of several files and many rows: reading continues after any block."""

import gzip

import numpy as np
import pytest

from thresher import scan
from thresher.data import tables
from thresher.data.block import Position
from thresher.data.tables import TableSource

pa = pytest.importorskip("pyarrow", reason="needs the extra arrow")
parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra arrow")

from support.tables import table_file  # noqa: E402


@pytest.fixture
def small(monkeypatch):
    """Batches of 4 rows, so that small files have several batches."""
    monkeypatch.setattr(tables, "BATCH_ROWS", 4)


def flat(blocks):
    return [
        (
            block.end,
            block.native.keys.tolist(),
            block.native.values.tolist(),
            block.labels.tolist(),
            [block.place(row) for row in range(block.rows)],
        )
        for block in blocks
    ]


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "arrow"])
def test_resuming_after_any_block(tmp_path, small, kind):
    import pyarrow.csv

    files = []
    for number, rows in enumerate((10, 3, 0, 9)):
        ids = np.arange(rows) + 100 * number
        table = pa.table({"a": ids * 0.5, "b": [f"v{i % 3}" for i in ids], "y": ids % 2})
        path = tmp_path / f"{number}.{kind}"
        files.append(str(path))
        if kind == "parquet":
            parquet.write_table(table, path, row_group_size=3)
        elif kind == "arrow":
            with pa.ipc.new_file(str(path), table.schema) as file:
                file.write_table(table, max_chunksize=5)
        else:
            pyarrow.csv.write_csv(table, path)
            if kind == "csv.gz":
                path.write_bytes(gzip.compress(path.read_bytes()))
    source = scan(files)
    whole = flat(source.blocks())
    assert [len(labels) for _, _, _, labels, _ in whole] == [4, 4, 2, 3, 4, 4, 1]
    assert whole[-1][0] == Position(3, 3, 9 + (kind not in ("parquet", "arrow")))
    assert source.size == sum(len(open(file, "rb").read()) for file in files)  # noqa: SIM115
    assert flat(source.blocks()) == whole
    for done in range(len(whole)):
        position = Position.from_json(whole[done][0].to_json())
        assert flat(scan(files).blocks(after=position)) == whole[done + 1 :]


def test_blocks_do_not_depend_on_row_groups(tmp_path):
    values = np.arange(20_000.0)
    path = table_file(tmp_path, {"a": values, "y": values}, row_group_size=15_000)
    blocks = list(TableSource(path, "parquet").blocks(dtype="float64"))
    assert [block.rows for block in blocks] == [8192, 8192, 3616]
    np.testing.assert_array_equal(np.concatenate([block.native.values for block in blocks]), values)


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "big.parquet"
    rng = np.random.default_rng(0)
    with parquet.ParquetWriter(path, pa.schema([("a", pa.float64()), ("y", pa.float64())])) as file:
        for _ in range(4):
            values = rng.random(500_000)
            file.write_table(pa.table({"a": values, "y": values}), row_group_size=500_000)
    before = pa.total_allocated_bytes()
    peak = max(
        pa.total_allocated_bytes() - before for _ in TableSource(str(path), "parquet").blocks()
    )
    assert path.stat().st_size > 30 << 20
    assert peak < 16 << 20
