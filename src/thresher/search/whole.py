"""Models of folds, and of all rows, learned from the same reading of rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.source import Source
from thresher.search.folds import Split
from thresher.search.grid import Point
from thresher.search.matrix import MatrixSearch, Rows
from thresher.search.progress import SearchProgress
from thresher.search.readings import Found, Job, places


@dataclass
class WholeSearch(MatrixSearch):
    """A search whose last split has all rows to learn from: its models are kept, and not scored.

    Attributes
    ----------
    views : dict of int to estimator
        The models of all rows, by the number of their point; those that diverged are not among
        them. The other attributes are those of `MatrixSearch`.
    """

    views: dict[int, Any] = field(default_factory=dict)

    def _score(self, team: Any, batch: Any, jobs: Sequence[Job]) -> Iterator[Any]:
        whole, lanes = len(self.splits) - 1, places(jobs)
        scored = [job for job in jobs if job.split != whole]  # the first: jobs lie by split
        yield from super()._score(team, batch, scored)
        failures = team.divergences
        for i in range(len(scored), len(jobs)):
            failure = next((failures[lane] for lane in lanes[i] if failures[lane]), "")
            if not failure:
                view = self._view(team, jobs[i], lanes[i])
                view.model_  # noqa: B018  asked for before the lanes go
                self.views[jobs[i].point.number] = view
            yield i, None, failure, 0.0


def fit_rows(
    estimator: Any,
    rows: Rows,
    splits: Sequence[Split],
    points: Sequence[Point],
    scorer: Any,
    limit: int,
    n_jobs: int | None,
    tell: Callable[[SearchProgress], Any],
) -> tuple[dict[tuple[int, int], Found], dict[int, Any]]:
    """Return what is found of points and splits, and the estimators of all rows by their points.

    The split after those given is that of all rows. Parameters are those of `MatrixSearch`.
    """
    everything = np.arange(rows.count)
    whole = Split(everything, everything[:0], sorted=True, repeats=False)
    every = [*splits, whole]
    search = WholeSearch(estimator, rows, every, scorer, {}, limit, n_jobs, np.nan, tell)
    return search.go(search.plan(points)), search.views


def scores_of(
    found: Mapping[tuple[int, int], Found], points: int, splits: int
) -> NDArray[np.float64]:
    """Return an array of points x splits: scores, and NaN where there are none.

    A point whose model of all rows failed has none at all: there is nothing to choose.

    Parameters
    ----------
    found : mapping
        By numbers of point and split; a split beyond the number given is that of all rows.
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


def failures_of(found: Mapping[tuple[int, int], Found], points: int, splits: int) -> list[str]:
    """Return why points have no error; empty for those that have.

    Parameters
    ----------
    found : mapping
        By numbers of point and split; a split beyond the number given is that of all rows.
    points, splits : int
    """
    failures = [""] * points
    for (point, split), one in sorted(found.items()):
        if one.failure and not failures[point]:
            which = f"without fold {split}" if split < splits else "all rows"
            failures[point] = f"{which}: {one.failure}" if splits > 1 else one.failure
    return failures


def name_features(views: Sequence[Any], source: Source) -> None:
    """Read a source once more, and give the models of estimators the names of their features.

    Parameters
    ----------
    views : sequence of estimator
        As `view_of` makes them.
    source : Source
    """
    keys = [view.model_.indices for view in views]
    found = source.names(np.unique(np.concatenate(keys)).tolist())
    for view, own in zip(views, keys, strict=True):
        names = {key: found[key] for key in own.tolist() if key in found}
        view._model = replace(view.model_, names=names or None)
