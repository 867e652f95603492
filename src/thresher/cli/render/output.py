"""Print text that may hold names of strangers: only this module and `progress` print lines."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sys
from collections.abc import Iterator
from typing import IO, Any, TextIO

import typer

from thresher.file_access import naming
from thresher.printable import printable

_OUTPUT = "standard output"


class ClosedOutputError(Exception):
    """The reader of the output has closed it. Typer would end BrokenPipeError with exit code 1."""


@contextlib.contextmanager
def output_of_command() -> Iterator[None]:
    """Raise ClosedOutputError if the reader of the output has closed it."""
    try:
        yield
    except BrokenPipeError as error:
        raise ClosedOutputError from error


class ErrorOutput:
    """Standard error. If it is full, what is written to it is lost, and the command goes on.

    Parameters
    ----------
    stream : file
        All but writing is as with this file.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        if name == "_stream":  # of an object that copy makes
            raise AttributeError(name)
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text."""
        with self._unfailing():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what is held of earlier texts."""
        with self._unfailing():
            self._stream.flush()

    @contextlib.contextmanager
    def _unfailing(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError:
            _drop(self._stream)


def error_output() -> ErrorOutput:
    """Return standard error. If it is closed, all that is written to it is lost."""
    if sys.stderr is not None:
        return ErrorOutput(sys.stderr)
    nothing = os.open(os.devnull, os.O_WRONLY)
    if nothing < 2:  # others are closed, too: leave them so, but let no other file have number 2
        other, nothing = nothing, fcntl.fcntl(nothing, fcntl.F_DUPFD_CLOEXEC, 2)
        os.close(other)
    return ErrorOutput(open(nothing, "w"))


def flush_output() -> None:
    """Write what Python still holds of standard output."""
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError as error:
            error.filename = _OUTPUT
            raise


def end_output() -> None:
    """Drop what cannot be written: Python would write it at its end, and change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        # There may be no stream, it may be closed, or be an object without a file.
        with contextlib.suppress(AttributeError, ValueError):
            try:
                stream.flush()
            except OSError:
                _drop(stream)


def _drop(stream: TextIO) -> None:
    """Drop what a stream holds, and all that will be written to it."""
    number = stream.fileno()
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, number)
    os.close(nothing)


def is_shown() -> bool:
    """Tell whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def leave_output() -> None:
    """Print to standard error from now on: a result goes to standard output."""
    sys.stdout = sys.stderr


def check_output() -> None:
    """Raise OSError if standard output is closed: a command has a result for it."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "it is closed", _OUTPUT)


def output_bytes() -> IO[bytes]:
    """Return standard output for the bytes of a result; raise OSError if it is closed."""
    check_output()
    return sys.stdout.buffer


@contextlib.contextmanager
def naming_output() -> Iterator[None]:
    """Name standard output in an error of writing to it."""
    with naming(_OUTPUT):
        yield


def write_result(content: bytes) -> None:
    """Write a result to standard output; raise OSError if it is closed."""
    with naming(_OUTPUT):
        out = output_bytes()
        out.write(content)
        out.flush()


def echo(text: str) -> None:
    """Print a text that Thresher made itself, such as a page of help."""
    check_output()
    with naming(_OUTPUT):
        typer.echo(text)


def show(text: object = "", *, error: bool = False) -> None:
    """Print one line; characters that could control the terminal are escaped, also line feeds.

    Parameters
    ----------
    text : object
    error : bool
        Print to standard error.
    """
    _print(printable(text), error)


def show_lines(text: object, *, error: bool = False) -> None:
    """Print a text of several lines; names in it must be escaped already, for their line feeds.

    Parameters
    ----------
    text : object
    error : bool
        Print to standard error.
    """
    _print(printable(text, keep="\n"), error)


def show_record(text: str, out: TextIO | None = None) -> None:
    """Print JSON, for programs, at once.

    Parameters
    ----------
    text : str
    out : file, optional
        Default: standard output.
    """
    if out is None:
        check_output()
    with naming(_OUTPUT):
        print(text, file=out, flush=True)


def _print(text: str, error: bool) -> None:
    with naming("standard error" if error else _OUTPUT):
        print(text, file=sys.stderr if error else sys.stdout, flush=error)
