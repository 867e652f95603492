"""Scores that are computed from sums over rows, so that a search need not keep the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from thresher.data.block import Block
from thresher.data.label_checks import places_of
from thresher.data.labels import LabelSets, ManyClasses, NumericLabels
from thresher.data.source import Source
from thresher.data.unseen_labels import UnseenLabels, class_numbers
from thresher.errors import ParameterError, setting
from thresher.losses import LOSSES, Task
from thresher.model.links import probabilities, scores, values
from thresher.model.model import Model
from thresher.training.label_set_scores import (
    TrueSets,
    exact_terms,
    f1_micro,
    f1_terms,
    loss_terms,
)
from thresher.training.observer import Observer
from thresher.training.ranking_scores import bin_terms, of_bins

Sums = NDArray[np.longdouble]


@dataclass(frozen=True)
class Score:
    """A score that is computed from sums over rows.

    Attributes
    ----------
    needs : {"labels", "probabilities", "values", "decision", "sets"}
        The kind of prediction that it compares with the truth; "sets": raw predictions of rows
        with any number of labels, whose truths are `TrueSets`.
    terms : callable
        Takes predictions, truths (numbers of classes, or values), weights, and the number of
        classes; returns sums over the rows.
    finish : callable
        Computes the score from the sums over all rows.
    """

    needs: Literal["labels", "probabilities", "values", "decision", "sets"]
    terms: Callable[[NDArray[Any], Any, NDArray[np.float64], int], list[Any]]
    finish: Callable[[Sums], Any]

    @property
    def task(self) -> Task:
        """The task it is a score for."""
        return "regressor" if self.needs == "values" else "classifier"


def _dot(w: NDArray[Any], values: NDArray[Any]) -> Any:
    """Return the sum of products, without BLAS: its threads would take the cores of the search."""
    return (w * values).sum()


def _mean(sums: Sums) -> Any:
    return sums[0] / sums[1]


def _hits(found: NDArray[Any], true: NDArray[Any], w: NDArray[np.float64], _: int) -> list[Any]:
    return [w[found == true].sum(), w.sum()]


def _recalls(found: NDArray[Any], true: NDArray[Any], w: NDArray[np.float64], k: int) -> list[Any]:
    return [*np.bincount(true, w * (found == true), k), *np.bincount(true, w, k)]


def _mean_recall(sums: Sums) -> Any:
    hits, totals = np.split(sums, 2)
    return (hits[totals > 0] / totals[totals > 0]).mean()


def _log_losses(p: NDArray[Any], true: NDArray[Any], w: NDArray[np.float64], _: int) -> list[Any]:
    eps = np.finfo(np.float64).eps
    own = np.clip(p[np.arange(len(true)), true], eps, 1 - eps)
    return [_dot(w, np.log(own)), w.sum()]


def _briers(p: NDArray[Any], true: NDArray[Any], w: NDArray[np.float64], k: int) -> list[Any]:
    errors = p.copy()
    errors[np.arange(len(true)), true] -= 1.0
    half = 0.5 if k == 2 else 1.0
    return [-half * _dot(w, (errors * errors).sum(axis=1)), w.sum()]


def _squares(found: NDArray[Any], true: NDArray[Any], w: NDArray[np.float64], _: int) -> list[Any]:
    return [-_dot(w, (found - true) ** 2), w.sum()]


def _absolutes(
    found: NDArray[Any], true: NDArray[Any], w: NDArray[np.float64], _: int
) -> list[Any]:
    return [-_dot(w, np.abs(found - true)), w.sum()]


def _r2_terms(found: NDArray[Any], true: NDArray[Any], w: NDArray[np.float64], _: int) -> list[Any]:
    long = true.astype(np.longdouble)  # the sums below nearly cancel if labels are far from 0
    return [_dot(w, (found - true) ** 2), _dot(w, long * long), _dot(w, long), w.sum()]


def _r2(sums: Sums) -> Any:
    errors, squares, total, weight = sums
    spread = squares - total * total / weight
    if spread <= 0:
        return 1.0 if errors == 0 else 0.0
    return 1.0 - errors / spread


SCORES: dict[str, Score] = {
    "accuracy": Score("labels", _hits, _mean),
    "balanced_accuracy": Score("labels", _recalls, _mean_recall),
    "neg_log_loss": Score("probabilities", _log_losses, _mean),
    "neg_brier_score": Score("probabilities", _briers, _mean),
    "roc_auc": Score("decision", bin_terms, of_bins("roc_auc")),
    "average_precision": Score("decision", bin_terms, of_bins("average_precision")),
    "neg_mean_squared_error": Score("values", _squares, _mean),
    "neg_root_mean_squared_error": Score("values", _squares, lambda s: -np.sqrt(-_mean(s))),
    "neg_mean_absolute_error": Score("values", _absolutes, _mean),
    "r2": Score("values", _r2_terms, _r2),
}


# Scores of rows with any number of labels.
SET_SCORES: dict[str, Score] = {
    "accuracy": Score("sets", exact_terms, _mean),
    "f1_micro": Score("sets", f1_terms, f1_micro),
    "neg_mean_loss": Score("sets", loss_terms, _mean),
}


def quick_score(scoring: Any, task: Task) -> Score | None:
    """Return a scikit-learn score as a sum over rows, if both are always equal; else None.

    scikit-learn's scorers check the labels again for every model, which takes longer than training.
    """
    if scoring is None and task == "classifier":
        scoring = "accuracy"
    sums = ("accuracy", "neg_log_loss", "neg_mean_squared_error", "neg_mean_absolute_error")
    found = SCORES[scoring] if isinstance(scoring, str) and scoring in sums else None
    return found if found is not None and found.task == task else None


def sums_in_core(score: Score, loss: str, outputs: int) -> tuple[str, float, int] | None:
    """Return how `_core.Lanes.score` sums a quick score: kind, middle and outputs; None: it cannot.

    Parameters
    ----------
    score : Score
        From `quick_score`.
    loss : str
    outputs : int
        Number of outputs of a model.
    """
    kinds = {
        "accuracy": "hits",
        "neg_log_loss": "log losses",
        "neg_mean_squared_error": "squares",
        "neg_mean_absolute_error": "absolutes",
    }
    kind = next((kind for name, kind in kinds.items() if SCORES[name] is score), None)
    link, middle = LOSSES[loss].link, float(LOSSES[loss].decision_at or 0.0)
    if kind == "hits":
        return kind, middle, outputs
    if outputs > 1 or (kind == "log losses" and (link != "sigmoid" or middle)):
        return None
    return None if kind is None or (kind != "log losses" and link != "identity") else (kind, 0.0, 1)


def scores_named(scoring: Any, task: Task, multilabel: bool = False) -> dict[str, Score]:
    """Return scores by their names in the results; a single one is named "score".

    Raises ParameterError for scores that are not sums over rows, or are for another task.
    """
    table = SET_SCORES if multilabel else {n: s for n, s in SCORES.items() if s.task == task}
    if scoring is None:
        scoring = "accuracy" if task == "classifier" else "r2"
    if isinstance(scoring, str):
        wanted: Mapping[str, Any] = {"score": scoring}
    elif isinstance(scoring, Mapping):
        wanted = scoring
    elif isinstance(scoring, list | tuple | set):
        wanted = {name: name for name in scoring}
    else:
        wanted = {"score": scoring}
    allowed = list(table)
    for name in wanted.values():
        if not isinstance(name, str) or name not in allowed:
            several = " of rows with several labels" if multilabel else ""
            raise ParameterError(
                (setting("scoring"), f": rows of a source are not kept in memory, so a {task}"
                 f"{several} can be scored only by sums over rows: {', '.join(allowed)}; got "
                 f"{name!r}"),
                parameter="scoring",
                value=name,
                allowed=f"one of {', '.join(allowed)}",
            )  # fmt: skip
    return {name: table[score] for name, score in wanted.items()}


@dataclass
class ScoreTally:
    """The sums over rows for the scores of one model.

    Attributes
    ----------
    named : mapping of str to Score
    loss : str
    classes : int
        Number of classes; 0 for a regression.
    """

    named: Mapping[str, Score]
    loss: str
    classes: int

    def __post_init__(self) -> None:
        """Begin with empty sums."""
        self.sums: dict[str, Sums] = {}

    def add(self, raw: NDArray[np.float64], true: Any, weights: NDArray[np.float64] | None) -> None:
        """Add rows: raw predictions (one column per output), true labels, and weights.

        True labels are an array, or `TrueSets`. In an array, the true label of a row is -1 if
        training did not see it: it is an error of the accuracy, and left out of other scores.
        """
        if len(true) == 0:
            return
        w = np.ones(len(true)) if weights is None else weights
        seen = np.ones(len(true), bool)
        if isinstance(true, TrueSets):
            true = replace(true, loss=self.loss)
        elif self.classes:
            seen = true >= 0
        for name, score in self.named.items():
            found = self._predictions(score.needs, raw)
            if score.terms is not _hits and not seen.all():
                terms = score.terms(found[seen], true[seen], w[seen], self.classes)
            else:
                terms = score.terms(found, true, w, self.classes)
            sums = np.array(terms, np.longdouble)
            self.sums[name] = self.sums[name] + sums if name in self.sums else sums

    def _predictions(self, needs: str, raw: NDArray[np.float64]) -> NDArray[Any]:
        if needs == "sets":
            return raw
        if needs == "values":
            return values(scores(raw, self.loss, classifies=False), self.loss)
        decision = scores(raw, self.loss)
        if needs == "decision":
            return decision
        if needs == "probabilities":
            return probabilities(decision, self.loss)
        return decision.argmax(axis=1) if decision.ndim > 1 else (decision >= 0).astype(np.intp)

    @property
    def state(self) -> dict[str, list[list[float]]]:
        """The sums in types that JSON has: each as two numbers whose sum is exactly it."""
        return {
            name: [
                [float(one), float(one - np.longdouble(float(one))) if np.isfinite(one) else 0.0]
                for one in sums
            ]
            for name, sums in self.sums.items()
        }

    @state.setter
    def state(self, saved: Mapping[str, list[list[float]]]) -> None:
        self.sums = {
            name: np.array([np.longdouble(high) + np.longdouble(low) for high, low in sums])
            for name, sums in saved.items()
        }

    def result(self) -> dict[str, float]:
        """Return the scores; NaN if there were no rows."""
        return {
            name: float(score.finish(self.sums[name])) if name in self.sums else float("nan")
            for name, score in self.named.items()
        }


def _true_sets(model: Model, block: Block) -> TrueSets:
    """Return the labels of a block; those that the model does not know count as missed."""
    starts, labels = block.label_sets()
    numbers, known = places_of(np.asarray(model.classes), labels)
    return TrueSets(np.asarray(starts), np.where(known, numbers, -1))


def score_source(model: Model, source: Source, named: Mapping[str, Score]) -> dict[str, float]:
    """Return the scores of a model on all rows of a source, with their weights.

    The scores of a model of rows with any number of labels are `SET_SCORES`.
    """
    classes = model.classes
    if model.multilabel:
        tally, unseen = ScoreTally(named, model.loss, 2), UnseenLabels()
        for block, raw in model.raw_blocks(source, labelled=True):
            unseen.targets(LabelSets(np.asarray(classes)), block)
            tally.add(raw, _true_sets(model, block), block.weights)
        _warn(unseen)
        return tally.result()
    tally = ScoreTally(named, model.loss, 0 if classes is None else len(classes))
    labels = NumericLabels(model.loss) if classes is None else ManyClasses(classes)
    unseen = UnseenLabels()
    for block, raw in model.raw_blocks(source, labelled=True):
        targets, known = unseen.targets(labels, block)
        true = targets[0] if classes is None else class_numbers(targets, known)
        tally.add(raw, true, block.weights)
    _warn(unseen)
    return tally.result()


def _warn(unseen: UnseenLabels) -> None:
    if (warning := unseen.warning()) is not None:
        Observer().warn(warning)
