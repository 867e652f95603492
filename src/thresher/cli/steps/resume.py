"""`--resume`: take the options that were not given again from the checkpoint."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from thresher.cli.options.parsed import TrainOptions
from thresher.cli.options.rule_parameters import is_option
from thresher.data.read_options import ReadOptions
from thresher.errors import ParameterError
from thresher.model.model import load
from thresher.rules import RULES
from thresher.training import checkpoint as checkpoints

_READING = (
    "format", "bits", "zero_based", "multilabel", "interactions", "label", "weight", "text",
    "ngrams", "ignore", "on_bad_line", "header", "columns", "delimiter", "encoding", "quotes",
    "label_separator", "missing", "dates", "unlabelled", "shuffle_buffer",
)  # fmt: skip

_RESOLVED = ("alpha", "lanes", "margin", "store")  # a model has what "auto" stood for


def not_given(options: TrainOptions, saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the saved options for reading that were not given again.

    Parameters
    ----------
    options : TrainOptions
    saved : mapping
    """
    defaults = ReadOptions()
    return {
        name: tuple(value) if isinstance(value := saved[name], list) else value
        for name in _READING
        if name in saved and options.reading.get(name) in (None, getattr(defaults, name))
    }


def class_weight_text(saved: Any) -> str | None:
    """Return class weights as the command line writes them.

    Parameters
    ----------
    saved : None, str or sequence of pairs
    """
    if saved is None or isinstance(saved, str):
        return saved
    return ",".join(f"{label}:{weight}" for label, weight in saved)


def _shuffle(options: TrainOptions, saved: dict[str, Any]) -> str | None:
    """Return how rows are shuffled; True is from a run that shuffled them within blocks."""
    before = saved.get("shuffle")
    if before is True:
        return "blocks" if options.shuffle in (None, "each") else options.shuffle
    return options.shuffle or before or None


def with_saved_options(options: TrainOptions) -> TrainOptions:
    """Return the given options; those that were not given are taken from the checkpoint.

    Parameters
    ----------
    options : TrainOptions
        With `resume`. Without a checkpoint file, they are returned unchanged.
    """
    try:
        about = checkpoints.read(options.checkpoint_file).about
    except FileNotFoundError:
        return options
    saved: dict[str, Any] = {**about.get("parameters", {}), **about.get("options", {})}
    saved.setdefault("seed", about.get("random_state"))  # of a rule that holds all rows in memory
    rule = str(about.get("rule") or saved.get("rule"))
    if rule not in RULES:
        return options  # a damaged file: resuming reports the error
    table, streams = RULES[rule].parameters, "options" in about
    chosen = {name: value for name, value in saved.items() if name in table and is_option(name)}
    return replace(
        options,
        rule=options.rule or rule,
        loss=options.loss or (saved.get("loss") if len(RULES[rule].losses) > 1 else None),
        chosen={**chosen, **options.chosen} if options.rule in (None, rule) else options.chosen,
        passes=options.passes or (about.get("passes") if streams else saved.get("passes")),
        shuffle=_shuffle(options, saved),
        seed=saved.get("seed") if options.seed is None else options.seed,
        store=options.store or saved.get("store"),
        tol=saved.get("tol") if options.tol is None and streams else options.tol,
        patience=options.patience or saved.get("patience"),
        scale=options.scale or saved.get("scale"),
        class_weight=options.class_weight or class_weight_text(saved.get("class_weight")),
        reading={**options.reading, **not_given(options, saved)},
    )


def check_finished_run(options: TrainOptions, rule: str, params: Mapping[str, Any]) -> None:
    """Refuse to replace the model of another run where there is no checkpoint to continue from.

    A run that finishes removes its checkpoint, which has the options that need not be given again.
    The same command gives the same model, so it may start again.

    Parameters
    ----------
    options : TrainOptions
        With `resume`.
    rule : str
    params : mapping
        The parameters of the run that would start.
    """
    if os.path.exists(options.checkpoint_file) or not os.path.exists(options.model):
        return
    try:
        before = load(options.model).parameters
    except (OSError, ValueError):  # no model: it is replaced as without --resume
        return
    for name, value in {"rule": rule, **params}.items():
        kept = before.get(name, value)
        if value == "auto" and name in _RESOLVED:
            continue
        if value != kept and str(value) != str(kept):  # a file has inf as a text
            raise ParameterError(
                f"no checkpoint {options.checkpoint_file}, and {options.model} is of another run: "
                f"its {name} is {kept}, and {value} now; that run has probably finished",
                hint="to start again, leave out --resume, or remove the model",
            )
