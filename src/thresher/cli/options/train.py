"""Options of `thresher train`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from thresher.cli.options.arguments import (
    LEARNING,
    LONG_RUNS,
    Bits,
    Cache,
    Classes,
    ClassWeight,
    Data,
    Format,
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
    Store,
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
from thresher.cli.options.parsed import TrainOptions
from thresher.cli.options.rule_parameters import takes_parameters
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
from thresher.cli.steps.stop_signal import StopSignal
from thresher.rules import RULES

CLUSTER = "Several machines"
RACE = "--rule auto"


@takes_parameters
def train(
    data: Data,
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="MODEL", help="File to write the model to.")
    ],
    rule: Annotated[
        str | None,
        typer.Option(
            "--rule",
            metavar="RULE",
            help=f"Rules that learn row by row: "
            f"{', '.join(rule for rule in RULES if RULES[rule].streams)}. Rules that hold all rows "
            f"in memory: {', '.join(rule for rule in RULES if not RULES[rule].streams)}. auto: a "
            f"race of several rules chooses rule and parameters. Default: one-pass, or ftrl where "
            f"one-pass cannot be used (it says why); with --resume, the "
            f"rule of the checkpoint.",
            rich_help_panel=LEARNING,
            show_default=False,
        ),
    ] = None,
    loss: Loss = None,
    multiclass: Multiclass = False,
    classes: Classes = None,
    class_weight: ClassWeight = None,
    passes: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Passes over the data. Default: 1; rules that hold all rows in memory have other "
            "defaults.",
            rich_help_panel=LEARNING,
            show_default=False,
        ),
    ] = None,
    shuffle: Shuffle = False,
    shuffle_blocks: ShuffleBlocks = False,
    shuffle_buffer: ShuffleBuffer = None,
    scale: Scale = None,
    seed: Seed = None,
    store: Store = None,
    valid: Annotated[
        list[str],
        typer.Option(
            "--valid",
            metavar="FILE",
            help="Validation rows. Their loss is computed after each pass; training stops when it "
            "no longer falls, and the model of the best pass is kept. May be repeated.",
            rich_help_panel=LEARNING,
            show_default=False,
        ),
    ] = [],  # noqa: B006
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="Judge the validation rows by a metric of evaluate, such as roc_auc, f1, "
            "log_loss, rmse or ndcg_at_5, in place of the loss: training stops when it no longer "
            "improves.",
            rich_help_panel=LEARNING,
            show_default=False,
        ),
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(
            "--tol",
            help="Stop after --patience passes in a row that did not improve the best loss by more "
            "than TOL. Default: 0 with --valid, else never stop. For rules that hold all rows in "
            "memory, TOL is the tolerance of the optimum, with another default.",
            rich_help_panel=LEARNING,
            show_default=False,
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Passes without improvement before stopping. Default: 5.",
            rich_help_panel=LEARNING,
            show_default=False,
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="How many standard errors a sparser model may be worse than the best one. "
            "Default: 0.5.",
            rich_help_panel=RACE,
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="TIME",
            help="Time for the race and the final fit, about: 30s, 5m. Default: at most about a "
            "minute for the race; then results do not depend on the speed of the machine.",
            rich_help_panel=RACE,
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write a page to FILE that says what was tried, and why the winner won.",
            rich_help_panel=RACE,
            show_default=False,
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
    unlabelled: Unlabelled = "error",
    cache: Cache = None,
    checkpoint: Annotated[
        str | None,
        checkpoint_option(
            " Default: MODEL.checkpoint, written at Ctrl-C, or with --every or --resume. With "
            "--ray, FILE is a folder, and by default there is no checkpoint at Ctrl-C."
        ),
    ] = None,
    every: Annotated[str | None, every_option(" With --ray, a number of stages.")] = None,
    resume: Annotated[
        bool,
        resume_option(
            ". The final model is byte for byte the same as without the interruption. The "
            "checkpoint holds the rule, parameters, passes, seed and the options for reading; give "
            "--valid, --cache and --multiclass again."
        ),
    ] = False,
    keep_checkpoint: Annotated[
        bool,
        keep_checkpoint_option(
            "the model is written. Default: remove it; with --ray, the files of the run, and the "
            "folder if it is empty then."
        ),
    ] = False,
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray",
            metavar="ADDRESS",
            help="Learn on a Ray cluster: auto, local (a cluster on this machine) or HOST:PORT. "
            "All nodes must be able to read the files. --checkpoint is then a folder that all "
            "nodes can read, and --every a number of stages.",
            rich_help_panel=CLUSTER,
            show_default=False,
        ),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            metavar="MODE",
            help="stages: for the stabilized rule; each path learns from one part of the rows. "
            "average: for rules that learn row by row; the models of all parts are averaged. "
            "columns: for the margin perceptron; each worker has a block of the features. "
            "Default: stages or average.",
            rich_help_panel=CLUSTER,
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Number of worker processes. Results do not depend on it. 0: compute the same "
            "result in this process, without a cluster. Default: one for each node, or for each "
            "processor.",
            rich_help_panel=CLUSTER,
            show_default=False,
        ),
    ] = None,
    parts: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of parts that the rows are split into; results depend on it. Default: one "
            "for each file.",
            rich_help_panel=CLUSTER,
            show_default=False,
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="average: how often models are averaged in a pass. Default: 1.",
            rich_help_panel=CLUSTER,
            show_default=False,
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="columns: number of rows between two exchanges of workers; 1 is exactly the rule, "
            "but slow. Default: a 16th of the rows, from 64 to 4096.",
            rich_help_panel=CLUSTER,
            show_default=False,
        ),
    ] = None,
    blocks: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="columns: number of blocks that the features are split into; results depend on it "
            "unless --batch is 1. Default: 8.",
            rich_help_panel=CLUSTER,
            show_default=False,
        ),
    ] = None,
    names: Names = True,
    from_model: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="MODEL",
            help="Go on with the training of MODEL, a file written with --keep-state: the rows are "
            "further rows of its last pass. Its rule, parameters and options for reading are used "
            "again. With --resume, give --from again.",
            rich_help_panel=LONG_RUNS,
            show_default=False,
        ),
    ] = None,
    keep_state: Annotated[
        bool,
        typer.Option(
            "--keep-state",
            help="Write the state of the learner to the model file, too, so that --from can go on.",
            rich_help_panel=LONG_RUNS,
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    chosen: Any = None,
) -> None:
    """Learn a model from files, row by row, in bounded memory.

    [bold]thresher train clicks.vw.gz -m clicks.thresher --bits 22[/]

    Labels are -1 and 1, or 0 and 1; other labels need --multiclass, --multilabel, or a loss for
    numbers. The loss shown is the progressive loss: the mean over the rows since the line before,
    each row predicted before it was learned.

    Exit codes: 0 success; 1 bad data or model; 2 bad usage; 130 interrupted.
    """
    reading = reading_of(locals())
    StopSignal()  # the imports may take seconds
    from thresher.cli.commands.train import train as run

    options = TrainOptions(
        data, model, rule, loss, reading, chosen or {}, passes,
        shuffle_of(shuffle, shuffle_blocks), seed, store, multiclass,
        classes, class_weight, cache, valid, tol, patience, checkpoint, every, resume,
        keep_checkpoint, names, json, quiet, ray, mode, workers, parts, rounds, batch, blocks,
        tolerance, budget, html, scale, metric, from_model, keep_state,
    )  # fmt: skip
    raise typer.Exit(run(options))
