"""The options of `thresher tune`: declared here, and nothing is done."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from thresher.cli.options.arguments import (
    LEARNING,
    RESULT,
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
    Names,
    Ngrams,
    OnBadLine,
    Quiet,
    Seed,
    Text,
    Threads,
    Weight,
    ZeroBased,
    reading_of,
)
from thresher.cli.options.rule_parameters import takes_parameters
from thresher.rules import RULES

SEARCH = "Search"


@takes_parameters
def tune(
    data: Data,
    model: Annotated[
        str,
        typer.Option(
            "--model", "-m", metavar="MODEL", help="Where the best model goes, of all rows."
        ),
    ],
    grid: Annotated[
        list[str],
        typer.Option(
            "--grid",
            metavar="NAME=VALUES",
            help="A parameter of the rule and its values: A,B,C, or A..B:N for N numbers of equal "
            "ratios, as in gravity=1e-7..1e-3:8. May be repeated: all combinations are tried, "
            "10,000 at most.",
            rich_help_panel=SEARCH,
            show_default=False,
        ),
    ] = [],  # noqa: B006
    folds: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Parts of the rows, by a hash of their number; each is scored by models that have "
            "not seen it. Default: 5. Standard input is read once, and each row scored before it "
            "is learned.",
            rich_help_panel=SEARCH,
            show_default=False,
        ),
    ] = None,
    scoring: Annotated[
        str | None,
        typer.Option(
            "--scoring",
            metavar="NAME",
            help="accuracy, balanced_accuracy, log_loss, brier_score for classes; r2, "
            "mean_squared_error, root_mean_squared_error, mean_absolute_error for numbers. "
            "Default: accuracy, r2.",
            rich_help_panel=SEARCH,
            show_default=False,
        ),
    ] = None,
    sparsest: Annotated[
        bool,
        typer.Option(
            "--sparsest",
            help="Keep the sparsest model whose error is within one standard error of the best "
            "one's, instead of the best. Not from standard input, which has no folds.",
            rich_help_panel=SEARCH,
        ),
    ] = False,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="What models may take together, such as 500M or 4G; grids that need more are read "
            "several times. Default: half of what is free.",
            rich_help_panel=SEARCH,
            show_default=False,
        ),
    ] = None,
    rule: Annotated[
        str,
        typer.Option(
            "--rule",
            metavar="RULE",
            help=f"{', '.join(rule for rule in RULES if RULES[rule].lanes)}.",
            rich_help_panel=LEARNING,
        ),
    ] = "ftrl",
    loss: Loss = None,
    multiclass: Multiclass = False,
    classes: Classes = None,
    class_weight: ClassWeight = None,
    passes: Annotated[
        int, typer.Option(min=1, help="Passes over the data.", rich_help_panel=LEARNING)
    ] = 1,
    shuffle: Annotated[
        bool,
        typer.Option(
            "--shuffle",
            help="Shuffle rows within blocks of about a megabyte, for all models alike.",
            rich_help_panel=LEARNING,
        ),
    ] = False,
    seed: Seed = 0,
    store: Annotated[
        str,
        typer.Option(
            "--store",
            metavar="STORE",
            help="dense: an array of all features. hashed: a table of those with nonzero weight, "
            "for rules that drop dead ones, else of those seen. auto: hashed for names without "
            "--bits, else dense.",
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
    threads: Threads = None,
    on_bad_line: OnBadLine = "error",
    cache: Cache = None,
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
    names: Names = True,
    json: Json = False,
    quiet: Quiet = False,
    chosen: Any = None,
) -> None:
    """Try all combinations of a grid at once, and keep the best model.

    [bold]thresher tune clicks.vw.gz -m best.thresher --grid l1=0.1..100:7 --grid alpha=0.1,1[/]

    The models of all combinations and folds learn from the same reading of the rows, and one more
    reading scores them. While rows are read, the table shows the progressive loss and the nonzero
    weights of each combination; then error against nonzeros: what no other beats in both is the
    frontier. Parameters that are not in the grid have options of their own, as in train.
    Exit codes: 0; 1 bad data; 2 bad usage; 130 interrupted, and nothing was written.
    """
    reading = reading_of(locals())
    from thresher.cli.commands.tune import Options
    from thresher.cli.commands.tune import tune as run

    options = Options(
        data=data, model=model, rule=rule, loss=loss, reading=reading, chosen=chosen or {},
        passes=passes, shuffle=shuffle, seed=seed, store=store, multiclass=multiclass,
        classes=classes, class_weight=class_weight, cache=cache, names=names, json=json,
        quiet=quiet, grid=grid, folds=folds, scoring=scoring, sparsest=sparsest, memory=memory,
        html=html,
    )  # fmt: skip
    raise typer.Exit(run(options))
