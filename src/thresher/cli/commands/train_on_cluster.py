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
from thresher.cli.render.output import show
from thresher.cli.render.progress import progress_for, warnings_shown
from thresher.cli.render.stage_progress import StageTable
from thresher.cli.render.training_result import report
from thresher.cli.steps.build_estimator import estimator_of, specification_of
from thresher.cli.steps.check_outputs import check_outputs
from thresher.cli.steps.describe_input import with_word_classes
from thresher.cli.steps.final_warnings import warn_of_bad_lines, warn_of_collisions
from thresher.cli.steps.write_model import write_model
from thresher.data.scan import scan
from thresher.distributed.cluster_fit import ClusterFit
from thresher.distributed.engine.loop import ContinueLater
from thresher.distributed.options import ClusterOptions
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
    source.refuse_outputs(options.model, folder)
    with warnings_shown(observer):
        options = with_word_classes(
            options, source, lambda told: observer.tell("note", message=told)
        )
    cluster_options = ClusterOptions(
        mode=options.mode,
        address=options.ray,
        workers=options.workers,
        parts=options.parts,
        rounds=options.rounds,
        batch=options.batch,
        blocks=options.blocks,
        checkpoint=folder,
        resume=options.resume,
        every=stages_of(options.every),
        keep_checkpoint=options.keep_checkpoint,
        names=options.names,
        reading=options.reading,
    )
    fitting = ClusterFit(estimator, list(options.data), cluster_options)

    def check(survey: SurveyResult) -> None:
        observer.stop.checked = folder is not None  # else Ctrl-C ends the run at once
        source.bad_lines.state = [survey.skipped, survey.bad, 0, [-1, -1]]
        source.sketch = bytes.fromhex(survey.sketch)
        many = options.multiclass or options.reading.get("multilabel")
        if estimator.task == "regressor" or many or survey.classes is None:
            return
        if not set(survey.classes) <= {-1.0, 0.0, 1.0} or len(survey.classes) > 2:
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
        show(f"interrupted after stage {table.stage}; {advice}", error=True)
        return 130
    model = estimator.model_
    table.close()
    about = {"mode": fitting.mode, "parts": fitting.parts, **fitting.mode_options}
    model = replace(model, parameters={**model.parameters, **about})
    warn_of_bad_lines(source)
    warn_of_collisions(source)
    with warnings_shown(observer):
        write_model(model, options, observer)
        fitting.remove_checkpoint(options.model)
    report(options, model, source, time.perf_counter() - began, None)
    return 0


def _check_options(options: TrainOptions) -> None:
    for name in ("cache", "valid", "metric", "classes", "scale"):
        if getattr(options, name):
            raise ParameterError(f"--{name} cannot be used with --ray or --workers")
