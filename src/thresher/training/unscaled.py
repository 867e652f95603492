"""Weights for rows as they are, of a model that learned rows with scaled columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data.scaled import ScaledSource
from thresher.errors import ParameterError, setting
from thresher.model.model import Output
from thresher.sums import dot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thresher.training.fitted import FittedState

_OF_SCALED_ROWS = ("certify", "levels")  # parameters whose results are about the scaled rows


def check_scaled(source: Any, params: Mapping[str, Any], owner: str) -> None:
    """Raise ParameterError for parameters that cannot be used with scaled columns."""
    for name in _OF_SCALED_ROWS if isinstance(source, ScaledSource) else ():
        if params.get(name):
            raise ParameterError(
                (setting(name), " cannot be combined with ", setting("scale", call="scan"),
                 ": its results would be about the scaled rows"),
                owner=owner,
                parameter=name,
                value=params[name],
            )  # fmt: skip


def unscaled(state: FittedState, source: Any) -> FittedState:
    """Return the state with each weight divided by the scale of its column.

    What was subtracted from the columns changes the intercepts. So the model predicts rows that are
    not scaled. Its training cannot continue. Certificates are about the scaled rows, and are left
    out.

    Parameters
    ----------
    state : FittedState
    source : object
        The rows that were learned. If their columns are not scaled, the state is returned
        unchanged.
    """
    if not isinstance(source, ScaledSource):
        return state
    outputs = []
    for output in state.learned():
        with np.errstate(over="ignore", under="ignore"):
            weights = output.weights.astype(np.float64) / source.scales.of(output.keys)
        kept = weights != 0  # a weight may be too small for a number
        shift = dot(source.scales.centres_of(output.keys), weights)
        outputs.append(Output(output.keys[kept], weights[kept], output.intercept - shift))
    extras = {name: fact for name, fact in state.all_extras().items() if name != "certificates"}
    refit = state.refit
    if refit is not None and refit.outputs is not None:
        refit = replace(refit, outputs=outputs)
    why = "it was trained with scaled columns, and its learners know only scaled rows"
    return replace(
        state, weights=outputs, outputs=None, refit=refit, extras=extras, final=True, obstacle=why
    )
