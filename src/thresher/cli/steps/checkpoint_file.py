"""The checkpoint file of `train` and `tune`: how it is written, and when it is removed."""

from __future__ import annotations

from typing import Any

from thresher.cli.options.parsed import TrainOptions
from thresher.cli.options.values import seconds_of
from thresher.cli.render.output import show
from thresher.cli.steps.check_outputs import quarantine_of
from thresher.file_access import is_stream
from thresher.training.checkpoint import finish
from thresher.training.observer import Interrupted, Observer


def checkpoint_arguments(options: TrainOptions) -> dict[str, Any]:
    """Return the arguments of `fit` for checkpoints; without options, one is written at Ctrl-C.

    It is beside the model. If the model goes to a device or a pipe, there is none.

    Parameters
    ----------
    options : TrainOptions
    """
    if not options.checkpoints and is_stream(options.model):
        return {}
    every = seconds_of(options.every or "60s") if options.checkpoints else float("inf")
    return {"checkpoint": options.checkpoint_file, "every": every, "resume": options.resume}


def interrupted(stop: Interrupted, options: TrainOptions) -> int:
    """Print that the run was interrupted and how to continue; return the exit code.

    Parameters
    ----------
    stop : Interrupted
    options : TrainOptions
    """
    show(
        f"interrupted after {stop.examples:,} examples; the checkpoint is "
        f"{options.checkpoint_file}; --resume continues from it",
        error=True,
    )
    return 130


def remove_checkpoint(options: TrainOptions, observer: Observer) -> None:
    """Remove the checkpoint after the results were written, unless it must be kept.

    Parameters
    ----------
    options : TrainOptions
    observer : Observer
        It is warned if the file cannot be removed.
    """
    if options.checkpoints:
        results = (options.model, options.html, options.cache, quarantine_of(options.reading))
        finish(options.checkpoint_file, observer, results, options.keep_checkpoint)
