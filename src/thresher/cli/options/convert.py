"""Options of `thresher convert`."""

from __future__ import annotations

from typing import Annotated

import typer

from thresher.cli.options.arguments import (
    Bits,
    Format,
    Interactions,
    Multilabel,
    OnBadLine,
    Quiet,
    Threads,
    ZeroBased,
    reading_of,
)
from thresher.cli.options.table_arguments import (
    Columns,
    Dates,
    Delimiter,
    Encoding,
    Header,
    Ignore,
    Label,
    LabelSeparator,
    Missing,
    Ngrams,
    Quotes,
    Text,
    Weight,
)


def convert(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="IN... OUT",
            help="Files, globs or - to read, then the file to write. The name of OUT sets the "
            "format: .svm, .vw, .parquet, .csv or .cache, optionally followed by .gz, .bz2, .xz "
            "or .zst.",
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="FORMAT", help="The format of OUT, if its name does not set it."
        ),
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
    missing: Missing = None,
    dates: Dates = None,
    threads: Threads = None,
    label_separator: LabelSeparator = None,
    header: Header = None,
    columns: Columns = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    quotes: Quotes = None,
    on_bad_line: OnBadLine = "error",
    quiet: Quiet = False,
) -> None:
    """Write the rows of files in another format, or as a cache.

    [bold]thresher convert 'logs/*.vw.gz' logs.cache[/]

    Values are kept exactly. A cache and VW text also keep the names of features; other formats get
    the 64-bit hashes of the names. With --bits, only these bits of the hashes are kept. The trained
    model is the same for all formats.
    """
    reading = reading_of(locals())
    from thresher.cli.commands.convert import convert as run

    raise typer.Exit(run(files, to, reading, quiet))
