"""A Ray Dataset as files: it is written once, and then read as any Parquet files are."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from thresher.atomic import write_whole
from thresher.data.table_files import row_groups
from thresher.distributed.engine.manifest import manifest_to_resume
from thresher.errors import DataError, ParameterError

_FOLDER, _WHOLE = "dataset", "whole.json"


def is_dataset(data: Any) -> bool:
    """Tell whether data are a Ray Dataset, without importing Ray."""
    return any(
        kind.__name__ == "Dataset" and kind.__module__.startswith("ray.data")
        for kind in type(data).__mro__
    )


def dataset_to_files(
    dataset: Any, folder: str | os.PathLike[str], resume: bool = False
) -> list[str]:
    """Write a Ray Dataset to Parquet files in the folder of a checkpoint; return their names.

    Its columns are those of a table; files follow the order of its blocks. A run that is resumed
    reads what was written then, and does not ask the dataset again.

    Parameters
    ----------
    dataset : ray.data.Dataset
    folder : path
        Which all workers see.
    resume : bool
        Whether to take files that are there.

    Raises
    ------
    ModelFileError
        The folder holds the checkpoint of another run.
    DataError
        The dataset has no rows, or files written before are not what they were.
    """
    if not is_dataset(dataset):
        raise ParameterError(f"dataset must be a Ray Dataset; got {type(dataset).__name__}")
    manifest_to_resume(folder, resume)
    place = Path(folder, _FOLDER).absolute()
    if resume and (place / _WHOLE).exists():
        return _written(place)
    if place.exists():  # by a run that ended before it had begun to learn
        shutil.rmtree(place)
    place.mkdir(parents=True)
    dataset.write_parquet(str(place))
    files = []
    for file in sorted(place.rglob("*.parquet")):
        if row_groups(str(file))[-1] == 0:
            file.unlink()
        else:
            files.append(file)
    if not files:
        shutil.rmtree(place)
        raise DataError("the dataset has no rows to learn from")
    sizes = {str(file.relative_to(place)): file.stat().st_size for file in files}
    write_whole(place / _WHOLE, json.dumps(sizes, indent=1).encode())
    return [str(file) for file in files]


def _written(place: Path) -> list[str]:
    """Return the files that were written before."""
    try:
        sizes: dict[str, int] = json.loads((place / _WHOLE).read_text())
    except ValueError as error:
        raise DataError(f"{place / _WHOLE}: is damaged ({error})") from None
    for name, size in sizes.items():
        file = place / name
        if not file.is_file() or file.stat().st_size != size:
            raise DataError(f"{file}: is missing or has changed since the dataset was written")
    return [str(place / name) for name in sizes]
