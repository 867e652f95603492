"""Converts pickles of version 0.1.0 to the attributes of this version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from thresher.health.watch import DivergenceWatch
from thresher.model.model import Model, Output
from thresher.rules import RULES
from thresher.training.fitted import FittedState
from thresher.training.hooks import Hooks
from thresher.training.outputs_factory import OutputsFactory

if TYPE_CHECKING:
    from thresher.estimators.linear import LinearEstimator

_LEARNERS = "_learners"


class Elsewhere(NamedTuple):
    """The weights of an estimator that was fitted on a cluster, as version 0.1.0 pickled them."""

    outputs: list[Output]
    extras: dict[str, Any]


def upgraded(cls: type[LinearEstimator], state: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a pickled estimator, in the form of this version.

    Parameters
    ----------
    cls : type of estimator
    state : dict
        The attributes that this version or version 0.1.0 pickled; this version's are unchanged.
    """
    table = RULES[cls.rule].parameters if cls.rule in RULES else {}  # a race has no rule
    later = {name for name in cls._get_param_names() if name in table and name not in state}
    state = {**{name: table[name].default_for(cls.task) for name in later}, **state}
    if "_made_of" not in state:
        return state
    (params, rows), width = state.pop("_made_of"), state.pop("_width")
    elsewhere = state.pop("_elsewhere", None)
    fitted = FittedState(
        rule=cls.rule,
        params=params,
        requested=params,
        rows=rows,
        width=width,
        history=state["history_"],
        passes=state["n_iter_"],
        recorded=state.pop("_recorded", (0.0, 0.0)),
        watch=state.pop("_watch", None) or DivergenceWatch(),
        classes=state.get("classes_"),
        multilabel=state.get("_multilabel", ""),
        names=state.pop("_names", None),
        kinds=state.pop("_kinds", None),
    )
    fitted.place = state.pop("_place", None)
    for name in ("_model", "_coef"):  # computed again when used
        state.pop(name, None)
    state["_cached"] = {}
    saved = state.get(_LEARNERS)
    if isinstance(saved, tuple):  # a rule that learns row by row: number and states of outputs
        del state[_LEARNERS]
        features = 0 if width == 2**64 else width
        fitted.outputs = OutputsFactory(cls.rule, params, rows, features, width).restore(
            saved[1], saved[0]
        )
        make: Any = getattr(cls, "hooks_of_pickle", lambda state: Hooks())
        fitted.hooks = make(state)
    elif elsewhere is not None:
        fitted.weights, fitted.extras = elsewhere.outputs, elsewhere.extras
        fitted.final = True
    elif "_found" in state:  # a rule that needs all rows at once
        fitted.weights = state.pop("_found")
    state["_fitted"] = fitted
    return state


def _remake(cls: Any, state: dict[str, Any]) -> Any:
    """Return an estimator for a model of a search; it predicts, but its training is over."""
    model: Model = state["_model"]
    names = cls().get_params(deep=False)
    params = {name: state.get(name, default) for name, default in names.items()}
    made_of = state["_made_of"]
    weights = [
        Output(model.indices[a:b], model.weights[a:b], float(intercept))
        for a, b, intercept in zip(
            model.indptr[:-1], model.indptr[1:], model.intercept, strict=True
        )
    ]
    estimator = cls(**params)
    for name in ("n_features_in_", "feature_names_in_"):
        if name in state:
            setattr(estimator, name, state[name])
    return estimator.take(
        FittedState(
            rule=cls.rule,
            params=made_of[0],
            requested=made_of[0],
            rows=made_of[1],
            width=state["_width"],
            history=list(model.history),
            passes=state["n_iter_"],
            weights=weights,
            final=True,
            classes=state.get("classes_"),
            names=None if model.names is None else dict(model.names),
            place=model.frontier,
        )
    )
