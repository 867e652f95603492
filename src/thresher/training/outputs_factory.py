"""What outputs are made of, and making them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thresher.errors import ParameterError, setting
from thresher.rules import RULES, core_args
from thresher.training.outputs import Outputs
from thresher.training.separate_outputs import Alone
from thresher.training.shared_outputs import OnlyNonzero, Together


@dataclass(frozen=True)
class Recipe:
    """What outputs are made of.

    Attributes
    ----------
    rule : str
        A key of ``RULES``.
    params : mapping
        Checked parameters.
    rows : int or None
        Number of rows; None where it is not known beforehand.
    width : int
        Number of features the store takes; 0 for any 64-bit key.
    columns : int
        Number of features, by which some rules go.
    """

    rule: str
    params: Mapping[str, Any]
    rows: int | None
    width: int
    columns: int

    @property
    def store(self) -> str:
        """Where the weights live."""
        return str(self.params.get("store", "dense"))

    @property
    def dtype(self) -> str:
        """Number type of the weights."""
        return str(self.params.get("dtype", "float64"))

    def parameters(self) -> tuple[dict[str, float], dict[str, str]]:
        """Return what the core is told."""
        return core_args.core_parameters(self.rule, self.params, self.rows, self.columns)

    def together(self, outputs: int) -> bool:
        """Tell whether so many outputs learn together.

        Raises ParameterError where the store is one for several, and there is one output.
        Those stand alone whose rule pauses, keeps facts of its own for certificates, looks at all
        weights in each step, or is given the mean of the rows.
        """
        if self.store == "nonzero" and outputs < 2:
            raise ParameterError(
                (setting("store", "nonzero"), " is for more than two classes, or several labels"),
                parameter="store",
                value="nonzero",
                hint="for others 'hashed' keeps the nonzero weights",
            )
        # Of the margin perceptron, lanes keep neither the facts that its certificates and its count
        # of updates are made of (`Learner.facts`), nor do they pause at its levels and densities.
        return (
            outputs > 1
            and not RULES[self.rule].separate_outputs
            and not any(self.params.get(name) for name in ("certify", "target_nnz", "center"))
        )

    def make(self, outputs: int, grows: bool = False) -> Outputs:
        """Make so many outputs; `grows`: more will come."""
        if not self.together(2 if grows else outputs):
            return Alone(self, outputs)
        return (OnlyNonzero if self.store == "nonzero" else Together)(self, outputs)

    def restore(self, states: Sequence[bytes], outputs: int) -> Outputs:
        """Make outputs of the states that ``Outputs.states`` returned."""
        together = self.together(outputs)
        made = self.make(0, grows=True) if together else Alone(self, outputs)
        made.restore(states)
        return made
