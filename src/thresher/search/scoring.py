"""Tries scikit-learn's scorers before training; the score "neg_mean_loss"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from thresher import _core
from thresher.errors import ParameterError, setting
from thresher.model.model import Output
from thresher.rules import core_args
from thresher.search.grid import GridPoint
from thresher.training.fitted import FittedState

_MEAN_LOSS = "neg_mean_loss"
_EACH = 2  # rows of each class for the trial
_MOST = 40  # rows of the trial at most


def mean_loss(estimator: Any, X: Any, y: Any) -> float:
    """Return minus the mean loss of a classifier, over rows and outputs, as a scorer.

    Parameters
    ----------
    estimator : estimator
        Fitted; it may be a pipeline.
    X, y : rows and labels
    """
    if hasattr(estimator, "steps"):
        X = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
        estimator = estimator.steps[-1][1]
    if not is_classifier(estimator):
        raise ParameterError(
            (setting("scoring", _MEAN_LOSS), " is for classifiers; a regressor has "
             "neg_mean_squared_error and others"),
            parameter="scoring",
            value=_MEAN_LOSS,
        )  # fmt: skip
    raw, loss = estimator._raw(X), estimator._learned_loss()  # noqa: SLF001
    _, checked = estimator._checked(X, y, reset=False)  # noqa: SLF001
    outputs = zip(raw.T, estimator._targets(checked), strict=True)  # noqa: SLF001
    return -float(np.mean([_losses(loss, own, targets) for own, targets in outputs]))


def _losses(loss: str, raw: NDArray[np.float64], targets: NDArray[np.float64]) -> float:
    # no loss of a classifier has an epsilon or a quantile
    values = _core.loss_values(loss, 0.0, 0.5, np.ascontiguousarray(raw), targets)[0]
    return float(values.mean())


def label_format(estimator: Any) -> str:
    """Return how rows have several labels, "dense" or "sparse"; empty: one label per row."""
    return str(getattr(estimator, "_multilabel", ""))


def with_mean_loss(scoring: Any) -> Any:
    """Return `scoring` with a scorer in place of "neg_mean_loss", which scikit-learn lacks."""
    if isinstance(scoring, str):
        return mean_loss if scoring == _MEAN_LOSS else scoring
    if isinstance(scoring, Mapping):
        if _MEAN_LOSS not in [score for score in scoring.values() if isinstance(score, str)]:
            return scoring
        return {name: with_mean_loss(score) for name, score in scoring.items()}
    if isinstance(scoring, list | tuple | set) and _MEAN_LOSS in scoring:
        return {name: with_mean_loss(name) for name in scoring}
    return scoring


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
    if not points:
        return
    classes, several = getattr(estimator, "classes_", None), label_format(estimator)
    rows = _some_rows(y, None if several else classes)
    X_some, y_some = _safe_indexing(X, rows), _safe_indexing(y, rows)
    outputs = 1 if classes is None or (len(classes) == 2 and not several) else len(classes)
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
        multilabel=label_format(estimator),
    )
    return copy(estimator).set_params(**point.params).take(state)


def _missing(error: AttributeError, model: Any) -> str:
    """Return the message about the missing attribute that a scorer used."""
    if error.obj is model and not hasattr(type(model), str(error.name)):
        return f"{type(model).__name__} has no {error.name!r} in a search in one pass"
    return str(error)


def _some_rows(y: Any, classes: NDArray[Any] | None) -> NDArray[np.intp]:
    if classes is None:
        return np.arange(min(_num_samples(y), _MOST))
    y = np.asarray(y)
    each = [np.flatnonzero(y == label)[:_EACH] for label in classes[: _MOST // _EACH]]
    return np.concatenate(each)
