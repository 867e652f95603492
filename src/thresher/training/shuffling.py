"""The order of the rows of a source: a true shuffle, where the parameter `shuffle` asks for one."""

from __future__ import annotations

from collections.abc import Iterable

from thresher.data.matrix_source import MatrixSource
from thresher.data.scaled import ScaledSource
from thresher.data.shuffle_buffer import BufferedSource
from thresher.data.shuffled import TRUE_SHUFFLES, ShuffledSource
from thresher.data.source import Source
from thresher.training.observer import Observer


def shuffled_rows(
    source: Source | MatrixSource,
    shuffle: str | bool,
    seed: int,
    dtype: str = "float64",
    observer: Observer | None = None,
) -> Source | MatrixSource:
    """Return a source whose `visits` are a true shuffle, if `shuffle` is one.

    Parameters
    ----------
    source : Source or MatrixSource
    shuffle : bool or str
        The parameter of an estimator. False, "blocks" and "within" leave the source as it is.
    seed : int
    dtype : {"float32", "float64"}
        Number type of the values.
    observer : Observer, optional
        Is told what a shuffle buffer cannot do.
    """
    if shuffle not in TRUE_SHUFFLES:
        return source
    if isinstance(source, MatrixSource | ShuffledSource | BufferedSource):
        return source
    if isinstance(source, ScaledSource):
        inner = shuffled_rows(source.plain, shuffle, seed, dtype, observer)
        return source.over(inner) if isinstance(inner, Source) else source
    made: Source
    if source.rereadable:
        made = ShuffledSource(source, seed, dtype=dtype)
    else:
        made = BufferedSource(source, source.reading.shuffle_buffer, seed)
        if observer is not None:
            observer.tell("note", message=note_of(made))
    made.stops = source.stops
    return made


def searched_rows(source: Source, shuffles: Iterable[str | bool], dtype: str) -> Source:
    """Return a source for models that train together: shuffled, if all of them ask for it.

    Its order has a fixed seed, because folds depend on it. A source that can be read only once
    stays as it is: its rows are scored before they are learned, in their order.

    Parameters
    ----------
    source : Source
    shuffles : iterable of bool or str
        The parameter of each model.
    dtype : {"float32", "float64"}
        Number type of the values.
    """
    if not source.rereadable or not all(shuffle in TRUE_SHUFFLES for shuffle in shuffles):
        return source
    made = shuffled_rows(source, "once", 0, dtype)
    assert isinstance(made, Source)
    return made


def stored_rows(source: Source | MatrixSource) -> Source | MatrixSource:
    """Return the source that `shuffled_rows` was given.

    Parameters
    ----------
    source : Source or MatrixSource
    """
    if isinstance(source, ScaledSource):
        inner = stored_rows(source.plain)
        return source.over(inner) if isinstance(inner, Source) else source
    return source.inner if isinstance(source, ShuffledSource | BufferedSource) else source


def note_of(source: BufferedSource) -> str:
    """Return what a shuffle buffer cannot do.

    Parameters
    ----------
    source : BufferedSource
    """
    return (
        f"{source} can be read only once: its rows are shuffled by a buffer of {source.buffer:,} "
        f"rows, and rows that are much further apart stay apart"
    )
