"""Models of searches that version 0.1.0 pickled, as estimators of a class made at run time."""

from __future__ import annotations

from typing import Any

from thresher.model import Model, Output
from thresher.training.fitted import FittedState


def _remake(cls: Any, state: dict[str, Any]) -> Any:
    """Return the estimator of a model of a search, which predicts and cannot go on learning."""
    model: Model = state["_model"]
    names = cls().get_params(deep=False)
    params, made_of = {name: state[name] for name in names}, state["_made_of"]
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
