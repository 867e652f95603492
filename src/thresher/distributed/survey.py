"""What all parts must agree on before the first stage: a first scan of all rows.

Each part is read once, by itself: rows, labels and the widest row are found, and a checksum of each
shard, by which a resumed run knows its data again. Bad rows are errors here, before anything is
learned.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.block import Block
from thresher.data.label_checks import tidy
from thresher.data.labels import Labels, LabelSets, ManyClasses, NumericLabels
from thresher.distributed.shards import Shards
from thresher.errors import DataError, InputError, setting
from thresher.losses import LOSSES, Task

Item = TypeVar("Item")
Result = TypeVar("Result")
MapItems = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""Runs a function that can be pickled over items, and returns the results in their order."""

_MIXED = "labels are partly numbers and partly words"


def map_in_process(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Run a function over items in this process: the spread that needs no cluster."""
    return [function(item) for item in items]


@dataclass(frozen=True)
class SurveyResult:
    """What the first scan has found. JSON can carry it.

    Attributes
    ----------
    rows : list of int
        Of each part.
    classes : list or None
        All labels, in increasing order; None for a regression.
    counts : list of int or None
        How many rows have each of them.
    width : int
        Number of features: 2^64 where any key may come.
    named : bool
        Whether features have names.
    first : int
        What the files call the feature of number 0.
    checksums : list of lists of str
        Of each shard of each part.
    dtype : str
        Number type of the values read, which checksums of tables depend on.
    skipped : int
        Bad lines that were left out.
    bad : str or None
        The first of them, described.
    sketch : str
        Of the features seen, where names or folding make their number matter; in hexadecimal.
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

    def to_json(self) -> dict[str, Any]:
        """Return what `json.dump` takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> SurveyResult:
        """Return what `to_json` described."""
        return cls(**fields)


@dataclass(frozen=True)
class _Look:
    """How parts are looked at."""

    task: Task
    loss: str
    multilabel: bool
    dtype: str


@dataclass
class PartSurvey:
    """What one part has."""

    rows: int
    labels: Counter[Any]
    words: bool | None  # whether labels are; None: there are none
    width: int
    named: bool
    first: int
    checksums: list[str]
    skipped: int
    bad: str | None
    sketch: bytes = b""


def survey_shards(
    shards: Shards,
    spread: MapItems = map_in_process,
    *,
    task: Task = "classifier",
    loss: str = "",
    dtype: str = "float64",
) -> SurveyResult:
    """Read all rows once, and return what the parts have to agree on.

    Parameters
    ----------
    shards : Shards
    spread : callable
        Runs a function over the parts.
    task : {"classifier", "regressor"}
        Labels of a classifier are collected, those of a regressor are only checked.
    loss : str
        Decides which labels of a regressor make sense.
    dtype : {"float32", "float64"}
        As rows will be read: values too large for it are errors.

    Raises
    ------
    DataError
        A row is bad, a part has no rows, labels are partly words, or all are the same.
    """
    look = _Look(task, loss, bool(shards.reading.get("multilabel")), dtype)
    found: list[PartSurvey] = spread(
        _look, [(shards.only(part), look) for part in range(shards.parts)]
    )
    for part, facts in enumerate(found):
        if facts.rows == 0:
            raise DataError(_no_rows(shards, part))
    classes, counts = None, None
    if task == "classifier":
        classes, counts = _classes(shards, found)
        _labels_class(look.multilabel)(classes)  # raises where they are not enough
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
    )


def surveyed_labels(task: Task, loss: str, multilabel: bool, agreed: SurveyResult) -> Labels:
    """Return what makes targets of the labels, as all parts will see them."""
    if task == "regressor":
        return NumericLabels(loss)
    assert agreed.classes is not None
    assert agreed.counts is not None
    labels = _labels_class(multilabel)(np.array(agreed.classes), LOSSES[loss].low)
    labels.counted = np.array(agreed.counts, np.int64), sum(agreed.rows)
    return labels


def find_names(
    shards: Shards, keys: Iterable[int], spread: MapItems = map_in_process
) -> dict[int, str]:
    """Return the names of features, where they have any: of two, that of the first part."""
    wanted = np.unique(np.fromiter(keys, np.uint64))
    names: dict[int, str] = {}
    if len(wanted):
        for found in spread(_names, [(shards.only(n), wanted) for n in range(shards.parts)]):
            names = {**found, **names}
    return dict(sorted(names.items()))


def shard_checksums(
    shards: Shards, places: Sequence[tuple[int, int]], dtype: str, spread: MapItems = map_in_process
) -> list[str]:
    """Read shards again, which are given by part and number, and return their checksums."""
    alone = [Shards(((shards.groups[part][at],),), shards.reading) for part, at in places]
    return spread(_checksum, [(shard, dtype) for shard in alone])


# ---- what is done for each part ------------------------------------------------------------------


def _look(item: tuple[Shards, _Look]) -> PartSurvey:
    shards, look = item
    source = shards.source(0)
    chains = [0] * len(source.parts)
    found = PartSurvey(0, Counter(), None, 0, source.named, source.first, [], 0, None)
    values = NumericLabels(look.loss) if look.task == "regressor" else None
    for block in source.blocks(dtype=look.dtype):
        at = block.end.file
        chains[at] = _core.mix_keys(chains[at], block.digest)
        if block.rows == 0:
            continue
        found.rows += block.rows
        found.width = max(found.width, block.width or 2**64)
        if values is not None:
            values.targets(block)  # raises where one makes no sense
        else:
            _count(found, block, look.multilabel)
    found.checksums = [f"{chain:016x}" for chain in chains]
    found.skipped, found.bad = source.bad_lines.count, source.bad_lines.first
    found.sketch = source.sketch
    return found


def _count(found: PartSurvey, block: Block, multilabel: bool) -> None:
    """Count the labels of a block."""
    if not multilabel:
        _refuse_none(block)
    _, labels = block.label_sets()
    if len(labels) == 0:
        return
    words = labels.dtype.kind not in "fiub"
    if found.words is None:
        found.words = words
    elif words != found.words:
        raise DataError(f"{block.label_place(0)}: {_MIXED}")
    different, counts = np.unique(labels.astype(str) if words else labels, return_counts=True)
    found.labels.update(dict(zip(different.tolist(), counts.tolist(), strict=True)))


def _refuse_none(block: Block) -> None:
    """Raise DataError where a row has not exactly one label."""
    labels = block.labels
    if labels is None:
        raise InputError(
            "rows have lists of labels",
            place=block.label_place(0),
            hint=(setting("multilabel", True), " learns them"),
        )
    if labels.dtype.kind == "f":
        none = np.isnan(labels)
    else:
        none = np.array([label is None for label in labels], bool)
    if none.any():
        raise DataError(f"{block.label_place(int(none.argmax()))}: the row has no label")


def _names(item: tuple[Shards, NDArray[np.uint64]]) -> dict[int, str]:
    shards, keys = item
    return shards.source(0).names(keys.tolist())


def _checksum(item: tuple[Shards, str]) -> str:
    shards, dtype = item
    chain = 0
    for block in shards.source(0).blocks(dtype=dtype):
        chain = _core.mix_keys(chain, block.digest)
    return f"{chain:016x}"


# ---- what is made of it --------------------------------------------------------------------------


def _labels_class(multilabel: bool) -> type[ManyClasses] | type[LabelSets]:
    return LabelSets if multilabel else ManyClasses


def _classes(shards: Shards, found: Sequence[PartSurvey]) -> tuple[list[Any], list[int]]:
    total: Counter[Any] = Counter()
    words: bool | None = None
    for part, facts in enumerate(found):
        if facts.words is not None:
            if words is not None and words != facts.words:
                raise DataError(f"{shards.groups[part][0]}: {_MIXED}, which other files have")
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
