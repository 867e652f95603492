"""Options of `thresher compare`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from thresher.cli.options.arguments import (
    LEARNING,
    LONG_RUNS,
    RESULT,
    Bits,
    Data,
    Format,
    Html,
    Interactions,
    Json,
    Loss,
    Multiclass,
    OnBadLine,
    Quiet,
    Seed,
    Threads,
    Unlabelled,
    ZeroBased,
    reading_of,
)
from thresher.cli.options.parsed import CompareOptions
from thresher.cli.options.table_arguments import (
    Columns,
    Dates,
    Delimiter,
    Encoding,
    Header,
    Ignore,
    Label,
    Missing,
    Ngrams,
    Quotes,
    Text,
)
from thresher.rules import RULES

PROTOCOL = "Protocol"


def compare(
    data: Data,
    test: Annotated[
        list[str],
        typer.Option(
            "--test",
            metavar="FILE",
            help="Test rows. May be repeated. Default: a share of the rows of DATA.",
            rich_help_panel=PROTOCOL,
            show_default=False,
        ),
    ] = [],  # noqa: B006
    test_share: Annotated[
        float | None,
        typer.Option(
            "--test-share",
            metavar="SHARE",
            help="Share of the rows of DATA that are test rows; drawn at random with --seed, "
            "stratified by class. Default: 0.25.",
            rich_help_panel=PROTOCOL,
            show_default=False,
        ),
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option(
            "--rules",
            metavar="A,B,...",
            help=f"Rules: {', '.join(RULES)}, stabilized-paper, rounding. Controls: sgd, sgd-mean, "
            "l1-logistic, lasso. A rule that is named here is run even if it takes long. "
            "Default: all rules that suit the data.",
            rich_help_panel=PROTOCOL,
            show_default=False,
        ),
    ] = None,
    orders: Annotated[
        int,
        typer.Option(
            min=1,
            help="Number of random orders of the training rows; a rule trains one model per order.",
            rich_help_panel=PROTOCOL,
        ),
    ] = 10,
    folds: Annotated[
        int,
        typer.Option(
            min=2,
            help="Number of cross-validation folds for choosing parameters.",
            rich_help_panel=PROTOCOL,
        ),
    ] = 5,
    choose: Annotated[
        str,
        typer.Option(
            "--choose",
            metavar="HOW",
            help="best: the parameters with the least mean error over the folds. sparsest: the "
            "parameters of the sparsest models within one standard error of it.",
            rich_help_panel=PROTOCOL,
        ),
    ] = "best",
    scale: Annotated[
        str | None,
        typer.Option(
            "--scale",
            metavar="HOW",
            help="unit-norm: divide each row by its norm. variance: divide each column by its root "
            "mean square over the training rows. Default: no scaling.",
            rich_help_panel=PROTOCOL,
            show_default=False,
        ),
    ] = None,
    loss: Loss = None,
    multiclass: Multiclass = False,
    seed: Seed = 0,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            help="Number of threads of the searches; -1: one per processor. Timed fits run one at "
            "a time. Results do not depend on it.",
            rich_help_panel=LEARNING,
        ),
    ] = 1,
    format: Format = None,
    bits: Bits = None,
    zero_based: ZeroBased = False,
    interactions: Interactions = [],  # noqa: B006
    label: Label = None,
    text: Text = [],  # noqa: B006
    ngrams: Ngrams = 1,
    ignore: Ignore = [],  # noqa: B006
    missing: Missing = None,
    dates: Dates = None,
    threads: Threads = None,
    header: Header = None,
    columns: Columns = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    quotes: Quotes = None,
    on_bad_line: OnBadLine = "error",
    unlabelled: Unlabelled = "error",
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            metavar="FILE",
            help="Save finished work in FILE; the same command then continues from it.",
            rich_help_panel=LONG_RUNS,
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write all results to FILE as JSON.",
            rich_help_panel=RESULT,
            show_default=False,
        ),
    ] = None,
    html: Html = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare all rules on one data set by error, AUC, nonzeros, stability and seconds.

    [bold]thresher compare train.svm --test test.svm --html comparison.html[/]

    Cross-validation on the training rows chooses the parameters of each rule, from a grid that
    depends on the data. Then each rule trains models on random orders of these rows, and each
    model predicts the test rows once. The table shows means and standard deviations over the
    orders. All rows are held in memory.

    Exit codes: 0 success; 1 bad data; 2 bad usage; 130 interrupted, the checkpoint holds finished
    work.
    """
    reading = reading_of(locals())
    from thresher.cli.commands.compare import compare as run

    options = CompareOptions(
        data=data, test=test, test_share=test_share, rules=rules, orders=orders, folds=folds,
        choose=choose, scale=scale, loss=loss, multiclass=multiclass, seed=seed or 0, jobs=jobs,
        reading=reading, checkpoint=checkpoint, output=output, html=html, json=json, quiet=quiet,
        command=sys.argv[1:],
    )  # fmt: skip
    raise typer.Exit(run(options))
