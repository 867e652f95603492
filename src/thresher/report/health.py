"""Numerical health of a model: range of weights, divergence, certificates."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data import is_source
from thresher.health.watch import DivergenceWatch
from thresher.health.weights import exponents
from thresher.report.charts import histogram
from thresher.report.page import facts, note, text
from thresher.report.tables import Cell, table
from thresher.rules import RULES

if TYPE_CHECKING:
    from thresher.certificates import Certificate
    from thresher.model.model import Model


def numbers(model: Model, X: Any, y: Any) -> str:
    """Return the range of the weights, signs of divergence, and the health of given rows.

    Parameters
    ----------
    model : Model
    X, y : rows and labels, or None
    """
    spread = exponents(model)
    summary: dict[str, object] = {"weights": str(spread)}
    if model.nnz:
        sizes = np.abs(model.weights)
        summary["largest, smallest"] = f"{sizes.max():.4g}, {sizes.min():.4g}"
    summary["divergence"] = _divergence(model)
    warnings = ""
    if X is not None and not is_source(X):
        more, warnings = _of_rows(model, X, None if model.multilabel else y)
        summary |= more
    parts = [facts(summary), warnings]
    if spread.counts:
        drawn = histogram(
            spread.counts,
            x="exponent of 2",
            y="weights",
            title="Sizes of weights, in powers of two",
        )
        parts.append(f'<div class="charts">{drawn}</div>')
    return "\n".join(parts)


def _divergence(model: Model) -> str:
    if not model.history:
        return "not known: there are no records of training"
    rule = RULES.get(str(model.parameters.get("rule")))
    if rule is not None and not rule.diverges:
        return "not checked: the steps of the rule are bounded"
    watch = DivergenceWatch()
    found = [message for record in model.history if (message := watch.see(record))]
    return found[0] if found else "no sign in the records of training"


def _of_rows(model: Model, X: Any, y: Any) -> tuple[dict[str, object], str]:
    from thresher.health.report import check

    rule = str(model.parameters.get("rule", ""))
    estimator = SimpleNamespace(
        **{**model.parameters, "loss": model.loss, "rule": rule, "model_": model}
    )
    found = check(X, y, estimator)
    summary: dict[str, object] = {
        "given rows": str(found.range).split("\n")[0],
        "steps on these rows": str(found.step),
    }
    if not found.warnings:
        return summary, note("No problem was found in the given rows.")
    warned = "".join(f"<li>{text(warning)}</li>" for warning in found.warnings)
    return summary, f"<p><b>Warnings:</b></p><ul>{warned}</ul>"


def certified(model: Model) -> str:
    """Return the certificates of the model in words.

    Parameters
    ----------
    model : Model
    """
    if not model.certificates:
        return note(
            "This model has no certificates. Coordinate descent has them; truncated gradient with "
            "certify=True and the margin perceptron have them if they are fitted in Python."
        )
    given = [certificate for certificate in model.certificates if certificate.available]
    parts = [_certificate(certificate) for certificate in given[:20]]
    if len(given) > 20:
        parts.append(note(f"{len(given) - 20:,} more are in model.certificates."))
    lacking: list[list[Cell]] = [
        [certificate.name, certificate.reason]
        for certificate in model.certificates
        if not certificate.available
    ]
    if lacking:
        parts.append(table(["certificate", "reason why it is not available"], lacking))
    return "\n".join(parts)


def _certificate(certificate: Certificate) -> str:
    signs = {True: "holds", False: "does not hold", None: "not checked"}
    assumed = [
        f"<li>{text(assumption.text)} ({signs[assumption.holds]})</li>"
        for assumption in certificate.assumptions
    ]
    listed = f"<p>Assumptions:</p><ul>{''.join(assumed)}</ul>" if assumed else ""
    name = certificate.name[:1].upper() + certificate.name[1:]
    return f"<h3>{text(name)}</h3><p>{text(certificate.statement)}</p>{listed}"
