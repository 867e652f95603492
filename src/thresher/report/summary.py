"""What a model is: trained by which rule, on what, with which parameters."""

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
from thresher.report.tables import Cell, Shown, table
from thresher.rules import RULES

if TYPE_CHECKING:
    from thresher.model.model import Model

ANY = 2**64  # the width of a model of hashed names
_CLASSES = 20  # named in full

# What is told elsewhere, or says how rows were read and not how they were learned from.
_READING = {
    "format": "format", "bits": "bits of feature numbers", "interactions": "interactions",
    "label": "label's column", "weight": "weight's column", "text": "text columns",
    "ngrams": "words in a row", "ignore": "columns left out",
}  # fmt: skip
_TOLD = (*_READING, "rule", "loss", "kinds", "first", "zero_based", "multilabel", "callback")


def task_of(model: Model) -> str:
    """Say in a few words what the model answers.

    Parameters
    ----------
    model : Model
    """
    if model.classes is None:
        return "regression"
    if model.multilabel:
        return f"any number of {len(model.classes):,} labels a row"
    if len(model.classes) == 2:
        return "two classes"
    return f"{len(model.classes):,} classes"


def label_text(label: Any) -> str:
    """Return a class as people write it: 1, and not 1.0.

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
    """Return what to call the loss that tells most of a model, and the loss.

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
    """Return the few numbers to be seen first.

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
    """Return what was trained on what.

    Parameters
    ----------
    model : Model
    """
    known: Mapping[str, Any] = model.parameters
    rule = RULES.get(str(known.get("rule")))
    told: dict[str, object] = {"rule": known.get("rule", "unknown")}
    if rule is not None:
        told["paper"] = rule.paper
    told["loss"] = model.loss
    told["task"] = task_of(model)
    if model.classes is not None:
        shown = [label_text(label) for label in model.classes[:_CLASSES].tolist()]
        more = len(model.classes) - len(shown)
        told["classes"] = ", ".join(shown) + (f" and {more:,} more" if more else "")
    hashed = model.n_features == ANY
    told["features"] = "any, by 64-bit hashes of their names" if hashed else model.n_features
    if len(model.intercept) == 1:
        told["intercept"] = f"{model.intercept[0]:.6g}"
    passes = known.get("passes")
    if model.history:
        over = f", in up to {passes} passes" if isinstance(passes, int) and passes > 1 else ""
        told["examples"] = f"{model.history[-1].examples:,}{over}"
        if math.isfinite(model.history[-1].seconds):
            told["time"] = f"{model.history[-1].seconds:.3g} s"
    read = _reading(known)
    if read:
        told["rows"] = read
    told["arithmetic"] = f"{known.get('dtype', 'float64')}, {known.get('store', 'dense')} store"
    if known.get("random_state") is not None:
        told["seed"] = str(known["random_state"])
    told["this page"] = (
        f"thresher {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
    )
    return facts(told)


def _reading(known: Mapping[str, Any]) -> str:
    """Say how rows were read from files, where they were."""
    if "first" not in known:
        return ""
    kinds = listed(known.get("kinds"))
    parts = [f"a table of {len(kinds)} columns" if kinds else ""]
    for name, meaning in _READING.items():
        value = known.get(name)
        if value not in (None, "", False) and not (name == "ngrams" and value == 1):
            parts.append(f"{meaning}: {value}")
    if known.get("shuffle") == "blocks":
        parts.append("shuffled within blocks")
    return "from files" + "".join(f"; {part}" for part in parts if part)


def listed(text: Any) -> list[str]:
    """Return the words of a list, or of the keys of a mapping, that a model keeps as JSON.

    Parameters
    ----------
    text : str or None
        Nothing is taken for no words, and so is what cannot be read.

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
    """Return the parameters and what they do, folded away.

    Parameters
    ----------
    model : Model
    """
    rule = RULES.get(str(model.parameters.get("rule")))
    documented = {} if rule is None else rule.parameters
    rows: list[list[Cell]] = []
    for name in (*documented, *sorted(set(model.parameters) - set(documented))):
        if name in model.parameters and name not in _TOLD:
            value, parameter = model.parameters[name], documented.get(name)
            symbol = "" if parameter is None else parameter.symbol or ""
            rows.append([name, _value(value), "" if parameter is None else parameter.help, symbol])
    if not rows:
        return ""
    shown = table(["parameter", "value", "what it does", "in the paper"], rows)
    return f"<details><summary>{len(rows)} parameters</summary>\n{shown}</details>"


def _value(value: Any) -> Cell:
    shown = f"{value:.6g}" if isinstance(value, float) else str(value)
    return Shown(shown, shown)
