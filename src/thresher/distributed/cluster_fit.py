"""The steps of a fit on a cluster."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from thresher.atomic import clear_leftovers
from thresher.disk_sync import sync_file
from thresher.distributed.engine import manifest as manifests
from thresher.distributed.engine.executor import InProcessExecutor
from thresher.distributed.engine.folder import CheckpointFolder, locked_folder
from thresher.distributed.engine.loop import ClusterRun, StageCallback, run_stages
from thresher.distributed.engine.manifest import Manifest
from thresher.distributed.engine.pieces import ClusterJob, Mode
from thresher.distributed.handover import hand_over
from thresher.distributed.modes.divergence import watching_divergence
from thresher.distributed.modes.table import MODE_OPTIONS, checked_params, choose_mode, make_modes
from thresher.distributed.options import ClusterOptions
from thresher.distributed.ray.cluster import Cluster
from thresher.distributed.ray.dataset import dataset_to_files, is_dataset
from thresher.distributed.ray.executor import RayExecutor
from thresher.distributed.removal import remove_checkpoint
from thresher.distributed.shards import Shards, find_shards
from thresher.distributed.survey import (
    MapItems,
    SurveyResult,
    find_names,
    map_in_process,
    survey_shards,
    surveyed_labels,
)
from thresher.errors import ParameterError, Words, setting
from thresher.health.watch import NoSignalWarning
from thresher.model.evidence import no_signal_text
from thresher.rules import core_args
from thresher.rules.parameter import UNRECORDED
from thresher.threads import available_threads
from thresher.training.no_weights import without_weights
from thresher.training.observer import Observer
from thresher.training.order_watch import order_warning
from thresher.training.outputs_factory import OutputsFactory
from thresher.training.seeds import stream_seed
from thresher.training.target_scale import TargetScale

_MAX_RANGES = 32  # each gets a message from every worker in every stage (docs/cluster.md)

_IN_PARTS = "each worker learns a part of the files: shuffle the rows over all files before"
Note = Callable[[str], Any]


class ClusterFit:
    """A fit on a cluster: check, connect, find the shards, survey, train, give to the estimator.

    Parameters
    ----------
    estimator : LinearEstimator
    data : as for `fit`
    options : ClusterOptions

    Attributes
    ----------
    mode : str
    parts : int
        Number of parts; known after `run`.
    mode_options : dict
        Options of the mode with their defaults: `rounds`, `batch`, `blocks`; known after `run`.
    """

    def __init__(self, estimator: Any, data: Any, options: ClusterOptions) -> None:
        self.estimator, self.data, self.options = estimator, data, options
        self.mode = choose_mode(estimator, options.mode)
        self.parts, self.mode_options = 0, dict[str, int]()
        self._params = checked_params(estimator, self.mode)
        self._given_options = options.of_mode(self.mode)
        self._seed = stream_seed(estimator.random_state, type(estimator).__name__)
        self._loss = core_args.loss_of(estimator.rule, self._params)
        options.check()
        if is_dataset(data) and options.checkpoint is None:
            raise ParameterError("a Ray Dataset needs checkpoint=, a folder to write its rows to")
        self._folder_path = options.checkpoint and os.path.abspath(options.checkpoint)

    def run(
        self,
        watch: StageCallback | None = None,
        check: Callable[[SurveyResult], None] | None = None,
        note: Note | None = None,
    ) -> Any:
        """Do all steps, and return the estimator. The checkpoint stays.

        Parameters
        ----------
        watch : callable, optional
            As for `fit`.
        check : callable, optional
            Called with the result of the survey; may raise an error.
        note : callable, optional
            Called with a text for other events than stages.
        """
        write_note = note or (lambda message: None)
        with self._locked(), self._connected(write_note) as cluster:
            map_items = map_in_process if cluster is None else cluster.map
            shards = self._shards()
            self.parts = shards.parts
            size = f"{shards.bytes / 1e6:.1f} MB"
            write_note(f"{shards.parts} parts of {len(shards.files)} files, {size}")
            ranges = 1
            if cluster is not None:
                ranges = min(_MAX_RANGES, len(cluster.worker_slots(shards.parts)))
            manifest = self._manifest(shards, map_items, ranges)
            survey = manifest.survey
            assert survey is not None
            if check is not None:
                check(survey)
            self._warn_of_order(survey)
            job = self._job(shards, survey, manifest.options["ranges"])
            runs, watch = [], watching_divergence(job, watch)
            for output, mode in enumerate(make_modes(job, self.mode, self._given_options)):
                self.mode_options = {
                    name: getattr(mode, name) for name in MODE_OPTIONS if hasattr(mode, name)
                }
                folder = self._folder(output, job)
                runs.append(self._run_mode(mode, cluster, folder, watch, note))
            names = None
            if survey.named and self.options.names:
                outputs = [output for run in runs for output in run.learned.outputs]
                keys = np.unique(np.concatenate([output.keys for output in outputs]))
                names = find_names(shards, keys.tolist(), map_items)
        hand_over(self.estimator, job, survey, shards, runs, names)
        if self.mode == "average" and self.estimator.model_.nnz == 0:
            Observer().warn(without_weights(type(self.estimator).__name__))
        if silent := no_signal_text(self.estimator.model_):
            Observer().warn(f"{type(self.estimator).__name__}: {silent}", NoSignalWarning)
        return self.estimator

    def _warn_of_order(self, survey: SurveyResult) -> None:
        """Warn if rows are ordered by their labels. Only the mode columns shuffles all rows."""
        whole, shuffle = self.mode == "columns", self._params.get("shuffle")
        if survey.ordered is None or (whole and shuffle is not False):
            return
        remedy: Words = ("set ", setting("shuffle", "each")) if whole else _IN_PARTS
        Observer().warn(order_warning(survey.ordered, remedy))

    def remove_checkpoint(self, *results: str) -> None:
        """Remove the checkpoint of the finished run, unless it is to be kept.

        If that fails, or the files of the results are not on the disk, there is a warning, and the
        checkpoint stays.
        """
        if self._folder_path is not None:
            for result in results:
                clear_leftovers(result)
        if self._folder_path is None or self.options.keep_checkpoint:
            return
        try:
            for result in results:
                sync_file(result)
            remove_checkpoint(self._folder_path, with_dataset=is_dataset(self.data))
        except (OSError, ValueError) as error:
            Observer().warn(f"the checkpoint {self._folder_path} could not be removed: {error}")

    def _locked(self) -> contextlib.AbstractContextManager[None]:
        folder = self.options.checkpoint
        return contextlib.nullcontext() if folder is None else locked_folder(folder)

    @contextlib.contextmanager
    def _connected(self, write_note: Note) -> Iterator[Cluster | None]:
        options = self.options
        if options.workers == 0:
            yield None
            return
        write_note(f"connecting to Ray ({options.address or 'no address given'})")
        with Cluster.connect(options.address, options.workers, self.mode == "stages") as cluster:
            yield cluster

    def _shards(self) -> Shards:
        options, files, most = self.options, self.data, None
        if is_dataset(files):
            assert options.checkpoint is not None
            files = dataset_to_files(files, options.checkpoint, options.resume)
        if self.mode == "stages":  # each part needs a path, or for the robust variant a pair
            most = int(self._params["paths"]) // (2 if self._params["variant"] == "robust" else 1)
        return find_shards(files, options.reading, options.parts, most)

    def _manifest(self, shards: Shards, map_items: MapItems, ranges: int) -> Manifest:
        """Return the manifest of the run that is resumed, or a new manifest."""
        folder, before = self.options.checkpoint, None
        if folder is not None:
            before = manifests.manifest_to_resume(folder, self.options.resume)
        if before is not None:
            ranges = before.options["ranges"]  # even if the number of workers has changed
            if self._params.get("random_state") is None:  # any seed is allowed
                self._seed = before.options["seed"]
        scale = self._scale()
        if before is not None and (before.survey is None or before.survey.targets is None):
            scale = None  # as in version 0.1.0
        free = ("callback", *UNRECORDED, *core_args.OF_THE_FIT)
        values = {k: v for k, v in self._params.items() if k not in free}
        options = {"mode": self.mode, "rule": self.estimator.rule, "ranges": ranges}
        options |= self._given_options | {"seed": self._seed}
        options |= {k: v for k, v in values.items() if k != "random_state"}
        now = Manifest.of(options, shards)
        if before is not None:
            assert folder is not None
            manifests.check_same_run(before, now, folder, map_items)
            return before
        dtype = str(self._params.get("dtype", "float64"))
        survey = survey_shards(
            shards, map_items, task=self.estimator.task, loss=self._loss, dtype=dtype, scale=scale
        )
        now = replace(now, survey=survey)
        if folder is not None:
            now.write(folder)
        return now

    def _scale(self) -> TargetScale | None:
        """Return an empty scale of the targets; None: they are not standardised."""
        rule, task = self.estimator.rule, self.estimator.task
        standardised = core_args.standardises(rule, task, self._params)
        return OutputsFactory(rule, self._params, None, 1, 1, standardised).scale()

    def _job(self, shards: Shards, survey: SurveyResult, ranges: int) -> ClusterJob:
        if survey.width == 2**64 and self._params.get("store") == "dense":
            raise ParameterError(
                ("features with names need ", setting("store", "hashed"), ", or ",
                 setting("bits", call="fit"), " to number them"),
                owner=type(self.estimator).__name__,
                parameter="store",
                value="dense",
            )  # fmt: skip
        estimator, multilabel = self.estimator, bool(shards.reading.get("multilabel"))
        return ClusterJob(
            rule=estimator.rule,
            task=estimator.task,
            params=_resolved(self._params, survey, multilabel),
            rows=shards,
            labels=surveyed_labels(estimator.task, self._loss, multilabel, survey),
            width=0 if survey.width == 2**64 else survey.width,
            counts=survey.rows,
            seed=self._seed,
            ranges=ranges,
            folder=self._folder_path,
            known_scale=None if survey.targets is None else tuple(survey.targets),  # type: ignore[arg-type]
        )

    def _folder(self, output: int, job: ClusterJob) -> CheckpointFolder | None:
        """Return the folder for the states of an output's pieces."""
        path = self._folder_path
        if path is None:
            return None
        several = self.mode != "average" and job.labels.outputs > 1
        return CheckpointFolder(os.path.join(path, f"output-{output:05}") if several else path)

    def _run_mode(
        self,
        mode: Mode,
        cluster: Cluster | None,
        folder: CheckpointFolder | None,
        watch: StageCallback | None,
        note: Note | None,
    ) -> ClusterRun:
        every = self.options.every or mode.every
        if folder is not None:
            os.makedirs(folder.path, exist_ok=True)
        committed = None if folder is None else folder.committed()
        if cluster is None:
            threads = available_threads() if mode.threaded else 1
            local = InProcessExecutor(mode, folder, 1, threads)
            local.note = note or local.note
            return run_stages(mode, local, folder, every, committed, watch)
        with RayExecutor(mode, folder, cluster, self.options.patience, note) as executor:
            return run_stages(mode, executor, folder, every, committed, watch)


def _resolved(params: dict[str, Any], survey: SurveyResult, multilabel: bool) -> dict[str, Any]:
    """Return parameters with the values of store="auto" and class_weight="balanced"."""
    if params.get("store") == "auto":
        params = {**params, "store": "hashed" if survey.width == 2**64 else "dense"}
    if params.get("class_weight") is None:
        return params
    if multilabel:
        raise ParameterError(
            (setting("class_weight"), " cannot be used with lists of labels"),
            parameter="class_weight",
        )
    if params["class_weight"] != "balanced":
        return params
    assert survey.classes is not None
    assert survey.counts is not None
    share = sum(survey.rows) / len(survey.classes)
    weights = {c: share / n for c, n in zip(survey.classes, survey.counts, strict=True)}
    return {**params, "class_weight": weights}
