"""What `--resume` takes from the checkpoint: the rule and all values that were not given again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from thresher.cli.options.rule_parameters import is_option
from thresher.data.read_options import ReadOptions
from thresher.rules import RULES
from thresher.training import checkpoint as checkpoints

if TYPE_CHECKING:
    from thresher.cli.commands.train import Options


_READING = (
    "format", "bits", "zero_based", "multilabel", "interactions", "label", "weight", "text",
    "ngrams", "ignore", "on_bad_line",
)  # fmt: skip


def _reading(options: Options, begun: dict[str, Any]) -> dict[str, Any]:
    """Return how rows were read, where the options do not say it."""
    usual = ReadOptions()
    return {
        name: tuple(value) if isinstance(value := begun[name], list) else value
        for name in _READING
        if name in begun and options.reading.get(name) in (None, getattr(usual, name))
    }


def _class_weight(begun: Any) -> str | None:
    """Return the weights of classes as the shell writes them."""
    if begun is None or isinstance(begun, str):
        return begun
    return ",".join(f"{label}:{weight}" for label, weight in begun)


def as_begun(options: Options) -> Options:
    """Return the options of a run that is resumed: those given, and else those it began with.

    Parameters
    ----------
    options : Options
        With `resume`; without a checkpoint they stay as they are.
    """
    try:
        about = checkpoints.read(options.checkpoint_file).about
    except FileNotFoundError:
        return options
    begun: dict[str, Any] = {**about.get("parameters", {}), **about.get("options", {})}
    begun.setdefault("seed", about.get("random_state"))  # of a rule that needs all rows at once
    rule = str(about.get("rule") or begun.get("rule"))
    if rule not in RULES:
        return options  # a damaged file: resuming says so
    table, streams = RULES[rule].parameters, "options" in about
    chosen = {name: value for name, value in begun.items() if name in table and is_option(name)}
    return replace(
        options,
        rule=options.rule or rule,
        loss=options.loss or (begun.get("loss") if len(RULES[rule].losses) > 1 else None),
        chosen={**chosen, **options.chosen} if options.rule in (None, rule) else options.chosen,
        passes=options.passes or (about.get("passes") if streams else begun.get("passes")),
        shuffle=options.shuffle or bool(begun.get("shuffle")),
        seed=begun.get("seed") if options.seed is None else options.seed,
        store=options.store or begun.get("store"),
        tol=begun.get("tol") if options.tol is None and streams else options.tol,
        patience=options.patience or begun.get("patience"),
        class_weight=options.class_weight or _class_weight(begun.get("class_weight")),
        reading={**options.reading, **_reading(options, begun)},
    )
