"""Options of `thresher predict`."""

from __future__ import annotations

from typing import Annotated

import typer

from thresher.cli.options.arguments import (
    Data,
    Format,
    OnBadLine,
    Quiet,
    Threads,
    ZeroBased,
    reading_of,
)
from thresher.cli.options.table_arguments import (
    Columns,
    Delimiter,
    Encoding,
    Header,
    Label,
    Quotes,
)


def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that train wrote.")],
    data: Data,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the predictions to FILE. Default: standard output.",
        ),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="KIND",
            help="label: the class, or the value of a regression. probability: of the second of "
            "two classes, or of all classes in their order, if the loss has probabilities. raw: "
            "the score.",
        ),
    ] = "label",
    line_buffered: Annotated[
        bool,
        typer.Option(
            "--line-buffered",
            help="Answer each line at once, as it comes: DATA must be -, with lines of VW or "
            "svmlight text. Always on if standard input is a terminal.",
        ),
    ] = False,
    explain: Annotated[
        int | None,
        typer.Option(
            "--explain",
            metavar="N",
            min=1,
            help="After each prediction, write the N features that contribute most to the score, "
            "each after a tab as NAME:CONTRIBUTION (weight times value). With two "
            "classes, the score is that of the second, whatever is predicted (--json names it as "
            "label); with more, that of the class with the highest score.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="With --explain: a JSON object per row, with prediction, label, score, intercept "
            "and contributions.",
        ),
    ] = False,
    format: Format = None,
    zero_based: ZeroBased = False,
    label: Label = None,
    threads: Threads = None,
    header: Header = None,
    columns: Columns = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    quotes: Quotes = None,
    on_bad_line: OnBadLine = "error",
    quiet: Quiet = False,
) -> None:
    """Predict rows of files: write one line per row, in the order of the rows.

    [bold]thresher predict clicks.thresher new.vw.gz --as probability -o out.txt[/]

    Rows are read as in training: bits, interactions and columns are saved in the model. Labels in
    the data are ignored. If a row of VW text has a tag, the tag follows the prediction.
    Line breaks in labels and tags are escaped; --explain with --json keeps them.

    [bold]thresher predict clicks.thresher new.vw.gz --explain 5[/]
    """
    reading = reading_of(locals())
    from thresher.cli.commands.predict import predict as run

    raise typer.Exit(run(model, data, output, kind, reading, quiet, line_buffered, explain, json))
