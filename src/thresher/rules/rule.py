"""What a learning rule is: its parameters, and the traits that the program asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from thresher.errors import Words
from thresher.losses import LOSSES, SELECTABLE_LOSSES, Task
from thresher.rules.parameter import COMMON, Parameter, loss_parameter


@dataclass(frozen=True)
class Rule:
    """A learning rule: its name in the core, its parameters, and its traits.

    Parameters
    ----------
    core : str
        Its name in the core.
    paper : str
        Where it was published.
    own : mapping
        Its own parameters.
    estimators : mapping
        The name of the estimator in ``thresher.estimators``, by task.
    fixed : mapping
        What the core is told besides.
    core_names : mapping
        Own parameters that have another name in the core, and that name.
    regressor_loss : str
        The regressor's default loss.
    losses : tuple of str
        The losses it takes; a rule with a single loss has no such parameter.
    refused_losses : mapping
        Losses among these that it refuses after all, and why.
    without : tuple of str
        Common parameters that have no meaning for it.
    auto_eta : mapping
        What eta0="auto" means on rows of norm 1, of losses for which it is not ``Loss.auto_eta``.
    inverse_rate : str
        The parameter a of a rule whose steps are 1 / (a t).
    rate_from_rows : str
        The parameter that is set by the norms of the first rows where it is "auto".
    streams : bool
        Whether it learns row by row; if not, it needs all rows at once.
    needs_width : bool
        Whether the number of features must be known beforehand.
    diverges : bool
        Whether a rising loss is a bad sign.
    no_lanes : str
        Why models of it cannot train together; empty: they can.
    stands_alone : bool
        Whether each output needs a learner of its own.
    keeps_facts : bool
        Whether a learner keeps facts of its one stream of rows, of which certificates are made.
    steers : bool
        Whether target_nnz is steered after the last row.
    ends_by_itself : bool
        Whether learning is over when a pass brings no update.
    penalty : str or None
        The parameter that makes weights zero.
    penalty_unit : {"objective", "gradients", "update"}
        What the penalty acts on: the mean loss, the sum of the gradients, or each update.
    penalty_reach : float
        How many times the penalty must exceed the least one that leaves no weights at the optimum,
        as the last steps leave weights alive.
    nonzero_store : bool
        Whether classifiers take store="nonzero".
    cluster : tuple of str
        Modes in which it learns on a cluster, the usual one first.
    """

    core: str
    paper: str
    own: Mapping[str, Parameter]
    estimators: Mapping[Task, str]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    core_names: Mapping[str, str] = field(default_factory=dict)
    regressor_loss: str = "squared"
    losses: tuple[str, ...] = SELECTABLE_LOSSES
    refused_losses: Mapping[str, Words] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    auto_eta: Mapping[str, float] = field(default_factory=dict)
    inverse_rate: str = ""
    rate_from_rows: str = ""
    streams: bool = True
    needs_width: bool = False
    diverges: bool = True
    no_lanes: str = ""
    stands_alone: bool = False
    keeps_facts: bool = False
    steers: bool = False
    ends_by_itself: bool = False
    penalty: str | None = None
    penalty_unit: Literal["objective", "gradients", "update"] = "objective"
    penalty_reach: float = 1.0
    nonzero_store: bool = False
    cluster: tuple[str, ...] = ()

    @property
    def lanes(self) -> bool:
        """Whether models of it can train together."""
        return not self.no_lanes

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks it has estimators for."""
        return tuple(self.estimators)

    @property
    def parameters(self) -> dict[str, Parameter]:
        """All parameters, in the order of the estimators' signatures."""
        loss = (
            {"loss": loss_parameter(self.losses, self.regressor_loss)}
            if len(self.losses) > 1
            else {}
        )
        common = {name: p for name, p in COMMON.items() if name not in self.without}
        return {**loss, **self.own, **common}

    def losses_for(self, task: Task) -> tuple[str, ...]:
        """Return the losses that a classifier or a regressor of this rule may have."""
        return tuple(name for name in LOSSES if name in self.losses and task in LOSSES[name].tasks)
