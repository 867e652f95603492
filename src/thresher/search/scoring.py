"""Scores of rows in memory: scikit-learn's scorers, tried before training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from thresher.errors import ParameterError, setting
from thresher.frontier import Place
from thresher.model import Output
from thresher.search.grid import Point
from thresher.search.views import view_of

_EACH = 2  # rows of each class that scorers are tried on
_MOST = 40  # rows at most


def scorers_by_name(scorers: Any) -> dict[str, Any]:
    """Return the scorers one by one."""
    return dict(getattr(scorers, "_scorers", None) or {"scoring": scorers})


def try_scorers(
    scorers: Any,
    estimator: Any,
    points: Sequence[Point],
    X: Any,
    y: Any,
    facts: dict[str, Any],
    scoring: Any = None,
    single: bool = False,
) -> None:
    """Raise ParameterError for a scorer that asks what a model of the search cannot answer.

    Also for one that returns several scores, where a single one is wanted.

    Each is tried on a few rows and made-up predictions, for each kind of point. What else may be
    wrong with these few rows does not count. A single scorer is called what `scoring` says.
    """
    rows = _some_rows(y, facts.get("classes_"))
    X_some, y_some = _safe_indexing(X, rows), _safe_indexing(y, rows)
    classes = facts.get("classes_")
    outputs = 1 if classes is None or len(classes) == 2 else len(classes)
    made_up = np.linspace(-1.0, 1.0, len(rows) * outputs).reshape(outputs, -1).T.copy()
    nothing = Output(np.zeros(0, np.uint64), np.zeros(0), 0.0)
    for point in {repr(point.params.get("loss")): point for point in points}.values():
        for name, scorer in scorers_by_name(scorers).items():
            view = view_of(
                estimator,
                point.params,
                lambda: [nothing] * outputs,
                width=facts["n_features_in_"],
                facts=facts,
            )
            view._rows, view._known = X_some, made_up
            try:
                found = scorer(view, X_some, y_some)
            except AttributeError as error:
                known = scoring if isinstance(scoring, str) else repr(scorer)
                asked = name if name != "scoring" else known
                raise ParameterError(
                    (setting("scoring"), f": {asked} asks what models of this search cannot "
                     f"answer, with {point.chosen}: {error}"),
                    parameter="scoring",
                    value=asked,
                ) from error  # fmt: skip
            except Exception:  # a score need not exist for these few rows
                continue
            if single and isinstance(found, Mapping):
                raise ParameterError(
                    (setting("scoring"), f" must be a single score; {scorer!r} returns "
                     f"{', '.join(found)}"),
                    parameter="scoring",
                    allowed="a single score",
                )  # fmt: skip


def _some_rows(y: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[np.intp]:
    y = np.asarray(y)
    if classes is None:
        return np.arange(min(len(y), _MOST))
    each = [np.flatnonzero(y == label)[:_EACH] for label in classes[: _MOST // _EACH]]
    return np.concatenate(each)


def tell_place(estimator: Any, place: Place | None) -> None:
    """Let the model of a fitted estimator know its place; further learning forgets it.

    Parameters
    ----------
    estimator : estimator
    place : Place or None
    """
    estimator._model = replace(estimator.model_, frontier=place)
    estimator._place = place
