"""Outputs that go on learning after the training before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from thresher.errors import ParameterError, setting
from thresher.rules import RULES
from thresher.training.capacity import Capacity
from thresher.training.fitted import FittedState
from thresher.training.outputs import Outputs
from thresher.training.plan import TrainingPlan

if TYPE_CHECKING:
    from thresher.data.matrix_source import MatrixSource
    from thresher.data.source import Source


def for_any_feature(outputs: Outputs | None, plan: TrainingPlan, capacity: Capacity) -> Outputs:
    """Return outputs that accept any feature number, if the source may have new features.

    Parameters
    ----------
    outputs : Outputs or None
        Those of the training that goes on; not None.
    plan : TrainingPlan
    capacity : Capacity
    """
    assert outputs is not None
    if plan.store != "dense" and capacity.size == 0:
        outputs.widen(0)
    return outputs


def continued_outputs(
    before: FittedState, plan: TrainingPlan, capacity: Capacity, onward: bool
) -> Outputs:
    """Return copies of the outputs of `before`, ready for further passes.

    Parameters
    ----------
    before : FittedState
    plan : TrainingPlan
    capacity : Capacity
    onward : bool
        Whether they are to learn further rows of the same pass instead.
    """
    outputs, classes = before.copied_outputs(), plan.labels.classes
    if onward:
        if outputs.scale is not None:
            outputs.scale.fixed = False  # new rows count
        return for_any_feature(outputs, plan, capacity)
    known = before.classes is None or (
        classes is not None and np.array_equal(before.classes, classes)
    )
    if not known or (plan.in_memory and plan.width != before.width):
        raise ParameterError(
            (
                setting("warm_start", True),
                " needs the same features and classes as the previous fit",
            ),
            owner=plan.owner,
            parameter="warm_start",
            value=True,
        )
    outputs.next_pass()
    return for_any_feature(outputs, plan, capacity)


def capacity_of(plan: TrainingPlan, before: FittedState | None) -> Capacity:
    """Return the number of features that the outputs accept, at least as many as before.

    Parameters
    ----------
    plan : TrainingPlan
    before : FittedState or None
    """
    capacity = Capacity(plan)
    if before is not None:
        if before.width < 2**64:
            capacity.size = max(capacity.size, before.width) if capacity.size else 0
        capacity.width = max(capacity.width, before.width)  # else weights would be beyond it
    return capacity


def check_names(before: FittedState, source: Source | MatrixSource, owner: str) -> None:
    """Raise ParameterError if only one of the model and the further rows has named features.

    Parameters
    ----------
    before : FittedState
    source : Source or MatrixSource
        The further rows.
    owner : str
        The estimator or rule, for messages.
    """
    named = before.names is not None or before.width == 2**64
    if source.named and not named and source.bits is not None:
        return  # its features may have names that were not kept
    if source.named != named:
        one, other = ("names", "numbers") if source.named else ("numbers", "names")
        raise ParameterError(
            f"the features of the rows have {one}, and those of the model have {other}", owner=owner
        )


def refuse_numbers(before: FittedState, source: Source | MatrixSource, owner: str) -> None:
    """Raise ParameterError if rows of numbered features follow rows of named ones.

    Parameters
    ----------
    before : FittedState
    source : Source or MatrixSource
        The further rows of `partial_fit`.
    owner : str
        The estimator, for messages.
    """
    named = bool(before.names or before.seen_names) and before.width == 2**64
    if named and not source.named:
        check_names(before, source, owner)


def check_width(before: FittedState, plan: TrainingPlan) -> None:
    """Raise ParameterError if further rows have another number of features.

    Parameters
    ----------
    before : FittedState
    plan : TrainingPlan
        The plan for the further rows.
    """
    fixed = plan.width not in (0, 2**64) and not plan.grows and plan.width != before.width
    if fixed and (not RULES[plan.rule].needs_width or plan.width > before.width):
        raise ParameterError(
            f"the rows have {plan.width:,} features, and the model has {before.width:,}",
            owner=plan.owner,
        )


def kept_values(before: FittedState) -> list[str]:
    """Return notes on values that depend on the rows, and stay those of the first rows.

    Parameters
    ----------
    before : FittedState
        The training that goes on.
    """
    rule, notes = RULES[before.rule], []
    rate = rule.rate_from_rows
    if before.requested.get(rate) == "auto" and before.params[rate] != "auto":
        notes.append(f"{rate} stays {before.params[rate]:g}, which the first rows gave")
    if before.rows is not None:
        notes += [
            f"{name}=auto stays the value for {before.rows:,} rows"
            for name in ("gravity", "l1")
            if before.requested.get(name) == "auto"
        ]
    return notes
