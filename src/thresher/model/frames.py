"""Frames that a model predicts: columns are found by their names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data.frame_reading import by_name, reads_tables, source_for
from thresher.data.frames import columns_of, matrix_of, opened
from thresher.errors import ParameterError

if TYPE_CHECKING:
    from thresher.model.model import Model

__all__ = ["rows_of_frame"]


def rows_of_frame(model: Model, frame: Any) -> Any:
    """Return a frame as a source, or as a matrix with the columns of the training data.

    Parameters
    ----------
    model : Model
    frame : frame
    """
    frame = opened(frame)
    if reads_tables(model.parameters) or model.n_features == 2**64:
        return source_for(model.parameters, frame)
    names = columns_of(frame)
    if not model.names or not any(isinstance(name, str) for name in names):
        return _numbers(frame)  # columns are found by their numbers
    known = json.loads(str(model.parameters.get("columns") or "null"))
    if known is not None:
        label = model.parameters.get("label")
        return _numbers(by_name(frame, known, [str(label)] if label else []))
    # An older model: it has only the names of features with nonzero weight.
    if len(names) == model.n_features and all(names[k] == n for k, n in model.names.items()):
        return _numbers(frame)
    if len(names) != model.n_features:
        raise ParameterError(
            f"X must have {model.n_features} columns, like the training data; it has {len(names)}"
        )
    order = sorted(model.names)
    chosen = _numbers(by_name(frame, [model.names[k] for k in order], list(map(str, names))))
    found = np.zeros((frame.shape[0], model.n_features))
    found[:, order] = chosen.toarray() if hasattr(chosen, "toarray") else chosen
    return found


def _numbers(frame: Any) -> Any:
    try:
        return matrix_of(frame)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"the model was trained on numbers, and the frame has other types: {error}"
        ) from error
