"""The options of `thresher train`: declared here, and nothing is done."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from thresher.cli.options.arguments import (
    LEARNING,
    NIGHT,
    Bits,
    Cache,
    Classes,
    ClassWeight,
    Data,
    Format,
    Ignore,
    Interactions,
    Json,
    Label,
    Loss,
    Multiclass,
    Multilabel,
    Names,
    Ngrams,
    OnBadLine,
    Quiet,
    Seed,
    Shuffle,
    Store,
    Text,
    Threads,
    Weight,
    ZeroBased,
    reading_of,
)
from thresher.cli.options.rule_parameters import takes_parameters
from thresher.rules import RULES

CLUSTER = "Several machines"


@takes_parameters
def train(
    data: Data,
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="MODEL", help="Where the model goes.")
    ],
    rule: Annotated[
        str | None,
        typer.Option(
            "--rule",
            metavar="RULE",
            help=f"{', '.join(rule for rule in RULES if RULES[rule].streams)} learn row by row; "
            f"{', '.join(rule for rule in RULES if not RULES[rule].streams)} hold all rows in "
            f"memory. Default: ftrl, or with --resume that of the checkpoint.",
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
            help="Passes over the data. Default: 1; rules that see all rows have their own.",
            rich_help_panel=LEARNING,
            show_default=False,
        ),
    ] = None,
    shuffle: Shuffle = False,
    seed: Seed = None,
    store: Store = None,
    valid: Annotated[
        list[str],
        typer.Option(
            "--valid",
            metavar="FILE",
            help="Rows to compute the loss on after each pass; training stops when it no longer "
            "falls, and the model of the best pass is kept. May be repeated.",
            rich_help_panel=LEARNING,
            show_default=False,
        ),
    ] = [],  # noqa: B006
    tol: Annotated[
        float | None,
        typer.Option(
            "--tol",
            help="Stop when the loss of a pass is not better than the best by more than this, "
            "--patience times in a row. Default: 0 with --valid, else never stop. Rules that hold "
            "all rows in memory have a tol and a default of their own.",
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
    threads: Threads = None,
    on_bad_line: OnBadLine = "error",
    cache: Cache = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            metavar="FILE",
            help="Write what has been learned here now and then, and at Ctrl-C. Default: "
            "MODEL.checkpoint, at Ctrl-C or with --every or --resume. With --ray a folder, and "
            "none at Ctrl-C by default.",
            rich_help_panel=NIGHT,
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            "--every",
            metavar="TIME",
            help="Time between checkpoints: 60s, 0.1s, 5m. Default: 60s. With --ray a number of "
            "stages.",
            rich_help_panel=NIGHT,
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue from the checkpoint, to the same model byte for byte. Rule, parameters, "
            "passes, seed and the options of reading need not be given again; --valid, --cache and "
            "--multiclass do. Without a checkpoint, start from the beginning.",
            rich_help_panel=NIGHT,
        ),
    ] = False,
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray",
            metavar="ADDRESS",
            help="Learn on a Ray cluster, whose nodes all see the files: auto, local (one on this "
            "machine) or HOST:PORT. --checkpoint is then a folder that all see, "
            "and --every a number of stages.",
            rich_help_panel=CLUSTER,
            show_default=False,
        ),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            metavar="MODE",
            help="stages: the stabilized rule, each path on one part of the rows. average: rules "
            "that learn row by row, one model for each part, averaged. columns: the margin "
            "perceptron, with features spread. Default: stages or average.",
            rich_help_panel=CLUSTER,
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Processes. Results do not depend on it. 0: the same without a cluster. Default: "
            "one for each node, or for each processor.",
            rich_help_panel=CLUSTER,
            show_default=False,
        ),
    ] = None,
    parts: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Into how many parts rows are cut; results depend on it. Default: a part for each "
            "file.",
            rich_help_panel=CLUSTER,
            show_default=False,
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="average: how often in a pass. Default: 1.",
            rich_help_panel=CLUSTER,
            show_default=False,
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="columns: rows between two exchanges; 1 is the rule itself, and slow. Default: a "
            "16th of the rows, from 64 to 4096.",
            rich_help_panel=CLUSTER,
            show_default=False,
        ),
    ] = None,
    blocks: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="columns: into how many blocks features are cut; results depend on it, if --batch "
            "is not 1. Default: 8.",
            rich_help_panel=CLUSTER,
            show_default=False,
        ),
    ] = None,
    names: Names = True,
    json: Json = False,
    quiet: Quiet = False,
    chosen: Any = None,
) -> None:
    """Learn a model from files, row by row, in bounded memory.

    [bold]thresher train clicks.vw.gz -m clicks.thresher --bits 22[/]

    Labels are -1 and 1, or 0 and 1; others need --multiclass, --multilabel, or a loss for numbers.
    The loss shown is progressive: that of each row before it was learned, since the line before.
    Exit codes: 0; 1 bad data or model; 2 bad usage; 130 interrupted.
    """
    reading = reading_of(locals())
    from thresher.cli.commands.train import Options
    from thresher.cli.commands.train import train as run

    options = Options(
        data, model, rule, loss, reading, chosen or {}, passes, shuffle, seed, store, multiclass,
        classes, class_weight, cache, valid, tol, patience, checkpoint, every, resume, names, json,
        quiet, ray, mode, workers, parts, rounds, batch, blocks,
    )  # fmt: skip
    raise typer.Exit(run(options))
