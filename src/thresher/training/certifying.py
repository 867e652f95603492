"""Certificates of fitted learners, computed from the facts they recorded and from their rows."""

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
from thresher.data.matrix_source import MatrixSource
from thresher.rules import core_args
from thresher.sums import dot
from thresher.training.separate_outputs import SeparateOutputs

if TYPE_CHECKING:
    from thresher.training.trainer import Trainer

_EARLIER = "the rows of earlier calls are not available"
_ONCE = "the rows can be read only once"


def labelled(
    certificates: Sequence[Sequence[Certificate]], classes: NDArray[Any] | None
) -> tuple[Certificate, ...]:
    """Return the certificates of all outputs; with several outputs, names contain the class."""
    if classes is None or len(certificates) == 1:
        return tuple(certificates[0])
    return tuple(
        replace(certificate, name=f"{certificate.name}, class {label}")
        for label, those in zip(classes.tolist(), certificates, strict=True)
        for certificate in those
    )


def as_json(found: Sequence[Sequence[Certificate]]) -> list[list[dict[str, Any]]]:
    """Return the certificates of each output in types that JSON has."""
    return [[certificate.to_dict() for certificate in those] for those in found]


def from_json(kept: Any, outputs: int) -> list[tuple[Certificate, Certificate]]:
    """Return the two certificates of each output; raise ValueError if there are others."""
    found = [(Certificate.from_dict(one), Certificate.from_dict(other)) for one, other in kept]
    if len(found) not in (0, outputs):
        raise ValueError("its certificates do not match its outputs")
    return found


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
        weights_norm2=dot(weights, weights) + learner.intercept() ** 2,
        least_eps=facts["least_shrinkage"] or None,
        unit=2.0**-24 if params["dtype"] == "float32" else 2.0**-53,
        unit_weights=unit_weights,
    )


def of_rows(
    trainer: Trainer, params: Mapping[str, Any], complete: bool
) -> list[tuple[Certificate, Certificate]]:
    """Certify mistakes and generalisation of each output of a margin perceptron.

    The rows are read again, until each output has misclassified one: then the rest does not matter.
    The bound on the mistakes uses u = the final weights.
    """
    if not trainer.source.rereadable:
        return [without_rows(_ONCE) for _ in range(len(trainer.outputs))]
    gaps = _gaps(trainer, params)
    return [_of_output(trainer, k, gap, params, complete) for k, gap in enumerate(gaps)]


def _of_output(
    trainer: Trainer,
    output: int,
    found: tuple[bool, float],
    params: Mapping[str, Any],
    complete: bool,
) -> tuple[Certificate, Certificate]:
    assert isinstance(trainer.outputs, SeparateOutputs)
    learner, rows = trainer.outputs[output], trainer.rows_of_pass
    facts, unit_weights = learner.facts(), trainer.unit_weights
    consistent, gap = found
    if consistent:
        weights = learner.weights()[1]
        gap /= math.sqrt(dot(weights, weights) + learner.intercept() ** 2) or 1.0
    same_order = trainer.plan.shuffle in ("once", False)
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


def _gaps(trainer: Trainer, params: Mapping[str, Any]) -> list[tuple[bool, float]]:
    """Return for each output whether its weights classify all rows correctly, and the gap.

    The gap is the minimum over rows of eta0 y w.x minus the shrinkage by l1, with the final
    weights w. If a row is misclassified, it is eta0 times the minimum of y w.x over the rows read.
    """
    assert isinstance(trainer.outputs, SeparateOutputs)
    plan, found = trainer.plan, [(True, math.inf) for _ in trainer.outputs]
    for block in trainer.source.blocks(dtype=plan.dtype, kinds=trainer.kinds):
        targets = plan.labels.targets(block)
        for output, learner in enumerate(trainer.outputs):
            if found[output][0]:
                consistent, gap = _gap_in(block, targets[output], learner, params)
                found[output] = consistent, min(gap, found[output][1]) if consistent else gap
        if not any(consistent for consistent, _ in found):
            break
    return found


def _gap_in(
    block: Any, labels: NDArray[np.float64], learner: _core.Learner, params: Mapping[str, Any]
) -> tuple[bool, float]:
    """Return the same as `_gaps`, for one output and the rows of a block."""
    margins = np.zeros(0)
    for rows, batch in block.heads():
        margins = labels[:rows] * learner.predict(batch)
        if not (margins > 0).all():
            return False, float(params["eta0"] * margins.min())
    keys, weights = learner.weights()
    sizes, gaps = np.abs(weights), params["eta0"] * margins
    if params["l1"] and params["shrink"] == "all":
        gaps = gaps - params["l1"] * sizes.sum()
    elif params["l1"]:
        gaps = gaps - params["l1"] * block.sums(keys, sizes)
    return True, float(gaps.min()) if len(gaps) else math.inf


