"""The class `Rule`: the parameters and traits of a learning rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from thresher.errors import Words
from thresher.losses import LOSSES, SELECTABLE_LOSSES, Task
from thresher.rules.parameter import AUTO_GRAVITY, COMMON, Parameter, loss_parameter


@dataclass(frozen=True)
class Rule:
    """A learning rule: its name in the core, its parameters, and its traits.

    Parameters
    ----------
    core : str
        Name in the core.
    paper : str
        The publication.
    own : mapping
        Parameters that are not common ones.
    estimators : mapping
        The name of the estimator in ``thresher.estimators``, by task.
    hooks : str
        The module in ``thresher.training`` whose ``make_hooks`` returns the rule's extra training
        steps; empty: it has none.
    fixed : mapping
        Further arguments of the core, which users cannot change.
    core_names : mapping
        The core's names of parameters that have another name there.
    regressor_loss : str
        Default loss of the regressor.
    losses : tuple of str
        The losses it can train with; a rule with a single loss has no parameter `loss`.
    refused_losses : mapping
        Losses in `losses` that estimators do not accept, with the reason.
    without : tuple of str
        Common parameters that it does not have.
    auto_eta : mapping
        The value of eta0="auto" for rows of norm 1, for losses where it is not ``Loss.auto_eta``.
    inverse_rate : str
        The parameter a, if the rule's steps are 1 / (a t); empty: they are not.
    rate_from_rows : str
        The parameter whose "auto" is computed from the norms of the first rows; empty: none. If
        "auto" also stands for a number, only where targets are standardised.
    auto_rate : mapping
        The value of `rate_from_rows` for rows of norm 1, by task, where it is not 1. For an
        `inverse_rate`, it is to be divided by the number of steps.
    norm_power : int
        The power of the norm that `rate_from_rows` is proportional to.
    streams : bool
        Whether it learns row by row; if not, it needs all rows at once.
    repeats_rows : bool
        Whether the weight of a row means repetitions: several steps. If not, the rule minimises a
        sum of losses with these weights.
    needs_width : bool
        Whether the number of features must be known before training.
    diverges : bool
        Whether a rising loss is a sign of divergence.
    no_lanes : str
        Why several of its models cannot train together in lanes; empty: they can.
    separate_outputs : bool
        Whether each output needs its own learner.
    keeps_facts : bool
        Whether a learner records facts about its rows, which certificates need.
    steers : bool
        Whether the core adjusts the penalty towards target_nnz again after the last row.
    scales_columns : bool
        Whether columns of very different sizes do not matter.
    standardises_in_core : bool
        Whether the core standardises the targets of a regression; then the trainer does not.
    chooses_at_end : bool
        Whether target_nnz only chooses weights of the finished model, so that outputs can share a
        store.
    cuts : bool
        Whether the model leaves out small weights of the learner. They may come back without a row
        that has their feature.
    refit_rule : str
        The rule, with lanes and a penalty, that learns the weights kept by target_nnz again; empty:
        they stay as they are. A rule that has it also has the parameters target_nnz and refit.
    ends_by_itself : bool
        Whether training ends after a pass without updates.
    penalty : str or None
        The parameter that makes weights zero.
    auto_penalty : float
        The value of "auto" of a penalty in units of the objective, times the number of rows.
    penalty_unit : {"objective", "gradients", "update"}
        What the penalty acts on: the mean loss, the sum of the gradients, or each update.
    penalty_reach : float
        A penalty this many times the smallest one with all weights zero at the optimum makes all
        weights zero after the last step too; without the factor, the last steps leave some.
    nonzero_store : bool
        Whether classifiers take store="nonzero".
    cluster : tuple of str
        Modes in which it can train on a cluster, the default first.
    """

    core: str
    paper: str
    own: Mapping[str, Parameter]
    estimators: Mapping[Task, str]
    hooks: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    core_names: Mapping[str, str] = field(default_factory=dict)
    regressor_loss: str = "squared"
    losses: tuple[str, ...] = SELECTABLE_LOSSES
    refused_losses: Mapping[str, Words] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    auto_eta: Mapping[str, float] = field(default_factory=dict)
    inverse_rate: str = ""
    rate_from_rows: str = ""
    auto_rate: Mapping[Task, float] = field(default_factory=dict)
    norm_power: int = -1
    streams: bool = True
    repeats_rows: bool = True
    needs_width: bool = False
    diverges: bool = True
    no_lanes: str = ""
    separate_outputs: bool = False
    keeps_facts: bool = False
    steers: bool = False
    chooses_at_end: bool = False
    scales_columns: bool = False
    standardises_in_core: bool = False
    cuts: bool = False
    refit_rule: str = ""
    ends_by_itself: bool = False
    penalty: str | None = None
    auto_penalty: float = AUTO_GRAVITY
    penalty_unit: Literal["objective", "gradients", "update"] = "objective"
    penalty_reach: float = 1.0
    nonzero_store: bool = False
    cluster: tuple[str, ...] = ()

    @property
    def lanes(self) -> bool:
        """Whether several of its models can train together in lanes."""
        return not self.no_lanes

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks it has estimators for."""
        return tuple(self.estimators)

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """All parameters, in the order of the estimators' signatures. Do not change the dict."""
        loss = (
            {"loss": loss_parameter(self.losses, self.regressor_loss)}
            if len(self.losses) > 1
            else {}
        )
        common = {name: p for name, p in COMMON.items() if name not in self.without}
        return {**loss, **self.own, **common}

    def losses_for(self, task: Task) -> tuple[str, ...]:
        """Return the losses of this rule's classifier or regressor."""
        return tuple(name for name in LOSSES if name in self.losses and task in LOSSES[name].tasks)
