"""What the folder of a checkpoint says of its run: `manifest.json`.

It is written once, after the first scan. A resumed run takes from it what the scan has found, and
is refused where options or data are not what they were.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thresher._version import __version__
from thresher.atomic import write_whole
from thresher.data import open_streams, paths
from thresher.data.read_options import ReadOptions
from thresher.distributed.shards import Shards
from thresher.distributed.survey import MapItems, SurveyResult, map_in_process, shard_checksums
from thresher.errors import DataError, ModelFileError, setting
from thresher.file_format import check_format, writer_of
from thresher.training.bits import bits_of, check_bits

FORMAT = 1
NAME = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """What a run is, and what it learns from.

    It is made before the first scan, so that files that change during it show; what the scan has
    found is added by `dataclasses.replace`.

    Attributes
    ----------
    options : dict
        All that decides the result besides the data: mode, rule, parameters, ranges, seed.
    shards : Shards
    files : dict
        Size and time of change, in nanoseconds, of each file; None where it is not known.
    agreed : SurveyResult or None
        What the first scan has found; None before it.
    version : str
        The version of Thresher that began the run.
    bits : dict or None
        Behaviours that the bits of the result depend on, with their numbers, as the file has them;
        None before it is written, and in files of early versions.
    """

    options: dict[str, Any]
    shards: Shards
    files: dict[str, tuple[int | None, int | None]]
    agreed: SurveyResult | None = None
    version: str = __version__
    bits: dict[str, int] | None = None

    @classmethod
    def of(
        cls, options: Mapping[str, Any], shards: Shards, agreed: SurveyResult | None = None
    ) -> Manifest:
        """Describe a run, and the files as they are now."""
        plain = json.loads(json.dumps(dict(options), default=_plain))
        return cls(plain, shards, {name: _status(name) for name in shards.files}, agreed)

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write it, whole or not at all.

        Raises ModelFileError where the folder has one already.
        """
        assert self.agreed is not None
        file = Path(folder, NAME)
        if file.exists():
            raise _another(folder)
        content = {
            "format": FORMAT,
            "version": __version__,
            "bits": _bits(self.options, self.agreed),
            "options": self.options,
            "shards": self.shards.to_json(),
            "files": self.files,
            "agreed": self.agreed.to_json(),
        }
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(content, indent=1).encode())

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Manifest | None:
        """Read that of a folder; None where there is none."""
        file = Path(folder, NAME)
        try:
            content = json.loads(file.read_text())
            check_format(file, content, FORMAT, ModelFileError)
            files = {name: (size, time) for name, (size, time) in content["files"].items()}
            shards = Shards.from_json(content["shards"])
            agreed, version = SurveyResult.from_json(content["agreed"]), writer_of(content)
            bits = dict(content["bits"]) if "bits" in content else None
            return cls(content["options"], shards, files, agreed, version, bits)
        except FileNotFoundError:
            return None
        except ModelFileError:
            raise
        except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"{file}: cannot be read, or is damaged ({error})") from error


def manifest_to_resume(folder: str | os.PathLike[str], resume: bool) -> Manifest | None:
    """Return the manifest of the run to go on with; None where a run is to begin.

    Parameters
    ----------
    folder : path
        Of the checkpoint.
    resume : bool
        Whether to go on, where there is something to go on from.

    Raises
    ------
    ModelFileError
        The folder holds the checkpoint of another run, or what is no whole checkpoint.
    """
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise ModelFileError(f"{os.fspath(folder)}: a checkpoint is a folder, and this is a file")
    before = Manifest.read(folder)
    if before is not None and not resume:
        raise _another(folder)
    if before is None and os.path.exists(os.path.join(folder, "committed.json")):
        raise ModelFileError(
            f"{os.fspath(folder)}: holds a checkpoint without its {NAME}; choose another folder"
        )
    return before


