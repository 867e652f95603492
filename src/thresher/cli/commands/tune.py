"""`thresher tune`: try all points of a grid on files, and write the best model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from thresher.cli.commands.train import opened, scaled
from thresher.cli.options.grid import grid_of
from thresher.cli.options.parsed import TuneOptions
from thresher.cli.options.rule_parameters import task_of
from thresher.cli.options.values import bytes_of
from thresher.cli.render.output import show
from thresher.cli.render.progress import TrainingProgress, warnings_shown
from thresher.cli.render.search_progress import SearchEvents, SearchTable
from thresher.cli.render.search_result import SearchResult
from thresher.cli.steps.build_estimator import check_loss, estimator_of, labels_of, specification_of
from thresher.cli.steps.check_outputs import check_outputs, quarantine_of
from thresher.cli.steps.checkpoint_file import (
    checkpoint_arguments,
    interrupted,
    remove_checkpoint,
)
from thresher.cli.steps.describe_input import with_word_classes
from thresher.cli.steps.final_warnings import warn_of_bad_lines
from thresher.cli.steps.make_cache import cached
from thresher.cli.steps.stop_signal import StopSignal
from thresher.data.read_options import Stopped
from thresher.data.source import Source
from thresher.errors import ParameterError
from thresher.losses import Task
from thresher.rules import RULES
from thresher.search.checkpointing import checkpoint_of
from thresher.search.grid import GridPoint, check_probabilities, point_of
from thresher.search.model_groups import checked_limit
from thresher.search.search import Search
from thresher.search.source_checks import check_source
from thresher.search.splits import SourceSplits
from thresher.search.sum_scores import SumScores
from thresher.training.observer import Interrupted
from thresher.training.run_options import RunOptions
from thresher.training.scores import SCORES, SET_SCORES, scores_named
from thresher.training.shuffling import shuffled_rows


def tune(options: TuneOptions) -> int:
    """Search as the options say; return the exit code."""
    try:
        _tune(options)
    except Interrupted as stop:
        return interrupted(stop, options)
    except KeyboardInterrupt:  # no file is left half written
        show("interrupted", error=True)
        return 130
    return 0


def _tune(options: TuneOptions) -> None:
    began = time.perf_counter()
    task, grid, scoring, limit = _checked(options)
    observer = SearchEvents(StopSignal(), options.quiet, options.json)
    source = opened(options, observer, options.model, options.html, options.checkpoint)
    options = with_word_classes(options, source, _printer(options.quiet or options.json))
    _check_reading(options, source)
    spec = specification_of(options, task)
    several = bool(options.reading.get("multilabel"))
    estimator, named = estimator_of(spec), scores_named(scoring, task, several)
    points = points_of(estimator, grid)
    _check_pipe(options, source, points)
    check_probabilities({scoring.removeprefix("neg_"): named["score"]}, points)
    if options.cache is not None:
        source = observer.watched(cached(source, options.cache, options.reading, observer, spec))
    if options.shuffle == "each":
        source = observer.watched(_shuffled(source, observer))
    source = scaled(options, source, observer)
    classes = labels_of(options) if task == "classifier" else None
    classes = None if classes == "arriving" else classes
    folds = (options.folds or 5) if source.rereadable else 0
    check_source(estimator, source, points, classes)
    splits = SourceSplits(estimator, source, folds, points, classes, whole=True)
    table = SearchTable(points, options.quiet, options.json)
    threads = options.reading.get("threads") or -1
    run = RunOptions.of(observer, **checkpoint_arguments(options))
    saved = checkpoint_of(run, estimator, splits, points, scoring, limit, threads)
    search = Search(
        estimator, splits, SumScores(splits, named), limit, threads, table.tell, run, saved
    )
    table.search = search
    try:
        with warnings_shown(observer):
            found = search.go(search.plan(points))
    finally:
        table.close()
    result = SearchResult(points, found, scoring, search, source, time.perf_counter() - began)
    warn_of_bad_lines(source)
    try:
        result.write(options)
    except Stopped:  # while the names of features were read
        if saved is None:
            raise KeyboardInterrupt from None
        saved.interrupt()
    remove_checkpoint(options, observer)
    result.report(options)


def _printer(quiet: bool) -> Callable[[str], None]:
    """Return a function that prints a note on standard error."""
    return lambda note: None if quiet else show(note, error=True)


# ---- before rows are read ------------------------------------------------------------------------


def _checked(options: TuneOptions) -> tuple[Task, dict[str, list[Any]], str, int]:
    """Return the task, the grid, the score and the limit of memory."""
    assert options.rule is not None
    if options.rule not in RULES:
        raise ParameterError(f"--rule must be one of {', '.join(RULES)}; got {options.rule!r}")
    own_loss = {}
    if options.loss is not None:
        check_loss(options)
        own_loss["loss"] = options.loss
    grid = grid_of(options.rule, options.grid, {**options.chosen, **own_loss})
    if not grid:
        own = RULES[options.rule].penalty or next(iter(RULES[options.rule].own))
        raise ParameterError(
            f"--grid is needed: NAME=A,B,C or NAME=A..B:N, such as {own}=1e-6..1e-2:9"
        )
    several = bool(options.reading.get("multilabel"))
    labelled = options.multiclass or several or options.classes is not None
    losses = grid.get("loss", [options.loss])
    task = task_of(options.rule, losses[0], labelled)
    if any(task_of(options.rule, loss, labelled) != task for loss in losses):
        raise ParameterError(
            f"--grid loss={','.join(losses)}: all losses must be for classes, or all for numbers; "
            f"with --classes or --multiclass, labels are classes"
        )
    scoring, limit = (
        scoring_of(options.scoring, task, several),
        checked_limit(bytes_of(options.memory)),
    )
    if task == "regressor" and options.class_weight is not None:
        raise ParameterError("--class-weight needs classes, but the loss is for numbers")
    results = {"--model": options.model, "--html": options.html}
    results["--checkpoint"] = options.checkpoint
    check_outputs(
        results, {"--cache": options.cache, "--on-bad-line": quarantine_of(options.reading)}
    )
    return task, grid, scoring, limit


def _shuffled(source: Source, observer: TrainingProgress) -> Source:
    """Return a source in random order. Its seed is fixed, because folds depend on it."""
    made = shuffled_rows(source, "once", 0, observer=observer)
    assert isinstance(made, Source)
    return made


def _check_reading(options: TuneOptions, source: Source) -> None:
    """Raise ParameterError if rows must be read twice, but can be read only once."""
    if source.rereadable or options.cache is not None:
        return
    if (options.passes or 1) > 1:
        raise ParameterError("more than one pass over standard input needs --cache FILE")
    if options.folds is not None:
        raise ParameterError(
            "--folds needs rows that can be read twice: standard input needs --cache FILE; without "
            "--folds, each row is scored before it is learned"
        )
    if options.sparsest:
        raise ParameterError(
            "--sparsest needs the standard errors over folds, so rows must be read twice: "
            "standard input needs --cache FILE"
        )
    several = options.reading.get("multilabel")
    if (options.multiclass or several) and options.classes is None:
        raise ParameterError(
            f"--{'multilabel' if several else 'multiclass'} from standard input needs --classes, "
            f"or --cache FILE to find them"
        )


def _check_pipe(options: TuneOptions, source: Source, points: Sequence[GridPoint]) -> None:
    """Raise ParameterError if models must be fitted separately, and rows can be read only once."""
    why = next((point.obstacle for point in points if point.obstacle), "")
    if why and not source.rereadable and options.cache is None:
        raise ParameterError(
            f"models of this grid are fitted one after the other ({why}): standard input needs "
            f"--cache FILE"
        )


def points_of(estimator: Any, grid: dict[str, list[Any]]) -> list[GridPoint]:
    """Return all combinations of a grid; the last parameter changes fastest."""
    return [
        point_of(estimator, number, dict(zip(grid, values, strict=True)))
        for number, values in enumerate(product(*grid.values()))
    ]


def scoring_of(name: str | None, task: Task, multilabel: bool = False) -> str:
    """Return scikit-learn's name of a score; `name` may begin with neg_.

    Raises ParameterError for an unknown score, or a score of the other task.

    Examples
    --------
    >>> scoring_of("log_loss", "classifier")
    'neg_log_loss'
    """
    if name is None:
        return "f1_micro" if multilabel else "accuracy" if task == "classifier" else "r2"
    names = SET_SCORES if multilabel else [s for s in SCORES if SCORES[s].task == task]
    allowed = {s.removeprefix("neg_"): s for s in names}
    word = name.replace("-", "_").removeprefix("neg_")
    if word not in allowed:
        what = "classes" if task == "classifier" else "numbers"
        what = "rows with several labels" if multilabel else what
        raise ParameterError(
            f"--scoring must be one of {', '.join(allowed)} for {what}; got {name!r}"
        )
    return allowed[word]
