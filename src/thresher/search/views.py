"""A lane as an estimator: what scorers ask, answered from the lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from thresher.data import is_source
from thresher.errors import ParameterError
from thresher.model import Model, Output
from thresher.rules import core_args


class FromLane:
    """Mixed into an estimator: fitted as one model among many, it can answer but not go on.

    Raw predictions for the rows it is scored on are known already; others come from its weights.
    """

    _model: Model | None
    _ask: Callable[[], Sequence[Output]] | None
    _rows: Any = None
    _known: NDArray[np.float64] | None = None

    def _raw(self, X: Any) -> NDArray[np.float64]:
        if self._known is not None and X is self._rows:
            return self._known
        return np.asarray(self.model_.raw(X if is_source(X) else self._checked_rows(X)))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy, or R2 of a regression."""
        if self.task == "classifier" and np.ndim(y) == 1:  # the same, without looking at y again
            return float(np.average(np.asarray(y) == self.predict(X), weights=sample_weight))
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]

    @property
    def model_(self) -> Model:
        """The model: sparse weights, and how they came about."""
        if self._model is None and self._ask is not None:
            self._model = Model.of(
                [output.largest(self._target()) for output in self._ask()],
                n_features=self._width,
                classes=getattr(self, "classes_", None),
                loss=self._learned_loss(),
                parameters={"rule": self.rule, **self.get_params(deep=False), **self._besides},
                names=self._named_features,
            )
            self._ask = None  # what is known need not be asked again, and lanes can go
        assert self._model is not None
        return self._model

    def _partial_fit(self, *_: Any, **__: Any) -> Any:
        raise ParameterError(
            f"{type(self).__name__}: learned as one of many models of a search, it cannot go on "
            f"learning; fit a clone"
        )

    _fit = _fit_source = _partial_fit

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__} has no {name!r} in a search in one pass")

    def __sklearn_clone__(self) -> Any:
        return type(self).__mro__[2](**clone(self.get_params(deep=False), safe=False))

    def __reduce__(self) -> Any:
        self.model_  # noqa: B018  asked for before the lanes go
        state = {k: v for k, v in vars(self).items() if k not in ("_rows", "_known", "_ask")}
        return _remake, (type(self).__mro__[2], state)


@cache
def _class_for(cls: Any) -> Any:
    return type(
        cls.__name__, (FromLane, cls), {"__module__": cls.__module__, "__doc__": cls.__doc__}
    )


def _remake(cls: type, state: dict[str, Any]) -> Any:
    view = _class_for(cls).__new__(_class_for(cls))
    vars(view).update(state)
    return view


def view_of(
    estimator: Any,
    params: dict[str, Any],
    ask: Callable[[], Sequence[Output]],
    *,
    width: int,
    facts: dict[str, Any],
    names: dict[int, str] | None = None,
    besides: dict[str, Any] | None = None,
) -> Any:
    """Return a model among many as an estimator of its own kind.

    Parameters
    ----------
    estimator : estimator
        One of that kind.
    params : dict
        All its parameters.
    ask : callable
        Returns what its outputs have learned.
    width : int
        Number of features.
    facts : dict
        What fitting sets beside: ``classes_``, ``n_features_in_``, ...
    names : dict, optional
        Of the features with nonzero weights.
    besides : dict, optional
        What the model says of its parameters beside those of the estimator.
    """
    kind: Any = type(estimator)
    view = _class_for(kind)(**params)
    state = {
        "_made_of": (core_args.learner_parameters(estimator.rule, params), None),
        "_ask": ask,
        "_width": width,
        "_model": None,
        "_coef": None,
        "_sparse_coef": params.get("store") == "hashed",
        "_named_features": names,
        "_besides": besides or {},
        "n_iter_": params["passes"],
    }
    vars(view).update({**state, **facts})
    return view
