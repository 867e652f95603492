"""Merge models that learned different rows: the mean of their weights."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from thresher.data.distinct import distinct_keys
from thresher.errors import ParameterError
from thresher.model.history import Output, Progress
from thresher.model.model import Model, load
from thresher.rules import RULES
from thresher.sums import ordered_sum

# Options of reading that decide the numbers and values of features.
_DECIDE = (
    "bits", "interactions", "text", "ngrams", "missing", "dates", "zero_based", "kinds",
    "frame_columns", "multilabel",
)  # fmt: skip


def merge(
    models: Sequence[Model | str | os.PathLike[str]], weights: Sequence[float] | None = None
) -> Model:
    """Return the mean of models that learned different rows.

    Each weight is the mean of the weights in all models, and so is each intercept. A model counts
    by the number of rows that it learned, over all its passes. Only models of rules that a cluster
    can average are merged, as ``thresher train --workers`` does after each round.

    Parameters
    ----------
    models : sequence of Model or path
        At least two, of the same rule, loss, classes and features.
    weights : sequence of float, optional
        How much each model counts, instead of its number of rows.

    Returns
    -------
    Model
        It has the names of all models, those parameters that are the same in all of them, and a
        history of one record. It has no state of a learner.

    Raises
    ------
    ParameterError
        The models cannot be merged; the message says what differs.

    Examples
    --------
    >>> import thresher
    >>> from thresher import FTRLClassifier
    >>> learner = FTRLClassifier(l1=0.1, passes=1, shuffle=False)
    >>> one = learner.fit([[1.0, 0.0], [0.0, 1.0]] * 10, [1, 0] * 10).model_
    >>> other = learner.fit([[1.0, 0.0], [0.0, 2.0]] * 30, [1, 0] * 30).model_
    >>> both = thresher.merge([one, other])
    >>> bool(abs(both.weights[0] - (20 * one.weights[0] + 60 * other.weights[0]) / 80) < 1e-12)
    True
    """
    if isinstance(models, Model | str | os.PathLike):
        raise ParameterError(
            parameter="models", value=models, allowed="a list of at least two models or their files"
        )
    given = [m if isinstance(m, Model) else load(m) for m in models]
    called = [
        f"model {number}" if isinstance(m, Model) else os.fspath(m)
        for number, m in enumerate(models, 1)
    ]
    if len(given) < 2:
        raise ParameterError(f"merging needs at least two models; got {len(given)}")
    for model, name in zip(given[1:], called[1:], strict=True):
        _check_alike(given[0], model, called[0], name)
    _check_rule(given[0])
    shares = _shares(given, called, weights)
    outputs = [_mean([_output(model, k) for model in given], shares) for k in _outputs(given[0])]
    first = given[0]
    return Model.of(
        outputs,
        n_features=max(model.n_features for model in given),
        classes=first.classes,
        loss=first.loss,
        parameters=_common([model.parameters for model in given]) | {"merged": len(given)},
        history=_history(given, shares, sum(len(output.keys) for output in outputs)),
        names=_names(given, outputs),
    )


# ---- checks --------------------------------------------------------------------------------------


def _check_rule(model: Model) -> None:
    rule = str(model.parameters.get("rule"))
    if rule not in RULES or "average" not in RULES[rule].cluster:
        able = ", ".join(name for name, known in RULES.items() if "average" in known.cluster)
        raise ParameterError(
            f"models of the rule {rule} cannot be merged: the mean of their weights is no model of "
            f"the rule; these rules can be averaged: {able}"
        )


def _check_alike(one: Model, other: Model, name: str, other_name: str) -> None:
    """Raise ParameterError if two models cannot have the same mean; say what differs."""
    facts = [_facts(model) for model in (one, other)]
    for fact, value in facts[0].items():
        if facts[1][fact] != value:
            raise ParameterError(
                f"models cannot be merged: {fact} is {_shown(value)} in {name}, and "
                f"{_shown(facts[1][fact])} in {other_name}"
            )


def _facts(model: Model) -> dict[str, Any]:
    """Return what must be the same in all models, by the words of a message."""
    known = model.parameters
    found: dict[str, Any] = {"the rule": known.get("rule"), "the loss": model.loss}
    found["the list of classes"] = None if model.classes is None else model.classes.tolist()
    found |= {name: known.get(name) or None for name in _DECIDE}
    found["the kind of features"] = "named" if model.n_features == 2**64 else "numbered"
    if "first" not in known:  # learned from rows in memory: all have the same columns
        found["the number of features"] = model.n_features
    found["the form of rows"] = "a source" if "first" in known else "in memory"
    return found


def _shown(value: Any) -> str:
    text = "not set" if value is None else f"{value}"
    return text if len(text) <= 60 else text[:57] + "..."


def _shares(
    models: Sequence[Model], called: Sequence[str], weights: Sequence[float] | None
) -> list[float]:
    if weights is not None:
        found = [float(weight) for weight in weights]
        usable = all(math.isfinite(weight) and weight >= 0 for weight in found) and sum(found) > 0
        if len(found) != len(models) or not usable:
            raise ParameterError(
                parameter="weights",
                value=list(weights),
                allowed=f"{len(models)} numbers >= 0, not all 0, one for each model",
            )
        most = max(found)  # so that products with weights do not overflow
        return found if most < 2.0**53 else [weight / most for weight in found]
    for model, name in zip(models, called, strict=True):
        if not model.history or model.history[-1].examples <= 0:
            raise ParameterError(
                f"{name} does not say how many rows it has learned",
                hint="give the weight of each model",
            )
    return [float(model.history[-1].examples) for model in models]


# ---- parts of the merged model -------------------------------------------------------------------


def _outputs(model: Model) -> range:
    return range(len(model.intercept))


def _output(model: Model, k: int) -> Output:
    part = slice(model.indptr[k], model.indptr[k + 1])
    return Output(model.indices[part], model.weights[part], float(model.intercept[k]))


def _mean(outputs: Sequence[Output], shares: Sequence[float]) -> Output:
    """Return the weighted mean of an output, summed in double precision in the order of models."""
    keys = distinct_keys([output.keys for output in outputs])
    sums, intercept, total = np.zeros(len(keys)), 0.0, sum(shares)
    for output, share in zip(outputs, shares, strict=True):
        sums[np.searchsorted(keys, output.keys)] += share * output.weights
        intercept += share * output.intercept
    means = sums / total
    kept = means != 0
    return Output(keys[kept], means[kept], intercept / total)


def _common(parameters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    first, *rest = parameters
    return {
        name: value
        for name, value in first.items()
        if all(name in other and other[name] == value for other in rest)
    }


def _history(models: Sequence[Model], shares: Sequence[float], nonzeros: int) -> list[Progress]:
    if not all(model.history for model in models):
        return []
    last = [model.history[-1] for model in models]
    loss = ordered_sum(share * record.loss for share, record in zip(shares, last, strict=True))
    rows = sum(record.examples for record in last)
    return [Progress(rows, loss / ordered_sum(shares), nonzeros, 0.0, math.nan)]


def _names(models: Sequence[Model], outputs: Sequence[Output]) -> dict[int, str] | None:
    """Return the names of the features; where models differ, that of the first one."""
    found: dict[int, str] = {}
    for model in reversed(models):
        found |= model.names or {}
    keys = distinct_keys([output.keys for output in outputs]).tolist()
    return {key: found[key] for key in keys if key in found} or None
