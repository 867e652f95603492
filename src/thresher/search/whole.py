"""Models of folds, and of all rows, learned from the same reading of rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.source import Source
from thresher.search.folds import Split
from thresher.search.grid import Point
from thresher.search.matrix import MatrixSearch, Rows
from thresher.search.progress import SearchProgress
from thresher.search.readings import Found, Job, places


class WholeSearch(MatrixSearch):
    """A search whose last split has all rows to learn from: its models are kept, and not scored."""

    def _score(self, team: Any, batch: Any, jobs: Sequence[Job]) -> Iterator[Any]:
        whole, lanes = len(self.splits) - 1, places(jobs)
        scored = [job for job in jobs if job.split != whole]  # the first: jobs lie by split
        yield from super()._score(team, batch, scored)
        for job, own in zip(jobs[len(scored) :], lanes[len(scored) :], strict=True):
            view = self._view(team, job, own)
            view.model_  # noqa: B018  asked for before the lanes go
            self.views[job.point.number] = view

    @property
    def views(self) -> dict[int, Any]:
        """The estimators of all rows, by the number of their point."""
        found: dict[int, Any] = self.__dict__.setdefault("_views", {})
        return found


def fit_rows(
    estimator: Any,
    rows: Rows,
    splits: Sequence[Split],
    points: Sequence[Point],
    scorer: Any,
    limit: int,
    n_jobs: int | None,
    tell: Callable[[SearchProgress], Any],
) -> tuple[NDArray[np.float64], list[Any]]:
    """Return the scores of points x splits, and the estimators of all rows.

    Parameters are those of `MatrixSearch`.
    """
    everything = np.arange(rows.count)
    whole = Split(everything, everything[:0], sorted=True, repeats=False)
    every = [*splits, whole]
    search = WholeSearch(estimator, rows, every, scorer, {}, limit, n_jobs, np.nan, tell)
    found = search.go(search.plan(points))
    return scores_of(found, len(points), len(splits)), [search.views[p.number] for p in points]


def scores_of(
    found: Mapping[tuple[int, int], Found], points: int, splits: int
) -> NDArray[np.float64]:
    """Return an array of points x splits: scores, and NaN where there are none.

    Parameters
    ----------
    found : mapping
        By numbers of point and split; splits beyond the number given are left out.
    points, splits : int
    """
    scores = np.full((points, splits), np.nan)
    for (point, split), one in found.items():
        if split < splits and not one.failure:
            scores[point, split] = one.scores
    return scores


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
