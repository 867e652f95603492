"""The `thresher` command and the list of its subcommands."""

from __future__ import annotations

import inspect as inspection
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from thresher._version import __version__
from thresher.cli.options.compare import compare
from thresher.cli.options.convert import convert
from thresher.cli.options.demo import demo
from thresher.cli.options.discover import discover
from thresher.cli.options.inspect import inspect
from thresher.cli.options.predict import predict
from thresher.cli.options.train import train
from thresher.cli.options.tune import tune


class _Commands(TyperGroup):
    """All subcommands; each prints one line if Ctrl-C interrupts it."""

    def invoke(self, ctx: Any) -> Any:
        """Run the subcommand."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(130) from None


app = typer.Typer(
    name="thresher",
    cls=_Commands,
    help="Learn sparse linear models from massive, high-dimensional, sparse data.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"thresher {__version__}")
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


for _command in (demo, train, tune, compare, discover, predict, inspect, convert):
    app.command(help=_help(_command))(_command)


def main() -> None:
    """Run the command line; print an error as one line on standard error."""
    from thresher.cli.render.errors import shell_message
    from thresher.errors import ClusterError, DivergenceError, ParameterError

    others = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
        if issubclass(category, UserWarning):
            text = message if isinstance(message, str) else shell_message(message)
            print(f"warning: {text}", file=sys.stderr)
        else:
            others(message, category, *where)

    try:
        with warnings.catch_warnings():
            warnings.showwarning = show  # type: ignore[assignment]
            app()
    except ParameterError as error:
        print(shell_message(error), file=sys.stderr)
        raise SystemExit(2) from None
    except BrokenPipeError:  # the reader of standard output has closed it
        sys.stderr.close()
        raise SystemExit(141) from None  # the exit code of a program that SIGPIPE ended
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    except (ValueError, ClusterError, DivergenceError, MemoryError) as error:
        print(shell_message(error) or "not enough memory", file=sys.stderr)
        raise SystemExit(1) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"{where}{error.strerror or error}", file=sys.stderr)
        raise SystemExit(1) from None
