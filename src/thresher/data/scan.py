"""`scan`: files, pipes and iterators described as a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from thresher.data.parts import parts_of
from thresher.data.read_options import ReadOptions
from thresher.data.source import Source


def scan(
    files: str | PathLike[str] | Sequence[str | PathLike[str]] | Any,
    *,
    format: str | None = None,
    bits: int | None = None,
    zero_based: bool = False,
    multilabel: bool = False,
    interactions: Sequence[str] = (),
    label: str | None = None,
    weight: str | None = None,
    text: Sequence[str] = (),
    ngrams: int = 1,
    ignore: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    threads: int | None = None,
    on_bad_line: str = "error",
    labelled: bool = True,
) -> Source:
    r"""Describe files as a source of rows, for ``fit``, ``partial_fit`` and ``predict``.

    Nothing is read yet but the first bytes, by which the format is found, or an iterator's first
    item, which tells whether features have names.

    Parameters
    ----------
    files : path, sequence of paths, or iterator
        Files, globs (sorted by name), ``"-"`` for standard input, addresses such as ``s3://...``
        where fsspec is installed; plain or packed (gzip, bzip2, xz, Zstandard). Or an iterator,
        or a function that returns one, of batches ``(X, y)`` or of examples ``({name: value},
        label)``.
    format : {"svmlight", "vw", "csv", "parquet", "arrow", "cache"}, optional
        By default found by looking.
    bits : int, optional
        Fold feature numbers, and hashes of names, to so many bits.
    zero_based : bool
        The features of svmlight files are numbered from 0, and not from 1.
    multilabel : bool
        Rows have any number of labels, as in ``3,17 5:1``.
    interactions : sequence of str
        Pairs of namespaces of VW text, by their first letters: ``"ab"``.
    label, weight : str, optional
        Columns of tables. The label's is by default that named label, y, target or class.
    text : sequence of str
        Columns of tables that hold text; each word becomes a feature.
    ngrams : int
        Longest run of words of a text column that becomes a feature.
    ignore : sequence of str
        Columns of tables to leave out.
    kinds : mapping of str to {"number", "truth", "string"}, optional
        What columns of tables are taken for: numbers, true and false, or strings that only tell
        values apart. Of other columns of CSV files the first rows decide. A model takes columns for
        what they were taken for when it learned.
    threads : int, optional
        Threads in all, of which all but one parse; by default as many as there are processors.
    on_bad_line : str
        What to do with a line that is no example: ``"error"``, ``"skip"``, or
        ``"quarantine=FILE"``, which copies it there.
    labelled : bool
        Whether rows of tables have labels. False where they are to be predicted: columns of labels
        and weights, and those to leave out, need not be there, and are not read if they are.

    Returns
    -------
    Source

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from thresher import FTRLClassifier, scan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "clicks.vw")
    ...     _ = file.write_text("1 |ad sport |user anna\n-1 |ad loan |user anna\n" * 100)
    ...     clf = FTRLClassifier(store="hashed", passes=1).fit(scan(file))
    >>> sorted(feature.name for feature in clf.model_.top(2))
    ['ad^loan', 'ad^sport']
    """
    reading = ReadOptions.of(
        format=format,
        bits=bits,
        zero_based=zero_based,
        multilabel=multilabel,
        interactions=interactions,
        label=label,
        weight=weight,
        text=text,
        ngrams=ngrams,
        ignore=ignore,
        kinds=kinds,
        threads=threads,
        on_bad_line=on_bad_line,
        labelled=labelled,
    )
    return Source(parts_of(files, reading), reading)
