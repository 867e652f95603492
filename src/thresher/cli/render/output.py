"""Print text that may hold names of strangers: only this module and `progress` print lines."""

from __future__ import annotations

import sys

from thresher.printable import printable


def show(text: object = "", *, error: bool = False) -> None:
    """Print one line; characters that could control the terminal are escaped, also line feeds.

    Parameters
    ----------
    text : object
    error : bool
        Print to standard error.
    """
    print(printable(text), file=sys.stderr if error else sys.stdout, flush=error)


def show_lines(text: object, *, error: bool = False) -> None:
    """Print a text of several lines; names in it must be escaped already, for their line feeds.

    Parameters
    ----------
    text : object
    error : bool
        Print to standard error.
    """
    print(printable(text, keep="\n"), file=sys.stderr if error else sys.stdout, flush=error)
