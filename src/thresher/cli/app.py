"""The `thresher` command and its subcommands: options are declared here, and nothing is done."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from thresher._version import __version__
from thresher.cli.options.arguments import (
    Bits,
    Data,
    Format,
    Ignore,
    Interactions,
    Label,
    Multilabel,
    Ngrams,
    OnBadLine,
    Quiet,
    Text,
    Threads,
    Weight,
    ZeroBased,
    reading_of,
)
from thresher.cli.options.compare import compare
from thresher.cli.options.inspect import inspect
from thresher.cli.options.train import train
from thresher.cli.options.tune import tune


class _Commands(TyperGroup):
    """The commands; all say so when they are interrupted, be it while modules are loaded."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
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


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"thresher {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    examples: Annotated[int, typer.Option(min=1000, help="Rows of the stream.")] = 400_000,
    features: Annotated[
        int, typer.Option(min=1000, help="Width of the feature space.")
    ] = 1_000_000,
    relevant: Annotated[int, typer.Option(min=1, max=500, help="Features that matter.")] = 40,
    seed: Annotated[int, typer.Option(help="Seed of the stream.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only the result.")] = False,
    write: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Learn nothing; write the stream to a file of VW text, for the other commands.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Learn from a stream with known truth: what was found, how fast, in how little memory.

    Each row of the stream has about 30 of the features, a few of them frequent and most rare, as
    in text or clicks. The label depends on a few features and on chance. Thresher reads the rows
    once, as they are made, and has to find the few.
    """
    from thresher.cli.commands.demo import run
    from thresher.cli.commands.demo import write as write_stream

    if write is not None:
        write_stream(write, examples, features, relevant, seed)
        return
    run(examples, features, relevant, seed, quiet)


app.command()(train)
app.command()(tune)
app.command()(compare)


@app.command()
def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that train wrote.")],
    data: Data,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where predictions go. Default: standard output."
        ),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="KIND",
            help="label: the class, or the value. probability: of class 1, or of all classes in "
            "their order, for losses that have them. raw: the score before either.",
        ),
    ] = "label",
    format: Format = None,
    zero_based: ZeroBased = False,
    label: Label = None,
    threads: Threads = None,
    on_bad_line: OnBadLine = "error",
    quiet: Quiet = False,
) -> None:
    """Predict: a line for each row of the data, in their order.

    [bold]thresher predict clicks.thresher new.vw.gz --as probability -o out.txt[/]

    Rows are read as in training: the model remembers bits, interactions and columns. Labels in the
    data are not looked at. Tags of VW text follow their predictions.
    """
    reading = reading_of(locals())
    from thresher.cli.commands.predict import predict as run

    raise typer.Exit(run(model, data, output, kind, reading, quiet))


app.command()(inspect)


@app.command()
def convert(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="IN... OUT",
            help="Files, globs or - to read, and the file to write, whose name tells the format: "
            ".svm, .vw, .parquet, .csv or .cache, and .gz, .bz2, .xz or .zst behind it.",
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="FORMAT", help="The format, where the name does not tell."),
    ] = None,
    format: Format = None,
    bits: Bits = None,
    zero_based: ZeroBased = False,
    interactions: Interactions = [],  # noqa: B006
    multilabel: Multilabel = False,
    label: Label = None,
    weight: Weight = None,
    text: Text = [],  # noqa: B006
    ngrams: Ngrams = 1,
    ignore: Ignore = [],  # noqa: B006
    threads: Threads = None,
    on_bad_line: OnBadLine = "error",
    quiet: Quiet = False,
) -> None:
    """Write the rows of files in another format, or as a cache.

    [bold]thresher convert 'logs/*.vw.gz' logs.cache[/]

    Values stay what they are, to the last bit. A cache keeps the names of features; other formats
    have their 64-bit hashes, or with --bits those bits of them. Models are the same from all.
    """
    reading = reading_of(locals())
    from thresher.cli.commands.convert import convert as run

    raise typer.Exit(run(files, to, reading, quiet))


def main() -> None:
    """Run the command line; what went wrong is one line on standard error."""
    from thresher.cli.render.errors import shell_message
    from thresher.errors import ClusterError, DivergenceError, ParameterError

    try:
        app()
    except ParameterError as error:
        print(shell_message(error), file=sys.stderr)
        raise SystemExit(2) from None
    except BrokenPipeError:  # who read the output has gone
        sys.stderr.close()
        raise SystemExit(141) from None  # as of a program that SIGPIPE ends
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    except (ValueError, ClusterError, DivergenceError, MemoryError) as error:
        print(shell_message(error) or "there is not enough memory", file=sys.stderr)
        raise SystemExit(1) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"{where}{error.strerror or error}", file=sys.stderr)
        raise SystemExit(1) from None
