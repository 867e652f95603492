"""The description of a run in the folder of its checkpoint: `manifest.json`.

It is written once, after the survey. A resumed run reads the result of the survey from it. If the
options or the data of the resumed run differ from the manifest, an error says so.
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
from thresher.disk_sync import make_folder
from thresher.distributed.shards import Shards
from thresher.distributed.survey import MapItems, SurveyResult, map_in_process, shard_checksums
from thresher.errors import DataError, ModelFileError, setting
from thresher.file_format import check_format, writer_of
from thresher.rules import core_args
from thresher.training.bits import bits_of, check_bits

FORMAT = 1
NAME = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """The options and the data of a run.

    It is made before the survey, so that a change of a file during the survey is noticed. The
    result of the survey is added by `dataclasses.replace`.

    Attributes
    ----------
    options : dict
        Everything else that the result depends on: mode, rule, parameters, ranges, seed.
    shards : Shards
    files : dict
        Size and time of change, in nanoseconds, of each file; None if unknown.
    survey : SurveyResult or None
        None before the survey.
    version : str
        The version of Thresher that started the run.
    bits : dict or None
        Behaviours that the bits of the result depend on, with their numbers, from the file. None
        before it is written, and in files of early versions.
    """

    options: dict[str, Any]
    shards: Shards
    files: dict[str, tuple[int | None, int | None]]
    survey: SurveyResult | None = None
    version: str = __version__
    bits: dict[str, int] | None = None

    @classmethod
    def of(
        cls, options: Mapping[str, Any], shards: Shards, survey: SurveyResult | None = None
    ) -> Manifest:
        """Describe a run, and the files as they are now."""
        plain = json.loads(json.dumps(dict(options), default=_plain))
        return cls(plain, shards, {name: _status(name) for name in shards.files}, survey)

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write the file, whole or not at all.

        Raises ModelFileError if the folder already has one.
        """
        assert self.survey is not None
        file = Path(folder, NAME)
        if file.exists():
            raise _other_run(folder)
        content = {
            "format": FORMAT,
            "version": __version__,
            "bits": _bits(self.options, self.survey),
            "options": self.options,
            "shards": self.shards.to_json(),
            "files": self.files,
            "agreed": self.survey.to_json(),
        }
        make_folder(file.parent)
        write_whole(file, json.dumps(content, indent=1).encode())

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Manifest | None:
        """Read the manifest of a folder; None if there is none."""
        file = Path(folder, NAME)
        try:
            content = json.loads(file.read_text())
            check_format(file, content, FORMAT, ModelFileError)
            files = {name: (size, time) for name, (size, time) in content["files"].items()}
            shards = Shards.from_json(content["shards"])
            survey, version = SurveyResult.from_json(content["agreed"]), writer_of(content)
            bits = dict(content["bits"]) if "bits" in content else None
            return cls(content["options"], shards, files, survey, version, bits)
        except FileNotFoundError:
            return None
        except ModelFileError:
            raise
        except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"{file}: cannot be read, or is damaged ({error})") from error


def manifest_to_resume(folder: str | os.PathLike[str], resume: bool) -> Manifest | None:
    """Return the manifest of the run to resume; None if a new run starts.

    Parameters
    ----------
    folder : path
        The folder of the checkpoint.
    resume : bool
        Whether to continue from a checkpoint, if there is one.

    Raises
    ------
    ModelFileError
        The folder has the checkpoint of another run, or an incomplete one.
    """
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise ModelFileError(f"{os.fspath(folder)}: a checkpoint is a folder, and this is a file")
    before = Manifest.read(folder)
    if before is not None and not resume:
        raise _other_run(folder)
    if before is None and os.path.exists(os.path.join(folder, "committed.json")):
        raise ModelFileError(
            f"{os.fspath(folder)}: holds a checkpoint without its {NAME}; choose another folder"
        )
    return before


def check_same_run(
    before: Manifest,
    now: Manifest,
    folder: str | os.PathLike[str],
    map_items: MapItems = map_in_process,
) -> SurveyResult:
    """Check that a resumed run has the same options and data; return its survey.

    A file of the same size with another time of change is read again, and its checksums are
    compared. So a copy is accepted, and changed data are not.

    Parameters
    ----------
    before : Manifest
        The manifest in the folder.
    now : Manifest
        The manifest of the resumed run; its survey is not needed.
    folder : path
        For error messages.
    map_items : callable
        Calls a function for each shard that must be read again.

    Raises
    ------
    ModelFileError
        An option differs, or the version that started the run gave other bits.
    DataError
        A file is missing, new, or has changed.
    """
    assert before.survey is not None
    options = dict(before.options), dict(now.options)
    if before.survey.targets is None:  # "auto" and the number it stands for give the same bits
        rule = str(now.options["rule"])
        options = core_args.with_numbers(rule, options[0]), core_args.with_numbers(rule, options[1])
    _compare(folder, *options)
    check_bits(before.bits, _bits(now.options, before.survey), folder, before.version)
    read, reads = _reading(before), _reading(now)
    kinds = {"kinds": dict(read.pop("kinds"))}, {"kinds": dict(reads.pop("kinds"))}
    _compare(folder, read, reads)
    _check_files(before, now)
    _compare(folder, {"parts": before.shards.parts}, {"parts": now.shards.parts})
    changed_times = {
        name
        for name, (_, time) in before.files.items()
        if time is None or time != now.files[name][1]
    }
    groups = before.shards.groups
    places = [
        (part, at)
        for part, group in enumerate(groups)
        for at, shard in enumerate(group)
        if shard.path in changed_times
    ]
    found = shard_checksums(before.shards, places, before.survey.dtype, map_items) if places else []
    for (part, at), checksums in zip(places, found, strict=True):
        if before.survey.checksums[part][at] not in checksums:
            raise DataError(
                f"{groups[part][at]}: has changed since the run began; a resumed run needs the "
                f"same data"
            )
    _compare(folder, *kinds)  # the data are the same, so the option differs
    if before.shards.groups != now.shards.groups:  # the same bytes in other shards
        raise ModelFileError(
            f"{os.fspath(folder)}: the run that wrote it divided the files at other positions; a "
            f"resumed run needs the same parts"
        )
    return before.survey


def _bits(options: Mapping[str, Any], survey: SurveyResult) -> dict[str, int]:
    """Return the behaviours that a run depends on. A rule without `shuffle` always shuffles."""
    weighted = survey.weighted or options.get("class_weight") is not None
    shuffle = options.get("shuffle", True) is not False
    return bits_of(options["rule"], shuffle, survey.named, weighted)


def _check_files(before: Manifest, now: Manifest) -> None:
    for name, (size, _) in before.files.items():
        if name not in now.files:
            there = paths.is_remote(name) or os.path.exists(name)
            what = "is no longer among the data" if there else "is missing"
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
    """Return all options of reading, with defaults for those not given."""
    options = asdict(ReadOptions.of(**manifest.shards.reading))
    return {name: value for name, value in options.items() if name != "threads"}


def _other_run(folder: str | os.PathLike[str]) -> ModelFileError:
    return ModelFileError(
        "holds the checkpoint of another run",
        place=os.fspath(folder),
        hint=(setting("resume", True), " continues it, or choose another folder"),
    )


def _status(name: str) -> tuple[int | None, int | None]:
    if paths.is_remote(name):
        return open_streams.stored_size(name), None
    status = os.stat(name)
    return status.st_size, status.st_mtime_ns


def _plain(value: Any) -> Any:
    """Return numbers and arrays of NumPy, and sequences, as JSON can hold them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Sequence | set | frozenset):
        return list(value)
    return repr(value)
