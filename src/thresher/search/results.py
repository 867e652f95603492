"""Results of a search as arrays, by point and split; and names of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.source import Source
from thresher.search.model_groups import ModelResult


def scores_of(
    found: Mapping[tuple[int, int], ModelResult], points: int, splits: int
) -> NDArray[np.float64]:
    """Return the scores as an array of shape (points, splits); NaN where there is no score.

    A point has no scores if its model of all rows failed: it cannot be chosen.

    Parameters
    ----------
    found : mapping
        Results by point and split; split number `splits` is the model of all rows.
    points, splits : int
    """
    scores = np.full((points, splits), np.nan)
    for (point, split), one in found.items():
        if split < splits and not one.failure:
            scores[point, split] = one.scores
    for (point, split), one in found.items():
        if split >= splits and one.failure:
            scores[point] = np.nan
    return scores


def failures_of(
    found: Mapping[tuple[int, int], ModelResult], points: int, splits: int
) -> list[str]:
    """Return, for each point, why it has no error; empty if it has one.

    Parameters
    ----------
    found : mapping
        Results by point and split; split number `splits` is the model of all rows.
    points, splits : int
    """
    failures = [""] * points
    for (point, split), one in sorted(found.items()):
        if one.failure and not failures[point]:
            which = f"without fold {split}" if split < splits else "all rows"
            failures[point] = f"{which}: {one.failure}" if splits > 1 else one.failure
    return failures


def name_features(models: Sequence[Any], source: Source) -> None:
    """Read a source again, and set the names of the features in models.

    Parameters
    ----------
    models : sequence of estimator
        Fitted estimators.
    source : Source
    """
    keys = [model.model_.indices for model in models]
    found = source.names(np.unique(np.concatenate(keys)).tolist())
    for model, own in zip(models, keys, strict=True):
        model.amend(names={key: found[key] for key in own.tolist() if key in found} or None)
