"""The state of a fitted estimator, as the learner's state that a model can carry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.distinct import distinct_keys
from thresher.errors import ParameterError
from thresher.model.state import LearnerState
from thresher.rules import RULES
from thresher.training.bits import bits_of
from thresher.training.checkpoint import TrainingCheckpoint

if TYPE_CHECKING:
    from thresher.training.fitted import FittedState

_PLAIN = (bool, int, float, str, type(None))


class StateInMemory(LearnerState):
    """The state of an estimator, to which the model that it learned refers.

    Parameters
    ----------
    state : FittedState
    params : mapping
        All parameters of the estimator.
    """

    def __init__(self, state: FittedState, params: Mapping[str, Any]) -> None:
        self._state: FittedState | None = None
        self._params, self._steps, self._why = dict(params), state.outputs_steps, ""
        if state.final or state.outputs is None:
            self._why = why_final(state)  # and the model keeps nothing of it in memory
        else:
            self._state = state

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return the arrays; raise ParameterError if there is no state, or it has changed."""
        if self._state is None:
            raise ParameterError(
                f"the model has no state of a learner, because {self._why}", parameter="state"
            )
        if self._state.outputs_steps != self._steps:
            raise ParameterError(
                "the estimator has learned more since it made this model; its model_ is newer",
                parameter="state",
            )
        saved = packed(self._state, self._params)
        about = json.dumps(saved.about).encode()
        return {"about": np.frombuffer(about, np.uint8), **saved.tensors()}


def packed(state: FittedState, params: Mapping[str, Any]) -> TrainingCheckpoint:
    """Return the learner's state; its history, weights and labels are those of the model.

    Parameters
    ----------
    state : FittedState
        With outputs.
    params : mapping
        All parameters of the estimator.
    """
    assert state.outputs is not None
    own = {name: value for name, value in params.items() if name in RULES[state.rule].parameters}
    named = bool(state.reading)
    about = {
        "own": plain_parameters(own),
        "requested": plain_parameters(state.requested),
        "params": plain_parameters(state.params),
        "bits": bits_of(state.rule, shuffle=False, named=named, weighted=True),
        "rows": state.rows,
        "passes": state.passes,
        "runs": state.runs,
        "outputs": len(state.outputs),
        "separate": state.separate,
        "standardised": state.standardised,
        "recorded": list(state.recorded),
        "watch": dict(vars(state.watch)),
        "order": None if state.order is None else state.order.state,
        "hooks": state.hooks.kept(),
        "multilabel": state.multilabel,
        "reading": sorted(state.reading),
        "row_by_row": state.row_by_row,
        "named": state.names is not None,
        "most_names": None if state.seen_names is None else state.seen_names.most,
        "refit": None if state.refit is None else _refit(state.refit),
    }
    return TrainingCheckpoint(about, state.outputs.states(), names=_further_names(state))


def why_final(state: FittedState) -> str:
    """Return why training cannot continue from a state, as the end of a sentence.

    Parameters
    ----------
    state : FittedState
    """
    if state.obstacle:
        return state.obstacle
    if not state.final:
        return f"the rule {state.rule} keeps none that a file can hold"
    return "it was trained with scaled columns, on a cluster or in a search"


def plain_parameters(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters in types that JSON has; objects, such as a callback, become None.

    Examples
    --------
    >>> plain_parameters({"l1": 0.5, "levels": (0.1,), "class_weight": {"no": 2.0}})
    {'l1': 0.5, 'levels': [0.1], 'class_weight': {'pairs': [['no', 2.0]]}}
    """
    return {name: _plain(value) for name, value in params.items()}


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, Mapping):
        return {"pairs": [[_plain(key), float(weight)] for key, weight in value.items()]}
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return value if isinstance(value, _PLAIN) else None


def _refit(refit: Any) -> dict[str, Any]:
    return {
        "shares": list(refit.shares),
        "losses": list(refit.losses),
        "loss_before": refit.loss_before,
        "largest": list(refit.largest),
        "chosen": refit.outputs is not None,
    }


def _further_names(state: FittedState) -> dict[int, bytes] | None:
    """Return the names that the model does not have: of features whose weight is zero now."""
    if state.names is None and state.seen_names is None:
        return None
    found = {} if state.seen_names is None else dict(state.seen_names.table.names)
    found |= {k: name.encode("utf-8", "surrogatepass") for k, name in (state.names or {}).items()}
    for key in distinct_keys([output.keys for output in state.learned()]).tolist():
        found.pop(key, None)
    return found
