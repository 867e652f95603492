"""`thresher train --ray`: the same rules on a Ray cluster."""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from thresher.cli.commands.estimator import estimator_of, specification_of
from thresher.cli.commands.outputs import check_outputs
from thresher.cli.render.errors import OTHER_LABELS, TWO_CLASSES
from thresher.cli.render.progress import Shown, shown, warnings_told
from thresher.cli.render.training_result import report
from thresher.data.scan import scan
from thresher.distributed.engine.loop import ContinueLater, StageReport
from thresher.distributed.fitting import Fitting, Wishes
from thresher.errors import ParameterError

if TYPE_CHECKING:
    from thresher.cli.commands.train import Options
    from thresher.distributed.survey import Agreed

_SELDOM = 1.0  # seconds between two lines, beside those at powers of two
_HEAD = "  stage        rows      loss    nonzeros      rows/s      sent  slowest worker"


def train_on_cluster(options: Options) -> int:
    """Train as the options say; return the exit code."""
    _refuse_others(options)
    wanted = options.resume or options.every is not None
    folder = options.checkpoint or (options.checkpoint_file if wanted else None)
    check_outputs({"--model": options.model}, {"--checkpoint": folder})
    estimator = estimator_of(specification_of(options))
    watcher = shown(options.quiet, options.json, estimator.passes)
    source = scan(list(options.data), **options.reading)
    source.refuse_outputs(options.model, folder)
    wishes = Wishes(
        options.mode, options.ray, options.workers, options.parts, options.rounds, options.batch,
        options.blocks, folder, options.resume, _stages(options.every), names=options.names,
        reading=options.reading,
    )  # fmt: skip
    fitting = Fitting(estimator, list(options.data), wishes)

    def check(agreed: Agreed) -> None:
        watcher.stop.heeded = folder is not None  # else there is nothing to stop behind
        source.bad_lines.state = [agreed.skipped, agreed.bad, 0, [-1, -1]]
        source.sketch = bytes.fromhex(agreed.sketch)
        many = options.multiclass or options.reading.get("multilabel")
        if estimator.task == "regressor" or many or agreed.classes is None:
            return
        if not set(agreed.classes) <= {-1.0, 0.0, 1.0} or len(agreed.classes) > 2:
            raise ParameterError(f"{TWO_CLASSES}; {OTHER_LABELS}")

    began = time.perf_counter()
    seen = Stages(watcher, options)
    try:
        with contextlib.redirect_stdout(sys.stderr), warnings_told(watcher):  # Ray prints
            fitting.run(seen.see, check, lambda message: watcher.tell("note", message=message))
    except ContinueLater:
        held = (
            f"{folder} holds what was learned, and --resume goes on from it"
            if folder
            else ("with --checkpoint FOLDER it could go on later")
        )
        print(f"interrupted after stage {seen.stage}; {held}", file=sys.stderr)
        return 130
    model = estimator.model_
    seen.close()
    about = {"mode": fitting.mode, "parts": fitting.parts, **fitting.chosen}
    model = replace(model, parameters={**model.parameters, **about})
    model.save(options.model)
    report(options, model, source, time.perf_counter() - began, None)
    return 0


class Stages:
    """Shows stages as they end.

    Parameters
    ----------
    watcher : Shown
        Knows where lines go, and whether to stop.
    options : Options
    """

    def __init__(self, watcher: Shown, options: Options) -> None:
        self.watcher, self.options = watcher, options
        self.stage = 0
        self._shown, self._head = 0.0, False
        self._last: StageReport | None = None  # where it was not shown

    def see(self, done: StageReport) -> bool:
        """Show a stage where it is time; tell whether to stop."""
        self.stage = done.stage
        for kind, number in done.remade:
            self.watcher.tell(
                "note", message=f"stage {done.stage}: {kind} {number} was lost, and made again"
            )
        self._last, now = done, time.monotonic()
        if self.options.json or now - self._shown >= _SELDOM or done.stage & (done.stage - 1) == 0:
            self._shown, self._last = now, None
            self._show(done)
        return self.watcher.stops()

    def close(self) -> None:
        """Show the last stage."""
        if self._last is not None:
            self._show(self._last)

    def _show(self, done: StageReport) -> None:
        if self.options.quiet:
            return
        rate = done.rows / done.seconds if done.seconds > 0 else 0.0
        if self.options.json:
            facts = {name: getattr(done, name) for name in _SHOWN}
            self.watcher.show({"event": "stage", **facts, "rows_per_second": round(rate)})
            return
        if not self._head:
            self._head = True
            print(_HEAD, file=sys.stderr)
        loss = "" if done.loss is None else f"{done.loss:.4f}"
        nonzeros = "" if done.nonzeros is None else f"{done.nonzeros:,}"
        behind = f"{done.slowest}, by {done.wait:.2f} s" if done.wait > 0.01 else ""
        print(
            f"{done.stage:>7}{done.rows:>12,}{loss:>10}{nonzeros:>12}{rate:>12,.0f}"
            f"{_size(done.bytes):>10}  {behind}",
            file=sys.stderr,
            flush=True,
        )


_SHOWN = ("stage", "rows", "loss", "nonzeros", "seconds", "bytes", "slowest", "wait", "checkpoint")


def _size(count: int) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000  # type: ignore[assignment]
    return f"{count:.1f} GB"


def _refuse_others(options: Options) -> None:
    for name in ("cache", "valid", "classes"):
        if getattr(options, name):
            raise ParameterError(f"--{name} does not go with --ray or --workers")


def _stages(every: str | None) -> int | None:
    if every is None:
        return None
    if not every.isdigit() or int(every) < 1:
        raise ParameterError(f"--every is a number of stages on a cluster; got {every!r}")
    return int(every)
