"""Summary of a model: rule, task, training rows and parameters."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher._version import __version__
from thresher.model.history import OBJECTIVES, least_valid_loss
from thresher.report.page import facts, tiles
from thresher.report.tables import Cell, TableCell, table
from thresher.rules import RULES

if TYPE_CHECKING:
    from thresher.model.model import Model

ANY = 2**64  # number of features of a model with hashed names
_CLASSES = 20  # listed in the summary

# Parameters for reading rows, and their descriptions.
_READING = {
    "format": "format", "bits": "bits of feature numbers", "interactions": "interactions",
    "label": "label column", "weight": "weight column", "text": "text columns",
    "ngrams": "longest n-gram", "ignore": "ignored columns",
}  # fmt: skip
# Parameters that are not in the table of parameters.
_NOT_LISTED = (*_READING, "rule", "loss", "kinds", "first", "zero_based", "multilabel", "callback")


def task_of(model: Model) -> str:
    """Return the task of a model in a few words.

    Parameters
    ----------
    model : Model
    """
    if model.classes is None:
        return "regression"
    if model.multilabel:
        return f"multilabel with {len(model.classes):,} labels"
    if len(model.classes) == 2:
        return "two classes"
    return f"{len(model.classes):,} classes"


def label_text(label: Any) -> str:
    """Return the text of a class: 1 instead of 1.0.

    Parameters
    ----------
    label : object

    Examples
    --------
    >>> from thresher.report.summary import label_text
    >>> label_text(1.0), label_text("yes")
    ('1', 'yes')
    """
    return f"{label:.10g}" if isinstance(label, float) else str(label)


def best_loss(model: Model) -> tuple[str, float] | None:
    """Return the name and value of the most informative loss of a model.

    Parameters
    ----------
    model : Model
    """
    valid = least_valid_loss(model.history)
    if valid is not None:
        return "validation loss", valid
    if not model.history:
        return None
    whole = model.parameters.get("rule") in OBJECTIVES
    return "objective" if whole else "last progressive loss", model.history[-1].loss


def headline(model: Model) -> str:
    """Return the main numbers for the top of the page.

    Parameters
    ----------
    model : Model
    """
    found: dict[str, object] = {"nonzero weights": model.nnz}
    if 0 < model.n_features < ANY:
        share = 100 * model.density
        each = " and class" if len(model.intercept) > 1 else ""
        found[f"of {model.n_features:,} features{each}"] = (
            f"{share:.3g} %" if share >= 0.01 or not share else "< 0.01 %"
        )
    if model.history:
        found["examples"] = model.history[-1].examples
    loss = best_loss(model)
    if loss is not None:
        found[loss[0]] = f"{loss[1]:.4g}"
    return tiles(found)


def about(model: Model) -> str:
    """Return the facts about the model and its training.

    Parameters
    ----------
    model : Model
    """
    known: Mapping[str, Any] = model.parameters
    rule = RULES.get(str(known.get("rule")))
    found: dict[str, object] = {"rule": known.get("rule", "unknown")}
    if rule is not None:
        found["paper"] = rule.paper
    found["loss"] = model.loss
    found["task"] = task_of(model)
    if model.classes is not None:
        shown = [label_text(label) for label in model.classes[:_CLASSES].tolist()]
        more = len(model.classes) - len(shown)
        found["classes"] = ", ".join(shown) + (f" and {more:,} more" if more else "")
    hashed = model.n_features == ANY
    found["features"] = "any (64-bit hashes of names)" if hashed else model.n_features
    if len(model.intercept) == 1:
        found["intercept"] = f"{model.intercept[0]:.6g}"
    passes = known.get("passes")
    if model.history:
        over = f" in up to {passes} passes" if isinstance(passes, int) and passes > 1 else ""
        found["examples"] = f"{model.history[-1].examples:,}{over}"
        if math.isfinite(model.history[-1].seconds):
            found["time"] = f"{model.history[-1].seconds:.3g} s"
    read = _reading(known)
    if read:
        found["rows"] = read
    found["arithmetic"] = f"{known.get('dtype', 'float64')}, {known.get('store', 'dense')} store"
    if known.get("random_state") is not None:
        found["seed"] = str(known["random_state"])
    found["this page"] = (
        f"thresher {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
    )
    return facts(found)


def _reading(known: Mapping[str, Any]) -> str:
    """Return how rows were read from files; empty if they were not."""
    if "first" not in known:
        return ""
    kinds = listed(known.get("kinds"))
    parts = [f"a table of {len(kinds)} columns" if kinds else ""]
    for name, meaning in _READING.items():
        value = known.get(name)
        if value not in (None, "", False) and not (name == "ngrams" and value == 1):
            parts.append(f"{meaning}: {value}")
    if known.get("shuffle"):
        parts.append("shuffled within blocks" if known["shuffle"] == "blocks" else "shuffled")
    return "from files" + "".join(f"; {part}" for part in parts if part)


def listed(text: Any) -> list[str]:
    """Return the words of a JSON list, or the keys of a JSON object, from a model.

    Parameters
    ----------
    text : str or None
        None or invalid JSON gives no words.

    Examples
    --------
    >>> from thresher.report.summary import listed
    >>> listed('["ab", "cd"]'), listed(None)
    (['ab', 'cd'], [])
    """
    try:
        found = json.loads(text) if isinstance(text, str) and text else []
    except (ValueError, RecursionError):
        return []
    return [str(word) for word in found] if isinstance(found, list | dict) else []


def parameters(model: Model) -> str:
    """Return a folded table of the parameters.

    Parameters
    ----------
    model : Model
    """
    rule = RULES.get(str(model.parameters.get("rule")))
    documented = {} if rule is None else rule.parameters
    rows: list[list[Cell]] = []
    for name in (*documented, *sorted(set(model.parameters) - set(documented))):
        if name in model.parameters and name not in _NOT_LISTED:
            value, parameter = model.parameters[name], documented.get(name)
            symbol = "" if parameter is None else parameter.symbol or ""
            rows.append([name, _value(value), "" if parameter is None else parameter.help, symbol])
    if not rows:
        return ""
    shown = table(["parameter", "value", "what it does", "in the paper"], rows)
    return f"<details><summary>{len(rows)} parameters</summary>\n{shown}</details>"


def _value(value: Any) -> Cell:
    shown = f"{value:.6g}" if isinstance(value, float) else str(value)
    return TableCell(shown, shown)
