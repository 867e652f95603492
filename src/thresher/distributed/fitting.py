"""`fit`: an estimator, files, and a cluster -> the estimator, fitted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from thresher.atomic import all_or_nothing
from thresher.data.read_options import ReadOptions
from thresher.distributed.engine import manifest as manifests
from thresher.distributed.engine.executor import InProcessExecutor
from thresher.distributed.engine.folder import CheckpointFolder, locked_folder
from thresher.distributed.engine.loop import ClusterRun, StageReport, run_stages
from thresher.distributed.engine.manifest import Manifest
from thresher.distributed.engine.pieces import ClusterJob, Mode
from thresher.distributed.handover import hand_over
from thresher.distributed.modes.divergence import StageCallback, watching_divergence
from thresher.distributed.modes.table import OWN, checked_params, make_modes, mode_of
from thresher.distributed.ray.cluster import Cluster
from thresher.distributed.ray.dataset import dataset_to_files, is_dataset
from thresher.distributed.ray.executor import RayExecutor
from thresher.distributed.shards import Shards, find_shards
from thresher.distributed.survey import (
    MapItems,
    SurveyResult,
    find_names,
    map_in_process,
    survey_shards,
    surveyed_labels,
)
from thresher.errors import ParameterError, setting
from thresher.rules import core_args
from thresher.training.fitting import without_weights
from thresher.training.observer import Observer
from thresher.training.seeds import stream_seed

_RANGES = 32  # at most: each gets a message from every worker in every stage (docs/cluster.md)

Note = Callable[[str], Any]


@dataclass(frozen=True)
class ClusterOptions:
    """How a fit on a cluster is to go; `fit` documents it."""

    mode: str | None = None
    address: str | None = None
    workers: int | None = None
    parts: int | None = None
    rounds: int | None = None
    batch: int | None = None
    blocks: int | None = None
    checkpoint: str | None = None
    resume: bool = False
    every: int | None = None
    patience: float = 60.0
    names: bool = True
    reading: dict[str, Any] = field(default_factory=dict)


def fit(
    estimator: Any,
    data: Any,
    mode: str | None = None,
    *,
    address: str | None = None,
    workers: int | None = None,
    parts: int | None = None,
    rounds: int | None = None,
    batch: int | None = None,
    blocks: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    every: int | None = None,
    patience: float = 60.0,
    watch: Callable[[StageReport], Any] | None = None,
    **reading: Any,
) -> Any:
    r"""Fit an estimator to files that a cluster reads, and return it.

    The result is the same, bit for bit, for any number of workers, without a cluster, and after any
    failure. It depends on the parts into which the rows are cut: by default, the files.

    Parameters
    ----------
    estimator : StabilizedClassifier, or one that learns row by row
        Its parameters hold; `n_jobs` does not.
    data : path, glob, sequence of them, or Ray Dataset
        Files that all workers can read: svmlight, VW text, Parquet, caches; CSV, Arrow and packed
        files are read as wholes. A dataset is written to the checkpoint's folder first.
    mode : {"stages", "average", "columns"}, optional
        "stages": the stabilized rule, whose paths each walk the rows of one part. "average": any
        rule that learns row by row; parts learn from the same weights, which are then averaged,
        each feature by how often a part has updated it. "columns": the margin perceptron, with
        features spread over workers. By default what fits the estimator: the first, or the second.
    address : str, optional
        Of the cluster: "auto", "local" or "HOST:PORT". By default the one that
        Ray is connected to, else that of RAY_ADDRESS, else one is started on this machine.
    workers : int, optional
        Processes. By default one for each node (stages), or for each processor. 0: no cluster, all
        is done in this process.
    parts : int, optional
        Into how many parts of about the same size rows are cut. By default, each file is one.
    rounds : int, optional
        Averages in a pass ("average"). By default 1.
    batch : int, optional
        Rows between two exchanges ("columns"). 1 is the rule itself; more are another algorithm,
        whose products are of the weights before the batch. By default a 16th of the rows, at least
        64 and at most 4096.
    blocks : int, optional
        Into how many blocks features are cut ("columns"), whatever the number of workers; for a
        `batch` above 1 the result depends on it. By default 8.
    checkpoint : path, optional
        A folder that all workers see, for this run alone. It can go on from there after anything.
    resume : bool
        Go on from the checkpoint; without one, start from the beginning.
    every : int, optional
        Stages between two checkpoints. By default each one, but of ``variant="paper"`` up to 50, so
        that about a million rows lie between them. Where more than 1 GiB was sent since the last, a
        worker that is lost takes all others back to it; else it takes up its own work again.
    patience : float
        Seconds to wait for a lost worker before others take its work.
    watch : callable, optional
        Is told of each stage by a `StageReport`; where it returns True, the run stops behind a
        checkpoint, and raises `ContinueLater`.
    **reading
        Options of `scan`, such as ``bits`` and ``format``.

    Returns
    -------
    estimator
        The one that was given, fitted.

    Raises
    ------
    ParameterError, DataError, ModelFileError
        As of `fit` of the estimator; also where data have changed since the checkpoint, or another
        run uses its folder.
    ClusterError
        Ray is missing, or the cluster cannot be reached, or has no worker left.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from thresher import FTRLClassifier
    >>> from thresher.distributed import fit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in range(4):
    ...         file = pathlib.Path(folder, f"clicks-{number}.svm")
    ...         _ = file.write_text("1 3:1 7:1\n-1 5:1 7:1\n" * 100)
    ...     clf = fit(FTRLClassifier(passes=2), f"{folder}/clicks-*.svm", workers=0)
    >>> sorted(clf.model_.indices.tolist())
    [2, 4]
    """
    wishes = ClusterOptions(
        mode, address, workers, parts, rounds, batch, blocks,
        None if checkpoint is None else os.fspath(checkpoint), resume, every, patience,
        reading=reading,
    )  # fmt: skip
    fitting = ClusterFit(estimator, data, wishes)
    with all_or_nothing(estimator):
        return fitting.run(watch)


class ClusterFit:
    """The steps of a fit: check, connect, find the shards, agree, run, hand over.

    Parameters
    ----------
    estimator : LinearEstimator
    data : as of `fit`
    wishes : ClusterOptions

    Attributes
    ----------
    mode : str
    parts : int
        Known once it has run, as is:
    chosen : dict
        Options of the mode alone: `rounds`, `batch`, `blocks`.
    """

    def __init__(self, estimator: Any, data: Any, wishes: ClusterOptions) -> None:
        self.estimator, self.data, self.wishes = estimator, data, wishes
        self.mode = mode_of(estimator, wishes.mode)
        self.parts, self.chosen = 0, dict[str, int]()
        self._params = checked_params(estimator, self.mode)
        self._own = _own_options(self.mode, wishes)
        self._seed = stream_seed(estimator.random_state, type(estimator).__name__)
        self._loss = core_args.loss_of(estimator.rule, self._params)
        if wishes.every is not None and (type(wishes.every) is not int or wishes.every < 1):
            raise ParameterError(
                parameter="every", value=wishes.every, allowed="a whole number of 1 or more"
            )
        if wishes.every is not None and wishes.checkpoint is None:
            raise ParameterError(
                (setting("every"), " needs ", setting("checkpoint"), ", a folder to write "
                 "checkpoints to"),
                parameter="every",
                value=wishes.every,
            )  # fmt: skip
        known = [field.name for field in fields(ReadOptions)]
        for name in wishes.reading:
            if name not in known:
                raise ParameterError(
                    f"{name!r} is no option of fit, nor of reading: those are {', '.join(known)}"
                )
        if wishes.resume and wishes.checkpoint is None:
            raise ParameterError(
                (setting("resume", True), " needs the folder of a checkpoint to go on from"),
                parameter="checkpoint",
            )
        if is_dataset(data) and wishes.checkpoint is None:
            raise ParameterError("a Ray Dataset needs checkpoint=, a folder to write its rows to")

    def run(
        self,
        watch: StageCallback | None = None,
        check: Callable[[SurveyResult], None] | None = None,
        note: Note | None = None,
    ) -> Any:
        """Do all of it, and return the estimator.

        Parameters
        ----------
        watch : callable, optional
            As of `fit`.
        check : callable, optional
            Is given what the first scan has found, and may raise an error.
        note : callable, optional
            Is told in words what happens besides stages.
        """
        tell = note or (lambda message: None)
        with self._held(), self._connected(tell) as cluster:
            spread = map_in_process if cluster is None else cluster.spread
            shards = self._shards()
            self.parts = shards.parts
            tell(f"{shards.parts} parts of {len(shards.files)} files, {shards.bytes / 1e6:.1f} MB")
            ranges = 1 if cluster is None else min(_RANGES, len(cluster.places(shards.parts)))
            manifest = self._agreed(shards, spread, ranges)
            agreed = manifest.agreed
            assert agreed is not None
            if check is not None:
                check(agreed)
            job = self._job(shards, agreed, manifest.options["ranges"])
            driven, watch = [], watching_divergence(job, watch)
            for output, mode in enumerate(make_modes(job, self.mode, self._own)):
                self.chosen = {name: getattr(mode, name) for name in OWN if hasattr(mode, name)}
                folder = self._folder(output, job)
                driven.append(self._drive(mode, cluster, folder, watch, note))
            names = None
            if agreed.named and self.wishes.names:
                outputs = [found for one in driven for found in one.learned.outputs]
                keys = np.unique(np.concatenate([output.keys for output in outputs]))
                names = find_names(shards, keys.tolist(), spread)
        hand_over(self.estimator, job, agreed, shards, driven, names)
        if self.mode == "average" and self.estimator.model_.nnz == 0:
            Observer().warn(without_weights(type(self.estimator).__name__))
        return self.estimator

    def _held(self) -> contextlib.AbstractContextManager[None]:
        folder = self.wishes.checkpoint
        return contextlib.nullcontext() if folder is None else locked_folder(folder)

    @contextlib.contextmanager
    def _connected(self, tell: Note) -> Iterator[Cluster | None]:
        wishes = self.wishes
        if wishes.workers == 0:
            yield None
            return
        tell(f"connecting to Ray ({wishes.address or 'no address given'})")
        with Cluster.connect(wishes.address, wishes.workers, self.mode == "stages") as cluster:
            yield cluster

    def _shards(self) -> Shards:
        wishes, files, most = self.wishes, self.data, None
        if is_dataset(files):
            assert wishes.checkpoint is not None
            files = dataset_to_files(files, wishes.checkpoint, wishes.resume)
        if self.mode == "stages":  # a path, or a pair of them, has the rows of one part
            most = int(self._params["paths"]) // (2 if self._params["variant"] == "robust" else 1)
        return find_shards(files, wishes.reading, wishes.parts, most)

    def _agreed(self, shards: Shards, spread: MapItems, ranges: int) -> Manifest:
        """Return the manifest of the run: the one it goes on from, or a new one."""
        folder = self.wishes.checkpoint
        before = (
            None if folder is None else manifests.manifest_to_resume(folder, self.wishes.resume)
        )
        if before is not None:
            ranges = before.options["ranges"]  # no matter how many workers there are now
            if self._params.get("random_state") is None:  # any seed will do, so this one
                self._seed = before.options["seed"]
        values = {k: v for k, v in self._params.items() if k not in ("callback", "n_jobs")}
        options = {"mode": self.mode, "rule": self.estimator.rule, "ranges": ranges} | self._own
        options |= {"seed": self._seed} | {k: v for k, v in values.items() if k != "random_state"}
        now = Manifest.of(options, shards)
        if before is not None:
            assert folder is not None
            manifests.check(before, now, folder, spread)
            return before
        dtype = str(self._params.get("dtype", "float64"))
        found = survey_shards(
            shards, spread, task=self.estimator.task, loss=self._loss, dtype=dtype
        )
        now = replace(now, agreed=found)
        if folder is not None:
            now.write(folder)
        return now

    def _job(self, shards: Shards, agreed: SurveyResult, ranges: int) -> ClusterJob:
        if agreed.width == 2**64 and self._params.get("store") == "dense":
            raise ParameterError(
                ("features with names need ", setting("store", "hashed"), ", or ",
                 setting("bits", call="fit"), " to number them"),
                owner=type(self.estimator).__name__,
                parameter="store",
                value="dense",
            )  # fmt: skip
        estimator, multilabel = self.estimator, bool(shards.reading.get("multilabel"))
        checkpoint = self.wishes.checkpoint
        labels = surveyed_labels(estimator.task, self._loss, multilabel, agreed)
        return ClusterJob(
            rule=estimator.rule,
            task=estimator.task,
            params=_decided(self._params, agreed, multilabel),
            rows=shards,
            labels=labels,
            width=0 if agreed.width == 2**64 else agreed.width,
            counts=agreed.rows,
            seed=self._seed,
            ranges=ranges,
            folder=checkpoint and os.path.abspath(checkpoint),
        )

    def _folder(self, output: int, job: ClusterJob) -> CheckpointFolder | None:
        """Return where the states of an output's pieces go."""
        if self.wishes.checkpoint is None:
            return None
        several = self.mode != "average" and job.labels.outputs > 1
        path = os.path.abspath(self.wishes.checkpoint)
        return CheckpointFolder(os.path.join(path, f"output-{output:05}") if several else path)

    def _drive(
        self,
        mode: Mode,
        cluster: Cluster | None,
        folder: CheckpointFolder | None,
        watch: StageCallback | None,
        note: Note | None,
    ) -> ClusterRun:
        wishes = self.wishes
        every = wishes.every or mode.every
        if folder is not None:
            os.makedirs(folder.path, exist_ok=True)
        committed = None if folder is None else folder.committed()
        if cluster is None:
            threads = os.cpu_count() or 1 if mode.threaded else 1
            alone = InProcessExecutor(mode, folder, 1, threads)
            alone.note = note or alone.note
            return run_stages(mode, alone, folder, every, committed, watch)
        with RayExecutor(mode, folder, cluster, wishes.patience, note) as executor:
            return run_stages(mode, executor, folder, every, committed, watch)


