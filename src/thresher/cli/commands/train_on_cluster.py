"""`thresher train --ray`: train on a Ray cluster."""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from thresher.cli.options.parsed import TrainOptions
from thresher.cli.options.values import stages_of
from thresher.cli.render.errors import OTHER_LABELS, TWO_CLASSES
from thresher.cli.render.progress import progress_for, warnings_shown
from thresher.cli.render.stage_progress import StageTable
from thresher.cli.render.training_result import report
from thresher.cli.steps.build_estimator import estimator_of, specification_of
from thresher.cli.steps.check_outputs import check_outputs
from thresher.data.scan import scan
from thresher.distributed.engine.loop import ContinueLater
from thresher.distributed.fitting import ClusterFit, ClusterOptions
from thresher.errors import ParameterError

if TYPE_CHECKING:
    from thresher.distributed.survey import SurveyResult


def train_on_cluster(options: TrainOptions) -> int:
    """Train as the options say; return the exit code."""
    _check_options(options)
    checkpoints = options.resume or options.every is not None
    folder = options.checkpoint or (options.checkpoint_file if checkpoints else None)
    check_outputs({"--model": options.model}, {"--checkpoint": folder})
    estimator = estimator_of(specification_of(options))
    observer = progress_for(options.quiet, options.json, estimator.passes)
    source = scan(list(options.data), **options.reading)
    source.spare(options.model, folder)
    wishes = ClusterOptions(
        options.mode, options.ray, options.workers, options.parts, options.rounds, options.batch,
        options.blocks, folder, options.resume, stages_of(options.every), names=options.names,
        reading=options.reading,
    )  # fmt: skip
    fitting = ClusterFit(estimator, list(options.data), wishes)

    def check(agreed: SurveyResult) -> None:
        observer.stop.checked = folder is not None  # else Ctrl-C ends the run at once
        source.bad_lines.state = [agreed.skipped, agreed.bad, 0, [-1, -1]]
        source.sketch = bytes.fromhex(agreed.sketch)
        many = options.multiclass or options.reading.get("multilabel")
        if estimator.task == "regressor" or many or agreed.classes is None:
            return
        if not set(agreed.classes) <= {-1.0, 0.0, 1.0} or len(agreed.classes) > 2:
            raise ParameterError(f"{TWO_CLASSES}; {OTHER_LABELS}")

    began = time.perf_counter()
    table = StageTable(observer, options)
    try:
        with contextlib.redirect_stdout(sys.stderr), warnings_shown(observer):  # Ray prints
            fitting.run(table.see, check, lambda message: observer.tell("note", message=message))
    except ContinueLater:
        advice = (
            f"the checkpoint is {folder}; --resume continues from it"
            if folder
            else "there is no checkpoint, because --checkpoint FOLDER was not given"
        )
        print(f"interrupted after stage {table.stage}; {advice}", file=sys.stderr)
        return 130
    model = estimator.model_
    table.close()
    about = {"mode": fitting.mode, "parts": fitting.parts, **fitting.chosen}
    model = replace(model, parameters={**model.parameters, **about})
    model.save(options.model)
    report(options, model, source, time.perf_counter() - began, None)
    return 0


def _check_options(options: TrainOptions) -> None:
    for name in ("cache", "valid", "classes"):
        if getattr(options, name):
            raise ParameterError(f"--{name} cannot be used with --ray or --workers")
