"""What a file is, from its first bytes: format, compression, encoding, layout of its cells."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from typing import Any

from thresher.data.csv_layout import CsvLayout, CsvOptions, layout_of
from thresher.data.detect import detect_format, is_tar
from thresher.data.formats import suffix_of
from thresher.data.open_streams import open_bytes, peek_bytes, stored_size
from thresher.errors import DataError, InputError

__all__ = ["Sniffed", "sniff"]

_HEAD = 1 << 18
_REGULAR = 0.6  # share of rows of a table that have as many cells as it has columns, at least
# First bytes of files that people have and Thresher does not read, with what to do.
_OTHERS = (
    (b"PK\x03\x04", "zip", "a zip archive, such as an Excel workbook or a NumPy .npz file"),
    (b"\x93NUMPY", "npy", "a NumPy array"),
    (b"\x89HDF\r\n", "hdf5", "an HDF5 file"),
    (b"SQLite format 3", "sqlite", "an SQLite database"),
    (b"ORC", "orc", "an ORC file"),
    (b"\xd0\xcf\x11\xe0", "xls", "an old Excel workbook"),
    (b"%PDF", "pdf", "a PDF document"),
    (b"\x80\x04", "pickle", "a Python pickle"),
    (b"\x80\x05", "pickle", "a Python pickle"),
)


@dataclass(frozen=True)
class Sniffed:
    """What a file is.

    Attributes
    ----------
    path : str
    format : str
        A format of `scan`; "lines" for lines of one cell; or another that Thresher does not read.
    about : str
        What a format is that Thresher does not read.
    compression : str or None
    size : int or None
        Stored bytes.
    encoding : str
        "utf-8", "utf-16", "latin-1" or "cp1252"; empty if the format is binary.
    bom : bool
        Whether the text begins with a byte order mark.
    line_end : str
    layout : CsvLayout or None
        Of a CSV file, without its first rows.
    unsure : tuple of str
        Options that `train` needs because the file does not decide: "format", "header", "quotes".
    """

    path: str
    format: str
    about: str = ""
    compression: str | None = None
    size: int | None = None
    encoding: str = ""
    bom: bool = False
    line_end: str = "\n"
    layout: CsvLayout | None = None
    unsure: tuple[str, ...] = ()

    @property
    def is_table(self) -> bool:
        """Whether it has columns."""
        return self.format in ("csv", "parquet", "arrow")

    @property
    def is_read(self) -> bool:
        """Whether Thresher reads the format."""
        return self.is_table or self.format in ("svmlight", "vw", "cache")

    @property
    def is_named(self) -> bool:
        """Whether options call columns by names, not by positions."""
        layout = self.layout
        return layout is None or layout.header or layout.text is not None

    def with_plain_quotes(self) -> Sniffed:
        """Return this file with quotes as plain characters."""
        assert self.layout is not None
        layout = replace(self.layout, quotes=False)
        return replace(self, layout=layout, unsure=(*self.unsure, "quotes"))

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as JSON types."""
        found = asdict(self)
        layout = found.pop("layout") or {}
        found["delimiter"] = None if layout.get("tagged") else layout.get("delimiter")
        found["header"] = layout.get("header")
        found["quotes"] = layout.get("quotes")
        return found


