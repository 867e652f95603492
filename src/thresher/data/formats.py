"""The table of file formats: their suffixes and first bytes, and what their files allow."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


@dataclass(frozen=True)
class Format:
    """A format of files with rows.

    Attributes
    ----------
    name : str
    kind : {"text", "table", "cache"}
        Text is parsed by the core line by line, tables by pyarrow.
    suffixes : tuple of str
        Suffixes of file names in this format.
    only_read : tuple of str
        More suffixes, of files that are read but never written.
    magics : tuple of bytes
        The first bytes of its files, where they are fixed.
    named : bool
        Whether features of the text have names rather than numbers.
    cuttable : bool
        Whether several workers can read parts of one file.
    written : bool
        Whether `thresher convert` writes it.
    """

    name: str
    kind: Literal["text", "table", "cache"]
    suffixes: tuple[str, ...]
    only_read: tuple[str, ...] = ()
    magics: tuple[bytes, ...] = ()
    named: bool = False
    cuttable: bool = True
    written: bool = True


FORMATS: dict[str, Format] = {
    format.name: format
    for format in (
        Format("svmlight", "text", (".svm", ".svmlight", ".libsvm")),
        Format("vw", "text", (".vw",), named=True),
        Format("csv", "table", (".csv",), only_read=(".tsv",), cuttable=False),
        Format("parquet", "table", (".parquet",), magics=(b"PAR1",)),
        Format(
            "arrow",
            "table",
            (),
            magics=(b"ARROW1", b"\xff\xff\xff\xff"),  # a file, and a stream of messages
            cuttable=False,
            written=False,
        ),
        Format("cache", "cache", (".cache",), magics=(b"\x89TCache\n",)),
    )
}


def compression_of(path: str) -> str:
    """Return the suffix of a compression, in lower case, or "".

    Parameters
    ----------
    path : str

    Examples
    --------
    >>> compression_of("clicks.vw.GZ"), compression_of("clicks.vw")
    ('.gz', '')
    """
    suffix = os.path.splitext(path.lower())[1]
    return suffix if suffix in COMPRESSED else ""


def suffix_of(path: str) -> str:
    """Return the suffix of a file's name, without the suffix of a compression.

    Parameters
    ----------
    path : str

    Examples
    --------
    >>> suffix_of("clicks.VW.gz")
    '.vw'
    """
    stem = path.lower().removesuffix(compression_of(path))
    return os.path.splitext(stem)[1]
