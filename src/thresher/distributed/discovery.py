"""`discover`: feature discovery on a cluster, by adding the evidence of parts."""

from __future__ import annotations

import functools
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone

from thresher.atomic import all_or_nothing
from thresher.data.labels import Labels
from thresher.discovery.evidence import Evidence
from thresher.discovery.feature_discovery import FeatureDiscovery
from thresher.discovery.inputs import labels_of_source, plan_of, shuffled_source
from thresher.discovery.plan import DiscoveryPlan
from thresher.discovery.readings import Readings
from thresher.distributed.options import ClusterOptions
from thresher.distributed.ray.cluster import Cluster
from thresher.distributed.shards import Shards, find_shards
from thresher.distributed.survey import map_in_process
from thresher.training.observer import Observer
from thresher.training.run_options import RunOptions


def discover(
    discovery: FeatureDiscovery,
    data: Any,
    *,
    address: str | None = None,
    workers: int | None = None,
    parts: int | None = None,
    classes: Any = None,
    **reading: Any,
) -> FeatureDiscovery:
    r"""Discover features in files on a Ray cluster.

    Each part of the rows has models and redraws of its own; their evidence is added. The result
    depends on the parts, but not on the number of workers. The models of a part learn only its own
    rows: with many small parts they explain less, and fewer features with effect are found. A part
    whose worker is lost is read again by another worker.

    Parameters
    ----------
    discovery : FeatureDiscovery
        All its parameters are used, except `n_jobs`.
    data : path, glob or sequence of them
        Files that all workers can read.
    address : str, optional
        Address of the cluster, as for `fit`.
    workers : int, optional
        0: without a cluster, in this process. By default all processors of the cluster.
    parts : int, optional
        Number of parts, of about the same size. By default each file is a part.
    classes : array, optional
        All labels, as for ``FeatureDiscovery.fit``.
    **reading
        Options of `scan`, such as ``bits`` and ``format``.

    Returns
    -------
    FeatureDiscovery
        The given one, fitted.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from thresher import FeatureDiscovery
    >>> from thresher.distributed import discover
    >>> rng = np.random.default_rng(1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in range(2):
    ...         X = rng.random((1000, 50)) < 0.2
    ...         y = np.where(2 * X[:, 3] + rng.logistic(size=1000) > 0.4, 1, -1)
    ...         rows = [f"{y[i]} " + " ".join(f"{j + 1}:1" for j in np.flatnonzero(X[i]))
    ...                 for i in range(1000)]
    ...         _ = pathlib.Path(folder, f"part-{number}.svm").write_text("\n".join(rows) + "\n")
    ...     found = discover(
    ...         FeatureDiscovery(random_state=0), f"{folder}/part-*.svm", workers=0
    ...     )
    >>> found.selected_.tolist()
    [3]
    """
    ClusterOptions(address=address, workers=workers, parts=parts, reading=reading).check()
    shards = find_shards(data, reading, parts, None)
    whole = _source_of(shards)
    with all_or_nothing(discovery):
        labels = labels_of_source(discovery, whole, classes)
        plan = plan_of(discovery, whole, labels)
        limit = discovery.memory_limit
        work = functools.partial(
            _measured, discovery=clone(discovery), labels=labels, plan=plan, memory_limit=limit
        )
        items = [PartOfDiscovery(shards.single_part(part), part) for part in range(shards.parts)]
        if workers == 0:
            found = map_in_process(work, items)
        else:
            with Cluster.connect(address, workers) as cluster:
                found = cluster.map(work, items)
        evidence = Evidence.total(found)
        evidence.refuse_one_class()  # a part may have rows of one class
        discovery.take(evidence, whole, Observer())
    return discovery


@dataclass(frozen=True)
class PartOfDiscovery:
    """Task of a worker: measure the evidence of the one part of `shards`.

    Attributes
    ----------
    shards : Shards
    number : int
        Number of the part.
    """

    shards: Shards
    number: int


def _measured(
    item: PartOfDiscovery,
    discovery: FeatureDiscovery,
    labels: Labels,
    plan: DiscoveryPlan,
    memory_limit: float | None,
) -> Evidence:
    """Return the evidence of a part; its redraws have a seed of their own."""
    own = deepcopy(labels)  # as on another machine
    readings = Readings(replace(plan, seed=plan.seed + (item.number << 32)), own, 1, memory_limit)
    readings.run(shuffled_source(discovery, item.shards.source(0), plan), RunOptions())
    return readings.evidence()


def _source_of(shards: Shards) -> Any:
    """Return the rows of all parts as one source."""
    every = tuple(shard for group in shards.groups for shard in group)
    return replace(shards, groups=(every,)).source(0)
