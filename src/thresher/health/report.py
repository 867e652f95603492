"""`check`: all health checks of data and of an estimator, as one report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.errors import DataError, ParameterError
from thresher.health.columns import DynamicRange, dynamic_range
from thresher.health.steps import SafeStep, safe_step
from thresher.health.weights import ExponentSpread, exponents
from thresher.losses import LOSSES, canonical_loss
from thresher.rules import RULES, core_args


@dataclass(frozen=True)
class HealthReport:
    """The result of `check`."""

    range: DynamicRange
    step: SafeStep
    exponents: ExponentSpread | None  # of the weights of a fitted estimator
    warnings: tuple[str, ...]
    note: str = ""  # a condition for the result to be valid

    def __str__(self) -> str:
        first = str(self.range).split("\n")[0]
        lines = [first, str(self.step), *([str(self.exponents)] if self.exponents else [])]
        lines += [self.note] if self.note else []
        return "\n".join(lines + ([f"warning: {w}" for w in self.warnings] or ["healthy"]))


def check(X: Any, y: Any = None, estimator: Any = None) -> HealthReport:
    """Check data, and optionally an estimator before or after fitting.

    Parameters
    ----------
    X : CSR matrix, array or DataFrame of shape (rows, features)
    y : array of shape (rows,), optional
    estimator : estimator or Pipeline, optional
        Its loss, rate and weights are checked too. Without an estimator, or if its loss is not
        known, the safe step is for squared loss. For a Pipeline the last step is checked, and X
        must be the input of that step: ``check(pipeline[:-1].transform(X), y, pipeline)``.

    Examples
    --------
    >>> from thresher import TruncatedGradientRegressor
    >>> print(check([[3.0], [4.0]], estimator=TruncatedGradientRegressor(eta0=0.5)))
    values from 3 to 4, 0 constant and 0 empty columns
    safe step for squared loss: 0.05882 per row, 0.03709 for all rows at once
    warning: eta0 = 0.5 may diverge: it is above 0.118, twice the safe step
    """
    estimator, note = _last_step(estimator)
    extent, loss = dynamic_range(X), _loss(estimator)
    step = safe_step(X, loss, fit_intercept=bool(getattr(estimator, "fit_intercept", False)))
    found = extent.warnings
    if extent.largest is None:
        found.append("all rows are zero: there is nothing to learn from")
    steep = LOSSES[loss].largest_slope is None  # with a bounded slope, training cannot diverge
    online, which = step.online, "twice the safe step"
    first = LOSSES[loss].start_curvature  # curvature at the first prediction, which is 0
    if first is not None and step.largest_row:
        square = step.largest_row**2 + bool(getattr(estimator, "fit_intercept", False))
        online, which = 1 / (first * square), "which overshoots from the first row on"
    for name, safe in (("eta0", online), ("step", step.batch)):
        rate = getattr(estimator, name, None)
        if steep and isinstance(rate, (int, float)) and safe is not None and rate > 2 * safe:
            found.append(f"{name} = {rate:g} may diverge: it is above {2 * safe:.3g}, {which}")
    rule = RULES.get(getattr(estimator, "rule", ""))
    if steep and rule is not None and rule.inverse_rate:
        name = rule.inverse_rate
        rate = getattr(estimator, name)
        ratio = 0.0 if rate == "auto" else step.largest_row**2 / rate
        if ratio > 50:
            found.append(
                f"steps of 1/({name} t) are too large: largest row^2 / {name} is {ratio:.3g} > 50"
            )
    spread = None
    if hasattr(estimator, "model_") or hasattr(estimator, "coef_"):
        spread = exponents(estimator)
        if spread.within_single not in (None, 1.0) and getattr(estimator, "dtype", "") == "float32":
            found.append(f"{spread}; dtype='float64' keeps more")
    labels = np.zeros(0) if y is None else np.asarray(y)
    if y is not None and len(labels) != np.shape(X)[0]:
        raise ParameterError(
            f"y must have {np.shape(X)[0]} labels, one per row of X; got {len(labels)}"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise DataError(f"row {np.flatnonzero(~np.isfinite(labels))[0]}: the label is not finite")
    if len(labels) > 1 and (labels == labels[0]).all():
        found.append("all labels are equal: there is nothing to learn")
    return HealthReport(extent, step, spread, tuple(found), note)


def _last_step(estimator: Any) -> tuple[Any, str]:
    """Return the last step of a Pipeline, and a note; any other estimator itself."""
    note = ""
    while isinstance(steps := getattr(estimator, "steps", None), list) and steps:
        name, estimator = steps[-1]
        note = f"checked {name!r}, the last step of the pipeline: X must be the input of that step"
    return estimator, note


def _loss(estimator: Any) -> str:
    """Return the loss of an estimator; "squared" if it is not known."""
    loss = canonical_loss(getattr(estimator, "loss", None))
    rule = getattr(estimator, "rule", None)
    if loss is None and rule in RULES:  # a rule with a single loss has no parameter `loss`
        loss = core_args.loss_of(rule, {})
    return loss if isinstance(loss, str) and loss in LOSSES else "squared"
