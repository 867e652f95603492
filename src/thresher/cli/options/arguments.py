"""Arguments and options that several commands have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from thresher.losses import CLASSIFIER_LOSSES, REGRESSOR_LOSSES

READING = "Reading"
LEARNING = "Learning"
RESULT = "Result and progress"
NIGHT = "Long runs"

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="Files, globs, or - for standard input; svmlight, VW text, CSV, Parquet, Arrow, or a "
        "cache; plain, .gz, .bz2, .xz or .zst.",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="svmlight, vw, csv, parquet, arrow or cache. Default: found by looking.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Bits = Annotated[
    int | None,
    typer.Option(
        "--bits",
        "-b",
        help="Fold feature numbers, and hashes of names, to so many bits, for a dense store of "
        "2^bits weights. Default: numbers as they are; names as full 64-bit hashes in a hashed "
        "store.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
ZeroBased = Annotated[
    bool,
    typer.Option(
        "--zero-based",
        help="Features of svmlight files are numbered from 0.",
        rich_help_panel=READING,
    ),
]
Interactions = Annotated[
    list[str],
    typer.Option(
        "--interactions",
        "-q",
        metavar="AB",
        help="Products of the features of two namespaces of VW text, by their first letters, as "
        "in VW; : is any. May be repeated.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Multilabel = Annotated[
    bool,
    typer.Option(
        "--multilabel",
        help="Rows have any number of labels, as in 3,17 5:1; each has an output.",
        rich_help_panel=READING,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help="The label's column of a table. Default: label, y, target or class.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        "--weight",
        metavar="COLUMN",
        help="The column of a table that holds the weights of the rows.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Text = Annotated[
    list[str],
    typer.Option(
        "--text",
        metavar="COLUMN",
        help="A column of a table that holds text: each word is a feature. May be repeated.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Ngrams = Annotated[
    int,
    typer.Option(
        "--ngrams",
        help="Longest run of words of a text column that is a feature.",
        rich_help_panel=READING,
    ),
]
Ignore = Annotated[
    list[str],
    typer.Option(
        "--ignore",
        metavar="COLUMN",
        help="A column of a table to leave out. May be repeated.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        help="Threads in all: one learns, the others parse; 1 does all in one. Results do not "
        "depend on it. Default: as many as there are processors.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
OnBadLine = Annotated[
    str,
    typer.Option(
        "--on-bad-line",
        metavar="POLICY",
        help="error: stop and name file, line and column; skip: leave it out and count; "
        "quarantine=FILE: copy it there and go on.",
        rich_help_panel=READING,
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", help="Show nothing but warnings.", rich_help_panel=RESULT)
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Write a JSON object for each event.", rich_help_panel=RESULT),
]
Loss = Annotated[
    str | None,
    typer.Option(
        "--loss",
        metavar="LOSS",
        help=f"For classes: {', '.join(CLASSIFIER_LOSSES)}. For numbers: "
        f"{', '.join(REGRESSOR_LOSSES)}. Default: logistic.",
        rich_help_panel=LEARNING,
        show_default=False,
    ),
]
Multiclass = Annotated[
    bool,
    typer.Option(
        "--multiclass",
        help="Labels are any numbers (or words, in tables), each a class. Without it they are "
        "-1 and 1, or 0 and 1.",
        rich_help_panel=LEARNING,
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(
        "--classes",
        metavar="A,B,...",
        help="All classes. Default: found by a reading of their own.",
        rich_help_panel=LEARNING,
        show_default=False,
    ),
]
ClassWeight = Annotated[
    str | None,
    typer.Option(
        "--class-weight",
        metavar="A:W,...",
        help="Weights of the rows of classes, or balanced: all classes weigh the same.",
        rich_help_panel=LEARNING,
        show_default=False,
    ),
]
Shuffle = Annotated[
    bool,
    typer.Option(
        "--shuffle",
        help="Shuffle rows within blocks of about a megabyte, and the blocks of a cache.",
        rich_help_panel=LEARNING,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(help="Random seed. Default: 0.", rich_help_panel=LEARNING, show_default=False),
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="STORE",
        help="dense: an array of all features. hashed: a table of those with nonzero weight, "
        "for rules that drop dead ones, else of those seen. nonzero: lists of nonzero weights "
        "alone, for many classes or labels. auto: hashed for names without --bits, else dense. "
        "Default: auto.",
        rich_help_panel=LEARNING,
        show_default=False,
    ),
]
Cache = Annotated[
    str | None,
    typer.Option(
        "--cache",
        metavar="FILE",
        help="Parse once into this file and learn from it; made anew when the data or the way "
        "of reading them have changed.",
        rich_help_panel=NIGHT,
        show_default=False,
    ),
]
Names = Annotated[
    bool,
    typer.Option(
        "--names/--no-names",
        help="Keep the names of the features with nonzero weight; found by reading files once "
        "more.",
        rich_help_panel=RESULT,
    ),
]


def reading_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of a command's arguments that say how files are read, as `scan` takes them."""
    names = (
        *("format", "bits", "zero_based", "interactions", "multilabel", "label", "weight"),
        *("text", "ngrams", "ignore", "threads", "on_bad_line"),
    )
    return {
        name: tuple(given[name]) if isinstance(given[name], list) else given[name]
        for name in names
        if name in given
    }
