"""`fit`: an estimator, files, and a cluster -> the estimator, fitted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.atomic import all_or_nothing
from thresher.distributed.agreeing import Agreed, agree, agreed_labels, names_of
from thresher.distributed.average import Average
from thresher.distributed.columns import Columns
from thresher.distributed.crew import Crew, InProcess
from thresher.distributed.driving import Driven, StageReport, drive
from thresher.distributed.folder import Folder
from thresher.distributed.manifest import Manifest, begin_folder
from thresher.distributed.paper_stages import PaperStages
from thresher.distributed.pieces import Job, Learned, Mode
from thresher.distributed.robust_stages import RobustStages
from thresher.distributed.shards import Shards, dataset_to_files, find_shards
from thresher.errors import ParameterError
from thresher.estimators.linear import Elsewhere, LinearEstimator
from thresher.estimators.stabilized import StabilizedClassifier
from thresher.estimators.streaming import StreamingEstimator
from thresher.health.watch import DivergenceWatch
from thresher.model import Progress

if TYPE_CHECKING:
    from thresher.distributed.ray_crew import Cluster

MODES = ("stages", "average", "columns")


@dataclass(frozen=True)
class Wishes:
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
    """Fit an estimator to files that a cluster reads, and return it.

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
        Of the cluster: "auto", "local", "HOST:PORT" or "ray://HOST:PORT". By default the one that
        Ray is connected to, else that of RAY_ADDRESS, else one is started on this machine.
    workers : int, optional
        Processes. By default one for each node (stages), or for each processor. 0: no cluster, all
        is done in this process.
    parts : int, optional
        Into how many parts of about the same size rows are cut. By default, each file is one.
    rounds : int, optional
        Averages in a pass ("average").
    batch : int, optional
        Rows between two exchanges ("columns"). 1 is the rule itself; more are another algorithm,
        whose products are of the weights before the batch.
    blocks : int, optional
        Into how many blocks features are cut ("columns"), whatever the number of workers.
    checkpoint : path, optional
        A folder that all workers see. The run can go on from there after anything.
    resume : bool
        Go on from the checkpoint; without one, start from the beginning.
    every : int, optional
        Stages between two checkpoints.
    patience : float
        Seconds to wait for a lost worker before others take its work.
    watch : callable, optional
        Is told of each stage by a `StageReport`; where it returns True, the run stops behind a
        checkpoint, and raises `Interrupted`.
    **reading
        Options of `scan`, such as ``bits`` and ``format``.

    Returns
    -------
    estimator
        The one that was given, fitted.

    Raises
    ------
    ParameterError, DataError, ModelFileError
        As of `fit` of the estimator; also where data have changed since the checkpoint.
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
    ...         _ = file.write_text("1 3:1 7:1\\n-1 5:1 7:1\\n" * 100)
    ...     clf = fit(FTRLClassifier(passes=2), f"{folder}/clicks-*.svm", workers=0)
    >>> sorted(clf.model_.indices.tolist())
    [2, 4]
    """
    wishes = Wishes(
        mode, address, workers, parts, rounds, batch, blocks,
        None if checkpoint is None else os.fspath(checkpoint), resume, every, patience, reading,
    )  # fmt: skip
    with all_or_nothing(estimator):
        return Fitting(estimator, data, wishes).run(watch)


class Fitting:
    """The steps of a fit: check, find the shards, connect, agree, run, hand over.

    Parameters
    ----------
    estimator : LinearEstimator
    data : as of `fit`
    wishes : Wishes
    """

    def __init__(self, estimator: Any, data: Any, wishes: Wishes) -> None:
        self.estimator, self.data, self.wishes = estimator, data, wishes
        self.owner = type(estimator).__name__
        self.mode = _mode_of(estimator, wishes)
        self.params = _checked_params(estimator, self.mode)
        self.seed = int(estimator._generator().integers(2**31))

    def run(
        self,
        watch: Callable[[StageReport], Any] | None = None,
        check: Callable[[Agreed], None] | None = None,
        note: Callable[[str], None] | None = None,
    ) -> Any:
        """Do all of it.

        Parameters
        ----------
        watch : callable, optional
            As of `fit`.
        check : callable, optional
            Is given what the first scan has found, and may raise an error.
        note : callable, optional
            Is told in words what happens besides stages.
        """
        with self._connected(note) as cluster:
            spread = _in_turn if cluster is None else cluster.spread
            shards = self._shards()
            folder, agreed = self._agreed(shards, spread, cluster)
            if check is not None:
                check(agreed)
            job = self._job(shards, agreed, cluster)
            driven = [
                self._drive(mode, cluster, folder, output, watch)
                for output, mode in enumerate(self._modes(job))
            ]
            learned = [one.learned for one in driven]
            outputs = [output for one in learned for output in one.outputs]
            names = None
            if shards.named:
                keys = np.unique(np.concatenate([output.keys for output in outputs]))
                names = names_of(shards, keys, spread)
        self._hand_over(job, learned, driven, names)
        return self.estimator

    @contextlib.contextmanager
    def _connected(self, note: Callable[[str], None] | None) -> Iterator[Cluster | None]:
        if self.wishes.workers == 0:
            yield None
            return
        from thresher.distributed.ray_crew import Cluster

        wishes = self.wishes
        threaded = self.mode == "stages"
        with Cluster.connect(wishes.address, wishes.workers, threaded, wishes.patience, note) as c:
            yield c
