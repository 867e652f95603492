"""What a search and the run that resumes it share: estimator, grid, splits, rows and scores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from thresher.data.matrix_source import MatrixSource
from thresher.errors import DataError, ModelFileError, setting
from thresher.rules import RULES
from thresher.rules.parameter import UNRECORDED
from thresher.search.grid import GridPoint
from thresher.search.splits import MatrixSplits, SourceSplits, Splits
from thresher.training.bits import bits_of

_FREE = (*UNRECORDED, "callback", "n_jobs", "warm_start")  # parameters that may differ
_ROWS = ("rows", "size and time of the files")


def identity_of(
    estimator: Any, splits: Splits, points: Sequence[GridPoint], scoring: Any
) -> dict[str, Any]:
    """Return what a resumed search must share, in types that JSON has.

    Parameters
    ----------
    estimator : estimator
    splits : Splits
    points : sequence of GridPoint
    scoring : object
        As given by the user.
    """
    source = splits.source
    found: dict[str, Any] = {
        "estimator": type(estimator).__name__,
        "points": [
            {name: _plain(value) for name, value in point.params.items() if name not in _FREE}
            for point in points
        ],
        "cv": _splits_of(splits),
        "whole": splits.whole,
        "scoring": _plain(scoring),
        "classes": None if splits.classes is None else splits.classes.tolist(),
        "reading": source.identity(),
    }
    survey = getattr(splits, "survey", None)
    if isinstance(source, MatrixSource):
        found["rows"] = source.facts()
    elif survey is not None and source.traced:
        found["rows"] = survey.digest
    elif source.rereadable:
        found["size and time of the files"] = source.facts()
    made: dict[str, Any] = json.loads(json.dumps(found, default=_plain))
    return made


def _splits_of(splits: Splits) -> Any:
    if isinstance(splits, SourceSplits):
        return splits.folds
    assert isinstance(splits, MatrixSplits)
    digest = hashlib.blake2b(digest_size=16)
    for part in splits.parts:
        digest.update(part.train.tobytes() + b"|" + part.test.tobytes() + b"|")
    return f"{len(splits.parts)} splits, {digest.hexdigest()}"


def bits_of_search(estimator: Any, splits: Splits) -> dict[str, int]:
    """Return the behaviours that the results depend on, with their numbers.

    Parameters
    ----------
    estimator : estimator
    splits : Splits
    """
    rules = [estimator.rule] if estimator.rule in RULES else list(RULES)  # a race tries several
    found: dict[str, int] = {}
    for rule in rules:
        found |= bits_of(rule, shuffle=True, named=splits.source.named, weighted=True)
    return found


def check_same(path: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise an error that names the first difference between two searches.

    Raises DataError if the rows have changed, else ModelFileError.

    Parameters
    ----------
    path : str
        The checkpoint, for the message.
    before, now : mapping
        From `identity_of`.
    """
    for name in dict.fromkeys((*now, *before)):
        then, today = before.get(name), now.get(name)
        if then == today:
            continue
        if name == "points":
            _check_points(path, then, today)
        if name in _ROWS:
            raise DataError(f"{path}: the rows are not those of the search that wrote it: {name}")
        shown = setting(name) if name in ("cv", "scoring", "classes") else name
        raise _other(path, name, shown, then, today)


def _check_points(path: str, before: Any, now: Any) -> None:
    if len(before) != len(now):
        counts = f"{len(before)} points", f"{len(now)} points"
        raise _other(path, "param_grid", "the grid", *counts)
    for then, today in zip(before, now, strict=True):
        for name in dict.fromkeys((*today, *then)):
            if then.get(name) != today.get(name):
                raise _other(path, name, setting(name), then.get(name), today.get(name))


def _other(path: str, name: str, shown: Any, before: Any, now: Any) -> ModelFileError:
    return ModelFileError(
        (shown, f" was {before!r} in the search that wrote it, and is {now!r} now; a resumed "
         "search needs the same"),
        place=path,
        parameter=name,
        value=now,
    )  # fmt: skip


def _plain(value: Any) -> Any:
    """Return a value in a type that JSON has: unchanged, or as text."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return sorted([str(name), _plain(one)] for name, one in value.items())
    if isinstance(value, list | tuple | set | np.ndarray):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return getattr(value, "__name__", type(value).__name__)
