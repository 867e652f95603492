"""Table files of tests, and their rows."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from thresher.data.tables import TableColumns, TableSource


class CountedName(str):
    """A name of a column that counts how often it is compared with another name."""

    compared = 0

    def __eq__(self, other):
        CountedName.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def csv_file(tmp_path, text, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def table_file(tmp_path, columns, name="data.parquet", **options):
    path = tmp_path / name
    parquet.write_table(
        columns if isinstance(columns, pa.Table) else pa.table(columns), path, **options
    )
    return str(path)


def named_rows(block):
    """Return the rows as lists of (name, value), in their order."""
    names = dict(block.native.names)
    keys = block.native.keys.view(np.uint64).tolist()
    values = block.native.values.tolist()
    starts = block.native.starts.tolist()
    return [
        [(names[keys[i]].decode(), values[i]) for i in range(starts[r], starts[r + 1])]
        for r in range(block.rows)
    ]


def rows_of(path, format="csv", bits=None, delimiter=None, **columns):
    source = TableSource(path, format, TableColumns(**columns), bits, delimiter)
    return [
        row for block in source.blocks(dtype="float64", names=True) for row in named_rows(block)
    ]
