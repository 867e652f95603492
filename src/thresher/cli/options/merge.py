"""Options of `thresher merge`."""

from __future__ import annotations

from typing import Annotated

import typer

from thresher.cli.options.arguments import Quiet


def merge(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Models that train wrote, two or more.")
    ],
    model: Annotated[
        str,
        typer.Option("--model", "-m", metavar="MODEL", help="File to write the merged model to."),
    ],
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights",
            metavar="NUMBERS",
            help="How much each model counts, such as 1,3. Default: the number of rows that it "
            "learned, over all its passes.",
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Merge models that learned different rows: each weight is the mean of the weights.

    [bold]thresher merge monday.thresher tuesday.thresher -m week.thresher[/]

    Models of the default rule, one-pass, cannot be merged: train with --rule ftrl, or let one model
    go on with later rows by train --from. The models must have the same rule, loss, classes and
    features.
    """
    from thresher.cli.commands.merge import merge as run

    raise typer.Exit(run(models, model, weights, quiet))
