"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from thresher.cli.options.table_arguments import READING
from thresher.data.formats import FORMATS
from thresher.losses import CLASSIFIER_LOSSES, REGRESSOR_LOSSES

_CLASS_LOSSES = [loss for loss in CLASSIFIER_LOSSES if loss not in REGRESSOR_LOSSES]

# Panels of `--help`.
LEARNING = "Learning"
RESULT = "Result and progress"
LONG_RUNS = "Long runs"

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="Files, globs, or - for standard input. Formats: svmlight, VW text, CSV, Parquet, "
        "Arrow or cache; plain, .gz, .bz2, .xz or .zst.",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help=f"One of {', '.join(FORMATS)}, or tsv. Default: detected from the first bytes.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Bits = Annotated[
    int | None,
    typer.Option(
        "--bits",
        "-b",
        help="Reduce feature numbers and hashes of feature names to this many bits, for a dense "
        "store of 2^BITS weights. Default: numbers are not changed; names become 64-bit hashes in "
        "a hashed store.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
ZeroBased = Annotated[
    bool,
    typer.Option(
        "--zero-based",
        help="Feature numbers in svmlight files start at 0.",
        rich_help_panel=READING,
    ),
]
Interactions = Annotated[
    list[str],
    typer.Option(
        "--interactions",
        "-q",
        metavar="AB",
        help="Add the products of the features of two namespaces of VW text. AB are the first "
        "letters of the namespaces, as in VW; : means any namespace. May be repeated.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Multilabel = Annotated[
    bool,
    typer.Option(
        "--multilabel",
        help="A row has any number of labels, such as 3,17 5:1. Each label has one output. In "
        "tables: lists, strings such as sport;politics, or --label with several columns.",
        rich_help_panel=READING,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        help="Number of threads: one learns, the others parse; a single thread does both. Results "
        "do not depend on it. Default: the number of processors.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
OnBadLine = Annotated[
    str,
    typer.Option(
        "--on-bad-line",
        metavar="POLICY",
        help="What to do with a malformed line, or a training row without a label. error: stop, "
        "and report file, line and column; skip: skip it and count it; quarantine=FILE: copy it to "
        "FILE and continue.",
        rich_help_panel=READING,
    ),
]
Unlabelled = Annotated[
    str,
    typer.Option(
        "--unlabelled",
        metavar="POLICY",
        help="What to do with a training row without a label. error: a malformed line; skip: leave "
        "it out, as VW does.",
        rich_help_panel=READING,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show only warnings.", rich_help_panel=RESULT)]
Json = Annotated[
    bool,
    typer.Option("--json", help="Write one JSON object per event.", rich_help_panel=RESULT),
]
Loss = Annotated[
    str | None,
    typer.Option(
        "--loss",
        metavar="LOSS",
        help=f"For classes: {', '.join(_CLASS_LOSSES)}. For numbers: "
        f"{', '.join(REGRESSOR_LOSSES)}. scikit-learn's names log_loss, squared_error and "
        f"absolute_error are accepted too. Default: logistic.",
        rich_help_panel=LEARNING,
        show_default=False,
    ),
]
Multiclass = Annotated[
    bool,
    typer.Option(
        "--multiclass",
        help="Each different label is a class; labels are any numbers (or words, in tables). "
        "Without this option, labels are -1 and 1, or 0 and 1.",
        rich_help_panel=LEARNING,
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(
        "--classes",
        metavar="A,B,...",
        help="All classes. Default: found in the data.",
        rich_help_panel=LEARNING,
        show_default=False,
    ),
]
ClassWeight = Annotated[
    str | None,
    typer.Option(
        "--class-weight",
        metavar="A:W,...",
        help="Weights of the rows of each class, or balanced: all classes have the same total "
        "weight.",
        rich_help_panel=LEARNING,
        show_default=False,
    ),
]
Shuffle = Annotated[
    bool,
    typer.Option(
        "--shuffle",
        help="Shuffle all rows, in a new order in each pass: up to 256 MiB in memory, more in a "
        "temporary file, or in the file of --cache. Standard input: see --shuffle-buffer.",
        rich_help_panel=LEARNING,
    ),
]
ShuffleBlocks = Annotated[
    bool,
    typer.Option(
        "--shuffle-blocks",
        help="Shuffle the rows only within blocks of about a megabyte, and the blocks of a cache. "
        "It needs no space, and does not mend a file that is sorted.",
        rich_help_panel=LEARNING,
    ),
]
ShuffleBuffer = Annotated[
    int | None,
    typer.Option(
        "--shuffle-buffer",
        metavar="ROWS",
        min=1,
        help="Rows of the buffer that --shuffle uses for standard input. Rows that are much "
        "further apart stay apart; --cache FILE shuffles all rows. Default: 65536.",
        rich_help_panel=LEARNING,
        show_default=False,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(help="Random seed. Default: 0.", rich_help_panel=LEARNING, show_default=False),
]
DENSE_OR_HASHED = (
    "dense: an array with a weight for each feature. hashed: a hash table of the features with "
    "nonzero weight, or of all features seen if the rule cannot drop zero weights."
)
AUTO_STORE = "auto: hashed for feature names without --bits, else dense."
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="STORE",
        help=f"{DENSE_OR_HASHED} nonzero: lists of nonzero weights only, for many classes or "
        f"labels. {AUTO_STORE} Default: auto.",
        rich_help_panel=LEARNING,
        show_default=False,
    ),
]
Cache = Annotated[
    str | None,
    typer.Option(
        "--cache",
        metavar="FILE",
        help="Parse the data once into this file and learn from it. The file is written again if "
        "the data or the options for reading have changed.",
        rich_help_panel=LONG_RUNS,
        show_default=False,
    ),
]
Scale = Annotated[
    str | None,
    typer.Option(
        "--scale",
        metavar="HOW",
        help="standard: centre columns that have values in half of the rows or more, and divide "
        "them by their standard deviation; divide others by their root mean square. variance: "
        "divide all by their root mean square. max: by their largest absolute value. The data are "
        "read once more. The weights of the model are for columns as they are. Default: no "
        "scaling.",
        rich_help_panel=LEARNING,
        show_default=False,
    ),
]
Html = Annotated[
    str | None,
    typer.Option(
        "--html",
        metavar="FILE",
        help="Write the result to FILE as an HTML page that works offline.",
        rich_help_panel=RESULT,
        show_default=False,
    ),
]
Names = Annotated[
    bool,
    typer.Option(
        "--names/--no-names",
        help="Save the names of the features with nonzero weight in the model. To find them, the "
        "files are read once more.",
        rich_help_panel=RESULT,
    ),
]


def reading_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a command that say how to read files, as `scan` takes them."""
    names = (
        *("format", "bits", "zero_based", "interactions", "multilabel", "label", "weight"),
        *("text", "ngrams", "ignore", "threads", "on_bad_line", "missing", "dates"),
        "unlabelled",
        *("header", "delimiter", "encoding", "quotes", "label_separator"),
    )
    found = {
        name: tuple(given[name]) if isinstance(given[name], list) else given[name]
        for name in names
        if name in given
    }
    if given.get("columns"):
        found["columns"] = tuple(name.strip() for name in given["columns"].split(","))
    if given.get("shuffle_buffer") is not None:
        found["shuffle_buffer"] = given["shuffle_buffer"]
    return found


def shuffle_of(shuffle: bool, blocks: bool) -> str | None:
    """Return the parameter `shuffle` of an estimator; None: rows keep their order."""
    return "blocks" if blocks else "each" if shuffle else None


# ---- checkpoints: the texts differ between commands ----------------------------------------------


def checkpoint_option(more: str = "") -> Any:
    """Return the option --checkpoint; `more` follows its help."""
    return typer.Option(
        "--checkpoint",
        metavar="FILE",
        help=f"Write checkpoints to FILE from time to time, and at Ctrl-C.{more}",
        rich_help_panel=LONG_RUNS,
        show_default=False,
    )


def every_option(more: str = "") -> Any:
    """Return the option --every; `more` follows its help."""
    return typer.Option(
        "--every",
        metavar="TIME",
        help=f"Time between checkpoints: 60s, 0.1s, 5m. Default: 60s.{more}",
        rich_help_panel=LONG_RUNS,
        show_default=False,
    )


def resume_option(about: str) -> Any:
    """Return the option --resume; `about` says what it gives, and what to give again."""
    return typer.Option(
        "--resume",
        help=f"Continue from the checkpoint{about} Without a checkpoint, start from the beginning.",
        rich_help_panel=LONG_RUNS,
    )


def keep_checkpoint_option(what: str) -> Any:
    """Return the option --keep-checkpoint; `what` says what is written first."""
    return typer.Option(
        "--keep-checkpoint",
        help=f"Keep the checkpoint after {what}",
        rich_help_panel=LONG_RUNS,
    )
