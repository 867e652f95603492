"""Checks of a source before a search reads it; the number of its folds and features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from thresher.data.source import Source
from thresher.errors import ParameterError, setting
from thresher.rules import RULES
from thresher.search.grid import GridPoint, check_label_sets, runs_of

_NO_SUMS = "models in lanes do not keep the sums for it; use it in a single fit"


def folds_of(cv: Any, source: Source) -> int:
    """Return the number of folds of a source; 0: rows are scored before they are learned.

    None is 5 folds, or 0 if the source can be read only once. Raises ParameterError for other
    values of cv, and for folds of a source that can be read only once.

    Parameters
    ----------
    cv : int, "progressive" or None
    source : Source
    """
    if cv == "progressive" and isinstance(cv, str):
        return 0
    folds = 5 if cv is None else cv
    if isinstance(folds, bool) or not isinstance(folds, int | np.integer) or folds < 2:
        raise ParameterError(
            f"cv must be a number of folds >= 2, or 'progressive', for a source; got {cv!r}",
            parameter="cv",
            value=cv,
        )
    if not source.rereadable and cv is not None:
        raise ParameterError(
            f"cv={cv}: {source} can be read only once, but folds are read once more to score them; "
            f"cv='progressive' scores each row before it is learned",
            parameter="cv",
            value=cv,
        )
    return int(folds) if source.rereadable else 0


def is_dense(params: Mapping[str, Any], source: Source) -> bool:
    """Tell whether models of a source have a dense store.

    Parameters
    ----------
    params : mapping
        All parameters of an estimator.
    source : Source
    """
    store = params.get("store", "dense")
    if source.columns and "store" in params:  # a frame with words
        store = "auto" if store == "dense" else store
    return bool(store == "dense" or (store == "auto" and not _has_names(source)))


def _has_names(source: Source) -> bool:
    return source.named and source.bits is None


def check_source(estimator: Any, source: Source, points: Sequence[GridPoint], classes: Any) -> None:
    """Raise ParameterError if points cannot be searched on a source.

    Parameters
    ----------
    estimator : estimator
    source : Source
    points : sequence of GridPoint
    classes : array, "binary" or None
        Argument of `fit`.
    """
    name = type(estimator).__name__
    check_label_sets(estimator, source, None)
    if isinstance(classes, str) and classes != "binary":
        raise ParameterError(
            owner=name,
            parameter="classes",
            value=classes,
            allowed="an array of labels, or 'binary' for -1 and 1, or 0 and 1",
        )
    points = [point for point in points if not point.obstacle]  # fits check the other ones
    for point in points:
        _check_point(name, source, point.params)
    if points and RULES[estimator.rule].needs_width and not (source.rereadable or source.bits):
        raise ParameterError(
            f"its norm depends on the number of features, and {source} can be read only once",
            owner=name,
            hint=("give ", setting("bits", call="scan")),
        )
    if not source.rereadable and len(runs_of(points)) > 1:
        raise ParameterError(
            f"{source} can be read only once: all points of the grid must have the same shuffle, "
            f"store, dtype, class_weight and random_state, and for a regression all or none must "
            f"standardise the targets in the same way"
        )


def _check_point(name: str, source: Source, params: Mapping[str, Any]) -> None:
    for param in ("certify", "levels"):
        if params.get(param):
            raise ParameterError(
                (
                    setting(param),
                    " is not available for a source if models train together: ",
                    _NO_SUMS,
                ),
                owner=name,
                parameter=param,
                value=params[param],
            )
    if is_dense(params, source) and _has_names(source):
        raise ParameterError(
            ("features with names need ", setting("store", "hashed"), ", or ",
             setting("bits", call="scan"), " to number them"),
            owner=name,
            parameter="store",
            value="dense",
        )  # fmt: skip
    if not source.rereadable and params["passes"] != 1:
        raise ParameterError(
            (f"{source} can be read only once: ", setting("passes"), " must be 1; got "
             f"{params['passes']}"),
            owner=name,
            parameter="passes",
            value=params["passes"],
        )  # fmt: skip


def width_of(source: Source, widest: int, points: Sequence[GridPoint]) -> int:
    """Return the number of features of a source that was read; 0: any.

    Raises ParameterError if feature numbers are too large for a dense store.

    Parameters
    ----------
    source : Source
    widest : int
        The largest feature number plus 1.
    points : sequence of GridPoint
    """
    if source.bits is not None:
        return 1 << source.bits
    dense = any(is_dense(point.params, source) for point in points if not point.obstacle)
    if dense and widest == 2**64:
        raise ParameterError(
            (f"{source}: feature numbers are too large for a dense store; set ",
             setting("store", "hashed"), ", or set ", setting("bits", call="scan"),
             " to reduce them"),
        )  # fmt: skip
    return widest if (dense or not source.named) and widest < 2**64 else 0
