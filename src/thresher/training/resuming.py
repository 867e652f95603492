"""Checkpoints of a trainer: their content, and how a run continues from one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from thresher.data.block import Position
from thresher.data.labels import ArrivingClasses, TwoClasses
from thresher.data.read_options import NEWER, ReadOptions
from thresher.data.shuffled import TRUE_SHUFFLES
from thresher.errors import DataError, ModelFileError, setting
from thresher.health.label_order import LabelOrder
from thresher.rules import RULES, core_args
from thresher.rules.parameter import UNRECORDED
from thresher.training.bits import bits_of, check_bits
from thresher.training.checkpoint import TrainingCheckpoint, kind_of
from thresher.training.shuffling import stored_rows

if TYPE_CHECKING:
    from thresher.training.trainer import Trainer

# Attributes of the trainer that certificates and the end of the run need.
_COURSE = (
    "rows_of_pass", "steps_before", "passes_kept", "complete", "whole_passes", "unit_weights",
    "stopped",
)  # fmt: skip

# Options that may differ between a run and the one that resumes it. `data`, `valid` and `cache` are
# files in checkpoints of version 0.1.0; digests show whether their content is the same.
_FREE = (*UNRECORDED, "callback", "warm_start", "passes", "n_jobs", "data", "valid", "cache")


def identity(trainer: Trainer) -> dict[str, Any]:
    """Return the options that a resumed run must share, in types that JSON has."""
    plan, source, valid = trainer.plan, trainer.source, trainer.valid
    # First, because a fit that continues has the rate of the fit before instead of "auto".
    values: dict[str, Any] = {"rule": plan.rule, "passes before": trainer.passes_before}
    if trainer.origin:
        values["continued model"] = trainer.origin
    values["input"] = "matrix" if plan.in_memory else "source"
    values |= {name: value for name, value in trainer.requested.items() if name not in _FREE}
    values |= {"seed": plan.seed, "tol": plan.tol}
    values["shuffle"] = plan.shuffle
    values |= source.identity()
    values["validation"] = None if valid is None else "source" if valid.traced else valid.facts()
    if trainer.options.metric is not None:
        values["metric"] = trainer.options.metric
    labels = plan.labels
    if not isinstance(labels, TwoClasses | ArrivingClasses) and labels.classes is not None:
        values["classes"] = labels.classes.tolist()
    if isinstance(values.get("class_weight"), dict):
        values["class_weight"] = sorted(map(list, values["class_weight"].items()), key=repr)
    if not isinstance(values.get("random_state"), int):
        values.pop("random_state", None)  # the seed drawn from it is compared instead
    # The types that are read from a file: lists for tuples, Python numbers for NumPy's.
    found: dict[str, Any] = json.loads(json.dumps(values, default=lambda number: number.item()))
    return found


def _bits(trainer: Trainer, weighted: bool) -> dict[str, int]:
    plan = trainer.plan
    return bits_of(plan.rule, plan.shuffle is not False, trainer.source.named, weighted)


def checkpoint_of(trainer: Trainer) -> TrainingCheckpoint:
    """Return the state of a run."""
    t, best = trainer, trainer.early_stopping
    learning = {
        "alpha": t.plan.params.get(RULES[t.plan.rule].rate_from_rows),
        "room": t.capacity.size,
        "width": t.capacity.width,
        "full": sorted(t.outputs.full),
        "labels": t.plan.labels.state,
        **t.records.state(),
    }
    about = {
        "options": identity(t),
        "bits": _bits(t, not t.unit_weights),
        "source": t.source.facts(),
        "learning": learning,
        "standardised": t.plan.standardised,
        "passes": t.plan.passes,
        "pass": t.number,
        "position": None if t.position is None else t.position.to_json(),
        "trail": t.input_digests.state,
        "most_names": None if t.names is None else t.names.most,
        "block": t.block,
        "first_row": t.first_row,
        "best": [best.best_loss, best.best_pass, best.stale],
        "pass_tally": list(t.pass_tally),
        "valid_digest": t.valid_digest,
        "hooks": t.hooks.state(),
        "course": {name: getattr(t, name) for name in _COURSE},
        "callback_stopped": t.records.stopped,
        "order": None if t.order is None or t.order.order is None else t.order.order.state,
        "ended": t.plan.passes if t.ended else None,
        **t.source.reading_state,
        "seconds": t.records.seconds,
    }
    names = None if t.names is None else t.names.table.names
    return TrainingCheckpoint(about, t.outputs.states(), best.states, names)


def resume(trainer: Trainer) -> bool:
    """Continue from the checkpoint; return False if there is none.

    Raises ModelFileError if it is of another run, DataError if the input has changed.
    """
    t, path = trainer, trainer.options.checkpoint
    assert path is not None
    try:
        saved = t.options.read()
    except FileNotFoundError:
        return False
    about = saved.about
    if "options" not in about:
        raise ModelFileError(
            f"{path}: is from {kind_of(about)}, and the rule {t.plan.rule} learns row by row"
        )
    # Version 0.1.0 did not write `course`: of weights, only those of classes are known.
    unit = about.get("course", {"unit_weights": t.requested.get("class_weight") is None})
    check_bits(about.get("bits"), _bits(t, not unit["unit_weights"]), path, saved.version)
    chosen = t.requested.get("random_state") is not None or t.options.seed is not None
    if not chosen and "seed" in about["options"]:
        t.plan = replace(t.plan, seed=about["options"]["seed"])  # none was given: use the saved one
    if about["options"].get("shuffle") is True and not t.plan.in_memory:
        # Written before sources had a true shuffle: rows were shuffled within blocks.
        about["options"]["shuffle"] = "blocks"
        if t.plan.shuffle in TRUE_SHUFFLES:
            t.plan, t.source = replace(t.plan, shuffle="blocks"), stored_rows(t.source)
    if t.plan.standardised and not about.get("standardised", False):
        t.set_plan(replace(t.plan, standardised=False))  # as in version 0.1.0
    before, now = about["options"], identity(t)
    if not t.plan.standardised:
        before, now = (core_args.with_numbers(t.plan.rule, values) for values in (before, now))
    if before.get("continued model") != now.get("continued model"):
        raise ModelFileError(
            f"{path}: is from a run that went on from {_origin(before)}, and this run goes on from "
            f"{_origin(now)}; go on from the same model again"
        )
    _check_options(path, before, now, t.requested)
    # Versions before the parameter `refit` did not refit.
    t.refits = t.refits and "refit" in about["options"]
    t.ended = about.get("ended") is not None
    if t.ended and about["ended"] != t.plan.passes:
        raise ModelFileError(
            f"the run that wrote it has made all {about['ended']} passes, and passes is "
            f"{t.plan.passes} now; a resumed run needs the same number",
            place=path,
            parameter="passes",
            value=t.plan.passes,
        )
    made = about["pass"] + (about["position"] is not None)
    if made > t.plan.passes:
        raise ModelFileError(
            f"it is in pass {made}, and passes is {t.plan.passes} now; a resumed run needs at "
            f"least {made}",
            place=path,
            parameter="passes",
            value=t.plan.passes,
        )
    try:
        _restore(t, about["learning"], saved, float(about["seconds"]))
    except ValueError as error:
        raise ModelFileError(f"{path}: {error}") from None
    t.number, t.block, position = about["pass"], about["block"], about["position"]
    t.position = None if position is None else Position.from_json(position)
    t.first_row = about.get("first_row", 0)
    best = t.early_stopping
    best.states = list(saved.best)
    best.best_loss, best.best_pass, best.stale = about["best"]
    loss, weight = about["pass_tally"]
    t.valid_digest = about.get("valid_digest")
    t.pass_tally = (loss, weight)
    for name, value in about.get("course", {"unit_weights": False}).items():
        setattr(t, name, value)
    t.older = "course" not in about
    t.records.stopped = bool(about.get("callback_stopped", False))
    _resume_order(t, about.get("order"))
    t.hooks.restore(about["hooks"] if "hooks" in about else {"updates": about["updates"]}, t)
    if t.names is not None:
        t.names.restore(saved.names or {}, about["most_names"])
    if t.source.traced:
        t.source.reading_state = about
    _check_input(t, about)
    t.begun = t.records.steps > 0
    t.columns.told = t.columns.told or t.begun  # by the run that wrote the checkpoint
    t.options.observer.tell("resumed", examples=t.records.steps, digest=saved.digest)
    return True


def _origin(options: Mapping[str, Any]) -> str:
    found = str(options.get("continued model", ""))[:12]
    return f"the model with the state {found}" if found else "no model"


def _resume_order(t: Trainer, saved: Mapping[str, Any] | None) -> None:
    """Continue to watch the order of labels; not if an older version did not watch it."""
    if saved is None:
        t.order = None
    elif t.order is not None:
        t.order.order = LabelOrder(t.plan.labels.classes is not None)
        t.order.order.state = saved


def _check_options(
    path: str, before: Mapping[str, Any], now: Mapping[str, Any], known: Mapping[str, Any]
) -> None:
    if before.get("valid") and before["tol"] is None:
        before = {**before, "tol": 0.0}  # version 0.1.0 wrote None for its default of 0
    # Options that are not set are not written, so that older checkpoints need not have them.
    unset = {
        "scale": None,
        "metric": None,
        **{name: _as_json(getattr(ReadOptions(), name)) for name in NEWER},
    }
    unset = {name: value for name, value in unset.items() if name in before or name in now}
    before, now = {**unset, **before}, {**unset, **now}
    for name, value in now.items():
        if name not in _FREE and before.get(name, value) != value:
            named = setting(name) if name in known or name in unset else name
            raise ModelFileError(
                (named, f" was {before[name]!r} in the run that wrote it, and is {value!r} "
                 f"now; a resumed run needs the same options"),
                place=path,
                parameter=name,
                value=value,
            )  # fmt: skip


def _as_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _restore(
    t: Trainer, learning: Mapping[str, Any], saved: TrainingCheckpoint, seconds: float
) -> None:
    if t.plan.waits_for_rows and learning["alpha"] != "auto":
        t.set_plan(t.plan.with_rate(learning["alpha"]))
    if learning["room"] > t.capacity.size:
        t.outputs.widen(int(learning["room"]))
    t.outputs.restore(saved.states)
    t.capacity.size, t.capacity.width = int(learning["room"]), int(learning["width"])
    t.outputs.full = set(learning["full"])
    t.plan.labels.state = learning["labels"]
    t.records.restore(learning, t.outputs.steps, seconds)


def _check_input(t: Trainer, about: Mapping[str, Any]) -> None:
    """Raise DataError if the input has changed since the checkpoint was written.

    If size and time of the files do not answer this, the rows before the checkpoint are read again
    and their digest is compared.
    """
    if t.source.is_unchanged(about["source"]):
        t.input_digests.state = about["trail"]
        return
    if not t.source.traced:
        raise DataError(f"{t.source} are not those of the run that wrote {t.options.checkpoint}")
    saved = about["trail"]
    t.input_digests.state = saved
    t.input_digests.begin()
    if t.position is None:
        return
    visits = t.visits_after(None)
    for visit in visits:
        t.input_digests.add(visit.block, compare=not t.reorders)
        if visit.end == t.position:
            t.resumed = visits  # a pipe can be read only once
            break
    if t.input_digests.chain != saved["chain"]:
        raise DataError(
            f"{t.source}: the input has changed since the checkpoint was written, before line "
            f"{t.position.line} of file {t.position.file + 1}"
        )
