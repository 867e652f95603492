"""`thresher train --rule auto`: a race of rules, and the model of the winner."""

from __future__ import annotations

import time
from typing import Any

from thresher.atomic import write_whole, written_together
from thresher.cli.commands.train import opened
from thresher.cli.options.parsed import TrainOptions
from thresher.cli.options.values import seconds_of
from thresher.cli.render.errors import option_of
from thresher.cli.render.output import show, show_lines
from thresher.cli.render.progress import progress_for, warnings_shown
from thresher.cli.render.training_result import report
from thresher.cli.steps.build_estimator import class_weight_of, labels_of
from thresher.cli.steps.check_outputs import check_outputs, quarantine_of
from thresher.cli.steps.describe_input import with_word_classes
from thresher.cli.steps.final_warnings import warn_of_bad_lines, warn_of_collisions
from thresher.cli.steps.write_model import write_model
from thresher.errors import ParameterError
from thresher.losses import Task
from thresher.race import SparseClassifier, SparseRegressor
from thresher.race.page import page_of
from thresher.training.fitting import Specification

_TASKS: dict[str | None, Task] = {
    None: "classifier",
    "logistic": "classifier",
    "squared": "regressor",
}

# Options that say what the race finds out, or that need a run with checkpoints.
_NOT_FOR_RACES = (
    "passes", "shuffle", "store", "valid", "metric", "tol", "patience", "checkpoint", "every",
    "resume", "keep_checkpoint", "scale",
)  # fmt: skip


def train_by_race(options: TrainOptions) -> int:
    """Train as the options say; return the exit code."""
    began = time.perf_counter()
    task = _checked(options)
    estimator = _estimator(options, task)
    observer = progress_for(options.quiet, options.json, 1)
    source = opened(options, observer, options.model, options.html)
    with warnings_shown(observer):
        options = with_word_classes(
            options, source, lambda told: observer.tell("note", message=told)
        )
    if options.cache is not None:
        from thresher.cli.steps.make_cache import cached

        exact = Specification("coordinate-descent", task, {}, "--rule auto")  # values as they are
        source = observer.watched(cached(source, options.cache, options.reading, observer, exact))
    run: dict[str, Any] = {"observer": observer, "names": options.names}
    if task == "classifier":
        run["classes"] = labels_of(options)
    try:
        with warnings_shown(observer):
            estimator.fit(source, **run)
    finally:
        observer.close()
    model, race = estimator.model_, estimator.race_
    warn_of_bad_lines(source)
    warn_of_collisions(source)
    with warnings_shown(observer), written_together():
        write_model(model, options, observer)
        if options.html is not None:
            write_whole(options.html, page_of(race, estimator.budget_, model).encode())
    if not options.quiet and not options.json:
        show_lines(race.table())
        show(f"{race.chosen.name}: {race.chosen.why}")
    report(options, model, source, time.perf_counter() - began, observer.mean_loss)
    if options.html is not None and not options.quiet and not options.json:
        show(f"page -> {options.html}")
    return 0


def _checked(options: TrainOptions) -> Task:
    """Check the options; return the task."""
    for name in _NOT_FOR_RACES:
        if getattr(options, name):
            raise ParameterError(f"{option_of(name)} cannot be used with --rule auto")
    for name in options.chosen:
        raise ParameterError(
            f"{option_of(name)} cannot be used with --rule auto, which chooses the parameters"
        )
    if options.loss not in _TASKS:
        raise ParameterError(
            f"--loss must be logistic or squared with --rule auto; got {options.loss!r}"
        )
    results = {"--model": options.model, "--html": options.html}
    check_outputs(
        results, {"--cache": options.cache, "--on-bad-line": quarantine_of(options.reading)}
    )
    return _TASKS[options.loss]


def _estimator(options: TrainOptions, task: Task) -> Any:
    weights = class_weight_of(options, task)
    given: dict[str, Any] = {"random_state": options.seed or 0}
    if options.tolerance is not None:
        given["tolerance"] = options.tolerance
    if options.budget is not None:
        given["budget"] = seconds_of(options.budget, "--budget")
    if task == "regressor":
        return SparseRegressor(**given)
    return SparseClassifier(**given, class_weight=weights)
