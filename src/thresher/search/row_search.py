"""Searches rows in memory: all splits at once, or the splits of a pipeline one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_method_params

from thresher.data.matrix_source import MatrixSource
from thresher.losses import PROBABILITY_LOSSES
from thresher.search.checkpointing import SearchCheckpoint, checkpoint_of
from thresher.search.folds import Split
from thresher.search.grid import GridPoint
from thresher.search.model_groups import ModelResult
from thresher.search.pipelines import PipelineGroup, PipelineRows, joined, transformers_of
from thresher.search.progress import SearchProgress
from thresher.search.progress_reporter import ProgressReporter
from thresher.search.row_scores import HeldOutScores, RowScores
from thresher.search.scores import Scores
from thresher.search.scoring import label_format, try_scorers
from thresher.search.search import Search
from thresher.search.splits import MatrixSplits
from thresher.training.run_options import RunOptions
from thresher.training.scores import Score

Results = dict[tuple[int, int], ModelResult]


@dataclass
class RowSearch:
    """Trains and scores models on rows in memory.

    Attributes
    ----------
    scoring : object
        As given by the user, for messages.
    scorer : callable
        A scorer of scikit-learn.
    score_params : mapping
        More arguments of the scorer.
    error_score : float or "raise"
    limit : int
        Largest size of all models together, in bytes.
    n_jobs : int or None
    tell : callable or None
        Called with a SearchProgress; None: nobody asks for progress.
    quick : Score, optional
        The same score by sums over rows.
    single : bool
        Whether the scorer must return a single score.
    readings : int
        Number of groups of models that trained so far.
    models : dict of int to estimator
        The models of all rows, by point.
    run : RunOptions
        Observer and checkpoint.
    saved : SearchCheckpoint or None
        The checkpoint, if `run` has a file for it.
    """

    scoring: Any
    scorer: Any
    score_params: Mapping[str, Any]
    error_score: Any
    limit: int
    n_jobs: int | None
    tell: Callable[[SearchProgress], Any] | None
    quick: Score | None = None
    single: bool = False
    readings: int = 0
    models: dict[int, Any] = field(default_factory=dict)
    run: RunOptions = field(default_factory=RunOptions)
    saved: SearchCheckpoint | None = None

    def __post_init__(self) -> None:
        """Begin to report."""
        self._report = ProgressReporter(self.tell, 0, self.run.observer)

    def all_at_once(
        self,
        checked: Any,
        source: MatrixSource,
        points: Sequence[GridPoint],
        rows: PipelineRows,
        splits: Sequence[Split],
        whole: bool = False,
    ) -> Results:
        """Search a matrix; return the results by point and split.

        Parameters
        ----------
        checked : estimator
            Not fitted; it has checked the rows.
        source : MatrixSource
            The checked rows.
        points : sequence of GridPoint
        rows : PipelineRows
            The rows as given.
        splits : sequence of Split
        whole : bool
            Whether to train models of all rows too; their split comes last.
        """
        classes, given = getattr(checked, "classes_", None), (rows.X, rows.y, rows.weights)
        quick = None if source.multilabel else self.quick
        parts = MatrixSplits(source, splits, classes, whole, given, _renumbers(quick, points))
        self._try(checked, points, rows)
        scores = RowScores(
            rows.X, rows.y, parts, self.scorer, self.score_params, self.error_score, quick
        )
        return self._go(checked, parts, scores, points, 1)

    def split_by_split(
        self,
        groups: Sequence[PipelineGroup],
        rows: PipelineRows,
        splits: Sequence[Split],
    ) -> Results:
        """Search pipelines; return the results by point and split.

        Only the transformed rows of one split are in memory.

        Parameters
        ----------
        groups : sequence of PipelineGroup
        rows : PipelineRows
        splits : sequence of Split
        """
        found: Results = {}
        for n, group in enumerate(groups):
            once = rows.transformed_once(group.pipeline)
            if once is not None:
                checked, same = clone(group.estimator), replace(rows, X=once)
                source = checked.source_of(once, rows.y, rows.weights)
                found |= self.all_at_once(checked, source, group.points, same, splits)
                continue
            left = len(splits) * (len(groups) - n)
            for number, split in enumerate(splits):
                own = self._one_split(group, rows, split, left - number)
                found |= {(point, number): one for (point, _), one in own.items()}
        return found

    def _one_split(
        self, group: PipelineGroup, rows: PipelineRows, split: Split, left: int
    ) -> Results:
        """Fit the transformers to the training rows of a split, and search the matrix."""
        transformers, checked = transformers_of(group.pipeline), clone(group.estimator)
        train, test = rows.part(split.train), rows.part(split.test)
        train = replace(train, X=train.fit_transformed(transformers))
        test = replace(test, X=test.transformed(transformers))
        source = checked.source_of(train.X, train.y, train.weights)
        everything = np.arange(source.block.rows)
        whole = Split(everything, everything[:0], sorted=True, repeats=False)
        given = train.X, train.y, train.weights
        parts = MatrixSplits(source, [whole], getattr(checked, "classes_", None), given=given)
        self._try(checked, group.points, train)
        params = _check_method_params(rows.X, self.score_params, indices=split.test)
        quick = None if source.multilabel else self.quick
        scores = HeldOutScores(
            test.X, test.y, parts, self.scorer, params, self.error_score, quick, checked
        )
        return self._go(checked, parts, scores, group.points, left)

    def of_all_rows(
        self,
        pipeline: Any,
        transformers: Any,
        checked: Any,
        source: MatrixSource,
        points: Sequence[GridPoint],
        rows: PipelineRows,
    ) -> Results:
        """Train the models of all rows of a pipeline, and keep them as pipelines.

        Parameters
        ----------
        pipeline : Pipeline
        transformers : Pipeline or None
            Fitted to all rows.
        checked, source, points, rows
            As for `all_at_once`, with transformed rows.
        """
        found = self.all_at_once(checked, source, points, rows, (), whole=True)
        for number, model in self.models.items():
            self.models[number] = joined(pipeline, transformers, model)
        return found

    def _try(self, checked: Any, points: Sequence[GridPoint], rows: PipelineRows) -> None:
        lanes = [point for point in points if not point.obstacle]
        if self.quick is not None and not label_format(checked):
            if self.quick.needs == "probabilities":
                lanes = [point for point in lanes if point.loss not in PROBABILITY_LOSSES]
            else:  # all models have labels, or values
                return
        try_scorers(self.scorer, checked, lanes, rows.X, rows.y, self.scoring, self.single)

    def _go(
        self,
        checked: Any,
        parts: MatrixSplits,
        scores: Scores,
        points: Sequence[GridPoint],
        left: int,
    ) -> Results:
        """Train and score; `left` such searches are left, with this one."""
        facts = checked, parts, points, self.scoring, self.limit, self.n_jobs
        self.saved = checkpoint_of(self.run, *facts)
        given = self.limit, self.n_jobs, self.tell, self.run, self.saved
        search = Search(checked, parts, scores, *given)
        readings = search.plan(points)
        self._report.readings = self.readings + len(readings) * left
        self.readings += len(readings)
        found = search.go(readings, self._report)
        self.models |= search.models
        return found


def _renumbers(quick: Score | None, points: Sequence[GridPoint]) -> bool:
    """Tell whether lanes may have other column numbers than the rows: no scorer sees a model."""
    lanes = [point for point in points if not point.obstacle]
    return quick is not None and all(point.params.get("target_nnz") is None for point in lanes)
