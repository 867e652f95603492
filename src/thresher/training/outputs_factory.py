"""The factory of outputs: it chooses between separate, shared and sparse outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thresher.errors import ParameterError, setting
from thresher.losses import LOSSES
from thresher.rules import RULES, core_args
from thresher.training.outputs import Outputs
from thresher.training.separate_outputs import SeparateOutputs
from thresher.training.shared_outputs import SharedOutputs, SparseOutputs
from thresher.training.target_scale import KnownScale, TargetScale

_SEPARATE = ("certify", "center", "target_nnz")  # parameters that need a learner for each output


@dataclass(frozen=True)
class OutputsFactory:
    """Makes outputs of a rule.

    Attributes
    ----------
    rule : str
        A key of ``RULES``.
    params : mapping
        Checked parameters.
    rows : int or None
        Number of rows; None if it is unknown.
    width : int
        Number of features that the store can hold; 0 for any 64-bit key.
    columns : int
        Number of features of the data; some rules depend on it.
    standardised : bool
        Whether the outputs learn standardised targets.
    known_scale : tuple or None
        Weight, mean and sd of all targets, if they are known before training.
    separate : bool
        Whether each output has a learner of its own in any case, as after training on a cluster.
    """

    rule: str
    params: Mapping[str, Any]
    rows: int | None
    width: int
    columns: int
    standardised: bool = False
    known_scale: KnownScale | None = None
    separate: bool = False

    @property
    def store(self) -> str:
        """The kind of store for the weights."""
        return str(self.params.get("store", "dense"))

    @property
    def dtype(self) -> str:
        """Number type of the weights."""
        return str(self.params.get("dtype", "float64"))

    def parameters(self) -> tuple[dict[str, float], dict[str, str]]:
        """Return the arguments of the core."""
        return core_args.core_parameters(
            self.rule, self.params, self.rows, self.columns, self.standardised
        )

    def scale(self, clocks: int = 1) -> TargetScale | None:
        """Return a new scale of the targets; None: they are not standardised."""
        if not self.standardised:
            return None
        degree = LOSSES[core_args.loss_of(self.rule, self.params)].degree
        scale = TargetScale(degree, bool(self.params.get("fit_intercept", True)), clocks)
        if self.known_scale is not None:
            scale.set(self.known_scale)
        return scale

    def is_shared(self, outputs: int) -> bool:
        """Return whether this number of outputs is trained together, as `SharedOutputs`.

        Outputs need separate learners if the rule pauses, records facts for certificates, reads
        all weights in each step, or needs the mean of the rows.
        Raises ParameterError for a single output with store="nonzero".
        """
        if self.store == "nonzero" and outputs < 2:
            raise ParameterError(
                (setting("store", "nonzero"), " is only for more than two classes, or several "
                 "labels"),
                parameter="store",
                value="nonzero",
                hint="otherwise use 'hashed', which also keeps nonzero weights",
            )  # fmt: skip
        # Lanes of the margin perceptron do not record `Learner.facts`, which its certificates and
        # its count of updates need, and do not pause at its levels and densities.
        rule = RULES[self.rule]
        separate = ("certify", "center") if rule.chooses_at_end else _SEPARATE
        return (
            outputs > 1
            and not self.separate
            and not rule.separate_outputs
            and not any(self.params.get(name) for name in separate)
        )

    def make(self, outputs: int, grows: bool = False) -> Outputs:
        """Make this number of outputs; `grows`: more will be added."""
        if not self.is_shared(2 if grows else outputs):
            return SeparateOutputs(self, outputs)
        return (SparseOutputs if self.store == "nonzero" else SharedOutputs)(self, outputs)

    def restore(self, states: Sequence[bytes], outputs: int, grows: bool = False) -> Outputs:
        """Make outputs from the states that ``Outputs.states`` returned; `grows`: as for `make`."""
        shared = self.is_shared(2 if grows else outputs)
        made = self.make(0, grows=True) if shared else SeparateOutputs(self, outputs)
        made.restore(states)
        return made
