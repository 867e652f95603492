"""Results of a search as arrays, by point and split; warnings about them; names of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import FitFailedWarning

from thresher.data.source import Source
from thresher.errors import DivergenceError
from thresher.health.watch import DivergenceWarning, DivergenceWatch
from thresher.search.grid import GridPoint, zero_loss_of
from thresher.search.model_groups import ModelResult
from thresher.training.observer import Observer


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


def warn_of_failures(
    points: Sequence[GridPoint], found: Mapping[tuple[int, int], ModelResult], error_score: Any
) -> None:
    """Warn of models that failed; raise DivergenceError if all did, or if the user wants it.

    Parameters
    ----------
    points : sequence of GridPoint
    found : mapping
        Results by point and split.
    error_score : float or "raise"
    """
    failures = {key: one.failure for key, one in sorted(found.items()) if one.failure}
    if not failures:
        return
    number, split = min(failures)
    first = f"{points[number].chosen} on split {split}: {failures[number, split]}"
    if error_score == "raise":
        raise DivergenceError(first)
    if len(failures) == len(found):
        raise DivergenceError(f"all models of the grid failed; the first is {first}")
    which = "; ".join(str(points[n].chosen) for n in sorted({n for n, _ in failures})[:10])
    Observer().warn(
        f"{len(failures)} of {len(found)} models failed and score {error_score}. "
        f"Parameters: {which}. The first is {first}",
        FitFailedWarning,
    )


def warn_of_divergence(best: GridPoint, models: Sequence[ModelResult]) -> None:
    """Warn if models of the best point diverged: labels may be right with huge predictions.

    Models that were fitted separately have no record here; their own fits have warned.

    Parameters
    ----------
    best : GridPoint
        A point of a classifier.
    models : sequence of ModelResult
    """
    records = [one.record for one in models if one.record]
    if records and best.diverges:
        seen = (DivergenceWatch(zero_loss_of(best)).see(record) for record in records)
        for message in filter(None, seen):
            Observer().warn(f"{best.chosen} scores best, but {message}", DivergenceWarning)
            return


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
