"""Estimates of the memory of lanes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from thresher.threads import threads_of
from thresher.training.lane_turns import Turns
from thresher.training.lanes import Lane, make_lanes

_SAMPLED = 240  # lanes whose memory is measured; it is extrapolated to more lanes
_INDEX = 64.0  # bytes per feature of a hashed store, besides its lines (which are half empty)
_TABLE = 88.0  # largest number of bytes per feature in the table of a lane without shared lines
_PROBED = 1024  # features of the lanes that are measured


def bytes_per_feature(rule: str, store: str, dtype: str, lanes: Sequence[Lane]) -> float:
    """Estimate the bytes per feature of these lanes, by making some of them.

    Lanes that share lines need less memory than separate ones. A hashed store also holds the
    features' numbers and empty slots.

    Examples
    --------
    >>> from thresher import AveragedSGDClassifier
    >>> from thresher.rules import core_args
    >>> from thresher.training.lanes import Lane
    >>> params = AveragedSGDClassifier(alpha=1e-4).get_params()
    >>> lane = Lane(*core_args.core_parameters("averaged-sgd", params, None))
    >>> 8 <= bytes_per_feature("averaged_sgd", "dense", "float32", [lane]) <= 64
    True
    """
    sample = list(lanes[:_SAMPLED])
    if not sample:
        return 0.0
    scale = len(lanes) / len(sample)
    small, large = (make_lanes(rule, "dense", dtype, _PROBED * k, sample) for k in (1, 2))
    dense = (large.store_bytes - small.store_bytes) / _PROBED * scale
    if store == "dense":
        return dense
    alone = small.layouts.count("alone")
    return 2.0 * dense + _INDEX * (alone < len(sample)) + _TABLE * alone * scale


def bytes_of(
    rule: str,
    store: str,
    dtype: str,
    lanes: Sequence[Lane],
    features: int,
    n_jobs: int | None = None,
) -> int:
    """Estimate the memory of a team of lanes.

    Parameters
    ----------
    rule, store, dtype, lanes, n_jobs
        As for `LaneTeam`.
    features : int
        Number of features in the store.
    """
    shares = Turns.of([lane.clock for lane in lanes], threads_of(n_jobs)).parts
    each = (
        bytes_per_feature(rule, store, dtype, [lanes[lane] for lane in share]) for share in shares
    )
    return math.ceil(sum(each) * max(features, 1))
