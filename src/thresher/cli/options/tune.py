"""Options of `thresher tune`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from thresher.cli.options.arguments import (
    AUTO_STORE,
    DENSE_OR_HASHED,
    LEARNING,
    Bits,
    Cache,
    Classes,
    ClassWeight,
    Data,
    Format,
    Html,
    Interactions,
    Json,
    Loss,
    Multiclass,
    Multilabel,
    Names,
    OnBadLine,
    Quiet,
    Scale,
    Seed,
    Shuffle,
    ShuffleBlocks,
    ShuffleBuffer,
    Threads,
    Unlabelled,
    ZeroBased,
    checkpoint_option,
    every_option,
    keep_checkpoint_option,
    reading_of,
    resume_option,
    shuffle_of,
)
from thresher.cli.options.parsed import TuneOptions
from thresher.cli.options.rule_parameters import takes_parameters
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
from thresher.rules import RULES

SEARCH = "Search"


@takes_parameters
def tune(
    data: Data,
    model: Annotated[
        str,
        typer.Option("--model", "-m", metavar="MODEL", help="File to write the best model to."),
    ],
    grid: Annotated[
        list[str],
        typer.Option(
            "--grid",
            metavar="NAME=VALUES",
            help="A parameter of the rule and its values: A,B,C, or A..B:N for N numbers with "
            "equal ratios, such as gravity=1e-7..1e-3:8. May be repeated: all combinations are "
            "tried, at most 10,000.",
            rich_help_panel=SEARCH,
            show_default=False,
        ),
    ] = [],  # noqa: B006
    folds: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Number of folds. A hash of the row's number decides the fold of a row. Each fold "
            "is scored by models that did not learn from it. Default: 5. Standard input is read "
            "once and has no folds: each row is scored before it is learned.",
            rich_help_panel=SEARCH,
            show_default=False,
        ),
    ] = None,
    scoring: Annotated[
        str | None,
        typer.Option(
            "--scoring",
            metavar="NAME",
            help="For classes: accuracy, balanced_accuracy, log_loss, brier_score; for two "
            "classes: roc_auc, average_precision. For numbers: "
            "r2, mean_squared_error, root_mean_squared_error, mean_absolute_error. With "
            "--multilabel: f1_micro, accuracy, mean_loss. Default: accuracy, r2 or f1_micro.",
            rich_help_panel=SEARCH,
            show_default=False,
        ),
    ] = None,
    sparsest: Annotated[
        bool,
        typer.Option(
            "--sparsest",
            help="Instead of the best model, keep the sparsest one whose error is within one "
            "standard error of the best error. Not for standard input, which has no folds.",
            rich_help_panel=SEARCH,
        ),
    ] = False,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="Memory limit of all models together, such as 500M or 4G. If the grid needs more, "
            "the data are read several times. Default: half of the free memory.",
            rich_help_panel=SEARCH,
            show_default=False,
        ),
    ] = None,
    rule: Annotated[
        str,
        typer.Option(
            "--rule",
            metavar="RULE",
            help=f"{', '.join(RULES)}. Models of "
            f"{', '.join(rule for rule in RULES if not RULES[rule].lanes)} are fitted one after "
            f"the other.",
            rich_help_panel=LEARNING,
        ),
    ] = "ftrl",
    loss: Loss = None,
    multiclass: Multiclass = False,
    multilabel: Multilabel = False,
    classes: Classes = None,
    class_weight: ClassWeight = None,
    passes: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Passes over the data. Default: 1, or that of a rule that needs all rows at once.",
            rich_help_panel=LEARNING,
            show_default=False,
        ),
    ] = None,
    shuffle: Shuffle = False,
    shuffle_blocks: ShuffleBlocks = False,
    shuffle_buffer: ShuffleBuffer = None,
    scale: Scale = None,
    seed: Seed = 0,
    store: Annotated[
        str,
        typer.Option(
            "--store",
            metavar="STORE",
            help=f"{DENSE_OR_HASHED} {AUTO_STORE}",
            rich_help_panel=LEARNING,
        ),
    ] = "auto",
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
    checkpoint: Annotated[
        str | None,
        checkpoint_option(
            " Default: MODEL.checkpoint, written at Ctrl-C, or with --every or --resume."
        ),
    ] = None,
    every: Annotated[str | None, every_option()] = None,
    resume: Annotated[
        bool,
        resume_option(
            ". The result is the same as without the interruption. Give all other options again; "
            "the memory limit and the number of threads are those of the first run."
        ),
    ] = False,
    keep_checkpoint: Annotated[bool, keep_checkpoint_option("the model is written.")] = False,
    html: Html = None,
    names: Names = True,
    json: Json = False,
    quiet: Quiet = False,
    chosen: Any = None,
) -> None:
    """Try all combinations of a grid in one pass, and keep the best model.

    [bold]thresher tune clicks.vw.gz -m best.thresher --grid l1=0.1..100:7 --grid alpha=0.1,1[/]

    The models of all combinations and folds learn while the rows are read once; a second reading
    scores them. During the reading, a table shows the progressive loss and the number of nonzero
    weights of each combination. The result shows the error against the number of nonzero weights.
    A combination is on the frontier if no other one is better in both. To set parameters that are
    not in the grid, use the same options as in train. Models that cannot learn together, such as
    those of --grid target_nnz=100,1000, are fitted one after the other.

    Exit codes: 0 success; 1 bad data; 2 bad usage; 130 interrupted.
    """
    reading = reading_of(locals())
    StopSignal()  # the imports may take seconds
    from thresher.cli.commands.tune import tune as run

    options = TuneOptions(
        data=data, model=model, rule=rule, loss=loss, reading=reading, chosen=chosen or {},
        passes=passes, shuffle=shuffle_of(shuffle, shuffle_blocks), seed=seed, store=store,
        multiclass=multiclass, classes=classes, class_weight=class_weight, cache=cache,
        names=names, json=json, quiet=quiet, grid=grid, folds=folds, scoring=scoring,
        sparsest=sparsest, memory=memory, html=html, scale=scale, checkpoint=checkpoint,
        every=every, resume=resume, keep_checkpoint=keep_checkpoint,
    )  # fmt: skip
    raise typer.Exit(run(options))
