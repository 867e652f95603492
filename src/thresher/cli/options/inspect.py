"""Options of `thresher inspect`."""

from __future__ import annotations

from typing import Annotated

import typer

from thresher.cli.options.arguments import Json


def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that train wrote.")],
    top: Annotated[int, typer.Option(min=0, help="Number of largest weights to show.")] = 20,
    why: Annotated[
        list[str],
        typer.Option(
            "--why",
            metavar="FEATURE",
            help="Show all facts about this feature, a name or a number. May be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    label: Annotated[
        str | None,
        typer.Option(
            "--class",
            metavar="CLASS",
            help="Show only the weights of this class of a multiclass model.",
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write a full report to FILE as an HTML page that works offline.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        list[str],
        typer.Option(
            "--data",
            metavar="FILE",
            help="Rows with labels; the page shows how well the model predicts them. They are read "
            "as in training. May be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="MODEL",
            help="Show what changed since this model: features that came, went, or changed sign or "
            "weight; with --html, as a page.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show a summary of a model, its largest weights, or why a feature has its weight.

    [bold]thresher inspect clicks.thresher --top 50[/]

    [bold]thresher inspect clicks.thresher --html report.html --data new.vw.gz[/]

    [bold]thresher inspect today.thresher --against yesterday.thresher --html changes.html[/]
    """
    from thresher.cli.commands.inspect import inspect as run

    raise typer.Exit(run(model, top, why, label, json, html, data, against))
