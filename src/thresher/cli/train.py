"""`thresher train`: from files to a model."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from thresher.atomic import clear_leftovers
from thresher.cli.options import parameters, task_of
from thresher.cli.outputs import aside_of, check_outputs
from thresher.cli.show import Shown, shown
from thresher.cli.trained import described, report
from thresher.data.source import Source, scan
from thresher.errors import ParameterError
from thresher.losses import Task
from thresher.rules import RULES, validate
from thresher.training.checkpoint import check_replaceable
from thresher.training.labels import Arriving, Labels, LabelSets, ManyClasses, TwoClasses, Values
from thresher.training.learning import Learning
from thresher.training.passes import Interrupted, Plan, Run
from thresher.training.recipe import Recipe
from thresher.training.result import model_of

MATRIX_RULES = ("stabilized", "coordinate-descent", "hard-threshold")  # see all rows at once


@dataclass
class Options:
    """What the command line said, but for the parameters of the rule and the options of reading."""

    data: Sequence[str]
    model: str
    rule: str
    loss: str | None = None
    reading: dict[str, Any] = field(default_factory=dict)
    chosen: dict[str, Any] = field(default_factory=dict)
    passes: int | None = None
    shuffle: bool = False
    seed: int = 0
    store: str = "auto"
    multiclass: bool = False
    classes: str | None = None
    class_weight: str | None = None
    cache: str | None = None
    valid: Sequence[str] = ()
    tol: float | None = None
    patience: int = 5
    checkpoint: str | None = None
    every: str | None = None
    resume: bool = False
    names: bool = True
    json: bool = False
    quiet: bool = False
    ray: str | None = None
    mode: str | None = None
    workers: int | None = None
    parts: int | None = None
    rounds: int | None = None
    batch: int | None = None
    blocks: int | None = None


def train(options: Options) -> int:
    """Train as the options say; return the exit code."""
    if options.rule not in RULES:
        raise ParameterError(f"--rule must be one of {', '.join(RULES)}; got {options.rule!r}")
    if options.loss is not None:
        check_loss(options)
    task, params, auto = _parameters(options)
    if options.ray is not None or options.workers is not None:
        from thresher.cli.cluster import train_on_cluster

        return train_on_cluster(options, task, params, auto)
    for name in ("mode", "parts", "rounds", "batch", "blocks"):
        if getattr(options, name) is not None:
            raise ParameterError(f"--{name} needs --ray ADDRESS, or --workers 0 for none")
    results = {"--model": options.model, "--checkpoint": options.checkpoint}
    check_outputs(results, {"--cache": options.cache, "--on-bad-line": aside_of(options.reading)})
    options.passes = options.passes or 1
    watcher = shown(options.quiet, options.json, options.passes)
    source = watcher.watched(scan(list(options.data), **options.reading))
    aside = aside_of(options.reading)
    source.spare(options.model, options.cache, options.checkpoint, aside)
    if options.checkpoint is not None:
        check_replaceable(options.checkpoint)
    if options.cache is not None:
        from thresher.cli.caching import cached

        exact = options.rule in MATRIX_RULES or params.get("center")
        dtype = "float64" if exact else str(params.get("dtype", "float64"))
        made = cached(source, options.cache, options.reading, watcher, dtype)
        source = watcher.watched(made)
    elif options.passes > 1 and not source.rereadable:
        raise ParameterError("more than one pass over standard input needs --cache FILE")
    if "store" in params:
        params["store"] = store_of(options, source, ("auto", "dense", "hashed", "nonzero"))
    validate.check(options.rule, task, params, f"the rule {options.rule}")
    if auto:
        params["alpha"] = "auto"  # by the size of the first rows
    labels = _labels(options, source, params, task == "classifier")
    params["class_weight"] = class_weights(options.class_weight, labels)
    if options.reading.get("multilabel") and params["class_weight"]:
        raise ParameterError("--class-weight does not go with --multilabel: rows have many labels")
    if options.rule in MATRIX_RULES:
        return _all_at_once(options, source, labels, task, params, watcher)
    width, grows = _width(options, source, params)
    learning = Learning(options.rule, task, params, labels, width, grows)
    valid = _valid(options, watcher)
    plan = _plan(options, params, labels, valid)
    run = Run(learning, source, plan, valid, watcher)
    if params.get("center"):
        if not source.rereadable:
            raise ParameterError("--center must read the rows twice: standard input needs --cache")
        learning.center(*source.mean())
    return _go(options, run, watcher)


def _parameters(options: Options) -> tuple[Task, dict[str, Any], bool]:
    """Return the task, the rule's parameters, and whether FTRL's rate is to follow the rows."""
    labelled = options.multiclass or bool(options.reading.get("multilabel"))
    labelled = labelled or options.classes is not None
    task = task_of(options.rule, options.loss, labelled)
    defaults: dict[str, Any] = {"random_state": options.seed}
    if options.rule not in MATRIX_RULES:
        defaults |= {"tol": options.tol, "patience": options.patience}
    if options.loss is not None:
        defaults["loss"] = options.loss
    auto = options.rule == "ftrl" and options.chosen.get("alpha", "auto") == "auto"
    chosen = {k: v for k, v in options.chosen.items() if not (auto and k == "alpha")}
    params = parameters(options.rule, task, chosen, defaults)
    if options.rule in MATRIX_RULES and options.passes is not None:
        params["passes"] = options.passes
    return task, params, auto


def check_loss(options: Options) -> None:
    """Raise ParameterError for a loss that the rule does not have."""
    losses = RULES[options.rule].losses
    if len(losses) == 1:
        raise ParameterError(
            f"--loss does not go with the rule {options.rule}, whose loss is {losses[0]}"
        )
    if options.loss not in losses:
        raise ParameterError(
            f"--loss must be one of {', '.join(losses)} with the rule {options.rule}; "
            f"got {options.loss!r}"
        )


def _all_at_once(
    options: Options,
    source: Source,
    labels: Labels,
    task: Task,
    params: Mapping[str, Any],
    watcher: Shown,
) -> int:
    """Train by a rule that needs all rows in memory."""
    from thresher.cli.matrix import train_matrix

    if isinstance(labels, LabelSets):
        raise ParameterError(f"--multilabel does not go with the rule {options.rule}")
    valid = _valid(options, watcher)
    model, seconds = train_matrix(options, source, labels, task, params, valid, watcher)
    model = replace(model, parameters={**model.parameters, **described(options, source)})
    model.save(options.model)
    report(options, model, source, seconds, None)
    return 0


def _go(options: Options, run: Run, watcher: Shown) -> int:
    checkpointed = run.plan.every < float("inf")
    if options.resume and not run.resume():
        watcher.tell(
            "note", message=f"no checkpoint {run.plan.checkpoint}: starting from the beginning"
        )
    try:
        run.go()
        model = model_of(run, options.names, **described(options, run.source))
    except Interrupted:
        watcher.close()
        print(
            f"interrupted after {run.learning.steps:,} examples; {run.plan.checkpoint} holds what "
            f"was learned, and --resume goes on from it",
            file=sys.stderr,
        )
        return 130
    finally:
        watcher.close()
    model.save(options.model)
    if checkpointed and run.plan.checkpoint is not None:
        clear_leftovers(run.plan.checkpoint)
        if os.path.exists(run.plan.checkpoint):
            os.unlink(run.plan.checkpoint)
    report(options, model, run.source, run.learning.seconds, run.learning.mean_since())
    return 0


# ---- what is learned from what -------------------------------------------------------------------


def store_of(
    options: Options, source: Source, choices: Sequence[str] = ("auto", "dense", "hashed")
) -> str:
    """Return the store that fits the features, where none is chosen."""
    if options.store not in choices:
        allowed = f"{', '.join(choices[:-1])} or {choices[-1]}"
        raise ParameterError(f"--store must be {allowed}; got {options.store!r}")
    if options.store == "auto":
        return "hashed" if source.named and source.bits is None else "dense"
    if options.store == "dense" and source.named and source.bits is None:
        raise ParameterError("--store dense needs --bits where features have names")
    return options.store


def _labels(
    options: Options, source: Source, params: Mapping[str, Any], classifies: bool
) -> Labels:
    loss = params.get("loss", RULES[options.rule].losses[0])
    low = 0.0 if loss == "clipped_square" else -1.0
    if not classifies:
        return Values(loss)
    multilabel = bool(options.reading.get("multilabel"))
    if not options.multiclass and not multilabel and options.classes is None:
        return TwoClasses(low)
    classes, counted = classes_of(options), None
    if classes is None and source.rereadable:
        found, counted = source.label_counts()
        classes = found.tolist()
    if classes is not None:
        labels = (LabelSets if multilabel else ManyClasses)(classes, low)
        labels.counted = counted
        return labels
    if options.rule not in MATRIX_RULES and Recipe(options.rule, params, None, 1, 1).together(2):
        return Arriving(low, multilabel)
    raise ParameterError(
        "several classes from standard input need --classes, or --cache FILE to find them"
    )


def classes_of(options: Options) -> Sequence[Any] | None:
    """Return the classes that were given: numbers, or words where one of them is one."""
    if options.classes is None:
        return None
    words = options.classes.split(",")
    numbers = [_number(word) for word in words]
    return words if any(isinstance(number, str) for number in numbers) else numbers


def _number(word: str) -> Any:
    try:
        return float(word)
    except ValueError:
        return word


def class_weights(text: str | None, labels: Labels) -> dict[Any, float] | None:
    """Return the weights of classes that a text stands for."""
    if text is None:
        return None
    if labels.classes is None:
        raise ParameterError("--class-weight needs classes; the loss is one for numbers")
    found = weights_in(text)
    known = {-1, 0, 1} if isinstance(labels, TwoClasses) else set(labels.classes.tolist())
    for label in found:
        if label not in known and not isinstance(labels, Arriving):
            word = f"{label:g}" if isinstance(label, float) else label
            raise ParameterError(f"--class-weight: {word} is not one of the classes")
    return found


def weights_in(text: str) -> dict[Any, float]:
    """Return the weights that a text has, by class."""
    found: dict[Any, float] = {}
    for entry in text.split(","):
        word, _, weight = entry.rpartition(":")
        label = _number(word)
        try:
            found[label] = float(weight)
        except ValueError:
            found[label] = -1.0
        if not word or not 0 <= found[label] < float("inf"):
            raise ParameterError(
                f"--class-weight must be CLASS:WEIGHT,..., weights >= 0; got {text!r}"
            )
    return found


def _width(options: Options, source: Source, params: Mapping[str, Any]) -> tuple[int, bool]:
    """Return the number of features, and whether more may come."""
    if source.bits is not None:
        return 1 << source.bits, False
    needed = options.rule == "mirror-descent" or params.get("max_density") is not None
    if needed:
        if not source.rereadable:
            raise ParameterError(
                f"the rule {options.rule} must know the number of features beforehand: standard "
                f"input needs --bits, or --cache FILE"
            )
        width = source.width()
        if width == 2**64:
            raise ParameterError(f"the rule {options.rule} needs --bits where features have names")
        return width, False
    if params["store"] != "dense":
        return 0, not source.named
    return 1, True


def _plan(
    options: Options, params: Mapping[str, Any], labels: Labels, valid: Source | None
) -> Plan:
    wanted = options.checkpoint is not None or options.every is not None or options.resume
    return Plan(
        passes=options.passes or 1,
        shuffle=options.shuffle,
        seed=options.seed,
        tol=options.tol if options.tol is not None or not options.valid else 0.0,
        patience=options.patience,
        checkpoint=options.checkpoint or options.model + ".checkpoint",
        every=seconds_of(options.every or "60s") if wanted else float("inf"),
        described=_identity(options, params, labels, valid),
    )


def _identity(
    options: Options, params: Mapping[str, Any], labels: Labels, valid: Source | None
) -> dict[str, Any]:
    """Return what a resumed run must share."""
    values = {name: value for name, value in params.items() if name != "callback"}
    values |= {"rule": options.rule, "data": list(options.data), "valid": list(options.valid)}
    values |= {"shuffle": options.shuffle, "seed": options.seed, "cache": options.cache}
    values |= {name: v for name, v in options.reading.items() if name != "threads"}
    if valid is not None and None not in valid.facts():
        values["validation rows"] = valid.facts()
    if not isinstance(labels, TwoClasses | Arriving) and labels.classes is not None:
        values["classes"] = labels.classes.tolist()
    if isinstance(values.get("class_weight"), dict):
        values["class_weight"] = sorted(map(list, values["class_weight"].items()))
    identity: dict[str, Any] = json.loads(json.dumps(values))  # tuples as lists, as they come back
    return identity


def _valid(options: Options, watcher: Shown) -> Source | None:
    if not options.valid:
        return None
    reading = dict(options.reading)
    if reading.get("on_bad_line", "error") != "error":  # those put aside are the training rows'
        reading["on_bad_line"] = "skip"
    return watcher.watched(scan(list(options.valid), **reading))


def seconds_of(text: str) -> float:
    """Return the seconds of 60s, 0.1s, 5m or 2h."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?)(s|m|h)?", text)
    if found is None:
        raise ParameterError(f"--every must be a time such as 60s, 0.1s or 5m; got {text!r}")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600, None: 1}[found[2]]
