"""`scan`: makes a source of files, pipes and iterators."""

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
    shuffle_buffer: int = 1 << 16,
) -> Source:
    r"""Make a source of rows from files, for ``fit``, ``partial_fit`` and ``predict``.

    This reads only the first bytes of each file, to detect its format, or the first item of an
    iterator, to find out whether features have names.

    Parameters
    ----------
    files : path, sequence of paths, or iterator
        Files, globs (sorted by name), ``"-"`` for standard input, or URLs such as ``s3://...`` if
        fsspec is installed; plain or compressed (gzip, bzip2, xz, Zstandard). Or an iterator, or a
        function that returns one, of batches ``(X, y)`` or of examples ``({name: value}, label)``.
    format : {"svmlight", "vw", "csv", "parquet", "arrow", "cache"}, optional
        By default detected from the first bytes.
    bits : int, optional
        Use only the lowest `bits` bits of feature numbers and of hashes of names.
    zero_based : bool
        Whether the features of svmlight files are numbered from 0; by default from 1.
    multilabel : bool
        Whether rows have any number of labels, as in ``3,17 5:1``.
    interactions : sequence of str
        Pairs of namespaces of VW text, by their first letters: ``"ab"``.
    label, weight : str, optional
        Columns of tables that hold labels and weights. By default labels are in the column named
        label, y, target or class.
    text : sequence of str
        Columns of tables that hold text; each word becomes a feature.
    ngrams : int
        Sequences of up to `ngrams` words of a text column become features.
    ignore : sequence of str
        Columns of tables to leave out.
    kinds : mapping of str to {"number", "truth", "string"}, optional
        How columns of tables are read: as numbers, as true and false, or as strings (categories).
        For other columns of CSV files, the first rows decide. A model reads columns as in training.
    threads : int, optional
        Number of threads; all but one parse. By default one per processor.
    on_bad_line : str
        What to do with a line that cannot be parsed: ``"error"``, ``"skip"``, or
        ``"quarantine=FILE"``, which copies the line to a file.
    labelled : bool
        Whether rows of tables have labels. False for rows to predict: columns of labels and
        weights, and columns to ignore, may be missing, and are not read.
    shuffle_buffer : int
        Rows of the buffer that shuffles a pipe or an iterator, which can be read only once. Other
        sources are shuffled as a whole. It has fewer rows if they take more than 64 MiB.

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
        shuffle_buffer=shuffle_buffer,
    )
    return Source(parts_of(files, reading), reading)
