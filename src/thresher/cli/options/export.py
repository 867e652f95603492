"""Options of `thresher export`."""

from __future__ import annotations

from typing import Annotated

import typer


def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that train wrote.")],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="onnx; sql: a query, or an expression; json; csv: the weights as a table; vw: "
            "lines like those of vw --invert_hash, for reading. Default: from the name of FILE.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write to FILE. Default: standard output; onnx needs a file.",
        ),
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option(
            "--dialect",
            metavar="NAME",
            help="With sql: sqlite, duckdb, postgres or mysql. Default: sqlite.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            metavar="NAME",
            help="With sql: the table of the query. Default: only the expression of the score.",
            show_default=False,
        ),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option(
            "--inputs",
            metavar="FORM",
            help="With onnx: matrix, rows as a dense matrix; dict, one row by names of features. "
            "Default: dict for models of named features.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a model in a form that other programs read.

    [bold]thresher export clicks.thresher -o clicks.onnx[/]

    [bold]thresher export clients.thresher --to sql --dialect duckdb --table clients[/]

    A form that cannot represent the model is refused, and nothing is written.
    """
    from thresher.cli.commands.export import export as run

    raise typer.Exit(run(model, to, output, dialect, table, inputs))
