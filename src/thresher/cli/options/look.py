"""Options of `thresher look`."""

from __future__ import annotations

from typing import Annotated

import typer

from thresher.cli.options.arguments import (
    Data,
    Format,
    Html,
    Quiet,
    Threads,
    ZeroBased,
)
from thresher.cli.options.table_arguments import (
    READING,
    Ignore,
    Label,
    Text,
    Weight,
)


def look(
    data: Data,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            metavar="N",
            min=1,
            help="Rows to read. Default: all if the files have 64 MiB at most, else 250,000.",
            rich_help_panel=READING,
            show_default=False,
        ),
    ] = None,
    all_rows: Annotated[
        bool, typer.Option("--all", help="Read all rows.", rich_help_panel=READING)
    ] = False,
    format: Format = None,
    delimiter: Annotated[
        str | None,
        typer.Option(
            "--delimiter",
            metavar="CHAR",
            help="Separator of CSV cells, or tab. Default: detected from the first lines.",
            rich_help_panel=READING,
            show_default=False,
        ),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first line of a CSV file holds names. Default: detected.",
            rich_help_panel=READING,
            show_default=False,
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding",
            metavar="NAME",
            help="Encoding of a CSV file, such as latin-1. Default: detected.",
            rich_help_panel=READING,
            show_default=False,
        ),
    ] = None,
    zero_based: ZeroBased = False,
    label: Label = None,
    weight: Weight = None,
    text: Text = [],  # noqa: B006
    ignore: Ignore = [],  # noqa: B006
    threads: Threads = None,
    json: Annotated[
        bool,
        typer.Option("--json", help="Write all facts as one JSON object."),
    ] = False,
    html: Html = None,
    quiet: Quiet = False,
) -> None:
    """Look at files before training: what they are, what stands out, and which command suits.

    [bold]thresher look reviews.csv[/]

    [bold]thresher look 'logs/*.vw.gz' --all --html logs.html[/]

    It shows format, columns, labels and their order, and suggests a command with a reason for each
    option. It also describes files that train would refuse.
    """
    reading = {
        "format": format,
        "delimiter": delimiter,
        "header": header,
        "encoding": encoding,
        "zero_based": zero_based,
        "weight": weight,
        "text": tuple(text),
        "ignore": tuple(ignore),
        "threads": threads,
    }
    from thresher.cli.commands.look import look as run

    raise typer.Exit(run(data, rows, all_rows, label, reading, json, html, quiet))
