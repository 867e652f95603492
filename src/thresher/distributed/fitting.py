"""`fit`: train an estimator on a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from thresher.atomic import all_or_nothing
from thresher.distributed.cluster_fit import ClusterFit
from thresher.distributed.engine.loop import StageReport
from thresher.distributed.options import ClusterOptions


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
    keep_checkpoint: bool = False,
    patience: float = 60.0,
    watch: Callable[[StageReport], Any] | None = None,
    **reading: Any,
) -> Any:
    r"""Fit an estimator to files on a Ray cluster, and return it.

    The result is bit-identical for any number of workers, without a cluster, and after any failure.
    It depends on the parts into which the rows are divided: by default, each file is a part.

    Parameters
    ----------
    estimator : StabilizedClassifier, or one that learns row by row
        All its parameters are used, except `n_jobs`.
    data : path, glob, sequence of them, or Ray Dataset
        Files that all workers can read: svmlight, VW text, Parquet, caches. CSV, Arrow and
        compressed files are not divided. A dataset is first written to the checkpoint's folder.
    mode : {"stages", "average", "columns"}, optional
        "stages": the stabilized rule; each path uses the rows of one part. "average": any rule that
        learns row by row; all parts start from the same weights, and their weights are averaged,
        for each feature in proportion to a part's updates. "columns": the margin perceptron, with
        its features distributed over workers. By default "stages" for StabilizedClassifier and
        "average" for others.
    address : str, optional
        Address of the cluster: "auto", "local" or "HOST:PORT". By default the cluster that this
        process is connected to, or that of RAY_ADDRESS, or else a new one on this machine.
    workers : int, optional
        Number of processes. By default one for each node ("stages") or for each processor. 0: train
        in this process, without a cluster.
    parts : int, optional
        Number of parts, of about the same size. By default each file is a part.
    rounds : int, optional
        Rounds in a pass ("average"): weights are averaged after each. By default 1.
    batch : int, optional
        Rows between two exchanges ("columns"). 1 is the rule itself. More rows are another
        algorithm: its inner products use the weights before the batch. By default a 16th of the
        rows, at least 64 and at most 4096.
    blocks : int, optional
        Number of blocks of features ("columns"). With a `batch` above 1 the result depends on it,
        but not on the number of workers. By default 8.
    checkpoint : path, optional
        A folder for checkpoints of this run, shared by all workers. A run that was interrupted in
        any way can be resumed from it.
    resume : bool
        Continue from the checkpoint; without one, start from the beginning.
    every : int, optional
        Stages between two checkpoints. By default 1; with ``variant="paper"`` up to 50, so that
        there are about a million rows between them. When a worker is lost, only its own work since
        the checkpoint is repeated; if more than 1 GiB was sent since then, the work of all workers.
    keep_checkpoint : bool
        Keep the checkpoint after the end. By default its files are removed when the fit has
        finished, and the folder too, if it is empty then.
    patience : float
        Seconds to wait for a lost worker before its work is given to others.
    watch : callable, optional
        Called with a `StageReport` after each stage. If it returns True, a checkpoint is written,
        the run stops, and `ContinueLater` is raised.
    **reading
        Options of `scan`, such as ``bits`` and ``format``.

    Returns
    -------
    estimator
        The given one, fitted.

    Raises
    ------
    ParameterError, DataError, ModelFileError
        As for `fit` of the estimator; also if data have changed since the checkpoint, or another
        run uses its folder.
    ClusterError
        Ray is missing, the cluster cannot be reached, or no worker is left.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from thresher import FTRLClassifier
    >>> from thresher.distributed import fit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in range(4):
    ...         file = pathlib.Path(folder, f"clicks-{number}.svm")
    ...         _ = file.write_text("1 3:1 7:1\n-1 5:1 7:1\n" * 100)
    ...     estimator = FTRLClassifier(l1=1, passes=2, random_state=0)
    ...     clf = fit(estimator, f"{folder}/clicks-*.svm", workers=0)
    >>> sorted(clf.model_.indices.tolist())
    [2, 4]
    """
    options = ClusterOptions(
        mode=mode,
        address=address,
        workers=workers,
        parts=parts,
        rounds=rounds,
        batch=batch,
        blocks=blocks,
        checkpoint=None if checkpoint is None else os.fspath(checkpoint),
        resume=resume,
        every=every,
        keep_checkpoint=keep_checkpoint,
        patience=patience,
        reading=reading,
    )
    fitting = ClusterFit(estimator, data, options)
    with all_or_nothing(estimator):
        fitting.run(watch)
    fitting.remove_checkpoint()
    return estimator
