"""A Ray Dataset as files: it is written once, and then read like other Parquet files."""

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

_FOLDER, _SIZES = "dataset", "whole.json"  # sizes are written when all files are complete


def is_dataset(data: Any) -> bool:
    """Return whether data are a Ray Dataset, without an import of Ray."""
    return any(
        kind.__name__ == "Dataset" and kind.__module__.startswith("ray.data")
        for kind in type(data).__mro__
    )


def dataset_to_files(
    dataset: Any, folder: str | os.PathLike[str], resume: bool = False
) -> list[str]:
    """Write a Ray Dataset to Parquet files in the folder of a checkpoint; return their names.

    The columns of the dataset are used like columns of a table. The files are in the order of the
    dataset's blocks. A resumed run reads the files that are there, and does not use the dataset.

    Parameters
    ----------
    dataset : ray.data.Dataset
    folder : path
        Shared by all workers.
    resume : bool
        Whether to use files that are already there.

    Raises
    ------
    ModelFileError
        The folder holds the checkpoint of another run.
    DataError
        The dataset has no rows, or files from before are missing or have changed.
    """
    if not is_dataset(dataset):
        raise ParameterError(f"dataset must be a Ray Dataset; got {type(dataset).__name__}")
    manifest_to_resume(folder, resume)
    place = Path(folder, _FOLDER).absolute()
    if resume and (place / _SIZES).exists():
        return _written(place)
    if place.exists():  # from a run that ended before training
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
    write_whole(place / _SIZES, json.dumps(sizes, indent=1).encode())
    return [str(file) for file in files]


def _written(place: Path) -> list[str]:
    """Return the files of an earlier run, after a check of their sizes."""
    try:
        sizes: dict[str, int] = json.loads((place / _SIZES).read_text())
    except ValueError as error:
        raise DataError(f"{place / _SIZES}: is damaged ({error})") from None
    for name, size in sizes.items():
        file = place / name
        if not file.is_file() or file.stat().st_size != size:
            raise DataError(f"{file}: is missing or has changed since the dataset was written")
    return [str(place / name) for name in sizes]


def remove_dataset(folder: str | os.PathLike[str]) -> None:
    """Remove the files that `dataset_to_files` wrote to a folder, and no others."""
    place = Path(folder, _FOLDER).resolve()
    if not (place / _SIZES).is_file():
        return
    names = json.loads((place / _SIZES).read_text())
    if not isinstance(names, dict):
        raise ValueError(f"{place / _SIZES} is damaged")
    files = [file for name in names if (file := (place / name).resolve()).is_relative_to(place)]
    (place / _SIZES).unlink()
    for file in files:
        file.unlink(missing_ok=True)
    folders = {parent for file in files for parent in file.parents if parent != place.parent}
    for left in sorted(folders, reverse=True):  # subfolders first
        if left.is_relative_to(place) and not any(left.iterdir()):
            left.rmdir()
