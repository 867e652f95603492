"""A request to learn, checked, in the form in which the log has it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from thresher.data.formats import FORMATS
from thresher.data.text_rows import TextRows, options_for_lines
from thresher.losses import LOSSES
from thresher.model.model import Model
from thresher.serving.question import Question
from thresher.serving.refusal import Refusal
from thresher.serving.rows import TextLines, bad_feature, format_of

Request = dict[str, Any]
"""Rows, labels and weights; or text, its format and its number of rows. All are JSON types."""

_LARGEST = 1e6  # weight of a row


def request_of(asked: Question, model: Model, most: int) -> Request:
    """Return a request whose rows can be learned; refuse it if they cannot.

    Parameters
    ----------
    asked : Question
    model : Model
        The model as it is served.
    most : int
        Refuse more rows than this.
    """
    if asked.text is not None:
        return _of_text(asked.text, asked.options.get("format"), model, most)
    rows, labels = asked.rows or [], asked.labels
    if not isinstance(rows[0], dict):
        raise Refusal(422, 'rows to learn must be objects {"name": value}, or lines of text')
    if labels is None:
        raise Refusal(422, 'the member "labels" is missing', option="labels")
    for number, row in enumerate(rows, 1):
        feature, what = bad_feature(row)
        if what:
            raise Refusal(422, what, row=number, feature=feature)
    found: Request = {"rows": rows, "labels": _labels(labels, model)}
    if asked.weights is not None:
        found["weights"] = _weights(asked.weights)
    return found


def learn(estimator: Any, request: Request, model: Model) -> int:
    """Learn the rows of a request; return their number.

    Parameters
    ----------
    estimator : estimator
    request : dict
    model : Model
        The model whose options of reading are used for text.
    """
    if "text" in request:
        reading = options_for_lines(model.parameters, request["format"], labelled=True, threads=1)
        estimator.partial_fit(TextRows(request["text"].encode(), reading))
        return rows_in(request)
    weights = request.get("weights") or [1.0] * len(request["rows"])
    for row, label, weight in zip(request["rows"], request["labels"], weights, strict=True):
        estimator.learn_one(row, label, weight)
    return rows_in(request)


def rows_in(request: Request) -> int:
    """Return the number of rows of a request."""
    return int(request["count"]) if "text" in request else len(request["rows"])


def _of_text(text: bytes, given: str | None, model: Model, most: int) -> Request:
    try:
        words = text.decode()
    except UnicodeDecodeError as error:
        raise Refusal(400, f"the body is not UTF-8: byte {error.start + 1}") from None
    lines = TextLines(text, format_of(text, given, model), most, model)
    own = lines.format == model.parameters.get("format")
    if model.n_features == 2**64 and not own and not FORMATS[lines.format].named:
        raise Refusal(
            422, f"the features of {lines.format} lines have numbers, and those of the model have "
            "names", option="format",
        )  # fmt: skip
    if lines.count > most:
        raise Refusal(413, f"{lines.count:,} rows; a request may have {most:,}")
    if not lines.count:
        raise Refusal(422, "there are no rows")
    number = 0
    for block in lines.blocks:
        labels = block.labels
        for row in range(block.rows):
            number += 1
            if labels is None or not np.isfinite(labels[row]):
                raise Refusal(422, "the row has no label", row=number, line=block.native.line(row))
        assert labels is not None
        _labels(labels.tolist(), model)
    return {"text": words, "format": lines.format, "count": lines.count}


def _labels(labels: list[Any], model: Model) -> list[Any]:
    if model.classes is not None:
        known = {(type(one) is str, one): one for one in model.classes.tolist()}
        found = []
        for number, label in enumerate(labels, 1):
            key = (type(label) is str, label)
            if not isinstance(label, str | int | float) or key not in known:
                classes = ", ".join(map(repr, list(known.values())[:20]))
                raise Refusal(
                    422, f"{str(label)[:80]!r} is not a class of the model: {classes}", row=number
                )
            found.append(known[key])
        return found
    loss = LOSSES[model.loss]
    for number, label in enumerate(labels, 1):
        if not _is_number(label):
            raise Refusal(422, "the label must be a finite number", row=number)
        if loss.refuses(label):
            raise Refusal(422, f"the label is {label}; the loss {loss.name} needs "
                          f"{loss.labels_needed}", row=number)  # fmt: skip
    return [float(label) for label in labels]


def _weights(weights: list[Any]) -> list[float]:
    for number, weight in enumerate(weights, 1):
        if not _is_number(weight) or not 0 < weight <= _LARGEST:
            raise Refusal(422, f"the weight must be a number above 0, up to {_LARGEST:,.0f}",
                          row=number)  # fmt: skip
    return [float(weight) for weight in weights]


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False
