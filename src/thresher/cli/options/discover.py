"""Options of `thresher discover`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from thresher.cli.options.arguments import (
    LEARNING,
    RESULT,
    Bits,
    Cache,
    Classes,
    Data,
    Format,
    Html,
    Interactions,
    OnBadLine,
    Quiet,
    Seed,
    Threads,
    Unlabelled,
    ZeroBased,
    checkpoint_option,
    every_option,
    keep_checkpoint_option,
    reading_of,
    resume_option,
)
from thresher.cli.options.parsed import DiscoverOptions
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
    Weight,
)
from thresher.cli.steps.stop_signal import StopSignal

SELECTION = "Selection"


def discover(
    data: Data,
    fdr: Annotated[
        float | None,
        typer.Option(
            "--fdr",
            metavar="SHARE",
            help="Expected share of false features among those selected. Default: 0.1.",
            rich_help_panel=SELECTION,
            show_default=False,
        ),
    ] = None,
    expected_false: Annotated[
        float | None,
        typer.Option(
            "--expected-false",
            metavar="NUMBER",
            help="Expected number of false features among those selected, instead of --fdr.",
            rich_help_panel=SELECTION,
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--form",
            metavar="FORM",
            help="crossfit: the model of each fold learns the other folds; two readings. stream: "
            "each row is predicted before it is learned; one reading. joint: a crossfit; then one "
            "fit of the selected features drops those that stand in for others. auto: crossfit, or "
            "stream for standard input.",
            rich_help_panel=SELECTION,
        ),
    ] = "auto",
    group_namespaces: Annotated[
        bool,
        typer.Option(
            "--group-namespaces",
            help="Select whole namespaces of VW text instead of single features.",
            rich_help_panel=SELECTION,
        ),
    ] = False,
    task: Annotated[
        str,
        typer.Option(
            "--task",
            metavar="TASK",
            help="classification, regression, or auto: the labels decide.",
            rich_help_panel=LEARNING,
        ),
    ] = "auto",
    classes: Classes = None,
    folds: Annotated[
        int, typer.Option(help="Number of folds of a crossfit.", rich_help_panel=LEARNING)
    ] = 5,
    redraws: Annotated[
        int,
        typer.Option(
            help="How often labels are redrawn from the model. 1 / REDRAWS is the least expected "
            "number of false features that can be told from 0.",
            rich_help_panel=LEARNING,
        ),
    ] = 20,
    shuffle: Annotated[
        bool | None,
        typer.Option(
            "--shuffle/--no-shuffle",
            help="Hold the rows in memory, and read them in random order, as files may be sorted. "
            "Default: in a crossfit of files of at most 256 MB (compressed: 32 MB).",
            rich_help_panel=LEARNING,
        ),
    ] = None,
    seed: Seed = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="Memory for the models of all folds, such as 500M or 4G. If they need more, folds "
            "are learned one after the other, each with a reading of its own; without --bits also "
            "if SIZE is given, because the number of features is not known. Default: 2 GiB.",
            rich_help_panel=LEARNING,
            show_default=False,
        ),
    ] = None,
    format: Format = None,
    bits: Bits = None,
    zero_based: ZeroBased = False,
    interactions: Interactions = [],  # noqa: B006
    label: Label = None,
    weight: Weight = None,
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
    cache: Cache = None,
    checkpoint: Annotated[str | None, checkpoint_option()] = None,
    every: Annotated[str | None, every_option()] = None,
    resume: Annotated[
        bool, resume_option(", to the same result. Give the same options again.")
    ] = False,
    keep_checkpoint: Annotated[bool, keep_checkpoint_option("the results are written.")] = False,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            metavar="N",
            min=1,
            max=1000,
            help="Show the N strongest features, selected or not, also in --json and --csv. "
            "Default: all selected features; the printed table shows 30 of them.",
            rich_help_panel=RESULT,
            show_default=False,
        ),
    ] = None,
    why: Annotated[
        list[str],
        typer.Option(
            "--why",
            metavar="FEATURE",
            help="Say in words what the evidence for this feature is, a name or a number. May be "
            "repeated.",
            rich_help_panel=RESULT,
            show_default=False,
        ),
    ] = [],  # noqa: B006
    html: Html = None,
    json: Annotated[
        str | None,
        typer.Option(
            "--json",
            metavar="FILE",
            help="Write the whole result to FILE as JSON: features, parameters, checks.",
            rich_help_panel=RESULT,
            show_default=False,
        ),
    ] = None,
    csv: Annotated[
        str | None,
        typer.Option(
            "--csv",
            metavar="FILE",
            help="Write the features to FILE as CSV.",
            rich_help_panel=RESULT,
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="Fit the selected features together, at most 2,000, and write the model to MODEL.",
            rich_help_panel=RESULT,
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Find the features that matter, with a stated share of false ones.

    [bold]thresher discover clicks.vw --fdr 0.1 --html report.html[/]

    A feature matters if the label depends on it beyond what the other features explain. The
    evidence is measured on rows that the model has not learned, and compared with labels that are
    redrawn from the model. With --fdr 0.1, about 10 % of the selected features are expected to be
    false. If there is no signal, usually nothing is selected. Warnings say when not to trust it.

    Exit codes: 0 success, also if nothing is selected; 1 bad data, or more features selected than
    --model can fit (all other files are written); 2 bad usage; 130 interrupted.
    """
    reading = reading_of(locals())
    StopSignal()  # the imports may take seconds
    from thresher.cli.commands.discover import discover as run

    options = DiscoverOptions(
        data=data, fdr=fdr, expected_false=expected_false, form=form,
        group_namespaces=group_namespaces, task=task, classes=classes, folds=folds,
        redraws=redraws, shuffle=shuffle, seed=seed or 0, memory=memory, reading=reading,
        cache=cache, checkpoint=checkpoint, every=every, resume=resume,
        keep_checkpoint=keep_checkpoint, top=top, why=why, html=html, json=json, csv=csv,
        model=model, quiet=quiet,
        command=sys.argv[1:],
    )  # fmt: skip
    raise typer.Exit(run(options))
