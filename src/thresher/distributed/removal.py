"""Removal of a checkpoint folder after a finished run."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from thresher.disk_sync import sync_folder
from thresher.distributed.engine import manifest
from thresher.distributed.engine.folder import COMMITTED, LOCK, STAGE, locked_folder
from thresher.distributed.ray.dataset import remove_dataset

_LEFTOVER = r"(\.[0-9a-f]{16}\.part)?"  # of a file that was not completely written
_COMMITTED = re.compile(re.escape(COMMITTED) + _LEFTOVER)
_COLUMNS = re.compile(r"columns-\d{5,}-\d{5,}-of-\d{5,}" + _LEFTOVER)
_STATE = re.compile(r"(part|range)-\d{5,}" + _LEFTOVER)
_OUTPUT = re.compile(r"output-\d{5,}")
_MANIFEST = re.compile(re.escape(manifest.NAME) + _LEFTOVER)


def remove_checkpoint(path: str, with_dataset: bool = False) -> None:
    """Remove the files of a checkpoint; then its folder, if that is empty.

    Files that the run did not write stay. `committed.json` is removed first and `manifest.json`
    last, also after a power cut. So after an interruption, the same run can be resumed, and starts
    from the beginning.

    Parameters
    ----------
    path : str
        Absolute.
    with_dataset : bool
        Whether the run wrote a Ray Dataset to the folder, which is removed too.

    Raises
    ------
    ModelFileError
        Another run uses the folder.
    OSError
        A file cannot be removed.
    """
    with locked_folder(path):
        folders = [*_matching(path, _OUTPUT), Path(path)]
        for folder in folders:
            _remove_files(folder, _COMMITTED)
            sync_folder(folder)
        for folder in folders:
            for stage in _matching(folder, STAGE):
                _remove_files(stage, _STATE)
                _remove_if_empty(stage)
            _remove_files(folder, _COLUMNS)
            if folder != Path(path):
                _remove_if_empty(folder)
        if with_dataset:
            remove_dataset(path)
        sync_folder(path)
        _remove_files(Path(path), _MANIFEST)
        lock = Path(path, LOCK)
        if lock.stat().st_size == 0:
            lock.unlink()
    _remove_if_empty(Path(path))


def _matching(folder: str | Path, pattern: re.Pattern[str]) -> Iterator[Path]:
    """Yield entries of a folder by name. Links are not ours: the run makes none."""
    for file in sorted(Path(folder).iterdir()):
        if pattern.fullmatch(file.name) and not file.is_symlink():
            yield file


def _remove_files(folder: Path, pattern: re.Pattern[str]) -> None:
    if folder.is_dir():
        for file in _matching(folder, pattern):
            file.unlink()


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # it has other files, or is a link
        os.rmdir(folder)
