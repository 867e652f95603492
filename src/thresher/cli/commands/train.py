"""`thresher train`: from files to a model."""

from __future__ import annotations

from dataclasses import replace

from thresher.cli.options.parsed import TrainOptions
from thresher.cli.render.progress import TrainingProgress, progress_for, warnings_shown
from thresher.cli.render.training_result import report
from thresher.cli.steps.build_estimator import fitted_model, labels_of, specification_of
from thresher.cli.steps.check_outputs import check_outputs, quarantine_of
from thresher.cli.steps.checkpoint_file import (
    checkpoint_arguments,
    interrupted,
    remove_checkpoint,
)
from thresher.cli.steps.continue_from import continue_from
from thresher.cli.steps.default_rule import default_rule
from thresher.cli.steps.describe_input import with_word_classes
from thresher.cli.steps.final_warnings import warn_of_bad_lines, warn_of_collisions
from thresher.cli.steps.resume import check_finished_run, with_saved_options
from thresher.cli.steps.write_model import check_keep_state, write_model
from thresher.data.scaled import ScaledSource
from thresher.data.scan import scan
from thresher.data.source import Source
from thresher.errors import ParameterError
from thresher.rules import RULES
from thresher.training.checkpoint import check_replaceable
from thresher.training.observer import Interrupted


def train(options: TrainOptions) -> int:
    """Train as the options say; return the exit code."""
    before = None
    check_keep_state(options)
    if options.from_model is not None:
        options, before = continue_from(options)
    if options.ray is not None or options.workers is not None:
        from thresher.cli.commands.train_on_cluster import train_on_cluster

        return train_on_cluster(options)
    for name in ("mode", "parts", "rounds", "batch", "blocks"):
        if getattr(options, name) is not None:
            raise ParameterError(f"--{name} needs --ray ADDRESS, or --workers 0 for no cluster")
    if options.races:
        from thresher.cli.commands.train_by_race import train_by_race  # imports scikit-learn

        return train_by_race(options)
    for name in ("tolerance", "budget", "html"):
        if getattr(options, name) is not None:
            raise ParameterError(f"--{name} needs --rule auto")
    options = with_saved_options(options) if options.resume else options
    note = ""
    if options.rule is None:
        rule, note = default_rule(options)
        options = replace(options, rule=rule)
    spec = specification_of(options)
    if options.resume:
        check_finished_run(options, spec.rule, spec.params)
    results = {"--model": options.model, "--checkpoint": options.checkpoint}
    check_outputs(
        results, {"--cache": options.cache, "--on-bad-line": quarantine_of(options.reading)}
    )
    observer = progress_for(options.quiet, options.json, spec.params["passes"])
    source = opened(options, observer, options.model, options.checkpoint)
    if note:
        observer.tell("note", message=note)
    with warnings_shown(observer):
        options = with_word_classes(
            options, source, lambda told: observer.tell("note", message=told)
        )
    spec = specification_of(options)
    if options.checkpoints:
        check_replaceable(options.checkpoint_file)
    if options.cache is not None:
        from thresher.cli.steps.make_cache import cached

        made = cached(source, options.cache, options.reading, observer, spec)
        source = observer.watched(made)
    source = scaled(options, source, observer)
    valid = _valid(options, observer)
    if valid is not None:
        outputs = (options.model, options.checkpoint, options.cache)
        valid.refuse_outputs(*outputs, quarantine_of(options.reading))
    run = {
        "eval_set": valid,
        "observer": observer,
        **checkpoint_arguments(options),
        "names": options.names,
        "metric": options.metric,
    }
    if RULES[spec.rule].streams:
        run["seed"] = options.seed or 0
    if spec.task == "classifier":
        run["classes"] = labels_of(options)
    try:
        with warnings_shown(observer):
            model = fitted_model(spec, source, before, options.keep_state, **run)
    except Interrupted as stop:
        observer.close()
        return interrupted(stop, options)
    finally:
        observer.close()
    warn_of_bad_lines(source)
    warn_of_collisions(source)
    with warnings_shown(observer):
        write_model(model, options, observer)
    remove_checkpoint(options, observer)
    report(options, model, source, observer.seconds, observer.mean_loss)
    return 0


def opened(options: TrainOptions, observer: TrainingProgress, *outputs: str | None) -> Source:
    """Return the source of the data; only its first bytes have been read."""
    source = observer.watched(scan(list(options.data), **options.reading))
    source.refuse_outputs(*outputs, options.cache, quarantine_of(options.reading))
    return source


def scaled(options: TrainOptions, source: Source, observer: TrainingProgress) -> Source:
    """Return the source with scaled columns, if --scale was given."""
    return (
        source if options.scale is None else observer.watched(ScaledSource(source, options.scale))
    )


def _valid(options: TrainOptions, observer: TrainingProgress) -> Source | None:
    if not options.valid:
        return None
    reading = dict(options.reading)
    if reading.get("on_bad_line", "error") != "error":  # the quarantine is for training rows
        reading["on_bad_line"] = "skip"
    return observer.watched(scan(list(options.valid), **reading))
