"""Tries scikit-learn's scorers before training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from thresher.errors import ParameterError, setting
from thresher.model.model import Output
from thresher.rules import core_args
from thresher.search.grid import GridPoint
from thresher.training.fitted import FittedState

_EACH = 2  # rows of each class for the trial
_MOST = 40  # rows of the trial at most


def scorers_by_name(scorers: Any) -> dict[str, Any]:
    """Return the scorers by name; a single one is named "scoring"."""
    return dict(getattr(scorers, "_scorers", None) or {"scoring": scorers})


def try_scorers(
    scorers: Any,
    estimator: Any,
    points: Sequence[GridPoint],
    X: Any,
    y: Any,
    scoring: Any = None,
    single: bool = False,
) -> None:
    """Raise ParameterError if a scorer uses an attribute that models of the search do not have.

    Also if a scorer returns several scores, and `single` is True.

    Each scorer is called with a few rows and invented predictions, for each loss. Other errors are
    ignored: a score may not exist for these few rows. The error names a single scorer by `scoring`.
    `estimator` must have checked the rows, so that it has their width and classes.
    """
    classes = getattr(estimator, "classes_", None)
    rows = _some_rows(y, classes)
    X_some, y_some = _safe_indexing(X, rows), _safe_indexing(y, rows)
    outputs = 1 if classes is None or len(classes) == 2 else len(classes)
    invented = np.linspace(-1.0, 1.0, len(rows) * outputs).reshape(outputs, -1).T.copy()
    for point in {repr(point.params.get("loss")): point for point in points}.values():
        for name, scorer in scorers_by_name(scorers).items():
            model = _without_weights(estimator, point, (X_some, invented))
            try:
                found = scorer(model, X_some, y_some)
            except AttributeError as error:
                given = scoring if isinstance(scoring, str) else repr(scorer)
                shown = name if name != "scoring" else given
                raise ParameterError(
                    (setting("scoring"), f": {shown} cannot score models of this search, with "
                     f"{point.chosen}: {_missing(error, model)}"),
                    parameter="scoring",
                    value=shown,
                ) from error  # fmt: skip
            except Exception:  # the score may not exist for these few rows
                continue
            if single and isinstance(found, Mapping):
                raise ParameterError(
                    (setting("scoring"), f" must be a single score; {scorer!r} returns "
                     f"{', '.join(found)}"),
                    parameter="scoring",
                    allowed="a single score",
                )  # fmt: skip


def _without_weights(
    estimator: Any, point: GridPoint, known: tuple[Any, NDArray[np.float64]]
) -> Any:
    """Return a model of a point without weights; for known rows it returns known predictions."""
    params = core_args.learner_parameters(estimator.rule, point.params)
    nothing = Output(np.zeros(0, np.uint64), np.zeros(0), 0.0)
    state = FittedState(
        rule=estimator.rule,
        params=params,
        requested=params,
        rows=None,
        width=estimator.n_features_in_,
        history=None,
        weights=[nothing] * known[1].shape[1],
        known=known,
        final=True,
        classes=getattr(estimator, "classes_", None),
    )
    return copy(estimator).set_params(**point.params).take(state)


def _missing(error: AttributeError, model: Any) -> str:
    """Return the message about the missing attribute that a scorer used."""
    if error.obj is model and not hasattr(type(model), str(error.name)):
        return f"{type(model).__name__} has no {error.name!r} in a search in one pass"
    return str(error)


def _some_rows(y: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[np.intp]:
    y = np.asarray(y)
    if classes is None:
        return np.arange(min(len(y), _MOST))
    each = [np.flatnonzero(y == label)[:_EACH] for label in classes[: _MOST // _EACH]]
    return np.concatenate(each)