def sniff(
    path: str,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    like: CsvLayout | None = None,
) -> Sniffed:
    """Return what a file is; the bytes of a pipe can be read again.

    Parameters
    ----------
    path : str
        A path that `expand` returned.
    format, delimiter, header, encoding : optional
        What is known already.
    like : CsvLayout, optional
        The layout of the first file, as in `layout_of`.
    """
    head = peek_bytes(path, _HEAD)
    size = stored_size(path)
    compression = _compression(path)
    about: dict[str, Any] = {"compression": compression, "size": size}
    if not head:
        known = format or {".csv": "csv", ".tsv": "csv"}.get(suffix_of(path), "")
        return Sniffed(path, known or "empty", **about)
    for magic, name, what in _OTHERS:
        if format is None and head.startswith(magic):
            return Sniffed(path, name, what, **about)
    if format is None and is_tar(head):
        return Sniffed(path, "tar", "an archive (tar)", **about)
    encoding, bom = (encoding, False) if encoding else _encoding(head)
    text = head.decode(encoding, "replace").removeprefix("\ufeff")
    unsure: tuple[str, ...] = ()
    if format is None:
        format, what = _format(path, text, encoding)
        if what:
            return Sniffed(path, format, what, encoding=encoding, **about)
        if not format:
            format, unsure = "csv", ("format",)
    if format in ("parquet", "arrow", "cache"):
        return Sniffed(path, format, **about)
    line_end = "\r\n" if "\r\n" in text else ("\r" if "\r" in text and "\n" not in text else "\n")
    layout = None
    if format == "csv":
        try:
            layout, more = _layout(path, CsvOptions(delimiter, header, encoding=encoding), like)
        except DataError:
            return Sniffed(path, "text", "a text whose first row is too long", **about)
        unsure += more
        if not (delimiter or layout.empty or _is_table(layout)) and "\n" in text:
            format = "lines"
        layout = replace(layout, rows=(), note="")
    return Sniffed(path, format, "", compression, size, encoding, bom, line_end, layout, unsure)


def _layout(
    path: str, options: CsvOptions, like: CsvLayout | None
) -> tuple[CsvLayout, tuple[str, ...]]:
    """Return the layout of a CSV file, and the options that the file does not decide."""
    try:
        return layout_of(path, options, like), ()
    except InputError as error:
        if error.parameter == "quotes":  # a quote in the header is never closed
            layout, more = _layout(path, replace(options, quotes=False), like)
            return layout, ("quotes", *more)
    # It is not clear whether the first line is a header.
    return layout_of(path, replace(options, header=False), like), ("header",)


def _is_table(layout: CsvLayout) -> bool:
    """Tell whether most rows have as many cells as there are columns, and more than one."""
    width = len(layout.names)
    regular = sum(len(row) == width for row in layout.rows)
    return width > 1 and regular >= _REGULAR * len(layout.rows)


def _compression(path: str) -> str | None:
    """Return the compression; a pipe that was peeked at is kept."""
    from thresher.data.paths import can_reopen

    if not can_reopen(path):
        return None
    with open_bytes(path) as stream:
        return stream.compression


def _encoding(head: bytes) -> tuple[str, bool]:
    """Return the encoding of text, and whether it begins with a byte order mark.

    Examples
    --------
    >>> _encoding("Köln".encode()), _encoding("Köln".encode("latin-1"))
    (('utf-8', False), ('latin-1', False))
    """
    if head.startswith(b"\xef\xbb\xbf"):
        return "utf-8", True
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16", True
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if len(head) - error.start < 4 and len(head) >= _HEAD:  # the head ends within a letter
            return "utf-8", False
        if head[:4] != b"PAR1" and head[:6] != b"ARROW1":
            # Bytes 0x80 to 0x9f are letters of Windows, and control characters of latin-1.
            return ("cp1252" if re.search(rb"[\x80-\x9f]", head) else "latin-1"), False
    return "utf-8", False


def _format(path: str, text: str, encoding: str) -> tuple[str, str]:
    """Return the format, empty if it is not clear; and what it is if Thresher does not read it."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if re.match(r"\{.*\}\s*$|\{\s*$|\[\s*[\[{]", first) and not first.startswith("{}"):
        return ("json", "a JSON file") if first[0] == "[" or len(first) < 3 else (
            "jsonl", "JSON lines")  # fmt: skip
    if first.lower().startswith(("<!doctype html", "<html", "<?xml")):
        return "html", "a web page or XML document"
    if first.lower().startswith("@relation"):
        return "arff", "an ARFF file"
    try:
        return detect_format(path), ""
    except DataError as error:
        if "model or a checkpoint" in str(error):
            return "model", "a model or a checkpoint of Thresher"
    letters = sum(letter.isprintable() or letter.isspace() for letter in text[:4096])
    if letters < 0.9 * len(text[:4096]) and encoding != "utf-8":
        return "binary", "a binary file of an unknown format"
    return "", ""
