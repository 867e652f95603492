"""Options of `thresher evaluate`."""

from __future__ import annotations

from typing import Annotated

import typer

from thresher.cli.options.arguments import (
    RESULT,
    Data,
    Format,
    Html,
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
    Weight,
)

METRICS = "Metrics"


def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that train wrote.")],
    data: Data,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="MODEL",
            help="Another model: the result is the difference of the two on the same rows. "
            "If the first of DATA is a model, it is that one.",
            rich_help_panel=METRICS,
            show_default=False,
        ),
    ] = None,
    bootstrap: Annotated[
        int,
        typer.Option(
            "--bootstrap",
            metavar="N",
            min=0,
            help="Replicates of the bootstrap for the intervals. 0: no intervals, which is faster.",
            rich_help_panel=METRICS,
        ),
    ] = 200,
    level: Annotated[
        float,
        typer.Option("--level", help="Confidence level of the intervals.", rich_help_panel=METRICS),
    ] = 0.95,
    seed: Annotated[
        int, typer.Option(help="Random seed of the bootstrap.", rich_help_panel=METRICS)
    ] = 0,
    shares: Annotated[
        str,
        typer.Option(
            "--shares",
            metavar="A,B,...",
            help="For two classes: shares of the rows, those with the largest scores, for the "
            "lift.",
            rich_help_panel=METRICS,
        ),
    ] = "0.01,0.05,0.1,0.2",
    at: Annotated[
        str,
        typer.Option(
            "--at",
            metavar="K,K,...",
            help="For rows with any number of labels: the k of precision at k and nDCG at k.",
            rich_help_panel=METRICS,
        ),
    ] = "1,3,5",
    quantile: Annotated[
        float | None,
        typer.Option(
            "--quantile",
            help="For a regression: the quantile of the quantile loss. Default: that of the "
            "model, if its loss is quantile, else 0.5.",
            rich_help_panel=METRICS,
            show_default=False,
        ),
    ] = None,
    exact: Annotated[
        int | None,
        typer.Option(
            "--exact",
            metavar="N",
            min=1,
            help="Scores kept in memory for ROC AUC, average precision and lift. Of more rows, "
            "scores are counted in bins, and the result says how far it can be from the exact "
            "value. Default: 4194304.",
            rich_help_panel=METRICS,
            show_default=False,
        ),
    ] = None,
    format: Format = None,
    zero_based: ZeroBased = False,
    label: Label = None,
    weight: Weight = None,
    threads: Threads = None,
    header: Header = None,
    columns: Columns = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    quotes: Quotes = None,
    on_bad_line: OnBadLine = "error",
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Write all results as one JSON object.", rich_help_panel=RESULT
        ),
    ] = False,
    html: Html = None,
    quiet: Quiet = False,
) -> None:
    """Evaluate a model on files with labels: metrics with bootstrap intervals, curves and a page.

    [bold]thresher evaluate clicks.thresher test.vw.gz --html clicks.html[/]

    [bold]thresher evaluate new.thresher old.thresher test.vw.gz[/]

    Rows are read as in training. Weights of rows are respected. The second form compares two models
    on the same rows: differences with paired intervals, and the tests of McNemar and DeLong.
    """
    reading = reading_of(locals())
    from thresher.cli.commands.evaluate import EvaluateOptions
    from thresher.cli.commands.evaluate import evaluate as run

    options = EvaluateOptions(
        against=against,
        replicates=bootstrap,
        level=level,
        seed=seed,
        shares=shares,
        at=at,
        quantile=quantile,
        exact=exact,
        json=json,
        html=html,
        quiet=quiet,
    )
    raise typer.Exit(run(model, data, options, reading))