def _own_options(mode: str, wishes: ClusterOptions) -> dict[str, int]:
    """Return the options that are given and that this mode has, and no other."""
    own = {}
    for name, owner in OWN.items():
        given = getattr(wishes, name)
        if given is None:
            continue
        if owner != mode:
            raise ParameterError(
                (setting(name), " goes with ", setting("mode", owner), f", and this is {mode!r}"),
                parameter=name,
                value=given,
            )
        if type(given) is not int or given < 1:
            raise ParameterError(parameter=name, value=given, allowed="a whole number of 1 or more")
        own[name] = given
    return own


def _decided(params: dict[str, Any], agreed: SurveyResult, multilabel: bool) -> dict[str, Any]:
    """Return parameters with what the scan decides: store="auto", class_weight="balanced"."""
    if params.get("store") == "auto":
        params = {**params, "store": "hashed" if agreed.width == 2**64 else "dense"}
    if params.get("class_weight") is None:
        return params
    if multilabel:
        raise ParameterError(
            (setting("class_weight"), " does not go with lists of labels"),
            parameter="class_weight",
        )
    if params["class_weight"] != "balanced":
        return params
    assert agreed.classes is not None
    assert agreed.counts is not None
    share = sum(agreed.rows) / len(agreed.classes)
    weights = {c: share / n for c, n in zip(agreed.classes, agreed.counts, strict=True)}
    return {**params, "class_weight": weights}
