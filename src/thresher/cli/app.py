"""The `thresher` command and the list of its subcommands."""

from __future__ import annotations

import gc
import inspect as inspection
import sys
from collections.abc import Callable
from typing import Annotated

import typer
from typer.models import CommandInfo

from thresher._version import __version__
from thresher.cli.options.command import Command, Commands, QuietCommand
from thresher.cli.options.compare import compare
from thresher.cli.options.convert import convert
from thresher.cli.options.demo import demo
from thresher.cli.options.discover import discover
from thresher.cli.options.evaluate import evaluate
from thresher.cli.options.export import export
from thresher.cli.options.inspect import inspect
from thresher.cli.options.look import look
from thresher.cli.options.merge import merge
from thresher.cli.options.predict import predict
from thresher.cli.options.serve import serve
from thresher.cli.options.shell import completion, man
from thresher.cli.options.train import train
from thresher.cli.options.tune import tune
from thresher.cli.render.output import ClosedOutputError, echo, end_output, error_output, show

app = typer.Typer(
    name="thresher",
    cls=Commands,
    help="Learn sparse linear models from massive, high-dimensional, sparse data.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        echo(f"thresher {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


def _help(command: Callable[..., None]) -> str:
    """Return the help of a command, one line per paragraph: it fits any width of the terminal."""
    paragraphs = (inspection.getdoc(command) or "").split("\n\n")
    return "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)


for _command in (
    *(demo, look, train, tune, compare, discover),
    *(predict, evaluate, inspect, export, serve, merge, convert),
):
    app.command(cls=Command, help=_help(_command))(_command)
for _command in (completion, man):
    app.command(cls=QuietCommand, help=_help(_command))(_command)


def _called(known: list[CommandInfo], words: list[str]) -> list[CommandInfo]:
    """Return only the command that is called: Typer needs 50 ms to read the options of all."""
    called = [c for c in known if c.callback and c.callback.__name__ in words]
    return called if called and called[0].callback not in (completion, man) else known


def main() -> None:
    """Run the command line; print an error as one line on standard error."""
    before = sys.stdout, sys.stderr
    sys.stderr = error_output()
    try:
        code = _exit_code_of_error()
        gc.collect()  # close what the error has left open: threads may still read files
    finally:
        end_output()
        sys.stdout, sys.stderr = before
        # If Ctrl-C comes while a module runs exec, as dataclasses does, Python remembers it, and
        # ends by SIGINT instead of the exit code. It forgets it when it runs another text.
        exec("")
    raise SystemExit(code)


def _exit_code_of_error() -> int:
    """Run the command line; return the exit code of an error, or exit."""
    known = app.registered_commands
    app.registered_commands = _called(known, sys.argv[1:2])
    try:
        return _run()
    except (ClosedOutputError, BrokenPipeError):  # perhaps while an error was printed
        return 141  # the exit code of a program that SIGPIPE ended
    finally:
        app.registered_commands = known


def _run() -> int:
    """Run the command line; print an error, and return its exit code, or exit."""
    from thresher.cli.render.errors import shell_message
    from thresher.cli.render.warning_sink import StrictError
    from thresher.errors import ClusterError, DivergenceError, ParameterError

    try:
        app()
    except ParameterError as error:
        show(shell_message(error), error=True)
        return 2
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        show("interrupted", error=True)
        return 130
    except (ValueError, ClusterError, DivergenceError, MemoryError, StrictError) as error:
        show(shell_message(error) or "not enough memory", error=True)
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        show(f"{where}{error.strerror or error}", error=True)
        return 1
    return 0
