"""What a rule does besides learning rows: before the first, at a pause, after a pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from thresher import _core
from thresher.training.outputs import Outputs

if TYPE_CHECKING:
    from thresher.training.trainer import Trainer


class Hooks:
    """What a rule does besides learning rows. Most do nothing: rules override what they need.

    Hooks live as long as the outputs: they are told of every run, and go into pickles and
    checkpoints.
    """

    def begin(self, trainer: Trainer) -> None:
        """Prepare new outputs, before their first row."""

    def paused(self, output: int, learner: _core.Learner) -> bool:
        """Decide, when the rule of an output has paused, whether that output stops learning."""
        return True

    def is_full(self, learner: _core.Learner) -> bool:
        """Tell whether an output has stopped learning for good."""
        return False

    def ended(self, outputs: Outputs) -> bool:
        """Tell, after a pass, whether more passes would change nothing."""
        return False

    def conclude(self, trainer: Trainer, first: bool, complete: bool) -> None:
        """Take what certificates need, after a run.

        Parameters
        ----------
        trainer : Trainer
        first : bool
            Whether all rows ever learned from are those of this run.
        complete : bool
            Whether the rule itself or the number of passes ended the run; neither `tol` nor a
            callback.
        """

    def state(self) -> Any:
        """Return what a resumed run needs, as JSON can carry it."""
        return None

    def restore(self, saved: Any, trainer: Trainer) -> None:
        """Continue from a state."""

    def extras(self, outputs: Outputs, params: Mapping[str, Any], classes: Any) -> dict[str, Any]:
        """Return what else a model says of itself: its certificates."""
        return {}
