"""Check the inputs of a comparison: rows, labels and the task."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array, column_or_1d

from thresher.errors import DataError, ParameterError, Words, setting
from thresher.losses import CLASSIFIER_LOSSES, REGRESSOR_LOSSES, SELECTABLE_LOSSES
from thresher.sparse_checks import refuse_malformed

_TASKS = ("classification", "regression", None)
_MANY = 20  # with more different whole numbers, labels may be meant as numbers, not classes


def checked(X: Any, y: Any, which: str) -> tuple[Any, NDArray[Any], list[str] | None]:
    """Return rows as a CSR matrix or an array, labels, and the names of the columns.

    Parameters
    ----------
    X : CSR matrix, array or DataFrame
    y : array
    which : str
        End of the names X and y in messages: "" or "_test".
    """
    names = list(map(str, X.columns)) if hasattr(X, "columns") else None
    try:
        refuse_malformed(X)
        rows = check_array(
            X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
        )
    except (TypeError, ValueError) as error:
        raise DataError(f"X{which}: {_not_a_number(X) or error}") from None
    labels = _labels(y, f"y{which}")
    if len(labels) != rows.shape[0]:
        raise DataError(f"X{which} has {rows.shape[0]} rows and y{which} has {len(labels)} labels")
    if sp.issparse(rows):
        rows = sp.csr_matrix(rows)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
    _check_finite(rows, names, which)
    return rows, labels, names


def checked_weights(weights: Any, rows: int, name: str) -> NDArray[np.float64] | None:
    """Return weights of rows; None: all are 1.

    Parameters
    ----------
    weights : array or None
    rows : int
        Number of rows.
    name : str
        The argument, for messages.
    """
    if weights is None:
        return None
    try:
        found = np.ascontiguousarray(column_or_1d(weights), np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: {error}") from None
    if len(found) != rows:
        raise DataError(f"{name} has {len(found)} weights, and there are {rows} rows")
    bad = np.flatnonzero(~(np.isfinite(found) & (found >= 0)))
    if len(bad):
        raise DataError(
            f"{name}: the weight of row {bad[0]} is {found[bad[0]]}; weights must be finite and "
            f"not negative"
        )
    return None if (found == 1).all() else found


def check_alike(names: Sequence[str] | None, others: Sequence[str] | None) -> None:
    """Raise ParameterError if training and test rows have different columns.

    Parameters
    ----------
    names, others : sequence of str or None
        Column names of the training rows and of the test rows; None: no names.
    """
    for at, (own, other) in enumerate(zip(names or (), others or (), strict=False)):
        if own != other:
            raise ParameterError(
                f"X_test: column {at} is {other!r}, but in X it is {own!r}; columns must have the "
                f"same names in the same order"
            )


def is_regression(y: NDArray[Any], loss: str | None, task: str | None) -> bool:
    """Tell whether labels are numbers to predict, not classes.

    Parameters
    ----------
    y : array
    loss, task : str or None
    """
    if task not in _TASKS:
        raise ParameterError(
            parameter="task", value=task, allowed=f"one of {', '.join(map(repr, _TASKS))}"
        )
    if task is None and loss is not None and loss not in SELECTABLE_LOSSES:
        raise ParameterError(
            parameter="loss", value=loss, allowed=f"one of {', '.join(SELECTABLE_LOSSES)}, or None"
        )
    if task is not None:
        regresses = task == "regression"
        fitting = REGRESSOR_LOSSES if regresses else CLASSIFIER_LOSSES
        if loss is not None and loss not in fitting:
            raise ParameterError(
                parameter="loss", value=loss, allowed=f"one of {', '.join(fitting)} for {task}"
            )
        return regresses
    if loss is not None:
        return loss in REGRESSOR_LOSSES and (loss not in CLASSIFIER_LOSSES or y.dtype.kind in "iuf")
    return y.dtype.kind == "f" and not (y == np.floor(y)).all()


def hint_of(y: NDArray[Any]) -> Words | None:
    """Return a hint that labels with many different numbers can be taken as numbers, or None.

    Parameters
    ----------
    y : array
        Labels as given.
    """
    values = len(np.unique(y)) if y.dtype.kind in "iuf" else 0
    if values <= _MANY:
        return None
    advice = setting("task", "regression")
    return f"labels have {values:,} values: ", advice, " takes them as numbers"


def numbers_of(y: NDArray[Any]) -> NDArray[np.float64]:
    """Return labels as numbers.

    Parameters
    ----------
    y : array
    """
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError("labels must be numbers, because the loss is for numbers") from None


def share_of(share: Any) -> float:
    """Return the share of test rows, checked.

    Parameters
    ----------
    share : float
    """
    if not isinstance(share, numbers.Real) or not 0 < float(share) < 1:
        raise ParameterError(parameter="test_share", value=share, allowed="a number > 0 and < 1")
    return float(share)


def _labels(y: Any, name: str) -> NDArray[Any]:
    try:
        labels: NDArray[Any] = column_or_1d(y)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: {error}") from None
    if labels.dtype.kind == "f":
        missing = np.flatnonzero(~np.isfinite(labels))
        if len(missing):
            raise DataError(
                f"{name}: the label of row {missing[0]} is {labels[missing[0]]}; labels must be "
                f"finite"
            )
    if labels.dtype.kind != "O":
        return labels
    kinds: dict[str, int] = {}
    for row, label in enumerate(labels):
        if _is_missing(label):
            raise DataError(f"{name}: the label of row {row} is missing: {label}")
        kind = "number" if isinstance(label, numbers.Real) else type(label).__name__
        kinds.setdefault(kind, row)
    if len(kinds) > 1:
        one, other = list(kinds.items())[:2]
        raise DataError(
            f"{name}: labels must be of one kind; row {one[1]} has {labels[one[1]]!r} ({one[0]}), "
            f"row {other[1]} has {labels[other[1]]!r} ({other[0]})"
        )
    if not set(kinds) <= {"number", "str"}:
        raise DataError(f"{name}: labels must be numbers or words; got {labels[0]!r}")
    return np.array(labels.tolist())


def _is_missing(label: Any) -> bool:
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(label, numbers.Real) and not math.isfinite(label)


def _not_a_number(X: Any) -> str:
    """Return a message about the first value of a DataFrame that is not a number."""
    if not hasattr(X, "iloc"):
        return ""
    for at, name in enumerate(X.columns):
        for row, value in enumerate(X.iloc[:, at]):
            try:
                float(value)
            except (TypeError, ValueError):
                return f"column {str(name)!r} must have numbers; row {row} has {value!r}"
    return ""


def _check_finite(X: Any, names: Sequence[str] | None, which: str) -> None:
    values = X.data if sp.issparse(X) else X
    if np.isfinite(values).all():
        return
    if sp.issparse(X):
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        row, column = int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])
        value = values[at]
    else:
        row, column = (int(part[0]) for part in np.nonzero(~np.isfinite(values)))
        value = values[row, column]
    name = column if names is None else repr(names[column])
    text = "NaN" if np.isnan(value) else value
    raise DataError(
        f"X{which}: the value of row {row}, column {name}, is {text}; values must be finite"
    )
