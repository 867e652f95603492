"""Hooks: extra training steps of a rule, before the first row, at a pause, or after a pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from thresher import _core
from thresher.training.outputs import Outputs

if TYPE_CHECKING:
    from thresher.training.trainer import Trainer


class Hooks:
    """Extra training steps of a rule. These do nothing: subclasses override what a rule needs.

    Hooks are called in every run of the same outputs, and are part of pickles and checkpoints.
    """

    def begin(self, trainer: Trainer) -> None:
        """Prepare new outputs, before their first row."""

    def paused(self, output: int, learner: _core.Learner) -> bool:
        """Return, when the learner of an output has paused, whether it stops learning."""
        return True

    def is_full(self, learner: _core.Learner) -> bool:
        """Return whether an output has stopped learning for good."""
        return False

    def ended(self, outputs: Outputs) -> bool:
        """Return, after a pass, whether further passes would change nothing."""
        return False

    def is_idle(self) -> bool:
        """Return whether rows of weight 1 can be learned without calling the hooks."""
        return True

    def conclude(self, trainer: Trainer, first: bool, complete: bool) -> None:
        """Record what certificates need, after a run.

        Parameters
        ----------
        trainer : Trainer
        first : bool
            Whether the outputs have learned only from the rows of this run.
        complete : bool
            Whether the run ended by the rule itself or after all passes, not by `tol` or a
            callback.
        """

    def state(self) -> Any:
        """Return what a resumed run needs, in types that JSON has."""
        return None

    def restore(self, saved: Any, trainer: Trainer) -> None:
        """Continue from a state."""

    def kept(self) -> Any:
        """Return what a model file holds of the hooks, in types that JSON has."""
        return None

    def revive(self, kept: Any, outputs: Outputs) -> None:
        """Continue from what `kept` returned, with outputs that have learned."""

    def extras(self, outputs: Outputs, params: Mapping[str, Any], classes: Any) -> dict[str, Any]:
        """Return further attributes of the model: its certificates."""
        return {}


MakeHooks: TypeAlias = Callable[[Mapping[str, Any], Any], Hooks]
"""Type of `make_hooks(params, mean)` in the modules that `Rule.hooks` names."""
