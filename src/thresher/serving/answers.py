"""Answers of a model, as JSON types: predictions, and what each feature adds to a score."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.losses import LOSSES, PROBABILITY_LOSSES
from thresher.model.contributions import contributions
from thresher.model.links import label_probabilities, labels, probabilities, values
from thresher.model.model import Model
from thresher.serving.known_features import KnownFeatures
from thresher.serving.limits import Limits
from thresher.serving.refusal import Refusal
from thresher.serving.rows import Rows

_SHOWN = 20  # unknown features that are named for each row
_EXPLAINED = 20  # features of an explanation, by default

Answer = dict[str, Any]


def predictions(
    model: Model,
    known: KnownFeatures | None,
    rows: Rows,
    options: Mapping[str, Any],
    limits: Limits,
) -> list[Answer]:
    """Return the prediction of each row.

    Parameters
    ----------
    model : Model
    known : KnownFeatures or None
        None: do not look for unknown features.
    rows : Rows
    options : mapping
        probability, raw, top.
    limits : Limits
    """
    shares, top = options.get("probability", False), options.get("top")
    _check(model, shares, top)
    classes = model.classes
    if classes is not None and (shares or top):
        kept = len(classes) if shares else min(int(top or 0), len(classes))
        if rows.count * kept > limits.numbers:
            raise Refusal(422, f"{rows.count:,} rows with {kept:,} classes each are more than "
                          f"{limits.numbers:,} numbers; ask for fewer rows, or top")  # fmt: skip
    decision = rows.decision(model)
    _check_finite(decision)
    if classes is None:
        answers = [{"value": value} for value in values(decision, model.loss).tolist()]
    elif model.multilabel:
        answers = _label_sets(model, decision)
    else:
        answers = [{"label": label} for label in labels(decision, classes).tolist()]
    if classes is not None and (shares or top):
        _add_classes(model, decision, answers, shares, top)
    if options.get("raw"):
        for answer, raw in zip(answers, decision.tolist(), strict=True):
            answer["raw"] = raw
    _add_unknown(answers, model, known, rows)
    return answers


def _add_unknown(
    answers: list[Answer], model: Model, known: KnownFeatures | None, rows: Rows
) -> None:
    if known is None:
        return
    for answer, absent in zip(answers, rows.unknown(model, known), strict=True):
        if absent:
            answer["unknown_features"] = absent[:_SHOWN]
        if len(absent) > _SHOWN:
            answer["unknown_count"] = len(absent)


def _check(model: Model, shares: bool, top: int | None) -> None:
    if shares and (model.classes is None or model.loss not in PROBABILITY_LOSSES):
        raise Refusal(
            422, "probability needs a classifier with one of the losses "
            f"{', '.join(PROBABILITY_LOSSES)}; the loss of this model is {model.loss}",
            option="probability",
        )  # fmt: skip
    if top and model.classes is None:
        raise Refusal(422, "top needs a classifier; this model predicts numbers", option="top")


def _check_finite(decision: NDArray[np.float64]) -> None:
    finite = np.isfinite(decision.reshape(len(decision), -1)).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite)) + 1
        raise Refusal(422, "the score is too large for a number", row=row)


def _label_sets(model: Model, decision: NDArray[np.float64]) -> list[Answer]:
    assert model.classes is not None
    classes = model.classes.tolist()
    return [
        {"labels": [classes[k] for k in np.flatnonzero(row >= 0).tolist()]}
        for row in decision.reshape(-1, len(model.intercept))
    ]


def _add_classes(
    model: Model,
    decision: NDArray[np.float64],
    answers: list[Answer],
    shares: bool,
    top: int | None,
) -> None:
    assert model.classes is not None
    classes, count = model.classes.tolist(), len(model.classes)
    found = None
    if model.multilabel:
        decision = decision.reshape(-1, count)
        if model.loss in PROBABILITY_LOSSES:
            found = label_probabilities(decision, model.loss)
    elif model.loss in PROBABILITY_LOSSES:
        found = probabilities(decision, model.loss, count)
    if shares and found is not None:
        for answer, row in zip(answers, found.tolist(), strict=True):
            answer["probability"] = {str(label): p for label, p in zip(classes, row, strict=True)}
    if top:
        each = decision.reshape(len(decision), -1)
        if each.shape[1] < count:  # the score is that of the second of two classes
            each = np.column_stack([-decision, decision])
        order = np.argsort(-each, axis=1, kind="stable")[:, :top]
        for i, (answer, best) in enumerate(zip(answers, order.tolist(), strict=True)):
            answer["top"] = [
                {"label": classes[k], "raw": float(each[i, k])}
                | ({} if found is None else {"probability": float(found[i, k])})
                for k in best
            ]


# ---- explanations --------------------------------------------------------------------------------


def explanations(
    model: Model, known: KnownFeatures | None, rows: Rows, options: Mapping[str, Any]
) -> list[Answer]:
    """Return for each row what its features add to the score, largest first.

    Parameters
    ----------
    model : Model
    known : KnownFeatures or None
        None: do not look for unknown features.
    rows : Rows
    options : mapping
        top: how many features; label: of which class. By default with two classes of the second,
        as in `Model.explain`; with more of the one with the highest score.
    """
    decision = rows.decision(model)
    _check_finite(decision)
    count = options.get("top") or _EXPLAINED
    place = _place(model, options.get("label"))
    outputs = [_output(model, row, place) for row in decision]
    sign = _sign(model, place)
    predicted = _predicted(model, decision)
    entries, shown = rows.entries(model)
    found = contributions(model, entries, np.array(outputs))
    bounds = np.searchsorted(found.rows, np.arange(rows.count + 1)).tolist()
    signed = (found.keys, found.weights * sign, found.values, found.amounts * sign)
    columns = [column.tolist() for column in signed]
    answers = []
    for row, output in enumerate(outputs):
        parts = list(zip(*(column[bounds[row] : bounds[row + 1]] for column in columns),
                         strict=True))  # fmt: skip
        answer = {"prediction": predicted[row]}
        answer |= _of_output(model, output, np.ravel(decision[row]), sign)
        answer["contributions"] = [
            {"feature": shown(key), "value": value, "weight": weight, "contribution": amount}
            for key, weight, value, amount in parts[:count]
        ]
        answer["others"] = math.fsum(part[-1] for part in parts[count:])
        answer["others_count"] = max(0, len(parts) - count)
        answers.append(answer)
    _add_unknown(answers, model, known, rows)
    return answers


def _predicted(model: Model, decision: NDArray[np.float64]) -> list[Any]:
    """Return what `Model.predict_one` returns for each row."""
    if model.classes is None:
        return list(values(decision, model.loss).tolist())
    if model.multilabel:
        return [answer["labels"] for answer in _label_sets(model, decision)]
    return list(labels(decision, model.classes).tolist())


def _of_output(model: Model, output: int, scores: NDArray[np.float64], sign: float) -> Answer:
    shift = LOSSES[model.loss].decision_at if model.classes is not None else 0.0
    answer: Answer = {
        "raw": sign * float(scores[output]),
        "intercept": sign * (float(model.intercept[output]) - shift),
    }
    if model.classes is not None:
        classes = model.classes.tolist()
        one = len(model.intercept) == 1 and not model.multilabel
        answer["label"] = classes[(-1 if sign > 0 else 0) if one else output]
    return answer


def _place(model: Model, label: Any) -> int | None:
    """Return the place of a label among the classes; None if no label is asked for."""
    if label is None:
        return None
    if model.classes is None:
        raise Refusal(422, "label needs a classifier; this model predicts numbers",
                      option="label")  # fmt: skip
    classes: list[Any] = model.classes.tolist()
    words = [str(one) for one in classes]
    if str(label) in words:
        return words.index(str(label))
    if isinstance(label, int | float) and label in classes:  # JSON does not tell 1 from 1.0
        return classes.index(label)
    raise Refusal(422, f"the model has no class {str(label)[:80]!r}", option="label")


def _sign(model: Model, place: int | None) -> float:
    """Return -1 if the first of two classes is asked for: the score is that of the second."""
    if place is None or model.classes is None or len(model.intercept) > 1 or model.multilabel:
        return 1.0
    return -1.0 if len(model.classes) > 1 and place == 0 else 1.0


def _output(model: Model, scores: NDArray[np.float64], place: int | None) -> int:
    """Return the number of the output that is explained."""
    if model.classes is None:
        return 0
    if place is None:
        return int(np.argmax(scores))
    return place if len(model.intercept) > 1 else 0
