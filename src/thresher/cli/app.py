"""The `thresher` command and its subcommands."""

from __future__ import annotations

from typing import Annotated

import typer

from thresher._version import __version__

app = typer.Typer(
    name="thresher",
    help="Learn sparse linear models from massive, high-dimensional, sparse data.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
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
) -> None:
    """Learn from a stream with known truth: what was found, how fast, in how little memory.

    Each row of the stream has about 30 of the features, a few of them frequent and most rare, as
    in text or clicks. The label depends on a few features and on chance. Thresher reads the rows
    once, as they are made, and has to find the few.
    """
    from thresher.cli.demo import run

    run(examples, features, relevant, seed, quiet)


def main() -> None:
    """Run the command line."""
    app()
