"""Checkpoint files: the state of a run; a run resumed from it gives bit-identical results.

A checkpoint is a safetensors file. It holds the states of the learners as bytes (and the states of
the best pass, if early stopping keeps one), everything else as JSON, and a digest of all of it.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as to_bytes

from thresher._version import __version__
from thresher.atomic import clear_leftovers, write_whole
from thresher.disk_sync import sync_file
from thresher.errors import ModelFileError
from thresher.file_format import (
    RepeatedEntryError,
    check_format,
    from_json,
    writer_of,
)
from thresher.model import name_tensors
from thresher.model.tensor_file import TensorFile, TensorFileError
from thresher.training.observer import Observer

FORMAT = 1
_KEY = "thresher-checkpoint"


@dataclass(frozen=True)
class TrainingCheckpoint:
    """The state of a run.

    Attributes
    ----------
    about : dict
        Everything that JSON can hold.
    states : list of bytes
        The states of the learners.
    best : list of bytes
        The states after the best pass so far, if early stopping keeps them.
    names : dict or None
        Names of features, if the source can be read only once.
    version : str
        The version of Thresher that wrote it.
    """

    about: Mapping[str, Any]
    states: Sequence[bytes] = field(repr=False)
    best: Sequence[bytes] = field(repr=False, default=())
    names: Mapping[int, bytes] | None = field(repr=False, default=None)
    version: str = __version__

    @property
    def digest(self) -> str:
        """Digest of everything but the seconds: equal runs have equal digests."""
        timeless = {name: value for name, value in self.about.items() if name != "seconds"}
        digest = hashlib.sha256(json.dumps(timeless, sort_keys=True).encode())
        for content in (*self.states, b"|", *self.best):
            digest.update(len(content).to_bytes(8, "little"))
            digest.update(content)
        if self.names is not None:
            for array in name_tensors.to_tensors(self.names).values():
                digest.update(array.tobytes())
        return digest.hexdigest()[:32]

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return the states and the names as arrays, by the names that they have in the file."""
        tensors: dict[str, NDArray[Any]] = {
            f"{name}{number}": np.frombuffer(content, np.uint8)
            for name, contents in (("state", self.states), ("best", self.best))
            for number, content in enumerate(contents)
        }
        return tensors if self.names is None else tensors | name_tensors.to_tensors(self.names)

    def write(self, path: str | PathLike[str]) -> str:
        """Write the file atomically; return the digest."""
        digest, tensors = self.digest, self.tensors()
        about = {
            "format": FORMAT,
            "version": self.version,
            "digest": digest,
            "states": len(self.states),
            "best": len(self.best),
            "seconds": self.about.get("seconds"),
            "about": dict(self.about),
        }
        write_whole(path, to_bytes(tensors, {_KEY: json.dumps(about)}))
        return digest


class CheckpointPart(PathLike[str]):
    """A place for the checkpoint of one fit within the checkpoint file of a longer run.

    `fit` takes it in place of the path of a file.
    """

    @abstractmethod
    def write(self, saved: TrainingCheckpoint) -> str:
        """Write the file of the longer run with the state of this fit; return its digest."""

    @abstractmethod
    def read(self) -> TrainingCheckpoint:
        """Return the state of this fit; raise FileNotFoundError if there is none."""


def kind_of(about: Mapping[str, Any]) -> str:
    """Return what kind of run a checkpoint is from, for a message."""
    kinds = {
        "discovery": "a discovery of features",
        "search": "a search",
        "solver": "a rule that needs all rows at once",
    }
    return kinds.get(str(about.get("run")), "a rule that learns row by row")


def check_replaceable(path: str | PathLike[str]) -> None:
    """Raise ModelFileError if the file exists and is not a checkpoint: it is not overwritten."""
    if not os.path.isfile(path) or os.path.getsize(path) == 0:
        return
    with open(path, "rb") as file:
        if _KEY.encode() not in file.read(1 << 10):
            raise ModelFileError(
                f"{os.fspath(path)}: exists and is not a checkpoint; choose another file"
            )


def finish(
    path: str | PathLike[str], observer: Observer, results: Sequence[str | None], keep: bool
) -> None:
    """Remove the checkpoint of a run that is complete, and what processes left that were killed.

    Parameters
    ----------
    path : path
        The checkpoint.
    observer : Observer
        It is warned if the checkpoint cannot be removed.
    results : sequence of str or None
        The files of the results. The checkpoint stays if they are not on the disk.
    keep : bool
        Whether the checkpoint stays in any case.
    """
    files = [result for result in results if result is not None]
    for file in (path, *files):
        clear_leftovers(file)
    if keep:
        return
    try:
        for file in files:
            sync_file(file)
    except OSError as error:
        observer.warn(
            f"the checkpoint {os.fspath(path)} is kept, as the results may not be on the disk: "
            f"{error.filename}: {error.strerror}"
        )
        return
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        observer.warn(f"the checkpoint {os.fspath(path)} could not be removed: {error.strerror}")


def _names(file: TensorFile) -> dict[int, bytes] | None:
    if not set(name_tensors.TENSORS) <= set(file.places):
        return None
    return name_tensors.from_tensors({name: file.array(name) for name in name_tensors.TENSORS})


def read(path: str | PathLike[str]) -> TrainingCheckpoint:
    """Read and verify a checkpoint.

    Raises FileNotFoundError, or ModelFileError if the file is not a checkpoint or is damaged.
    """
    path = os.fspath(path)
    try:
        with TensorFile(path) as file:
            text = file.metadata.get(_KEY)
            if text is None:
                raise ModelFileError(f"{path}: a safetensors file, but not a checkpoint")
            about = from_json(text)
            check_format(path, about, FORMAT, ModelFileError)
            if not isinstance(about["about"], dict):
                raise TypeError
            checkpoint = TrainingCheckpoint(
                about["about"],
                [file.array(f"state{i}").tobytes() for i in range(about["states"])],
                [file.array(f"best{i}").tobytes() for i in range(about["best"])],
                _names(file),
                writer_of(about),
            )
            wanted = about["digest"]
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error})") from error
    except TensorFileError as error:
        raise ModelFileError(f"{path}: not a checkpoint, or cut short ({error})") from error
    except RepeatedEntryError as error:
        raise ModelFileError(f"{path}: damaged: {error}") from error
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{path}: damaged: its description cannot be read") from error
    if checkpoint.digest != wanted:
        raise ModelFileError(f"{path}: damaged: the contents do not match their digest")
    return checkpoint
