"""Certificates of fitted learners: what they and their rows say, given to the theorems."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.certificates import (
    Certificate,
    generalisation_certificate,
    mistakes_at,
    norm_certificate,
    regret_certificate,
)
from thresher.data import as_batch, is_sparse, nonzeros
from thresher.estimators.linear import LinearEstimator
from thresher.model import Output
from thresher.training.alone import Alone

if TYPE_CHECKING:
    from thresher.estimators.training import Run

_BLOCK = 1 << 22  # nonzeros of rows that are copied at a time
_FEW = 1024  # rows looked at first
_EARLIER = "the rows of earlier calls are not at hand"


def labelled(
    certificates: Sequence[Sequence[Certificate]], classes: NDArray[Any] | None
) -> tuple[Certificate, ...]:
    """Join the certificates of the outputs; of several, each has its class in its name."""
    if classes is None or len(certificates) == 1:
        return tuple(certificates[0])
    return tuple(
        replace(certificate, name=f"{certificate.name}, class {label}")
        for label, those in zip(classes.tolist(), certificates, strict=True)
        for certificate in those
    )


def are_ones(weights: NDArray[np.float64] | None) -> bool:
    """Tell whether all rows have weight 1."""
    return weights is None or bool((weights == 1.0).all())


# ---- margin perceptron --------------------------------------------------------------------------


def norm(learner: _core.Learner, params: Mapping[str, Any], unit_weights: bool) -> Certificate:
    """Certify the norm of the weights of a margin perceptron."""
    facts, weights = learner.facts(), learner.weights()[1]
    return norm_certificate(
        int(facts["updates"]),
        facts["norm_bound"],
        eta=params["eta0"],
        margin=params["margin"],
        radius=math.sqrt(facts["squared_radius"]),
        weights_norm2=float(weights @ weights) + learner.intercept() ** 2,
        least_eps=facts["least_shrinkage"] or None,
        unit=2.0**-24 if params["dtype"] == "float32" else 2.0**-53,
        unit_weights=unit_weights,
    )


def of_rows(
    run: Run, output: int, params: Mapping[str, Any], same_order: bool, complete: bool
) -> tuple[Certificate, Certificate]:
    """Certify mistakes and generalisation of a margin perceptron, from all its rows.

    The mistakes are bounded with u = the final weights.
    """
    assert isinstance(run.learners, Alone)
    learner, rows, unit_weights = run.learners[output], run.X.shape[0], are_ones(run.weights)
    facts = learner.facts()
    # Most models are wrong about one of the first rows: nothing then depends on the others.
    margins = run.targets[output][:_FEW] * learner.predict(as_batch(run.X[:_FEW]))
    if rows > _FEW and (margins > 0).all():
        margins = run.targets[output] * learner.predict(run.batch)
    consistent = bool((margins > 0).all())
    gap = float(params["eta0"] * margins.min())
    if consistent:  # else there is no gap
        keys, weights = learner.weights()
        gap = float(_gaps(run, margins, keys, np.abs(weights), params).min())
        gap /= math.hypot(float(np.linalg.norm(weights)), learner.intercept()) or 1.0
    return (
        mistakes_at(
            gap,
            facts["squared_radius"],
            rows,
            params["eta0"],
            params["margin"],
            int(facts["updates"]),
            unit_weights,
        ),
        generalisation_certificate(
            rows,
            int(facts["culprits"]),
            consistent=consistent,
            same_order=same_order,
            complete=complete,
            unit_weights=unit_weights,
        ),
    )


def _gaps(
    run: Run,
    margins: NDArray[np.float64],
    keys: NDArray[np.uint64],
    sizes: NDArray[np.float64],
    params: Mapping[str, Any],
) -> NDArray[np.float64]:
    """Return by how much each row's step goes along the final weights, less what l1 takes."""
    gaps = params["eta0"] * margins
    if params["l1"] == 0:
        return np.asarray(gaps)
    if params["shrink"] == "all":
        return np.asarray(gaps - params["l1"] * sizes.sum())
    return np.asarray(gaps - params["l1"] * _sums(run.estimator, run.X, Output(keys, sizes, 0.0)))


def without_rows() -> tuple[Certificate, Certificate]:
    """Say that nothing can be said of mistakes and generalisation."""
    return (
        Certificate("mistakes", None, "", (), _EARLIER),
        Certificate("generalisation", None, "", (), _EARLIER),
    )


def _sums(estimator: LinearEstimator, X: Any, sizes: Output) -> NDArray[np.float64]:
    """Return, for each row, the sum of the sizes of its features."""
    model, found = estimator._model_of([sizes]), []
    step = max(1, _BLOCK * X.shape[0] // max(nonzeros(X), 1))
    for begin in range(0, X.shape[0], step):
        block = X[begin : begin + step]
        if is_sparse(block):
            ones = (block.data != 0).astype(block.dtype)
            block = type(block)((ones, block.indices, block.indptr), shape=block.shape)
        else:
            block = (block != 0).astype(block.dtype)
        found.append(model.raw(block)[:, 0])
    return np.concatenate(found)


# ---- truncated gradient -------------------------------------------------------------------------


def regret(
    run: Run, output: int, params: Mapping[str, Any], first: bool
) -> tuple[Certificate, Certificate]:
    """Certify the regret of truncated gradient against its final weights, and against zero."""
    assert isinstance(run.learners, Alone)
    learner, facts = run.learners[output], run.learners[output].facts()
    names = ("regret against the final weights", "regret against zero")
    reasons = _obstacles(params, fading=run.estimator._made_of[1] is None)
    reasons += [] if first else [_EARLIER]
    if reasons:
        found = [Certificate(name, None, "", (), "; ".join(reasons)) for name in names]
        return found[0], found[1]
    assert run.visits is not None
    weights, b = learner.weights()[1], learner.intercept()
    final, zero = (
        replace(
            regret_certificate(
                loss=params["loss"],
                steps=learner.steps,
                eta=params["eta0"],
                largest_row=math.sqrt(facts["squared_radius"]),
                loss_sum=learner.loss_sum,
                pull_sum=facts["pull_sum"],
                gravity_sum=facts["gravity_sum"],
                comparator_loss_sum=float(
                    run.visits @ run.losses(predictions, run.targets[output])
                ),
                comparator_norm2=scale * (float(weights @ weights) + b**2),
                comparator_l1=scale * float(np.abs(weights).sum()),
                epsilon=params["epsilon"],
                fit_intercept=params["fit_intercept"],
                unit_weights=are_ones(run.weights),
            ),
            name=name,
        )
        for name, scale, predictions in zip(
            names,
            (1.0, 0.0),
            (learner.predict(run.batch), np.zeros(run.X.shape[0])),
            strict=True,
        )
    )
    return final, zero


def _obstacles(params: Mapping[str, Any], fading: bool) -> list[str]:
    """Say what keeps the core from keeping the sums of the regret certificate."""
    found = []
    if params["eta0"] == "auto" or params["schedule"] != "constant" or params["decay"] != 1.0:
        found.append(
            "the rate is not constant, which takes a number eta0, schedule='constant' and decay=1"
        )
    if params["shrink"] != "truncate":
        found.append(f"shrink is {params['shrink']!r} and not 'truncate'")
    if not math.isinf(params["ceiling"]):
        found.append("the ceiling is finite")
    if params["l2"] > 0:
        found.append("there is an l2 penalty")
    if params["average"]:
        found.append("the model is an average of weights")
    if params["target_nnz"] is not None:
        found.append("target_nnz changes gravity on the way")
    if fading and params["gravity"] == "auto":
        found.append("gravity='auto' falls with the rows in partial_fit")
    return found
