"""The folder of a checkpoint: states of all pieces after one stage, and the stage that is complete.

    committed.json                  the last complete stage, and the coordinator's state
    stage-00000012/part-00003       state of a part: a safetensors file
    stage-00000012/range-00000      state of a range
    lock                            locked by the run that uses the folder

A file is written under another name and then renamed. A stage is valid as soon as `committed.json`
names it. So a run that is killed at any moment can be resumed from the stage before.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load, save

from thresher.atomic import clear_leftovers, write_whole
from thresher.disk_sync import make_folder, sync_folder
from thresher.distributed.engine.pieces import Arrays, PieceKind
from thresher.errors import ModelFileError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

LOCK = "lock"
COMMITTED = "committed.json"
STAGE = re.compile(r"stage-\d{8,}")


@dataclass(frozen=True)
class CommittedStage:
    """The last complete stage.

    Attributes
    ----------
    stage : int
        Number of stages that are done.
    steps : dict
        Number of steps taken by parts and by ranges.
    unreceived : list
        Kinds of pieces that have sent arrays which were not received yet. The arrays are in the
        files of these pieces.
    coordinator : dict
        State of the coordinator.
    history : list
        Records of stages so far.
    """

    stage: int
    steps: dict[PieceKind, int]
    unreceived: list[PieceKind]
    coordinator: dict[str, Any]
    history: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """Return the content of `committed.json`. Its keys are those of version 0.1.0."""
        return {
            "stage": self.stage,
            "steps": self.steps,
            "mail": self.unreceived,
            "lead": self.coordinator,
            "shown": self.history,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> CommittedStage:
        """Return the stage that `to_json` described; raises ValueError for anything else."""
        if set(content) != {"stage", "steps", "mail", "lead", "shown"}:
            raise ValueError("its fields are not those of a checkpoint")
        found = cls(*(content[key] for key in ("stage", "steps", "mail", "lead", "shown")))
        kinds = {"part", "range"}
        numbers = [found.stage, *found.steps.values()]
        if not (
            set(found.steps) == kinds
            and all(type(number) is int and number >= 0 for number in numbers)
            and set(found.unreceived) <= kinds
            and isinstance(found.coordinator, dict)
            and isinstance(found.history, list)
        ):
            raise ValueError("its fields are not those of a checkpoint")
        return found


class CheckpointFolder:
    """The folder of a checkpoint, which all workers share.

    Parameters
    ----------
    path : str
        Made absolute, as workers have other working folders.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

    def write(self, kind: PieceKind, number: int, stage: int, state: Arrays) -> int:
        """Write the state of a piece, whole or not at all; return its size."""
        file = self._file(kind, number, stage)
        make_folder(file.parent)
        content = save(state)
        write_whole(file, content)
        return len(content)

    def read(self, kind: PieceKind, number: int, stage: int) -> Arrays:
        """Read the state of a piece."""
        file = self._file(kind, number, stage)
        try:
            return dict(load(file.read_bytes()))
        except (OSError, SafetensorError) as error:
            raise ModelFileError(f"{file}: cannot be read, or is damaged ({error})") from error

    def commit(self, committed: CommittedStage) -> None:
        """Make a stage valid, after all its pieces were written; remove earlier stages."""
        for folder in (Path(self.path, self._name(committed.stage)), Path(self.path)):
            if folder.is_dir():
                sync_folder(folder)
        write_whole(self._committed_file, json.dumps(committed.to_json()).encode())
        self._remove_stages_except(committed.stage)

    def remove_stages(self) -> None:
        """Remove all stages; none is valid after that."""
        self._committed_file.unlink(missing_ok=True)
        self.remove_leftovers()

    def remove_leftovers(self) -> None:
        """Remove files of killed runs: everything except the last complete stage."""
        committed = self.committed()
        self._remove_stages_except(None if committed is None else committed.stage)
        clear_leftovers(self._committed_file)
        if committed is not None:
            for left in Path(self.path, self._name(committed.stage)).glob("*.part"):
                left.unlink(missing_ok=True)

    def committed(self) -> CommittedStage | None:
        """Return the last complete stage; None if there is none."""
        file = self._committed_file
        try:
            return CommittedStage.from_json(json.loads(file.read_bytes()))
        except FileNotFoundError:
            return None
        except (AttributeError, OSError, TypeError, ValueError) as error:
            raise ModelFileError(f"{file}: cannot be read, or is damaged ({error})") from error

    def _remove_stages_except(self, stage: int | None) -> None:
        """Remove other stages, unless it is not certain that `committed.json` is on the disk."""
        try:
            sync_folder(self.path)
        except OSError:
            return
        for old in Path(self.path).glob("stage-*"):
            if STAGE.fullmatch(old.name) and (stage is None or old.name != self._name(stage)):
                with contextlib.suppress(OSError):
                    shutil.rmtree(old)

    @property
    def _committed_file(self) -> Path:
        return Path(self.path, COMMITTED)

    def _file(self, kind: PieceKind, number: int, stage: int) -> Path:
        return Path(self.path, self._name(stage), f"{kind}-{number:05}")

    @staticmethod
    def _name(stage: int) -> str:
        return f"stage-{stage:08}"

    def __repr__(self) -> str:
        return f"CheckpointFolder({self.path!r})"


@contextlib.contextmanager
def locked_folder(path: str) -> Iterator[None]:
    """Lock the folder of a checkpoint, so that no other run uses it. Make it if necessary.

    The system releases the lock when this process ends in any way. On a file system without locks,
    nothing is locked. A new folder to which nothing was written is removed again.

    Parameters
    ----------
    path : str

    Raises
    ------
    ModelFileError
        The path is a file, or another run uses the folder.
    OSError
        The folder cannot be written to.
    """
    if os.path.exists(path) and not os.path.isdir(path):
        raise ModelFileError(f"{path}: a checkpoint is a folder, and this is a file")
    made = not os.path.exists(path)
    make_folder(path)
    file = os.path.join(path, LOCK)
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                made = False
                raise ModelFileError(
                    f"{path}: another run is using this folder; choose another, or wait for its end"
                ) from None
            except OSError:  # a file system without locks
                pass
        yield
    finally:
        with contextlib.suppress(OSError):
            if made and set(os.listdir(path)) == {LOCK}:
                os.unlink(file)
                os.rmdir(path)
        os.close(handle)
