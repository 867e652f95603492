"""The progress of stages of the stabilized rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from thresher import _core
from thresher.losses import LOSSES
from thresher.model.model import Progress
from thresher.rules import core_args
from thresher.training.solver_run import SolverRun, State


class Stages:
    """The progress of one call of fit or partial_fit: one output after the other, in stages.

    Parameters
    ----------
    params : mapping
        The parameters of the learners.
    history : sequence of Progress
        Records of earlier calls.
    run : SolverRun
    learners : sequence of StabilizedLearner
        One for each output.
    rows : int
        Rows that a path of an output learns at most, in all passes.

    Attributes
    ----------
    output : int
        Number of the output that is being trained.
    unfinished : bytes or None
        State of its learner in the checkpoint, if the run is resumed.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        history: Sequence[Progress],
        run: SolverRun,
        learners: Sequence[_core.StabilizedLearner],
        rows: int,
    ) -> None:
        self.params, self.run, self.learners = params, run, learners
        self.output = 0
        self.unfinished: bytes | None = None
        self._rate = core_args.stabilized_parameters(params, 0, None)[0]["eta0"]
        self._recorded = (0.0, 0.0)
        self._nonzeros = 0  # of the finished outputs
        self._warned = False
        self._kept: Callable[[], State] | None = None  # the state between the last two stages
        self._before = history[-1].examples if history else 0
        self._rows, self._stage, self._done = max(rows, 1), 0, 0.0
        if run.resumed is not None:
            self._resume(*run.resumed)
        self._tell()

    def record_stage(self, stage: _core.Stage) -> bool:
        """Record a stage of an output; return whether to continue."""
        if stage.number == 0:  # not a stage: the core only checks whether to stop
            # Before the first stage the number of features is chosen. If that is interrupted, the
            # checkpoint has only the finished outputs.
            self.run.stop_if_asked(self._kept or self._state)
            self._tell()
            return True
        loss, weight = stage.loss_sum - self._recorded[0], stage.weight_sum - self._recorded[1]
        self._recorded = stage.loss_sum, stage.weight_sum
        published = self.params["variant"] == "paper"
        if published and stage.number > 1 and stage.gravity == 0 and stage.beta > 0:
            self._warn(stage)
        self.run.record(
            examples=stage.rows,
            loss=loss / weight if weight > 0 else 0.0,
            nonzeros=self._nonzeros + stage.stable,
            rate=self._rate,
        )
        self._stage = stage.number
        self._done = min(1.0, (stage.rows - self._before) / self._rows)
        self._tell()
        return not self.run.stopped

    def _tell(self) -> None:
        """Tell the observer which output and stage is being trained."""
        self.run.observer.tell(
            "stage",
            output=min(self.output + 1, len(self.learners)),
            outputs=len(self.learners),
            stage=self._stage,
            done=(self.output + self._done) / len(self.learners),
        )

    def between_stages(self, unfinished: Callable[[], bytes]) -> None:
        """Stop if the observer says so, or write a checkpoint if it is due.

        The robust variant ends with a long refit. If it is interrupted, the checkpoint has the
        state before it, which is kept here.
        """
        if self.params["variant"] == "robust" and self.run.options.checkpoint is not None:
            kept = self._state(unfinished())
            self._kept = lambda: kept
            self.run.checkpoint_if_due(self._kept)
        else:
            self.run.checkpoint_if_due(lambda: self._state(unfinished()))

    def passes(self, rows: int) -> int:
        """Return the number of passes that a path of the last output has made, in all stages."""
        history = self.run.history
        return -(-(history[-1].examples - self._before) // rows) if history else 0

    def end_output(self) -> None:
        """Count the nonzeros of the finished output, and start the next."""
        self._nonzeros += len(self.learners[self.output].weights()[0])
        self._recorded, self.unfinished, self._kept = (0.0, 0.0), None, None
        self._stage, self._done = 0, 0.0
        if self.run.history:
            self.run.history[-1] = self.run.history[-1]._replace(nonzeros=self._nonzeros)
        self.output += 1
        self._tell()
        if self.output < len(self.learners):
            self.run.checkpoint_if_due(self._state)

    def _state(self, *unfinished: bytes) -> State:
        about = {"recorded": self._recorded, "nonzeros": self._nonzeros, "done": self.output}
        done = self.learners[: self.output]
        return about, [*(learner.state() for learner in done), *unfinished]

    def _resume(self, about: dict[str, Any], states: Sequence[bytes]) -> None:
        loss, weight = about["recorded"]
        self._recorded, self._nonzeros, self.output = (
            (loss, weight),
            about["nonzeros"],
            about["done"],
        )
        done, unfinished = states[: self.output], states[self.output :]
        for learner, state in zip(self.learners, done, strict=False):
            learner.restore(state)
        self.unfinished = unfinished[0] if unfinished else None

    def _warn(self, stage: _core.Stage) -> None:
        if self._warned or self.params["gravity_rule"] != "update-quantile":
            return
        self._warned = True
        message = without_gravity(self.params["loss"], stage.number, stage.beta)
        self.run.observer.warn(message)


def without_gravity(loss: str, stage: int, beta: float) -> str:
    """Return the text of the warning that gravity is 0 although the rejection rate is not.

    Parameters
    ----------
    loss : str
    stage : int
        Number of the stage.
    beta : float
        The rejection rate.
    """
    avoided = "count='gradient'" + (" or loss='logistic'" if LOSSES[loss].sparse_updates else "")
    return (
        f"StabilizedClassifier: gravity is 0 at stage {stage} while the rejection rate is "
        f"{beta:.2g}: most features of a stage did not change, and rejection and annealing have "
        f"no effect; {avoided} avoids it"
    )
