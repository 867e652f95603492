"""The folder of a checkpoint: the pieces' states of one stage, and which stage counts.

    committed.json                  the last stage that is whole, and where the driver stood
    stage-00000012/part-00003       state of a part: a safetensors file
    stage-00000012/range-00000      state of a range

Files are written beside their place and renamed; a stage counts once `committed.json` names it, so
a run that is killed at any moment goes on from the stage before. Who uses the folder holds `lock`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load, save

from thresher.atomic import clear_leftovers, write_whole
from thresher.distributed.engine.pieces import Arrays, PieceKind
from thresher.errors import ModelFileError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_LOCK = "lock"


@dataclass(frozen=True)
class CommittedStage:
    """The last whole stage.

    Attributes
    ----------
    stage : int
        Stages that are done.
    steps : dict
        Steps taken by parts and by ranges.
    mail : list
        Kinds of pieces that have sent what was not received yet; their files have it.
    lead : dict
        Where the driver stood.
    shown : list
        What was shown of the stages so far.
    """

    stage: int
    steps: dict[PieceKind, int]
    mail: list[PieceKind]
    lead: dict[str, Any]
    shown: list[dict[str, Any]]


class CheckpointFolder:
    """A checkpoint's folder, which all workers see.

    Parameters
    ----------
    path : str
        Made absolute: workers stand elsewhere.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

    def write(self, kind: PieceKind, number: int, stage: int, state: Arrays) -> int:
        """Write the state of a piece, whole or not at all; return its size."""
        file = self._file(kind, number, stage)
        file.parent.mkdir(parents=True, exist_ok=True)
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
        """Let a stage count whose pieces are all written; those before are removed."""
        content = json.dumps(asdict(committed))
        write_whole(self._committed_file, content.encode())
        self._keep(committed.stage)

    def forget(self) -> None:
        """Let no stage count any more, and remove them all."""
        self._committed_file.unlink(missing_ok=True)
        self.clear()

    def clear(self) -> None:
        """Remove what runs that were killed have left: all but the last whole stage."""
        committed = self.committed()
        self._keep(None if committed is None else committed.stage)
        clear_leftovers(self._committed_file)
        if committed is not None:
            for left in Path(self.path, self._name(committed.stage)).glob("*.part"):
                left.unlink(missing_ok=True)

    def committed(self) -> CommittedStage | None:
        """Return the last whole stage; None where there is none."""
        file = self._committed_file
        try:
            return _checked(CommittedStage(**json.loads(file.read_bytes())))
        except FileNotFoundError:
            return None
        except (AttributeError, OSError, TypeError, ValueError) as error:
            raise ModelFileError(f"{file}: cannot be read, or is damaged ({error})") from error

    def _keep(self, stage: int | None) -> None:
        """Remove all stages but one."""
        for old in Path(self.path).glob("stage-*"):
            if not re.fullmatch(r"stage-\d{8,}", old.name):
                continue  # not of our making
            if stage is None or old.name != self._name(stage):
                with contextlib.suppress(OSError):
                    shutil.rmtree(old)

    @property
    def _committed_file(self) -> Path:
        return Path(self.path, "committed.json")

    def _file(self, kind: PieceKind, number: int, stage: int) -> Path:
        return Path(self.path, self._name(stage), f"{kind}-{number:05}")

    @staticmethod
    def _name(stage: int) -> str:
        return f"stage-{stage:08}"

    def __repr__(self) -> str:
        return f"Folder({self.path!r})"


@contextlib.contextmanager
def locked_folder(path: str) -> Iterator[None]:
    """Hold the folder of a checkpoint, made where it is not there: no other run may use it then.

    The system lets go of it when this process ends, however that comes. Where a file system knows
    no locks, there is none. A folder in which nothing was written is removed again.

    Parameters
    ----------
    path : str

    Raises
    ------
    ModelFileError
        It is a file, or another run goes on in it.
    OSError
        It cannot be written to.
    """
    if os.path.exists(path) and not os.path.isdir(path):
        raise ModelFileError(f"{path}: a checkpoint is a folder, and this is a file")
    made = not os.path.exists(path)
    os.makedirs(path, exist_ok=True)
    file = os.path.join(path, _LOCK)
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
            except OSError:  # no locks here
                pass
        yield
    finally:
        if made and set(os.listdir(path)) == {_LOCK}:
            with contextlib.suppress(OSError):
                os.unlink(file)
                os.rmdir(path)
        os.close(handle)


def _checked(committed: CommittedStage) -> CommittedStage:
    """Raise ValueError unless all fields are what they should be."""
    kinds = {"part", "range"}
    numbers = [committed.stage, *committed.steps.values()]
    if not (
        set(committed.steps) == kinds
        and all(type(number) is int and number >= 0 for number in numbers)
        and set(committed.mail) <= kinds
        and isinstance(committed.lead, dict)
        and isinstance(committed.shown, list)
    ):
        raise ValueError("its fields are not those of a checkpoint")
    return committed
