"""Print text that may hold names of strangers: only this module and `progress` print lines."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from thresher.printable import printable


class ClosedOutputError(Exception):
    """The reader of the output has closed it. Typer would end BrokenPipeError with exit code 1."""


@contextlib.contextmanager
def output_of_command() -> Iterator[None]:
    """Raise ClosedOutputError if the reader of the output has closed it."""
    try:
        yield
    except BrokenPipeError as error:
        raise ClosedOutputError from error


def flush_output() -> None:
    """Write what Python still holds of standard output."""
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError as error:
            error.filename = "standard output"
            raise


def end_output() -> None:
    """Drop what cannot be written: Python would write it at its end, and change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream.fileno())
            os.close(nothing)
        except (AttributeError, ValueError):  # there is no stream, or it is closed
            continue


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
