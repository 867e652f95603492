"""The options of `thresher inspect`: declared here, and nothing is done."""

from __future__ import annotations

from typing import Annotated

import typer

from thresher.cli.options.arguments import Json


def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that train wrote.")],
    top: Annotated[int, typer.Option(min=0, help="How many of the largest weights to show.")] = 20,
    why: Annotated[
        list[str],
        typer.Option(
            "--why",
            metavar="FEATURE",
            help="What is known of this feature, by name or number. May be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    label: Annotated[
        str | None,
        typer.Option(
            "--class",
            metavar="CLASS",
            help="Only the weights of this class, where there are several.",
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write all that there is to say as a page of its own, which needs no network.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        list[str],
        typer.Option(
            "--data",
            metavar="FILE",
            help="Rows with labels; the page says how the model does on them. They are read as in "
            "training. May be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Show what a model is, its largest weights, or why a feature has its weight.

    [bold]thresher inspect clicks.thresher --top 50[/]

    [bold]thresher inspect clicks.thresher --html report.html --data new.vw.gz[/]
    """
    from thresher.cli.commands.inspect import inspect as run

    raise typer.Exit(run(model, top, why, label, json, html, data))
