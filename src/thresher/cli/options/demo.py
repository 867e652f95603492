"""Options of `thresher demo`."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    examples: Annotated[
        int, typer.Option(min=1000, help="Number of rows of the stream.")
    ] = 400_000,
    features: Annotated[int, typer.Option(min=1000, help="Number of features.")] = 1_000_000,
    relevant: Annotated[
        int, typer.Option(min=1, max=500, help="Number of features that the label depends on.")
    ] = 40,
    seed: Annotated[int, typer.Option(help="Random seed of the stream.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only the result.")] = False,
    html: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write a page about the features found.", show_default=False
        ),
    ] = None,
    write: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Do not learn. Write the stream to FILE as VW text, as input for other commands.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Learn from a random stream whose true weights are known, and report how well that worked.

    Each row has about 30 features: a few features are frequent and most are rare, as in text or
    clicks. The label depends on a few relevant features and on chance. First, the rule one-pass
    reads each row once, when it is generated. Then `FeatureDiscovery` has to find the relevant
    features; about 10 % of those that it finds may be irrelevant.
    """
    from thresher.cli.commands.demo import run
    from thresher.cli.commands.demo import write as write_stream

    if write is not None:
        write_stream(write, examples, features, relevant, seed)
        return
    run(examples, features, relevant, seed, quiet, html)
