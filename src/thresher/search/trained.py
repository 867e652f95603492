"""Models that train together, and each of them as an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.distinct import distinct_keys
from thresher.data.matrix_source import MatrixSource
from thresher.model.model import Output
from thresher.rules import RULES, core_args
from thresher.search.model_groups import ModelJob, losses_of, places
from thresher.search.scoring import label_format
from thresher.training.fitted import FittedState
from thresher.training.lane_outputs import LaneOutputs
from thresher.training.lanes import LaneTeam
from thresher.training.trainer import Trainer
from thresher.training.unscaled import unscaled


class TrainedModels:
    """Models of a group, during and after training.

    Parameters
    ----------
    estimator : estimator
        Not fitted; the models copy its attributes about the columns of the rows.
    jobs : sequence of ModelJob
    trainer : Trainer
        Trains the lanes of the models.
    whole : int or None
        The split whose models learn from all rows.

    Attributes
    ----------
    lanes : list of array
        Lane numbers of each job.
    """

    def __init__(
        self, estimator: Any, jobs: Sequence[ModelJob], trainer: Trainer, whole: int | None = None
    ) -> None:
        self.estimator, self.jobs, self.trainer, self.whole = estimator, jobs, trainer, whole
        self.lanes = places(jobs)
        self._of_points: dict[int, Any] = {}  # estimators with the parameters of a point

    @property
    def outputs(self) -> LaneOutputs:
        """The lanes."""
        assert isinstance(self.trainer.outputs, LaneOutputs)
        return self.trainer.outputs

    @property
    def team(self) -> LaneTeam:
        """The lanes, over threads."""
        return self.outputs.team

    # ---- progress ------------------------------------------------------------------------------

    @property
    def passes(self) -> int:
        """Number of passes over the rows."""
        return self.trainer.plan.passes

    @property
    def all_rows(self) -> int | None:
        """Number of rows of a pass, if known."""
        return self.trainer.source.rows

    @property
    def models(self) -> int:
        """Number of lanes."""
        return len(self.team)

    def losses(self) -> dict[int, float]:
        """Return the mean progressive loss so far of each point."""
        return losses_of(self.team, self.jobs)

    def nonzeros(self) -> dict[int, int]:
        """Return the current number of nonzero weights of the models of all rows, by point."""
        counts = self.team.nonzeros()
        return {
            job.point.number: int(counts[lanes].sum())
            for job, lanes in zip(self.jobs, self.lanes, strict=True)
            if job.split == self.whole
        }

    # ---- results -------------------------------------------------------------------------------

    def failures(self) -> list[str]:
        """Return why each job stopped learning; empty if it did not."""
        each = self.team.divergences
        return [next((each[lane] for lane in own if each[lane]), "") for own in self.lanes]

    def predict(
        self, batch: _core.Batch, jobs: Sequence[int], rows: NDArray[np.int64], average: bool
    ) -> NDArray[np.float64]:
        """Return raw predictions of some jobs; the outputs of a job are adjacent columns."""
        wanted = np.concatenate([self.lanes[i] for i in jobs])
        return self.outputs.predict_lanes(batch, wanted, rows, average, finite=False)

    # ---- estimators ----------------------------------------------------------------------------

    def model(self, i: int) -> Any:
        """Return the model of a job as an estimator that does not need the lanes."""
        params = self.jobs[i].point.params
        weights = self.outputs.part(self.lanes[i]).outputs(target=params.get("target_nnz"))
        state = self._state(i)
        state.weights, state.names = weights, self._names(weights)
        return self._estimator(i, unscaled(state, self.trainer.source))

    def scored(self, i: int, rows: Any, raw: NDArray[np.float64] | None) -> Any:
        """Return the model of a job as an estimator, for a scorer.

        Parameters
        ----------
        i : int
            Number of the job.
        rows : array, matrix or DataFrame
            Rows that it is scored on.
        raw : array or None
            Its raw predictions for these rows, if known.
        """
        state = self._state(i)
        state.outputs = self.outputs.part(self.lanes[i])
        state.known = None if raw is None else (rows, raw)
        return self._estimator(i, state)

    def _estimator(self, i: int, state: FittedState) -> Any:
        point = self.jobs[i].point
        if point.number not in self._of_points:
            self._of_points[point.number] = copy(self.estimator).set_params(**point.params)
        return copy(self._of_points[point.number]).take(state)

    def _state(self, i: int) -> FittedState:
        point, trainer = self.jobs[i].point, self.trainer
        rule, plan = trainer.plan.rule, trainer.plan
        requested = core_args.learner_parameters(rule, point.params)
        params = dict(requested)
        if "store" in params:
            params["store"] = plan.store
        if point.waits:
            params[RULES[rule].rate_from_rows] = plan.params[RULES[rule].rate_from_rows]
        return FittedState(
            rule=rule,
            params=params,
            requested=requested,
            rows=None,
            width=trainer.capacity.width or 2**64,
            history=None,
            passes=trainer.number,
            final=True,
            obstacle="a search trained it together with its other models, and kept its weights",
            classes=plan.labels.classes,
            multilabel=self._label_format(),
            kinds=dict(trainer.kinds) or None,
            reading=trainer.source.described(),
            standardised=plan.standardised,
        )

    def _label_format(self) -> str:
        """Return the format of labels, "dense" or "sparse"; empty: one label per row."""
        source = self.trainer.source
        if isinstance(source, MatrixSource) or not source.multilabel:
            return label_format(self.estimator) if source.multilabel else ""
        return "sparse"

    def _names(self, outputs: Sequence[Output]) -> dict[int, str] | None:
        """Return the names of features with nonzero weights, if training kept names."""
        if self.trainer.names is None:
            return None
        known = self.trainer.names.names()
        keys = distinct_keys([output.keys for output in outputs]).tolist()
        return {key: known[key] for key in keys if key in known}