def check(
    before: Manifest,
    now: Manifest,
    folder: str | os.PathLike[str],
    spread: MapItems = map_in_process,
) -> SurveyResult:
    """See that a run is what it was; return what its first scan has found.

    Files of the same size that were written anew are read again, and their checksums compared: so
    a copy is accepted, and changed data are not.

    Parameters
    ----------
    before : Manifest
        From the folder.
    now : Manifest
        Of the run that is to go on; what is agreed need not be in it.
    folder : path
        As errors name it.
    spread : callable
        Runs a function over shards that must be read again.

    Raises
    ------
    ModelFileError
        An option is not what it was, or the version that began the run gave other bits.
    DataError
        A file is missing, is another one, or has changed.
    """
    assert before.agreed is not None
    _compare(folder, before.options, now.options)
    check_bits(before.bits, _bits(now.options, before.agreed), folder, before.version)
    read, reads = _reading(before), _reading(now)
    kinds = {"kinds": dict(read.pop("kinds"))}, {"kinds": dict(reads.pop("kinds"))}
    _compare(folder, read, reads)
    _check_files(before, now)
    _compare(folder, {"parts": before.shards.parts}, {"parts": now.shards.parts})
    doubtful = {
        name
        for name, (_, time) in before.files.items()
        if time is None or time != now.files[name][1]
    }
    groups = before.shards.groups
    places = [
        (part, at)
        for part, group in enumerate(groups)
        for at, shard in enumerate(group)
        if shard.path in doubtful
    ]
    found = shard_checksums(before.shards, places, before.agreed.dtype, spread) if places else []
    for (part, at), checksum in zip(places, found, strict=True):
        if checksum != before.agreed.checksums[part][at]:
            raise DataError(
                f"{groups[part][at]}: has changed since the run began; a resumed run needs the "
                f"same data"
            )
    _compare(folder, *kinds)  # where the data are the same, they were given
    if before.shards.groups != now.shards.groups:  # the same bytes, so only how they are cut
        raise ModelFileError(
            f"{os.fspath(folder)}: the data were cut in other places in the run that wrote it; a "
            f"resumed run needs the same"
        )
    return before.agreed


def _bits(options: Mapping[str, Any], agreed: SurveyResult) -> dict[str, int]:
    """Return the behaviours that a run depends on; a rule without the option always shuffles."""
    return bits_of(options["rule"], options.get("shuffle", True) is not False, agreed.named)


def _check_files(before: Manifest, now: Manifest) -> None:
    for name, (size, _) in before.files.items():
        if name not in now.files:
            there = paths.is_remote(name) or os.path.exists(name)
            what = "is not among the data any more" if there else "is missing"
            raise DataError(f"{name}: {what}; a resumed run needs the same data")
        if now.files[name][0] != size:
            raise DataError(
                f"{name}: has {now.files[name][0]} bytes now, and had {size} when the run began; a "
                f"resumed run needs the same data"
            )
    for name in now.files:
        if name not in before.files:
            raise DataError(
                f"{name}: was not among the data when the run began; a resumed run needs the same "
                f"data"
            )


def _compare(
    folder: str | os.PathLike[str], before: Mapping[str, Any], now: Mapping[str, Any]
) -> None:
    for name in [*now, *(name for name in before if name not in now)]:
        if before.get(name) != now.get(name):
            raise ModelFileError(
                f"{os.fspath(folder)}: {name} was {before.get(name)!r} in the run that wrote it, "
                f"and is {now.get(name)!r} now; a resumed run needs the same options"
            )


def _reading(manifest: Manifest) -> dict[str, Any]:
    """Return how files are read, with what was not said."""
    options = asdict(ReadOptions.of(**manifest.shards.reading))
    return {name: value for name, value in options.items() if name != "threads"}


def _another(folder: str | os.PathLike[str]) -> ModelFileError:
    return ModelFileError(
        "holds the checkpoint of another run",
        place=os.fspath(folder),
        hint=(setting("resume", True), " goes on from it, or choose another folder"),
    )


def _status(name: str) -> tuple[int | None, int | None]:
    if paths.is_remote(name):
        return open_streams.stored_size(name), None
    status = os.stat(name)
    return status.st_size, status.st_mtime_ns


def _plain(value: Any) -> Any:
    """Return what JSON can carry of numbers and arrays of NumPy, and of other sequences."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Sequence | set | frozenset):
        return list(value)
    return repr(value)
