"""`thresher train`: from files to a model."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from thresher.atomic import clear_leftovers
from thresher.cli.commands.estimator import fitted_model, labels_of, specification_of
from thresher.cli.commands.outputs import aside_of, check_outputs
from thresher.cli.commands.resume import as_begun
from thresher.cli.render.progress import Shown, shown, warnings_told
from thresher.cli.render.training_result import report
from thresher.data.scan import scan
from thresher.data.source import Source
from thresher.errors import ParameterError
from thresher.rules import RULES
from thresher.training.checkpoint import check_replaceable
from thresher.training.observer import Interrupted


@dataclass
class Options:
    """What the command line said, but for the parameters of the rule and the options of reading."""

    data: Sequence[str]
    model: str
    rule: str | None = None
    loss: str | None = None
    reading: dict[str, Any] = field(default_factory=dict)
    chosen: dict[str, Any] = field(default_factory=dict)
    passes: int | None = None
    shuffle: bool = False
    seed: int | None = None
    store: str | None = None
    multiclass: bool = False
    classes: str | None = None
    class_weight: str | None = None
    cache: str | None = None
    valid: Sequence[str] = ()
    tol: float | None = None
    patience: int | None = None
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

    @property
    def checkpoint_file(self) -> str:
        """Where checkpoints go."""
        return self.checkpoint or self.model + ".checkpoint"


def train(options: Options) -> int:
    """Train as the options say; return the exit code."""
    if options.ray is not None or options.workers is not None:
        from thresher.cli.commands.cluster import train_on_cluster

        return train_on_cluster(options)
    for name in ("mode", "parts", "rounds", "batch", "blocks"):
        if getattr(options, name) is not None:
            raise ParameterError(f"--{name} needs --ray ADDRESS, or --workers 0 for none")
    options = as_begun(options) if options.resume else options
    spec = specification_of(options)
    wanted = options.checkpoint is not None or options.every is not None or options.resume
    results = {"--model": options.model, "--checkpoint": options.checkpoint}
    check_outputs(results, {"--cache": options.cache, "--on-bad-line": aside_of(options.reading)})
    observer = shown(options.quiet, options.json, spec.params["passes"])
    source = opened(options, observer, options.model, options.checkpoint)
    if wanted:
        check_replaceable(options.checkpoint_file)
    if options.cache is not None:
        from thresher.cli.commands.cache import cached

        made = cached(source, options.cache, options.reading, observer, spec)
        source = observer.watched(made)
    run = {
        "eval_set": _valid(options, observer),
        "observer": observer,
        "checkpoint": options.checkpoint_file,
        "every": seconds_of(options.every or "60s") if wanted else float("inf"),
        "resume": options.resume,
        "names": options.names,
    }
    if RULES[spec.rule].streams:
        run["seed"] = options.seed or 0
    if spec.task == "classifier":
        run["classes"] = labels_of(options)
    try:
        with warnings_told(observer):
            model = fitted_model(spec, source, **run)
    except Interrupted as stop:
        observer.close()
        print(
            f"interrupted after {stop.examples:,} examples; {options.checkpoint_file} holds what "
            f"was learned, and --resume goes on from it",
            file=sys.stderr,
        )
        return 130
    finally:
        observer.close()
    model.save(options.model)
    if wanted:
        clear_leftovers(options.checkpoint_file)
        if os.path.exists(options.checkpoint_file):
            os.unlink(options.checkpoint_file)
    report(options, model, source, observer.seconds, observer.mean_loss)
    return 0


def opened(options: Options, observer: Shown, *outputs: str | None) -> Source:
    """Return the source of the data, of which nothing has been read but its first bytes."""
    source = observer.watched(scan(list(options.data), **options.reading))
    source.refuse_outputs(*outputs, options.cache, aside_of(options.reading))
    return source


def _valid(options: Options, observer: Shown) -> Source | None:
    if not options.valid:
        return None
    reading = dict(options.reading)
    if reading.get("on_bad_line", "error") != "error":  # those put aside are the training rows'
        reading["on_bad_line"] = "skip"
    return observer.watched(scan(list(options.valid), **reading))


def seconds_of(text: str) -> float:
    """Return the seconds of 60s, 0.1s, 5m or 2h."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?)(s|m|h)?", text)
    if found is None:
        raise ParameterError(f"--every must be a time such as 60s, 0.1s or 5m; got {text!r}")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600, None: 1}[found[2]]
