"""`thresher compare`: from files to a table of all rules."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from thresher.atomic import write_whole
from thresher.cli.commands.outputs import aside_of, check_outputs
from thresher.cli.render.progress import as_json, duration
from thresher.comparison import CompareProgress, Comparison
from thresher.comparison import compare as compare_rules
from thresher.comparison.measures import MEASURES
from thresher.comparison.result import RuleResult, measure_text
from thresher.comparison.rows import gathered
from thresher.data.block import Block
from thresher.data.labels import NumericLabels, TwoClasses
from thresher.data.scan import scan
from thresher.data.source import Source
from thresher.errors import ParameterError
from thresher.losses import REGRESSOR_LOSSES, SELECTABLE_LOSSES

_SHARE = 0.25
_EVERY, _SILENCE = 1.0, 10.0  # seconds between looks at the clock; longest silence in a pipe


@dataclass
class Options:
    """What the command line said."""

    data: Sequence[str]
    test: Sequence[str] = ()
    test_share: float | None = None
    rules: str | None = None
    orders: int = 10
    folds: int = 5
    choose: str = "best"
    scale: str | None = None
    loss: str | None = None
    multiclass: bool = False
    seed: int = 0
    jobs: int = 1
    reading: dict[str, Any] = field(default_factory=dict)
    checkpoint: str | None = None
    output: str | None = None
    html: str | None = None
    json: bool = False
    quiet: bool = False
    command: Sequence[str] = ()


def compare(options: Options) -> int:
    """Compare as the options say; return the exit code."""
    shown = Shown(options.quiet, options.json)
    try:
        _compare(options, shown)
    except KeyboardInterrupt:
        shown.close()
        kept = options.checkpoint
        held = kept is not None and os.path.exists(kept)
        more = f"; {kept} holds what is finished, and the same command goes on from it"
        print(f"interrupted{more if held else ''}", file=sys.stderr)
        return 130
    finally:
        shown.close()
    return 0


def _compare(options: Options, shown: Shown) -> None:
    began = time.perf_counter()
    if options.test and options.test_share is not None:
        raise ParameterError("--test-share does not go with --test: the test rows are given")
    results = {"--html": options.html, "--output": options.output}
    aside = aside_of(options.reading)
    check_outputs(results, {"--checkpoint": options.checkpoint, "--on-bad-line": aside})
    task = _task(options)
    train, test = _source(options, options.data), None
    if options.test:
        reading = dict(options.reading)
        if reading.get("on_bad_line", "error") != "error":  # those put aside are the training rows'
            reading["on_bad_line"] = "skip"
        test = _source(options, options.test, reading)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        X, y, X_test, y_test = gathered(train, test, _check(options, task))
    for warning in caught:
        print(f"warning: {warning.message}", file=sys.stderr)
    if train.bad_lines.warning:
        print(f"warning: {train.bad_lines.warning}", file=sys.stderr)
    found = compare_rules(
        X, y, X_test, y_test,
        rules=None if options.rules is None else options.rules.split(","),
        loss=options.loss,
        task=task,
        test_share=_SHARE if options.test_share is None else options.test_share,
        orders=options.orders,
        folds=options.folds,
        choose=options.choose,
        scale=options.scale,
        seed=options.seed,
        checkpoint=options.checkpoint,
        callback=shown.tell,
        n_jobs=options.jobs,
    )  # fmt: skip
    found.about["data"] = ", ".join(os.path.basename(name) for name in options.data)
    found.about["command"] = shlex.join(("thresher", *options.command))
    shown.close()
    _write(options, found)
    _report(options, found, time.perf_counter() - began)


def _task(options: Options) -> str:
    """Tell whether labels are classes or numbers: of classes, or by the loss."""
    if options.multiclass or options.loss is None:
        return "classification"
    if options.loss not in SELECTABLE_LOSSES:
        known = ", ".join(SELECTABLE_LOSSES)
        raise ParameterError(f"--loss must be one of {known}; got {options.loss!r}")
    return "regression" if options.loss in REGRESSOR_LOSSES else "classification"


def _check(options: Options, task: str) -> Callable[[], Callable[[Block], Any]] | None:
    """Return what makes a look at the labels of a source, so that errors name file and line."""
    if options.multiclass:
        return None
    if task == "regression":
        return lambda: NumericLabels(options.loss or "squared").targets
    return lambda: TwoClasses().targets


def _source(
    options: Options, files: Sequence[str], reading: dict[str, Any] | None = None
) -> Source:
    source = scan(list(files), **(options.reading if reading is None else reading))
    source.refuse_outputs(
        options.html, options.output, options.checkpoint, aside_of(options.reading)
    )
    return source


def _write(options: Options, found: Comparison) -> None:
    if options.output is not None:
        write_whole(options.output, found.to_json().encode() + b"\n")
    if options.html is not None:
        write_whole(options.html, found.to_html().encode())


def _report(options: Options, found: Comparison, seconds: float) -> None:
    if options.json:
        print(as_json({"event": "done", **found.about, "seconds": round(seconds, 3)}))
        return
    if options.quiet:
        return
    about = found.about
    print(found.table())
    print(
        f"{about['training rows']:,} training rows, {about['test rows']:,} test rows, "
        f"{about['columns']:,} columns; {about['folds']} folds, {about['orders']} orders; "
        f"{duration(seconds)}"
    )
    for name in (options.output, options.html):
        if name is not None:
            print(f"-> {name}")


class Shown:
    """How a comparison is shown while it goes: a line that changes, lines in a pipe, or JSON.

    Parameters
    ----------
    quiet, json : bool
    """

    def __init__(self, quiet: bool, json: bool) -> None:
        self.quiet, self.json = quiet, json
        self.live = sys.stderr.isatty() and not (quiet or json)
        self._open = False
        self._now: CompareProgress | None = None  # what takes time
        self._began = 0.0
        self._told = time.monotonic()  # when a line was last written
        self._lock, self._ended = threading.RLock(), threading.Event()
        if not (quiet or json):
            threading.Thread(target=self._tick, daemon=True).start()

    def tell(self, progress: CompareProgress) -> None:
        """Show how far it has come."""
        if self.json:
            facts = {**progress._asdict(), "seconds": round(progress.seconds, 3)}
            row = facts.pop("row")
            if row is not None:
                facts |= {"event": "rule", "result": asdict(row)}
            print(as_json({"event": "progress", **facts}), flush=True)
        elif self.quiet:
            return
        elif progress.row is not None:
            with self._lock:
                self._now = None
                self._line(f"{self._place(progress)} {_said(progress.row)}", ends=True)
        else:
            with self._lock:
                self._now, self._began = progress, time.perf_counter() - progress.seconds
                if self.live:
                    self._show(progress)

    def close(self) -> None:
        """Leave the terminal in order."""
        self._ended.set()
        with self._lock:
            self._now = None
            if self._open:
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._open = False

    def _tick(self) -> None:
        """Show that time goes by while nothing is told."""
        while not self._ended.wait(_EVERY):
            with self._lock:
                silent = time.monotonic() - self._told
                if self._now is not None and (self.live or silent >= _SILENCE):
                    seconds = time.perf_counter() - self._began
                    self._show(self._now._replace(seconds=seconds))

    def _show(self, progress: CompareProgress) -> None:
        doing = "choosing parameters"
        if progress.doing == "orders":
            doing = f"order {progress.number}/{progress.orders}"
        self._line(f"{self._place(progress)} {progress.title}: {doing}", ends=not self.live)

    def _line(self, text: str, ends: bool) -> None:
        start = "\r\x1b[K" if self._open else ""
        if not ends:  # a line that is written over must not be broken
            text = text[: shutil.get_terminal_size()[0] - 1]
        print(f"{start}{text}", end="\n" if ends else "", file=sys.stderr, flush=True)
        self._open, self._told = not ends, time.monotonic()

    def _place(self, progress: CompareProgress) -> str:
        return f"{progress.place:>2}/{progress.rules} {duration(progress.seconds):>6}"


def _said(row: RuleResult) -> str:
    """Return a rule's result in a line."""
    if not row.measured:
        return f"{row.title}: {row.reason}"
    names = {name: word for task in MEASURES.values() for name, word in task.items()}
    first = next(name for name in ("error", "mse") if getattr(row, name) is not None)
    error = measure_text(getattr(row, first), first)
    return (
        f"{row.title}: {names[first]} {error}, nonzeros % {measure_text(row.nonzeros, 'nonzeros')}"
    )
