"""`Source`: files, pipes and iterators as streams of blocks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.bad_lines import BadLines
from thresher.data.block import Block, Position
from thresher.data.namespaces import Namespaces
from thresher.data.parts import BlockRequest, FilePart, Part
from thresher.data.read_options import ReadOptions, Stopped
from thresher.data.unlabelled import without_unlabelled
from thresher.data.visits import Visit
from thresher.errors import DataError, ParameterError, ReadOnceError

if TYPE_CHECKING:
    from thresher.data.in_memory import InMemoryRows

__all__ = ["Source"]


class Source:
    """Rows of files, read in blocks; never all in memory.

    Made by `scan`. Estimators take a source in place of X; it contains the labels:
    ``fit(source)``.

    Parameters
    ----------
    parts : sequence of Part
        The files or the iterator, in their order.
    reading : ReadOptions
        The options of `scan`.

    Attributes
    ----------
    rereadable : bool
        Whether it can be read more than once.
    rows : None
        The number of rows is not known before reading.
    named : bool
        Whether features have names; their numbers are hashes of the names then.
    first : int
        The number in the files of feature 0.
    size : int or None
        Bytes on disk, if known.
    bad_lines : BadLines
        The bad lines found so far.
    stops : callable
        Called between blocks, and while waiting for one. If it returns True, reading ends with
        `KeyboardInterrupt`.
    """

    rows: int | None = None
    traced = True  # whether digests of blocks detect a change of the input
    keeps_names = False  # whether training keeps names as rows come
    namespaces: Namespaces | None = None  # of VW text, if `scan` was given interactions

    def __init__(self, parts: Sequence[Part], reading: ReadOptions) -> None:
        if not parts:
            raise ParameterError("a source needs at least one file")
        self.parts, self.reading = list(parts), reading
        self.given = reading  # for a cache: the options of the files it was made from
        self.bad_lines = BadLines(reading.on_bad_line)
        self.rereadable = all(part.rereadable for part in parts)
        self.named = any(part.named for part in parts)
        self.first = 1 if all(part.first == 1 for part in parts) else 0
        self.shuffles = len(parts) == 1 and parts[0].shuffles
        # Sketch of the features, to estimate their number, if they have names or `bits` is set.
        self.sketch = parts[0].sketch if len(parts) == 1 else b""
        self.stops: Callable[[], bool] = _never
        self._reads = 0

    @property
    def plain(self) -> Source:
        """The source itself; of a source with scaled columns, the one without scaling."""
        return self

    @property
    def bits(self) -> int | None:
        """The number of bits of feature numbers that are used; None: all."""
        return self.reading.bits

    @property
    def collects_names(self) -> bool:
        """Whether names can be collected while rows are read for another purpose."""
        return all(part.collects_names for part in self.parts)

    @property
    def multilabel(self) -> bool:
        """Whether rows have any number of labels."""
        return self.reading.multilabel

    @property
    def distinct(self) -> int | None:
        """Estimated number of different features read so far, if a sketch counted them."""
        return round(_core.sketch_estimate(self.sketch)) if self.sketch else None

    @property
    def size(self) -> int | None:
        """Bytes on disk, if known."""
        sizes = [part.size for part in self.parts]
        return None if any(size is None for size in sizes) else sum(size or 0 for size in sizes)

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds of table columns: "number", "truth" or "string".

        The first rows of the first table with a column decide. Tables that were not read yet are
        opened, if they can be read again.
        """
        found = dict(self.reading.kinds)
        for part in self.parts:
            found.update(part.kinds())
        return found

    @property
    def notes(self) -> list[str]:
        """What the user should know about the files, such as a missing header."""
        found: list[str] = []
        for part in self.parts:
            part.waiting = self._check_stop  # the first rows of a pipe may come late
            found += part.notes
            part.waiting = None
        return found

    def label_words(self) -> tuple[str, ...]:
        """Return some of the labels of a table if they are words; else an empty tuple.

        Only the first rows of the first file are read; a pipe is not read.
        """
        return self.parts[0].label_words()

    def settled(self) -> ReadOptions:
        """Return the options of reading with what the files decided.

        Columns have names instead of positions. A file without a header has the names of its
        columns. Other files that are read with these options have the same features.
        """
        return self.parts[0].settled(self.given)

    @property
    def columns(self) -> list[str]:
        """The columns that make the features, if the source is a frame; else empty."""
        return [name for part in self.parts for name in part.columns]

    @property
    def labels_given(self) -> bool:
        """Whether the labels are an array, as for `fit(X, y)`."""
        return any(part.labels_given for part in self.parts)

    def blocks(
        self,
        after: Position | None = None,
        *,
        dtype: str = "float64",
        names: bool | str | _core.WantedNames | _core.FirstNames = False,
        order: tuple[int, int] | None = None,
        kinds: Mapping[str, str] | None = None,
        labelled: bool = True,
    ) -> Iterator[Block]:
        """Read the rows, in stored order.

        Parameters
        ----------
        after : Position, optional
            Where to begin: the `end` of a block read before.
        dtype : {"float32", "float64"}
            Number type of the values.
        names : bool, "blocks", _core.WantedNames or _core.FirstNames
            Whether blocks contain the names of features. True: each name at least once per file;
            "blocks": each name at least once per block; WantedNames: only these names. FirstNames
            takes all names; only sources with `collects_names` have such blocks.
        order : pair of int, optional
            Seed and number of a permutation of the blocks, for sources that can shuffle.
        kinds : mapping, optional
            The kinds of table columns in the training data, which are used again, except for
            columns in the option `kinds` of `scan`.
        labelled : bool
            Whether rows without a label are bad lines, if bad lines are left out.
        """
        if not self.rereadable and self._reads:
            raise ReadOnceError(
                "can be read only once; for more passes, make a cache",
                source=str(self),
                place=str(self),
            )
        self._reads += 1
        first = 0 if after is None else after.file
        raw = sum(part.size or 0 for part in self.parts[:first])
        labelled = labelled and self.reading.labelled
        skips = labelled and self.reading.unlabelled == "skip"
        labelled = labelled and self.reading.keeps_going and not skips
        given = {**kinds, **dict(self.reading.kinds)} if kinds else None
        wanted = BlockRequest(dtype, names, order, given, labelled)
        for part in self.parts[:first]:
            part.kinds()  # decide kinds in the order of the files
        for number, part in enumerate(self.parts[first:], first):
            begin = after if number == first else None
            part.waiting = self._check_stop
            self._check_stop()
            for block in part.watched(number, begin, self.reading, self.bad_lines, wanted):
                error = self.bad_lines.check(block)
                if error is not None:
                    if block.rows:
                        yield block
                    raise error
                if self.namespaces is not None:
                    self.namespaces.add(block.native.spaces)
                if block.native.sketch:
                    self.sketch = _core.sketch_merge(self.sketch, block.native.sketch)
                if (labelled or skips) and not self.multilabel:
                    block = without_unlabelled(block, None if skips else self.bad_lines)
                self.bad_lines.end_block()
                yield replace(block, raw=raw + block.raw) if raw else block
                self._check_stop()
            self.bad_lines.end_block()  # those after the last row
            raw += part.size or 0
        if self.namespaces is not None and after is None:
            self.namespaces.warn()

    def visits(
        self,
        number: int,
        shuffle: str | bool,
        seed: int,
        after: Position | None = None,
        blocks_before: int = 0,
        **reading: Any,
    ) -> Iterator[Visit]:
        """Yield the blocks of a pass, each with the order of its rows.

        Parameters
        ----------
        number : int
            Number of the pass, from 0.
        shuffle : bool or str
            Whether rows are shuffled within blocks, and also the blocks if the source can shuffle;
            "within": only rows within blocks.
        seed : int
            Seed of the shuffling.
        after : Position, optional
            Where the pass continues.
        blocks_before : int
            Number of blocks of the pass before that position.
        **reading
            Parameters of `blocks`.
        """
        shuffles = shuffle is not False
        reorders = shuffles and shuffle != "within" and self.shuffles
        between = (seed, number) if reorders else None
        for at, block in enumerate(self.blocks(after, order=between, **reading), blocks_before):
            order = _core.path_order(seed, at, number, block.rows) if shuffles else None
            yield Visit(block, order, 0, block.rows, block.end)

    def _check_stop(self) -> None:
        if self.stops():
            raise Stopped

    def names(self, keys: Iterable[int], kinds: Mapping[str, str] | None = None) -> dict[int, str]:
        """Read the source again until the names of all these features are found; return them."""
        if not self.named:
            return {}
        wanted = _core.WantedNames(np.array(sorted(keys), np.uint64))
        for block in self.blocks(names=wanted, kinds=kinds):
            wanted.take(block.native)
            if wanted.missing == 0:
                break
        return {key: name.decode(errors="replace") for key, name in wanted.found.items()}

    def refuse_outputs(self, *outputs: str | None) -> None:
        """Raise ParameterError if one of the output files is an input file of the source."""
        for output in outputs:
            for part in self.parts:
                if output is not None and part.is_file(output):
                    raise ParameterError(f"{output} is an input file: it cannot be an output too")

    def facts(self) -> list[Any]:
        """Return facts about the input as JSON types, for `is_unchanged`."""
        return [part.facts() for part in self.parts]

    def is_unchanged(self, facts: Sequence[Any]) -> bool:
        """Tell whether the input has certainly not changed since `facts` returned these facts."""
        return list(facts) == self.facts() and all(part.facts() is not None for part in self.parts)

    @property
    def reading_state(self) -> dict[str, Any]:
        """State of reading as JSON types, for a checkpoint: sketch, bad lines, sizes of files."""
        files = [part for part in self.parts if isinstance(part, FilePart)]
        sizes = {part.name: part.watch.size for part in files}
        return {"sketch": self.sketch.hex(), "bad_lines": self.bad_lines.state, "sizes": sizes}

    @reading_state.setter
    def reading_state(self, saved: Mapping[str, Any]) -> None:
        self.sketch = bytes.fromhex(saved["sketch"])
        self.bad_lines.state = saved["bad_lines"]
        for part in self.parts:
            if isinstance(part, FilePart):  # a resumed run does not read lines that came later
                part.watch.end_at(saved.get("sizes", {}).get(part.name))

    def identity(self) -> dict[str, Any]:
        """Return the options of reading that a resumed run must use again."""
        reading = self.given.plain()
        free = ["threads", "labelled", "kinds"]
        free += ["shuffle_buffer"] if self.rereadable else []
        return {k: v for k, v in reading.items() if k not in free}

    def described(self) -> dict[str, Any]:
        """Return the options of reading that predicting must use too: text, numbers and flags."""
        reading = self.settled().plain()
        for name in ("threads", "on_bad_line", "labelled", "shuffle_buffer"):
            reading.pop(name)
        reading.pop("unlabelled", None)
        for name in ("interactions", "text", "ignore", "columns"):
            if name in reading:
                reading[name] = json.dumps(reading[name]) if reading[name] else ""
        reading["kinds"] = json.dumps(self.kinds) if self.kinds else ""
        if self.columns:
            reading["frame_columns"] = json.dumps(self.columns)
        return reading | {"first": self.first}

    def labels(self) -> NDArray[Any]:
        """Read all rows; return the different labels, in increasing order."""
        return self.label_counts()[0]

    def label_counts(self) -> tuple[NDArray[Any], tuple[NDArray[np.int64], int]]:
        """Read all rows; return the labels, the number of rows of each, and of all rows.

        The labels are in increasing order.
        """
        found: Counter[Any] = Counter()
        rows = 0
        for block in self.blocks():
            labels, counts = np.unique(block.label_sets()[1], return_counts=True)
            found.update(dict(zip(labels.tolist(), counts.tolist(), strict=True)))
            rows += block.rows
        if not found:
            raise DataError(f"{self}: {'no row has a label' if rows else 'no rows to learn from'}")
        try:
            labels = np.array(sorted(found))
            return labels, (np.array([found[k] for k in sorted(found)], np.int64), rows)
        except TypeError:
            raise ParameterError(f"{self}: labels are partly numbers and partly words") from None

    def width(self) -> int:
        """Read all rows; return the number of features: the largest feature number plus 1."""
        if self.reading.bits is not None:
            return 1 << self.reading.bits
        widths = [block.width or 2**64 for block in self.blocks() if block.rows]
        return max(widths, default=0)

    def mean(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Read all rows; return the features that occur, and the mean of each over all rows."""
        keys, sums = np.zeros(0, np.uint64), np.zeros(0)
        new_keys: list[NDArray[Any]] = []
        new_values: list[NDArray[Any]] = []
        rows = new = 0

        def merged() -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
            found, at = np.unique(np.concatenate([keys, *new_keys]), return_inverse=True)
            totals = np.bincount(at, np.concatenate([sums, *new_values]), len(found))
            return found, totals.astype(np.float64)

        for block in self.blocks(dtype="float64"):
            rows, new = rows + block.rows, new + block.native.nonzeros
            new_keys.append(np.asarray(block.native.keys).astype(np.int64).view(np.uint64))
            new_values.append(np.array(block.native.values))
            if new > max(len(keys), 1 << 20):  # seldom enough: merging sorts all keys
                (keys, sums), new_keys, new_values, new = merged(), [], [], 0
        keys, sums = merged()
        return keys, sums / max(rows, 1)

    def gather(self) -> InMemoryRows:
        """Read all rows into memory."""
        from thresher.data.in_memory import gather

        return gather(self)

    def __str__(self) -> str:
        names = [part.name for part in self.parts]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"

    def __repr__(self) -> str:
        return f"<Source: {self}>"


def _never() -> bool:
    return False
