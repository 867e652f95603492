"""The weights of a model as a table, CSV, JSON, or lines like those of Vowpal Wabbit."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher._version import __version__
from thresher.data.new_frames import frame_of
from thresher.losses import LOSSES
from thresher.model.file import writable
from thresher.printable import printable

if TYPE_CHECKING:
    from thresher.model.model import Model

__all__ = ["SCHEMA", "frame_of_weights", "to_csv", "to_json", "to_vw"]

SCHEMA = 1
_EXACT = 2**53  # whole numbers up to here are exact in JavaScript


def frame_of_weights(model: Model, kind: str) -> Any:
    """Return the nonzero weights, a line each: feature, name, label, weight.

    Parameters
    ----------
    model : Model
    kind : {"arrow", "pandas", "polars"}
    """
    names = [model.name(key) for key in model.indices.tolist()]
    labels = _labels(model)
    columns: dict[str, Any] = {
        "feature": model.indices,
        "name": [name if isinstance(name, str) else None for name in names],
        "label": [labels[k] for k in _outputs(model).tolist()],
        "weight": model.weights,
    }
    types = {"feature": "uint64", "name": "string"}
    if all(label is None or isinstance(label, str) for label in labels):
        types["label"] = "string"
    return frame_of(columns, types, kind)


def to_csv(model: Model) -> str:
    """Return the weights as CSV: feature, name, label, weight.

    The intercept of each output is a line without a feature, named (intercept).

    Parameters
    ----------
    model : Model
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["feature", "name", "label", "weight"])
    for output, label in enumerate(_labels(model)):
        shown = "" if label is None else label
        writer.writerow(["", "(intercept)", shown, repr(float(model.intercept[output]))])
        for key, weight in _weights(model, output):
            name = model.name(key)
            writer.writerow([key, name if isinstance(name, str) else "", shown, repr(weight)])
    return text.getvalue()


def to_json(model: Model) -> str:
    """Return the model as JSON; docs/export.md describes the schema.

    Parameters
    ----------
    model : Model
    """
    loss, large = LOSSES[model.loss], model.n_features > _EXACT
    outputs = []
    for output, label in enumerate(_labels(model)):
        pairs = list(_weights(model, output))
        names = [model.name(key) for key, _ in pairs]
        outputs.append(
            {
                "label": label,
                "intercept": float(model.intercept[output]),
                "features": [str(key) if large else key for key, _ in pairs],
                "names": [name if isinstance(name, str) else None for name in names],
                "weights": [weight for _, weight in pairs],
            }
        )
    found = {
        "format": "thresher-model",
        "schema": SCHEMA,
        "version": __version__,
        "task": _task(model),
        "loss": model.loss,
        "link": loss.link,
        "link_low": loss.low,
        "decision_at": loss.decision_at if model.classes is not None else 0.0,
        "scales_rows": loss.scales_rows,
        "n_features": str(model.n_features) if large else model.n_features,
        "classes": None if model.classes is None else model.classes.tolist(),
        "outputs": outputs,
        "parameters": writable(model.parameters),
    }
    return json.dumps(found, indent=1, allow_nan=False) + "\n"


def to_vw(model: Model) -> str:
    """Return lines like those of `vw --invert_hash`: name:number:weight. They are for reading.

    Parameters
    ----------
    model : Model
    """
    lines = [
        f"Version thresher {__version__}",
        "Id for reading: vw cannot load it, its hashes of names are other numbers",
        f"loss: {model.loss}",
        f"features: {'any' if model.n_features == 2**64 else model.n_features}",
        f"outputs: {len(model.intercept)}",
    ]
    for output, label in enumerate(_labels(model)):
        of = "" if label is None else f"[{printable(label)}]"
        lines.append(f"Constant{of}:{float(model.intercept[output])!r}")
        for key, weight in _weights(model, output):
            lines.append(f"{printable(model.name(key))}{of}:{key}:{weight!r}")
    return "\n".join(lines) + "\n"


def _task(model: Model) -> str:
    if model.classes is None:
        return "regression"
    return "multilabel" if model.multilabel else "classification"


def _labels(model: Model) -> list[Any]:
    """Return the label of each output; None with one output."""
    if model.classes is None or (len(model.intercept) == 1 and not model.multilabel):
        return [None]
    known: list[Any] = model.classes.tolist()
    return known


def _outputs(model: Model) -> NDArray[np.intp]:
    return np.repeat(np.arange(len(model.intercept)), np.diff(model.indptr))


def _weights(model: Model, output: int) -> Iterator[tuple[int, float]]:
    entries = slice(int(model.indptr[output]), int(model.indptr[output + 1]))
    return zip(model.indices[entries].tolist(), model.weights[entries].tolist(), strict=True)
