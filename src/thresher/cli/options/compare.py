"""The options of `thresher compare`: declared here, and nothing is done."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from thresher.cli.options.arguments import (
    LEARNING,
    NIGHT,
    RESULT,
    Bits,
    Data,
    Format,
    Ignore,
    Interactions,
    Json,
    Label,
    Loss,
    Multiclass,
    Ngrams,
    OnBadLine,
    Quiet,
    Seed,
    Text,
    Threads,
    ZeroBased,
    reading_of,
)

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
            help="Share of the rows that is put aside for the test, drawn by --seed, stratified by "
            "classes. Default: 0.25.",
            rich_help_panel=PROTOCOL,
            show_default=False,
        ),
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option(
            "--rules",
            metavar="A,B,...",
            help="stabilized, stabilized-paper, truncated-gradient, rounding, ftrl, "
            "forward-backward, dual-averaging, margin-perceptron, mirror-descent, "
            "coordinate-descent, hard-threshold; controls: averaged-sgd, sgd, sgd-mean, "
            "l1-logistic, lasso. Those named are tried at any expense. Default: all that fit.",
            rich_help_panel=PROTOCOL,
            show_default=False,
        ),
    ] = None,
    orders: Annotated[
        int,
        typer.Option(
            min=1,
            help="Random orders of the training rows: so many models of each rule.",
            rich_help_panel=PROTOCOL,
        ),
    ] = 10,
    folds: Annotated[
        int,
        typer.Option(
            min=2,
            help="Folds of the training rows that parameters are chosen by.",
            rich_help_panel=PROTOCOL,
        ),
    ] = 5,
    choose: Annotated[
        str,
        typer.Option(
            "--choose",
            metavar="HOW",
            help="best: parameters of the least mean error over folds. sparsest: those of the "
            "sparsest models within one standard error of it.",
            rich_help_panel=PROTOCOL,
        ),
    ] = "best",
    scale: Annotated[
        str | None,
        typer.Option(
            "--scale",
            metavar="HOW",
            help="unit-norm: divide rows by their norms. variance: divide columns by their root "
            "mean squares over the training rows. Default: rows as they are.",
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
            help="Threads of the searches; -1 is one for each processor. Fits that are timed run "
            "alone, and results do not depend on it.",
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
    threads: Threads = None,
    on_bad_line: OnBadLine = "error",
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            metavar="FILE",
            help="Keep what is finished here; the same command goes on from it.",
            rich_help_panel=NIGHT,
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write all results as JSON.",
            rich_help_panel=RESULT,
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write the result as a page of its own.",
            rich_help_panel=RESULT,
            show_default=False,
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare all rules on one data set: error, AUC, nonzeros, stability, seconds.

    [bold]thresher compare train.svm --test test.svm --html comparison.html[/]

    Parameters of each rule are chosen by cross-validation on the training rows, over a grid that
    follows the data; then models learn from random orders of these rows, and each predicts the test
    rows once. The table has means and standard deviations over orders. All rows are held in memory.
    Exit codes: 0; 1 bad data; 2 bad usage; 130 interrupted, and the checkpoint has what is
    finished.
    """
    reading = reading_of(locals())
    from thresher.cli.commands.compare import Options
    from thresher.cli.commands.compare import compare as run

    options = Options(
        data=data, test=test, test_share=test_share, rules=rules, orders=orders, folds=folds,
        choose=choose, scale=scale, loss=loss, multiclass=multiclass, seed=seed or 0, jobs=jobs,
        reading=reading, checkpoint=checkpoint, output=output, html=html, json=json, quiet=quiet,
        command=sys.argv[1:],
    )  # fmt: skip
    raise typer.Exit(run(options))
