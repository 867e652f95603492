"""Hooks of the margin perceptron: models at density levels, and certificates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher import _core
from thresher.certificates import Certificate
from thresher.model.model import Output
from thresher.training import certifying
from thresher.training.hooks import Hooks
from thresher.training.outputs import Outputs
from thresher.training.separate_outputs import SeparateOutputs

if TYPE_CHECKING:
    from thresher.training.trainer import Trainer

_NEVER = 2**63 - 1


def make_hooks(params: Mapping[str, Any], mean: Any = None) -> Hooks:
    """Return the hooks of a rule with the parameters `levels` and `max_density`."""
    return Levels(tuple(params["levels"]), params["max_density"])


class Levels(Hooks):
    """Keeps models at density levels, limits the density, ends training, and makes certificates.

    Parameters
    ----------
    levels : tuple of float
        Shares of nonzero weights at which a copy of the model is kept.
    max_density : float or None
        Share of nonzero weights at which an output stops learning.

    Attributes
    ----------
    reached : list of dict
        For each output, its weights at the levels that it has reached.
    updates : float
        Number of updates of all outputs up to the end of the previous pass.
    """

    def __init__(self, levels: tuple[float, ...], max_density: float | None) -> None:
        self.levels, self.max_density = levels, max_density
        self.limit, self.width, self.updates = math.inf, 0, -1.0
        self.scans_all = True  # whether each pass has all rows
        self.reached: list[dict[float, Output]] = []
        self.unit_weights = True
        self.of_rows: list[tuple[Certificate, Certificate]] = []

    # ---- density -------------------------------------------------------------------------------

    def begin(self, trainer: Trainer) -> None:
        """Make each output pause at its first level, or at the limit."""
        assert isinstance(trainer.outputs, SeparateOutputs)
        self.scans_all = trainer.plan.shuffle != "replace"
        self.width = trainer.plan.width
        self.limit = math.inf if self.max_density is None else self.max_density * self.width
        self.reached = [{} for _ in trainer.outputs]
        for learner, reached in zip(trainer.outputs, self.reached, strict=True):
            self._pause_next(learner, reached)

    def _pause_next(self, learner: _core.Learner, reached: dict[float, Output]) -> None:
        """Make a learner pause at the next level, or at the limit."""
        wanted = [level * self.width for level in self.levels if level not in reached]
        least = min([*wanted, self.limit])
        learner.pause_at(_NEVER if least == math.inf else math.ceil(least))

    def paused(self, output: int, learner: _core.Learner) -> bool:
        """Keep the model at the levels reached now; return whether the limit is reached."""
        nonzeros, reached = learner.facts()["nonzeros"], dict(self.reached[output])
        for level in self.levels:
            if level not in reached and nonzeros >= level * self.width:
                reached[level] = Output(*learner.weights(), learner.intercept())
        # A new list: if this fit fails later, the previous state still has the old list.
        self.reached = [*self.reached[:output], reached, *self.reached[output + 1 :]]
        self._pause_next(learner, reached)
        return self.is_full(learner)

    def is_full(self, learner: _core.Learner) -> bool:
        """Return whether an output has reached `max_density`."""
        return self.max_density is not None and learner.facts()["nonzeros"] >= self.limit

    def is_idle(self) -> bool:
        """Return whether no output pauses."""
        return not self.levels and self.max_density is None

    def ended(self, outputs: Outputs) -> bool:
        """Return whether the pass had all rows, and made no update."""
        assert isinstance(outputs, SeparateOutputs)
        before, self.updates = self.updates, sum(m.facts()["updates"] for m in outputs)
        return self.updates == before and self.scans_all

    # ---- certificates --------------------------------------------------------------------------

    def conclude(self, trainer: Trainer, first: bool, complete: bool) -> None:
        """Compute the certificates that need the rows."""
        self.unit_weights = self.unit_weights and trainer.unit_weights
        if first:
            self.of_rows = certifying.of_rows(trainer, trainer.plan.params, complete)
        else:
            self.of_rows = [certifying.without_rows() for _ in range(len(trainer.outputs))]

    def extras(self, outputs: Outputs, params: Mapping[str, Any], classes: Any) -> dict[str, Any]:
        """Return the certificates."""
        assert isinstance(outputs, SeparateOutputs)
        found = [
            (certifying.norm(learner, params, self.unit_weights), *of_rows)
            for learner, of_rows in zip(outputs, self.of_rows, strict=True)
        ]
        return {"certificates": certifying.labelled(found, classes)}

    # ---- state ---------------------------------------------------------------------------------

    def state(self) -> Any:
        """Return the levels reached, and the number of updates."""
        reached = [
            [[level, o.keys.tolist(), o.weights.tolist(), o.intercept] for level, o in own.items()]
            for own in self.reached
        ]
        return {"updates": self.updates, "reached": reached}

    def restore(self, saved: Any, trainer: Trainer) -> None:
        """Continue from a state."""
        self.scans_all = trainer.plan.shuffle != "replace"
        self._restore(saved, trainer.outputs)

    def _restore(self, saved: Any, outputs: Outputs) -> None:
        assert isinstance(outputs, SeparateOutputs)
        self.updates = saved["updates"]
        self.reached = [
            {
                level: Output(np.array(keys, np.uint64), np.array(weights, np.float64), intercept)
                for level, keys, weights, intercept in own
            }
            for own in saved.get("reached", [[] for _ in outputs])
        ]
        for learner, own in zip(outputs, self.reached, strict=True):
            self._pause_next(learner, own)

    def kept(self) -> Any:
        """Return the state, the width, and what certificates need."""
        more = {"width": self.width, "unit_weights": self.unit_weights}
        return self.state() | more | {"of_rows": certifying.as_json(self.of_rows)}

    def revive(self, kept: Any, outputs: Outputs) -> None:
        """Continue from what `kept` returned."""
        self.width, self.unit_weights = int(kept["width"]), bool(kept["unit_weights"])
        self.limit = math.inf if self.max_density is None else self.max_density * self.width
        self.of_rows = certifying.from_json(kept["of_rows"], len(outputs))
        self._restore(kept, outputs)
