"""`look` and `Look`: what data are, before training."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from thresher._version import __version__
from thresher.atomic import written_whole
from thresher.data.arrays import is_source, is_sparse
from thresher.data.columns import arrow
from thresher.data.frames import arrow_table
from thresher.data.paths import expand
from thresher.data.scan import scan
from thresher.errors import DataError, ParameterError
from thresher.overview.facts import DataFacts
from thresher.overview.finding import Finding
from thresher.overview.findings import find
from thresher.overview.gather_rows import gather_blocks, gather_matrix
from thresher.overview.gather_tables import gather_frame, gather_tables
from thresher.overview.limits import Limits
from thresher.overview.sniff import Sniffed, sniff
from thresher.overview.suggestion import Suggestion, suggest
from thresher.sparse_checks import refuse_malformed

__all__ = ["Look", "look"]

_SMALL = 1 << 26  # stored bytes of files that are read to their end
_ROWS = 250_000  # rows of larger files


class Look:
    """What data are: made by `look`.

    Attributes
    ----------
    facts : DataFacts
        What was counted.
    findings : list of Finding
        What stands out, the serious ones first.
    suggestion : Suggestion
        The command that suits the data, with the reason for each option.

    Examples
    --------
    >>> import numpy as np, thresher
    >>> found = thresher.look(np.eye(100), np.repeat([0, 1], 50))
    >>> found.facts.label.task, [finding.name for finding in found.findings]
    ('two classes', ['order'])
    """

    def __init__(self, facts: DataFacts) -> None:
        self.facts = facts
        self.findings: list[Finding] = find(facts)
        self.suggestion: Suggestion = suggest(facts, self.findings)

    @property
    def command(self) -> str:
        """The suggested command; empty if there is none."""
        return self.suggestion.command

    def __str__(self) -> str:
        from thresher.overview.summary import summary

        return summary(self)

    def __repr__(self) -> str:
        rows = self.facts.rows.read
        return f"<Look: {self.facts.name}, {rows:,} rows, {len(self.findings)} findings>"

    def to_json(self) -> dict[str, Any]:
        """Return all facts as JSON types; the keys stay the same in later versions."""
        facts = self.facts
        bad = facts.bad
        return {
            "name": facts.name,
            "files": [one.to_json() for one in facts.files],
            "rows": {
                "read": facts.rows.read,
                "total": facts.rows.total,
                "exact": facts.rows.exact,
            },
            "columns": [one.to_json() for one in facts.columns],
            "features": None if facts.features is None else facts.features.to_json(),
            "label": facts.label.to_json(),
            "duplicates": {"rows": facts.duplicates, "exact": facts.duplicates_exact},
            "bad_lines": {
                "lines": bad.lines,
                "first": bad.first,
                "undecodable": bad.undecodable,
                "nul": bad.nul,
            },
            "findings": [one.to_json() for one in self.findings],
            "suggestion": self.suggestion.to_json(),
            "version": __version__,
        }

    def html(self, title: str | None = None) -> str:
        """Return a page that works offline.

        Parameters
        ----------
        title : str, optional
        """
        from thresher.overview.page import page_of

        return page_of(self, title)

    def report(self, path: str | PathLike[str], title: str | None = None) -> None:
        """Write a page that works offline.

        Parameters
        ----------
        path : path
            The file; it is written atomically.
        title : str, optional
        """
        with written_whole(path) as file:
            file.write(self.html(title).encode())

    def _repr_html_(self) -> str:
        from thresher.overview.page import fragment_of

        return fragment_of(self)


def look(
    data: Any,
    y: Any = None,
    *,
    label: str | None = None,
    max_rows: int | str | None = "auto",
    on_progress: Callable[[int, int], None] | None = None,
    **reading: Any,
) -> Look:
    r"""Look at data before training: what they are, what stands out, and which options suit.

    It does not end where training would: a file without header, without labels, with bad lines or
    in another encoding is described, too. Memory is bounded.

    Parameters
    ----------
    data : path, sequence of paths, Source, DataFrame, Arrow table, matrix, array or iterator
        Files and iterators as in `scan`.
    y : array of shape (rows,), or matrix of shape (rows, labels), optional
        Labels of a matrix, array or DataFrame.
    label : str, optional
        Column of labels, by name or position. By default the one that looks most like it.
    max_rows : int, "auto" or None
        Rows to read; None: all. "auto": all if the files have 64 MiB at most, else the first
        250,000 rows; the number of all rows is estimated then, by the bytes.
    on_progress : callable, optional
        Called with the rows and the stored bytes that were read so far.
    **reading
        Options of `scan` that are known already. For CSV files also ``delimiter``, ``header`` (True
        or False) and ``encoding``.

    Returns
    -------
    Look
        ``print(look)`` shows it; it has `to_json`, `html` and `report`.

    Examples
    --------
    >>> import pathlib, tempfile, thresher
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "iris.data")
    ...     _ = file.write_text("5.1,3.5,setosa\n6.3,3.3,virginica\n" * 50)
    ...     found = thresher.look(file)
    >>> found.facts.label.task, found.facts.columns[0].kind
    ('two classes', 'number')
    >>> found.command.split(" ", 3)[3]
    '--no-header --label -1 -m model.thresher'
    """
    if isinstance(max_rows, str) and max_rows != "auto":
        raise ParameterError(
            parameter="max_rows", value=max_rows, allowed='"auto", None, or a number'
        )
    if isinstance(max_rows, int) and max_rows < 1:
        raise ParameterError(parameter="max_rows", value=max_rows, allowed="> 0")
    limits = Limits(None, None, on_progress or (lambda rows, read: None))
    given = {"label": label, **reading}
    if is_source(data):
        facts = _of_source(data, given, max_rows, limits)
    elif _is_files(data):
        facts = _of_files(expand(data), given, max_rows, limits)
    elif _is_frame(data):
        facts = gather_frame(_table_of(data), _kind_of(data), label, y, limits)
    elif is_sparse(data) or hasattr(data, "shape") or _is_rows(data):
        refuse_malformed(data)
        refuse_malformed(y)
        X = data.tocsr() if is_sparse(data) else np.asarray(data)
        if X.ndim != 2:
            raise ParameterError(parameter="data", value=X.shape, allowed="of two dimensions")
        labels = y if y is None or hasattr(y, "shape") else np.asarray(y)
        _check_rows(X, labels)
        facts = gather_matrix(X, labels, _kind_of(data), limits)
    else:
        facts = gather_blocks(scan(data, on_bad_line="skip", **reading), (), limits)
    kept = {name: value for name, value in given.items() if value not in (None, (), [], False)}
    if not facts.label.columns or kept.get("label") not in (None, *facts.label.columns):
        kept.pop("label", None)  # a position, or a column that does not exist
    return Look(replace(facts, reading=kept))


def _check_rows(X: Any, y: Any) -> None:
    if y is not None and y.shape[0] != X.shape[0]:
        raise DataError(f"there are {X.shape[0]:,} rows and {y.shape[0]:,} labels")


def _is_files(data: Any) -> bool:
    if isinstance(data, str | PathLike):
        return True
    paths = isinstance(data, list | tuple) and bool(data)
    return paths and all(isinstance(one, str | PathLike) for one in data)


def _is_rows(data: Any) -> bool:
    return isinstance(data, list | tuple) and bool(data) and isinstance(data[0], list | tuple) and (
        not data[0] or isinstance(data[0][0], int | float)
    )  # fmt: skip


def _is_frame(data: Any) -> bool:
    return (
        hasattr(data, "iloc")
        or hasattr(data, "to_arrow")
        or hasattr(data, "__arrow_c_stream__")
        or type(data).__module__.startswith("pyarrow")
    )


def _kind_of(data: Any) -> str:
    return f"a {type(data).__name__} in memory"


def _table_of(frame: Any) -> Any:
    """Return an Arrow table; columns of mixed objects become strings."""
    pa = arrow("reading DataFrames")
    try:
        return arrow_table(frame)
    except (pa.ArrowException, TypeError, ValueError):
        if not hasattr(frame, "iloc"):
            raise
    names = [str(name) for name in frame.columns]
    columns = []
    for at in range(len(names)):
        cells = frame.iloc[:, at]
        try:
            columns.append(pa.array(cells, from_pandas=True))
        except (pa.ArrowException, TypeError, ValueError):
            dense = cells.sparse.to_dense() if hasattr(cells, "sparse") else cells
            if dense.dtype.kind in "biuf":
                columns.append(pa.array(dense.to_numpy()))
            else:
                columns.append(
                    pa.array([None if c is None or c != c else str(c) for c in dense.tolist()])
                )
    return pa.table(dict(zip(names, columns, strict=True)))


def _of_source(source: Any, given: dict[str, Any], max_rows: Any, limits: Limits) -> DataFacts:
    """Return the facts about a source: of its files, if it has files."""
    if getattr(source, "parts", None) is None:
        raise ParameterError("look takes paths, sources, frames and matrices")
    paths = [part.name for part in source.parts if os.path.isfile(part.name)]
    if len(paths) == len(source.parts):
        own = {
            name: getattr(source.reading, name) for name in ("format", "label", "text", "ignore")
        }
        known = {name: value for name, value in {**own, **given}.items() if value}
        return _of_files(paths, known, max_rows, limits)
    limits.rows = None if isinstance(max_rows, str) else max_rows
    return gather_blocks(source, (), limits)


def _of_files(
    paths: Sequence[str], given: dict[str, Any], max_rows: Any, limits: Limits
) -> DataFacts:
    """Return the facts about files."""
    named = {name: given.get(name) for name in ("format", "delimiter", "header", "encoding")}
    files: list[Sniffed] = []
    for path in paths:
        files.append(sniff(path, **named, like=files[0].layout if files else None))
    sizes = [one.size for one in files]
    limits.size = None if None in sizes else sum(size or 0 for size in sizes)
    limits.rows = None if max_rows is None else max_rows
    if max_rows == "auto":
        small = limits.size is not None and limits.size <= _SMALL
        limits.rows = None if small else _ROWS
    readable = [one for one in files if one.is_read]
    if not readable:
        return DataFacts(tuple(files), files[0].path if files else "")
    if readable[0].is_table:
        return gather_tables(files, limits, given.get("label"))
    return _of_text(files, given, limits)


def _of_text(files: Sequence[Sniffed], given: dict[str, Any], limits: Limits) -> DataFacts:
    """Return the facts about svmlight and VW text, and caches."""
    names = ("format", "zero_based", "interactions", "bits", "threads")
    known = {name: given[name] for name in names if given.get(name)}
    usable = [one.path for one in files if one.is_read and not one.is_table]
    source = scan(usable, on_bad_line="skip", multilabel=True, **known)
    again = partial(
        scan, usable, on_bad_line="skip", multilabel=True, **{**known, "zero_based": True}
    )
    return gather_blocks(source, files, limits, again if source.rereadable else None)
