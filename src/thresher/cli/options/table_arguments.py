"""Options that say how the columns of tables are read."""

from __future__ import annotations

from typing import Annotated

import typer

READING = "Reading"  # the panel of --help
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help="Column of a table that holds the labels: its name or its position (0 is the first, "
        "-1 the last). With --multilabel also several columns of 0 and 1: A,B,C or 'topic_*'. "
        "Default: label, y, target or class.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        "--weight",
        metavar="COLUMN",
        help="Column of a table that holds the weights of the rows.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Text = Annotated[
    list[str],
    typer.Option(
        "--text",
        metavar="COLUMN",
        help="Column of a table that holds text: each word is a feature. May be repeated. auto: "
        "all columns that look like text.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Ngrams = Annotated[
    int,
    typer.Option(
        "--ngrams",
        help="Largest number of consecutive words of a text column that form one feature.",
        rich_help_panel=READING,
    ),
]
Ignore = Annotated[
    list[str],
    typer.Option(
        "--ignore",
        metavar="COLUMN",
        help="Column of a table to leave out. May be repeated.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of a CSV file has the names of the columns; without names, "
        "columns are named 0, 1, ... Default: the first lines decide.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="A,B,...",
        help="Names of the columns of a CSV file, instead of those in the file.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        "--missing",
        metavar="HOW",
        help="What missing cells of tables are: error, zero, or indicator (a feature "
        "COLUMN=missing). Default: no feature.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        metavar="CHAR",
        help="What separates the cells of a CSV file; space means any number of spaces. Default: "
        "tab, comma, semicolon, bar or, between numbers, space, whichever the first lines have.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of a CSV file, such as latin-1. Default: UTF-8.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Quotes = Annotated[
    bool | None,
    typer.Option(
        "--quotes/--no-quotes",
        help="Whether cells of a CSV file that begin with a double quote end with one. Default: "
        "yes; if tabs separate cells, only if the first lines show it.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
LabelSeparator = Annotated[
    str | None,
    typer.Option(
        "--label-separator",
        metavar="CHAR",
        help="What separates the labels in a string, with --multilabel. Default: bar, semicolon or "
        "comma, whichever the first rows have.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Dates = Annotated[
    str | None,
    typer.Option(
        "--dates",
        metavar="HOW",
        help="parts: year, month, weekday and hour of dates in Parquet and Arrow files are "
        "features. Default: such columns are an error.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
