"""The survey: a first scan of all rows, before the first stage.

Each part is read once. The survey finds the number of rows, the labels and the number of features,
and a checksum of each shard, which a resumed run compares. A bad row is an error here, before
training.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.block import Block
from thresher.data.label_checks import tidy
from thresher.data.labels import Labels, LabelSets, ManyClasses, NumericLabels
from thresher.distributed.shards import Shards
from thresher.errors import DataError, InputError, setting
from thresher.health.label_order import order_of_parts
from thresher.health.label_runs import ClassRuns
from thresher.health.mean_drift import MeanDrift
from thresher.losses import LOSSES, Task
from thresher.training.target_scale import KnownScale, TargetScale, merged

Item = TypeVar("Item")
Result = TypeVar("Result")
MapItems = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""Calls a function that can be pickled for each item, and returns the results in their order."""

_MIXED = "labels are partly numbers and partly words"


def map_in_process(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call a function for each item in this process, without a cluster."""
    return [function(item) for item in items]


@dataclass(frozen=True)
class SurveyResult:
    """What the survey found. JSON can hold it.

    Attributes
    ----------
    rows : list of int
        Number of rows in each part.
    classes : list or None
        All labels, in increasing order; None for a regression.
    counts : list of int or None
        Number of rows with each label.
    width : int
        Number of features: 2^64 if any key is possible.
    named : bool
        Whether features have names.
    first : int
        The number that the files use for the first feature: 0 or 1.
    checksums : list of lists of str
        The checksum of each shard of each part.
    dtype : str
        Number type of the values read. Checksums of tables depend on it.
    skipped : int
        Number of bad lines that were skipped.
    bad : str or None
        A description of the first bad line.
    sketch : str
        A sketch of the features seen, in hexadecimal; used if features are named or hashed.
    weighted : bool
        Whether rows have weights other than 1. False in files of early versions.
    targets : list of float or None
        Weight, mean and sd of all targets, if they are to be standardised.
    ordered : str or None
        What shows that the rows are ordered by their labels; None: they are not.
    """

    rows: list[int]
    classes: list[Any] | None
    counts: list[int] | None
    width: int
    named: bool
    first: int
    checksums: list[list[str]]
    dtype: str = "float64"
    skipped: int = 0
    bad: str | None = None
    sketch: str = ""
    weighted: bool = False
    targets: list[float] | None = None
    ordered: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return an object for `json.dump`."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> SurveyResult:
        """Return the result that `to_json` described."""
        return cls(**fields)


@dataclass(frozen=True)
class SurveyPart:
    """Task of a worker: scan the one part of `shards`."""

    shards: Shards
    task: Task
    loss: str
    multilabel: bool
    dtype: str
    scale: TargetScale | None = None


@dataclass(frozen=True)
class FindNames:
    """Task of a worker: find the names of features in the one part of `shards`."""

    shards: Shards
    keys: NDArray[np.uint64]


@dataclass(frozen=True)
class ComputeChecksum:
    """Task of a worker: compute the checksum of the one shard of `shards`."""

    shards: Shards
    dtype: str


@dataclass
class PartSurvey:
    """What the survey found in one part.

    `words` is whether labels are words; None if there are no labels. Other fields are those of
    `SurveyResult`.
    """

    rows: int
    labels: Counter[Any]
    words: bool | None
    width: int
    named: bool
    first: int
    checksums: list[str]
    skipped: int
    bad: str | None
    sketch: bytes = b""
    weighted: bool = False
    targets: KnownScale = (0.0, 0.0, 0.0)
    runs: ClassRuns = field(default_factory=ClassRuns)
    codes: dict[Any, int] = field(default_factory=dict)  # of the labels in `runs`
    drift: MeanDrift = field(default_factory=MeanDrift)


def survey_shards(
    shards: Shards,
    map_items: MapItems = map_in_process,
    *,
    task: Task = "classifier",
    loss: str = "",
    dtype: str = "float64",
    scale: TargetScale | None = None,
) -> SurveyResult:
    """Read all rows once, and return what was found.

    Parameters
    ----------
    shards : Shards
    map_items : callable
        Calls a function for each part.
    task : {"classifier", "regressor"}
        Labels of a classifier are collected, those of a regressor are only checked.
    loss : str
        Decides which labels of a regressor are valid.
    dtype : {"float32", "float64"}
        Number type in which rows will be read: values too large for it are errors.
    scale : TargetScale, optional
        An empty scale, if targets are to be standardised.

    Raises
    ------
    DataError
        A row is bad, a part has no rows, labels are partly words, or all labels are the same.
    """
    multilabel = bool(shards.reading.get("multilabel"))
    tasks = [
        SurveyPart(shards.single_part(part), task, loss, multilabel, dtype, deepcopy(scale))
        for part in range(shards.parts)
    ]
    found: list[PartSurvey] = map_items(_survey_part, tasks)
    for part, facts in enumerate(found):
        if facts.rows == 0:
            raise DataError(_no_rows(shards, part))
    classes, counts = None, None
    if task == "classifier":
        classes, counts = _classes(shards, found)
        _labels_class(multilabel)(classes)  # raises an error if there are too few
    targets = functools.reduce(merged, [facts.targets for facts in found])
    return SurveyResult(
        rows=[facts.rows for facts in found],
        classes=classes,
        counts=counts,
        width=_width(shards, found),
        named=any(facts.named for facts in found),
        first=1 if all(facts.first == 1 for facts in found) else 0,
        checksums=[facts.checksums for facts in found],
        dtype=dtype,
        skipped=sum(facts.skipped for facts in found),
        bad=next((facts.bad for facts in found if facts.bad), None),
        sketch=functools.reduce(_core.sketch_merge, [facts.sketch for facts in found]).hex(),
        weighted=any(facts.weighted for facts in found),
        targets=None if scale is None else list(targets),
        ordered=order_of_parts([(facts.runs, facts.codes, facts.drift) for facts in found]),
    )


def surveyed_labels(task: Task, loss: str, multilabel: bool, survey: SurveyResult) -> Labels:
    """Return the object that converts labels to targets, with the classes of all parts."""
    if task == "regressor":
        return NumericLabels(loss)
    assert survey.classes is not None
    assert survey.counts is not None
    labels = _labels_class(multilabel)(np.array(survey.classes), LOSSES[loss].low)
    labels.counted = np.array(survey.counts, np.int64), sum(survey.rows)
    return labels


def find_names(
    shards: Shards, keys: Iterable[int], map_items: MapItems = map_in_process
) -> dict[int, str]:
    """Return the names of features. If parts have different names, the first part's is used."""
    wanted = np.unique(np.fromiter(keys, np.uint64))
    names: dict[int, str] = {}
    if len(wanted):
        tasks = [FindNames(shards.single_part(part), wanted) for part in range(shards.parts)]
        for found in map_items(_find_names, tasks):
            names = {**found, **names}
    return dict(sorted(names.items()))


def shard_checksums(
    shards: Shards,
    places: Sequence[tuple[int, int]],
    dtype: str,
    map_items: MapItems = map_in_process,
) -> list[tuple[str, str]]:
    """Read the shards at these places, (part, index), again; return their checksums.

    The second of each pair is the checksum as earlier versions recorded it.
    """
    alone = [replace(shards, groups=((shards.groups[part][at],),)) for part, at in places]
    return map_items(_checksum, [ComputeChecksum(shard, dtype) for shard in alone])


# ---- tasks of workers ----------------------------------------------------------------------------


def _survey_part(task: SurveyPart) -> PartSurvey:
    source = task.shards.source(0)
    checksums = [0] * len(source.parts)
    found = PartSurvey(0, Counter(), None, 0, source.named, source.first, [], 0, None)
    values = NumericLabels(task.loss) if task.task == "regressor" else None
    for block in source.blocks(dtype=task.dtype):
        at = block.end.file
        checksums[at] = _core.mix_keys(checksums[at], block.digest)
        if block.rows == 0:
            continue
        found.rows += block.rows
        weights = block.weights
        found.weighted |= weights is not None and bool((weights != 1.0).any())
        found.width = max(found.width, block.width or 2**64)
        if values is not None:
            targets = values.targets(block)  # raises an error for a label that is not valid
            found.drift.add(targets[0])
            if task.scale is not None:
                try:
                    task.scale.standardise(targets[0], block.weights)
                except _core.DataError as error:
                    raise block.located(error) from None
        else:
            _count_labels(found, block, task.multilabel)
    found.checksums = [f"{checksum:016x}" for checksum in checksums]
    found.skipped, found.bad = source.bad_lines.count, source.bad_lines.first
    found.sketch = source.sketch
    if task.scale is not None:
        found.targets = task.scale.known
    return found


def _count_labels(found: PartSurvey, block: Block, multilabel: bool) -> None:
    if not multilabel:
        _check_one_label(block)
    starts, labels = block.label_sets()
    if len(labels) == 0:
        return
    words = labels.dtype.kind not in "fiub"
    if found.words is None:
        found.words = words
    elif words != found.words:
        raise DataError(f"{block.label_place(0)}: {_MIXED}")
    different, places, counts = np.unique(
        labels.astype(str) if words else labels, return_inverse=True, return_counts=True
    )
    new = [found.codes.setdefault(label, len(found.codes)) for label in different.tolist()]
    rows = starts[:-1][np.diff(starts) > 0]  # of several labels, the first counts
    found.runs.add(np.array(new, np.int64)[places[rows]])
    found.labels.update(dict(zip(different.tolist(), counts.tolist(), strict=True)))


def _check_one_label(block: Block) -> None:
    """Raise DataError unless every row has exactly one label."""
    labels = block.labels
    if labels is None:
        raise InputError(
            "rows have lists of labels",
            place=block.label_place(0),
            hint=(setting("multilabel", True), " learns them"),
        )
    if labels.dtype.kind == "f":
        missing = np.isnan(labels)
    else:
        missing = np.array([label is None for label in labels], bool)
    if missing.any():
        raise DataError(f"{block.label_place(int(missing.argmax()))}: the row has no label")


def _find_names(task: FindNames) -> dict[int, str]:
    return task.shards.source(0).names(task.keys.tolist())


def _checksum(task: ComputeChecksum) -> tuple[str, str]:
    checksum = stored = 0
    for block in task.shards.source(0).blocks(dtype=task.dtype):
        checksum = _core.mix_keys(checksum, block.digest)
        stored = _core.mix_keys(stored, block.stored_digest)
    return f"{checksum:016x}", f"{stored:016x}"


# ---- results of all parts ------------------------------------------------------------------------


def _labels_class(multilabel: bool) -> type[ManyClasses] | type[LabelSets]:
    return LabelSets if multilabel else ManyClasses


def _classes(shards: Shards, found: Sequence[PartSurvey]) -> tuple[list[Any], list[int]]:
    total: Counter[Any] = Counter()
    words: bool | None = None
    for part, facts in enumerate(found):
        if facts.words is not None:
            if words is not None and words != facts.words:
                raise DataError(
                    f"{shards.groups[part][0]}: {_MIXED}: this file differs from the files before"
                )
            words = facts.words
        total.update(facts.labels)
    labels = sorted(total)
    return tidy(np.array(labels)).tolist(), [total[label] for label in labels]


def _width(shards: Shards, found: Sequence[PartSurvey]) -> int:
    bits = shards.reading.get("bits")
    if bits is not None:
        return 1 << int(bits)
    if any(facts.named for facts in found):
        return 2**64
    return max(facts.width for facts in found)


def _no_rows(shards: Shards, part: int) -> str:
    first, *others = shards.groups[part]
    more = f" and {len(others)} more" if others else ""
    return (
        f"{first}{more}: no rows to learn from, and each part needs some; leave the file out, or "
        f"choose another number of parts"
    )
