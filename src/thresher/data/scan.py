"""`scan`: makes a source of files, pipes and iterators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from thresher.data.frames import is_frame, is_labelled_frame
from thresher.data.namespaces import Namespaces
from thresher.data.parts import parts_of
from thresher.data.read_options import ReadOptions
from thresher.data.scaled import ScaledSource
from thresher.data.source import Source


def scan(
    files: str | PathLike[str] | Sequence[str | PathLike[str]] | Any,
    *,
    format: str | None = None,
    bits: int | None = None,
    zero_based: bool = False,
    multilabel: bool = False,
    interactions: Sequence[str] = (),
    label: str | int | Sequence[str] | None = None,
    weight: str | int | None = None,
    text: str | int | Sequence[str | int] = (),
    ngrams: int = 1,
    ignore: str | int | Sequence[str | int] = (),
    kinds: Mapping[str, str] | None = None,
    threads: int | None = None,
    on_bad_line: str = "error",
    unlabelled: str = "error",
    labelled: bool = True,
    scale: str | None = None,
    header: bool | None = None,
    columns: Sequence[str] = (),
    delimiter: str | None = None,
    encoding: str | None = None,
    quotes: bool | None = None,
    label_separator: str | None = None,
    missing: str | None = None,
    dates: str | None = None,
    shuffle_buffer: int = 1 << 16,
) -> Source:
    r"""Make a source of rows from files, for ``fit``, ``partial_fit`` and ``predict``.

    This reads only the first bytes of each file, to detect its format, or the first item of an
    iterator, to find out whether features have names.

    Parameters
    ----------
    files : path, sequence of paths, frame, or iterator
        Files, globs (sorted by name), ``"-"`` for standard input, or URLs such as ``s3://...`` if
        fsspec is installed; plain or compressed (gzip, bzip2, xz, Zstandard). Or an iterator, or a
        function that returns one, of batches ``(X, y)`` or of examples ``({name: value}, label)``.
        Or a frame: pandas, polars, an Arrow table, or any object with ``__arrow_c_stream__`` or
        ``__dataframe__``; or a tuple ``(frame, y)`` or ``(frame, y, weights)``.
    format : {"svmlight", "vw", "csv", "tsv", "parquet", "arrow", "cache"}, optional
        By default detected from the first bytes.
    bits : int, optional
        Use only the lowest `bits` bits of feature numbers and of hashes of names.
    zero_based : bool
        Whether the features of svmlight files are numbered from 0; by default from 1.
    multilabel : bool
        Whether rows have any number of labels, as in ``3,17 5:1``. In tables they are in lists, in
        strings (see `label_separator`), or in several columns (see `label`).
    interactions : sequence of str
        Pairs of namespaces of VW text, by their first letters: ``"ab"``.
    label, weight : str or int, optional
        Columns of tables that hold labels and weights, by name or by position: 0 is the first
        column, -1 the last. By default labels are in the column named label, y, target or class.
        With `multilabel`, `label` may also name several columns of 0 and 1, one per label:
        ``["sport", "politics"]`` or ``"topic_*"``.
    text : sequence of str or int
        Columns of tables that hold text; each word becomes a feature. ``"auto"``: also columns of
        strings that look like text.
    ngrams : int
        Sequences of up to `ngrams` words of a text column become features.
    ignore : sequence of str or int
        Columns of tables to leave out.
    kinds : mapping of str to {"number", "truth", "string", "text"}, optional
        How columns of tables are read: as numbers, as true and false, as strings (categories), or
        as text.
        For other columns of CSV files, the first rows decide. A model reads columns as in training.
    threads : int, optional
        Number of threads; all but one parse. By default one per processor.
    on_bad_line : str
        What to do with a line that cannot be parsed: ``"error"``, ``"skip"``, or
        ``"quarantine=FILE"``, which copies the line to a file. For training, a row without a label
        is such a line.
    unlabelled : {"error", "skip"}
        What to do with a row without a label when training: "skip" leaves it out, whatever
        `on_bad_line` is, and does not count it as a bad line.
    labelled : bool
        Whether rows of tables have labels. False for rows to predict: columns of labels and
        weights, and columns to ignore, may be missing, and are not read.
    scale : {"variance", "max", "standard"}, optional
        For training: divide each column by its root mean square about zero, as
        `thresher.preprocessing.UnitVarianceScaler` does, or by its largest absolute value.
        "standard": centre columns with values in at least half of the rows and divide them by
        their standard deviation; others as with "variance". This reads the rows once more. The
        weights of the model are for rows as they are, so predicting needs no scaling; see
        docs/scale.md.
    header : bool, optional
        Whether the first line of a CSV file has the names of the columns. By default the first
        lines decide. Columns without names are named by their positions: "0", "1", ...
    columns : sequence of str
        Names of the columns of CSV files, instead of those in the files. A file has a header then
        only if its first line has these names, or cannot be a row.
    delimiter : str, optional
        What separates the cells of CSV files; ``"space"``: any number of spaces. By default tab,
        comma, semicolon, bar or, between numbers, space: whichever the first lines have.
    encoding : str, optional
        Encoding of CSV files, such as ``"latin-1"``; by default UTF-8.
    quotes : bool, optional
        Whether a cell of a CSV file that begins with a double quote ends with one. By default yes;
        for cells separated by tabs, only if the first lines show it.
    label_separator : str, optional
        What separates the labels in a string, with `multilabel`. By default ``|``, ``;`` or ``,``:
        whichever the first rows have.
    missing : {"error", "zero", "indicator"}, optional
        What missing cells of tables and frames are (null, NaN): an error, no feature, or a feature
        ``column=missing``. By default an error in frames and no feature in files.
    dates : {"parts"}, optional
        Make features of the year, month, weekday and hour of columns of dates and times. By
        default such columns are an error.
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
        unlabelled=unlabelled,
        labelled=labelled,
        header=header,
        columns=columns,
        delimiter=delimiter,
        encoding=encoding,
        quotes=quotes,
        label_separator=label_separator,
        missing=missing,
        dates=dates,
        shuffle_buffer=shuffle_buffer,
    )
    if is_frame(files) or is_labelled_frame(files):
        from thresher.data.frame_parts import scan_frame

        source: Source = scan_frame(files, reading)
    else:
        source = Source(parts_of(files, reading), reading)
    if reading.interactions:
        source.namespaces = Namespaces(reading.interactions)
    return source if scale is None else ScaledSource(source, scale)
