"""Frames that a model predicts: columns are found by their names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data.arrays import is_sparse, refuse_texts
from thresher.data.frame_reading import by_name, reads_tables, source_for
from thresher.data.frames import columns_of, matrix_of, opened
from thresher.errors import ParameterError
from thresher.sparse_checks import refuse_malformed

if TYPE_CHECKING:
    from thresher.model.model import Model

__all__ = ["checked_matrix", "rows_of_frame"]

_SHOWN = 5  # columns that an error names


def checked_matrix(model: Model, X: Any) -> Any:
    """Return rows as a CSR matrix or an array with the columns of the model.

    Parameters
    ----------
    model : Model
    X : sparse matrix or array of shape (rows, features)
    """
    named = model.n_features == 2**64 or reads_tables(model.parameters)
    if not named:
        refuse_texts(X)
    refuse_malformed(X, rows_checked=True)
    X = X.tocsr() if is_sparse(X) else np.asarray(X)
    if X.ndim == 2 and X.shape[1] == model.n_features:
        return X
    if named:
        raise ParameterError(f"the model has features by name: {_wanted(model)}")
    raise ParameterError(
        f"X must have {model.n_features} columns, like the training data; its shape is {X.shape}"
    )


def _wanted(model: Model) -> str:
    """Return which rows a model with features by name takes."""
    columns = json.loads(str(model.parameters.get("frame_columns") or "null"))
    columns = columns or list(json.loads(str(model.parameters.get("kinds") or "{}")))
    if not columns:
        return "give a list of dicts {name: value}, or what scan returns"
    text = json.loads(str(model.parameters.get("text") or "[]"))
    names = ", ".join(columns[:_SHOWN]) + (", ..." if len(columns) > _SHOWN else "")
    words = f"column{'s' if len(columns) > 1 else ''} {names}"
    shown = f" such as {{{text[0]!r}: 'some words'}}" if text else " {name: value}"
    return f"give a DataFrame with the {words}, a list of dicts{shown}, or what scan returns"


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
    known = json.loads(str(model.parameters.get("frame_columns") or "null"))
    named = any(isinstance(name, str) for name in names) and (model.names or known)
    if not named or known == names:
        return _numbers(frame)  # columns are found by their numbers
    label = model.parameters.get("label")
    if not model.names:  # no weight is nonzero
        return _numbers(by_name(frame, known, [label] if label else []))
    unused = [name for name in names if known is None or name == label]
    order = sorted(model.names)
    chosen = _numbers(by_name(frame, [model.names[k] for k in order], unused, known))
    if is_sparse(chosen):
        entries = chosen.tocoo()
        places = entries.row, np.array(order)[entries.col]
        return type(chosen)((entries.data, places), shape=(chosen.shape[0], model.n_features))
    found = np.zeros((chosen.shape[0], model.n_features), chosen.dtype)
    found[:, order] = chosen
    return found


def _numbers(frame: Any) -> Any:
    try:
        return matrix_of(frame)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"the model was trained on numbers, and the frame has other types: {error}"
        ) from error
