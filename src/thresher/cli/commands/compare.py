"""`thresher compare`: compare all rules on files, and print a table."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from thresher.atomic import write_whole, written_together
from thresher.cli.options.parsed import CompareOptions
from thresher.cli.render.comparison_progress import ComparisonLines
from thresher.cli.render.output import show, show_lines, show_record
from thresher.cli.render.texts import as_json, duration
from thresher.cli.steps.build_estimator import unknown_loss
from thresher.cli.steps.check_outputs import check_outputs, quarantine_of
from thresher.cli.steps.describe_input import with_word_classes
from thresher.cli.steps.final_warnings import warn_of_bad_lines
from thresher.comparison import Comparison
from thresher.comparison import compare as compare_rules
from thresher.comparison.rows import gathered
from thresher.data.block import Block
from thresher.data.labels import NumericLabels, TwoClasses
from thresher.data.scan import scan
from thresher.data.source import Source
from thresher.errors import ParameterError
from thresher.losses import REGRESSOR_LOSSES, SELECTABLE_LOSSES

_TEST_SHARE = 0.25


def compare(options: CompareOptions) -> int:
    """Compare as the options say; return the exit code."""
    lines = ComparisonLines(options.quiet, options.json)
    try:
        _compare(options, lines)
    except KeyboardInterrupt:
        lines.close()
        path = options.checkpoint
        saved = path is not None and os.path.exists(path)
        advice = f"; finished work is in {path}; the same command continues from it"
        show(f"interrupted{advice if saved else ''}", error=True)
        return 130
    finally:
        lines.close()
    return 0


def _compare(options: CompareOptions, lines: ComparisonLines) -> None:
    began = time.perf_counter()
    if options.test and options.test_share is not None:
        raise ParameterError("--test-share cannot be used with --test, which gives the test rows")
    results = {"--html": options.html, "--output": options.output}
    quarantine = quarantine_of(options.reading)
    check_outputs(results, {"--checkpoint": options.checkpoint, "--on-bad-line": quarantine})
    task = _task(options)
    train, test = _source(options, options.data), None
    if task == "classification":
        options = with_word_classes(
            options, train, lambda note: None if options.quiet else show(note, error=True)
        )
    if options.test:
        reading = dict(options.reading)
        if reading.get("on_bad_line", "error") != "error":  # the quarantine is for training rows
            reading["on_bad_line"] = "skip"
        test = _source(options, options.test, reading)
    rows = gathered(train, test, *_checks(options, task))
    for source in (train,) if test is None else (train, test):
        warn_of_bad_lines(source)
    found = compare_rules(
        *rows,
        rules=None if options.rules is None else options.rules.split(","),
        loss=options.loss,
        task=task,
        test_share=_TEST_SHARE if options.test_share is None else options.test_share,
        orders=options.orders,
        folds=options.folds,
        choose=options.choose,
        scale=options.scale,
        seed=options.seed,
        checkpoint=options.checkpoint,
        callback=lines.tell,
        n_jobs=options.jobs,
    )  # fmt: skip
    found.about["data"] = ", ".join(os.path.basename(name) for name in options.data)
    found.about["command"] = shlex.join(("thresher", *options.command))
    lines.close()
    _write(options, found)
    _report(options, found, time.perf_counter() - began)


def _task(options: CompareOptions) -> str:
    """Return the task; --multiclass and the loss decide."""
    if options.loss is None:
        return "classification"
    if options.loss not in SELECTABLE_LOSSES:
        raise ParameterError(unknown_loss(None, options.loss, options.multiclass))
    numbers = options.loss in REGRESSOR_LOSSES and not options.multiclass
    return "regression" if numbers else "classification"


_Check: TypeAlias = Callable[[Block], Any] | None


def _checks(options: CompareOptions, task: str) -> tuple[_Check, _Check]:
    """Return checks of the labels of training and test rows: errors have file and line.

    Test rows may have classes that training rows do not have: these are errors of the model.
    """
    if options.multiclass:
        return None, None
    if task == "regression":
        check = NumericLabels(options.loss or "squared").targets
        return check, check
    return TwoClasses().targets, None


def _source(
    options: CompareOptions, files: Sequence[str], reading: dict[str, Any] | None = None
) -> Source:
    source = scan(list(files), **(options.reading if reading is None else reading))
    source.refuse_outputs(
        options.html, options.output, options.checkpoint, quarantine_of(options.reading)
    )
    return source


def _write(options: CompareOptions, found: Comparison) -> None:
    with written_together():
        if options.output is not None:
            write_whole(options.output, found.to_json().encode() + b"\n")
        if options.html is not None:
            write_whole(options.html, found.to_html().encode())


def _report(options: CompareOptions, found: Comparison, seconds: float) -> None:
    if options.json:
        show_record(as_json({"event": "done", **found.about, "seconds": round(seconds, 3)}))
        return
    if options.quiet:
        return
    about = found.about
    show_lines(found.table())
    show(
        f"{about['training rows']:,} training rows, {about['test rows']:,} test rows, "
        f"{about['columns']:,} columns; {about['folds']} folds, {about['orders']} orders; "
        f"{duration(seconds)}"
    )
    for what, name in (("results", options.output), ("page", options.html)):
        if name is not None:
            show(f"{what} -> {name}")