def without_rows(reason: str = _EARLIER) -> tuple[Certificate, Certificate]:
    """Return certificates of mistakes and generalisation without a value, with the reason."""
    return (
        Certificate("mistakes", None, "", (), reason),
        Certificate("generalisation", None, "", (), reason),
    )


# ---- coordinate descent -------------------------------------------------------------------------


def optimum(objective: float, gap: float) -> Certificate:
    """Certify how far an objective is from its minimum, by the duality gap (R-12.3).

    Examples
    --------
    >>> print(optimum(0.25, 1e-5))
    optimum: the objective 0.25 is at most 1e-05 above its minimum
    """
    if not math.isfinite(gap):
        return Certificate("optimum", None, "", (), "its number is not finite")
    statement = f"the objective {objective:.6g} is at most {gap:.3g} above its minimum"
    return Certificate("optimum", float(gap), statement)


# ---- truncated gradient -------------------------------------------------------------------------


def regret(
    trainer: Trainer, params: Mapping[str, Any], first: bool
) -> list[tuple[Certificate, Certificate]]:
    """Certify each output's regret of truncated gradient against its final weights and zero."""
    names = ("regret against the final weights", "regret against zero")
    reasons = _obstacles(params, fading=trainer.plan.rows is None)
    reasons += [] if first else [_EARLIER]
    if not trainer.source.rereadable:
        reasons.append(_ONCE)
    elif not trainer.plan.in_memory and not trainer.whole_passes:
        reasons.append("training stopped within a pass")
    if reasons:
        final, zero = (Certificate(name, None, "", (), "; ".join(reasons)) for name in names)
        return [(final, zero)] * len(trainer.outputs)
    found = _comparator_losses(trainer)
    return [_regret(trainer, k, params, names, sums) for k, sums in enumerate(found)]


def _regret(
    trainer: Trainer,
    output: int,
    params: Mapping[str, Any],
    names: tuple[str, str],
    losses: tuple[float, float],
) -> tuple[Certificate, Certificate]:
    assert isinstance(trainer.outputs, SeparateOutputs)
    learner, facts = trainer.outputs[output], trainer.outputs[output].facts()
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
                comparator_loss_sum=loss_sum,
                comparator_norm2=scale * (dot(weights, weights) + b**2),
                comparator_l1=scale * float(np.abs(weights).sum()),
                epsilon=core_args.epsilon_of(trainer.plan.rule, params),
                fit_intercept=params["fit_intercept"],
                unit_weights=trainer.unit_weights,
            ),
            name=name,
        )
        for name, scale, loss_sum in zip(names, (1.0, 0.0), losses, strict=True)
    )
    return final, zero


def _comparator_losses(trainer: Trainer) -> list[tuple[float, float]]:
    """Return, per output, the sum of losses of the final weights and that of zero weights.

    Each row counts as many times as it was learned. The rows are read again.
    """
    assert isinstance(trainer.outputs, SeparateOutputs)
    plan, found = trainer.plan, [(0.0, 0.0) for _ in trainer.outputs]
    for block in trainer.source.blocks(dtype=plan.dtype, kinds=trainer.kinds):
        targets, visits = plan.labels.targets(block), _visits(trainer, block.rows)
        for output, learner in enumerate(trainer.outputs):
            labels, (final, zero) = targets[output], found[output]
            final += dot(visits, plan.losses(learner.predict(block.batch), labels))
            zero += dot(visits, plan.losses(np.zeros(block.rows), labels))
            found[output] = final, zero
    return found


def _visits(trainer: Trainer, rows: int) -> NDArray[np.int64]:
    """Return how many times each row of a block was learned."""
    source, plan = trainer.source, trainer.plan
    if not isinstance(source, MatrixSource):
        return np.full(rows, trainer.passes_kept)
    visits = np.zeros(rows, np.int64)
    for number in range(trainer.passes_kept):
        order = source.order(number, plan.shuffle, plan.seed)
        order = np.arange(rows) if order is None else order
        last = number == trainer.passes_kept - 1
        np.add.at(visits, order[: trainer.rows_of_pass] if last else order, 1)
    return visits


def _obstacles(params: Mapping[str, Any], fading: bool) -> list[str]:
    """Return the reasons why the core has not computed the sums of the regret certificate."""
    found = []
    if params["eta0"] == "auto" or params["schedule"] != "constant" or params["decay"] != 1.0:
        found.append(
            "the rate is not constant: it needs a number as eta0, schedule='constant' and decay=1"
        )
    if params["shrink"] != "truncate":
        found.append(f"shrink is {params['shrink']!r}, not 'truncate'")
    if not math.isinf(params["ceiling"]):
        found.append("the ceiling is finite")
    if params["l2"] > 0:
        found.append("there is an l2 penalty")
    if params["average"]:
        found.append("the model is an average of weights")
    if params["target_nnz"] is not None:
        found.append("target_nnz changes gravity during training")
    if fading and params["gravity"] == "auto":
        found.append("in partial_fit, gravity='auto' falls with the number of rows")
    return found
