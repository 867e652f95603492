"""Metrics of a classifier whose rows have one label each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.evaluation.bootstrap import CellSums
from thresher.evaluation.curves import (
    Curve,
    at_thresholds,
    average_precision,
    average_precision_bound,
    lift,
    lift_bound,
    roc_auc,
    roc_auc_bound,
    thinned,
)
from thresher.evaluation.metric import Metric, mean_of_known, ratio
from thresher.evaluation.rank_scores import RankScores
from thresher.evaluation.rows import Rows
from thresher.evaluation.tally import EvaluationOptions, Findings, Tally
from thresher.losses import LOSSES, PROBABILITY_LOSSES
from thresher.model.links import probabilities, scores, values

if TYPE_CHECKING:
    from thresher.model.model import Model

Floats = NDArray[np.float64]

BINS = 10  # of the reliability curve, of equal width
_ENDS = np.linspace(0.0, 1.0, BINS + 1)[1:-1]  # as in scikit-learn's calibration_curve
_EPS = float(np.finfo(np.float64).eps)  # as in scikit-learn's log_loss
_MATRIX = 100  # largest number of classes with a full confusion matrix
_POINTS = 20  # thresholds of scores without probabilities


class ClassTally(Tally):
    """Sums over rows with one label each.

    Rows with a label that the model does not know are errors of the accuracy, and are left out of
    all other metrics.

    Parameters
    ----------
    model : Model
    options : EvaluationOptions
    """

    def __init__(self, model: Model, options: EvaluationOptions) -> None:
        super().__init__(model, options)
        assert model.classes is not None
        self.classes, k = model.classes, len(model.classes)
        self.several = len(model.intercept) > 1
        self.rated = model.loss in PROBABILITY_LOSSES  # whether there are probabilities
        # Cells: all rows, correct rows, log loss, squared errors; for each class its rows, the rows
        # predicted so, and the correct ones; for each bin rows, probabilities, positive rows.
        self.per_class = 4
        self.bins = 4 + 3 * k
        self.cells = CellSums(self.bins + 3 * BINS, self.counts)
        self.confusion = np.zeros((k, k)) if k <= _MATRIX else None
        self.ranks = RankScores(k if self.several else 1, options.exact, self.counts)

    def add_part(
        self, rows: Rows, weights: Floats, numbers: NDArray[np.int64], counts: Floats | None
    ) -> None:
        """Add some rows."""
        decision = scores(rows.raw, self.model.loss)
        every, truth = np.arange(len(rows)), rows.classes
        found = decision.argmax(axis=1) if self.several else (decision >= 0).astype(np.intp)
        entries: list[tuple[Any, Any, Any]] = [
            (every, 0, weights),
            (every, 1, weights * (found == truth)),
        ]
        at = np.flatnonzero(truth >= 0)
        truth, found, w = truth[at], found[at], weights[at]
        k, start = len(self.classes), self.per_class
        entries += [
            (at, start + truth, w),
            (at, start + k + found, w),
            (at, start + 2 * k + truth, w * (found == truth)),
        ]
        ranked = decision.reshape(len(decision), -1)[at]
        if self.rated:
            p = probabilities(decision[at], self.model.loss, k)
            own = p[np.arange(len(at)), truth]
            entries.append((at, 2, -w * np.log(np.clip(own, _EPS, 1 - _EPS))))
            squares = (p * p).sum(axis=1) - own * own + (1 - own) ** 2
            entries.append((at, 3, w * squares * (1.0 if self.several else 0.5)))
            sure = p.max(axis=1) if self.several else p[:, 1]
            right = found == truth if self.several else truth == 1
            bins = self.bins + np.searchsorted(_ENDS, sure)  # a bin contains its end
            entries += [
                (at, bins, w),
                (at, bins + BINS, w * sure),
                (at, bins + 2 * BINS, w * right),
            ]
            ranked = p if self.several else ranked
        where = [np.broadcast_to(cell, one.shape) for one, cell, _ in entries]
        self.cells.add(
            np.concatenate([one for one, _, _ in entries]),
            np.concatenate(where),
            np.concatenate([value for _, _, value in entries]),
            counts,
        )
        if self.confusion is not None:
            self.confusion += np.bincount(truth * k + found, w, k * k).reshape(k, k)
        weighted = None if rows.weights is None else w
        if len(at):
            own_counts = None if counts is None else counts[at]
            self.ranks.add(ranked, truth, weighted, numbers[at], own_counts)

    # ---- results --------------------------------------------------------------------------------

    def findings(self) -> Findings:
        """Return the metrics and tables."""
        found = Findings()
        sums, replicates = self.sums(self.cells)
        assert sums is not None
        of_sums = {name: self._metric(name, sums, replicates) for name in self._names()}
        ranked = self._ranked(found)
        order = ["accuracy", "balanced_accuracy", "roc_auc", "average_precision"]
        found.metrics = {name: (of_sums | ranked)[name] for name in order}
        found.metrics |= {n: m for n, m in of_sums.items() if n not in order}
        found.metrics["loss"] = self.loss.metric(self.options.level)
        found.metrics |= {n: m for n, m in ranked.items() if n not in order}
        found.tables["per_class"] = self._per_class(sums, replicates)
        labels = self.classes.tolist()
        if self.confusion is not None:
            found.tables["confusion_matrix"] = {
                "labels": labels,
                "rows": [[_number(cell) for cell in line] for line in self.confusion],
            }
        if self.rated:
            found.tables["calibration"] = self._calibration(sums)
        return found

    def _names(self) -> list[str]:
        names = ["accuracy", "balanced_accuracy"]
        names += ["f1_macro", "f1_weighted"] if self.several else ["f1", "precision", "recall"]
        return [*names, "log_loss", "brier_score", "ece"]

    def _metric(self, name: str, sums: Floats, replicates: Floats | None) -> Metric:
        if name in ("log_loss", "brier_score", "ece") and not self.rated:
            return Metric(
                None,
                reason=f"the loss {self.model.loss} has no probabilities; these have: "
                f"{', '.join(PROBABILITY_LOSSES)}",
            )
        value = self._value(name, sums)
        many = None if replicates is None else self._value(name, replicates)
        return self.metric(value, many, self._reason(name, sums))

    def _value(self, name: str, s: Floats) -> Any:
        """Return a metric from the sums, or from those of each replicate in the columns."""
        truth, _, hits = self._counts(s)
        if name == "accuracy":
            return ratio(s[1], s[0])
        if name == "balanced_accuracy":
            return mean_of_known(ratio(hits, truth))
        if name in ("log_loss", "brier_score"):
            return ratio(s[2 if name == "log_loss" else 3], truth.sum(axis=0))
        if name == "ece":
            bins = s[self.bins :]
            total, sure, right = bins[:BINS], bins[BINS : 2 * BINS], bins[2 * BINS :]
            return ratio(np.abs(right - sure).sum(axis=0), total.sum(axis=0))
        rates = self._rates(s)
        if name == "f1_macro":
            return mean_of_known(rates["f1"])
        if name == "f1_weighted":
            own = np.nan_to_num(rates["f1"]) * truth
            return ratio(own.sum(axis=0), truth.sum(axis=0))
        return rates[name][1]

    def _counts(self, s: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the weights of each class: rows, predictions, and correct predictions."""
        k, start = len(self.classes), self.per_class
        return s[start : start + k], s[start + k : start + 2 * k], s[start + 2 * k : start + 3 * k]

    def _reason(self, name: str, sums: Floats) -> str:
        positive = self.classes.tolist()[1]
        if name == "precision":
            return f"no row is predicted as {positive!r}"
        if name == "recall":
            return f"no row has the label {positive!r}"
        if name == "f1":
            return f"no row has the label {positive!r} or is predicted so"
        return "no row has a label that the model knows, and a weight above 0"

    def _ranked(self, found: Findings) -> dict[str, Metric]:
        """Return the metrics of the ranking; add their tables."""
        curves = {k: self.ranks.curve(k) for k in range(self.ranks.columns)}
        names = ["roc_auc", "average_precision"]
        names += [] if self.several else [f"lift_at_{share:g}" for share in self.options.shares]
        values_ = {name: np.full(len(curves), np.nan) for name in names}
        many: dict[str, Floats] = {}
        for k, curve in curves.items():
            for name in names:
                values_[name][k] = _of_curve(name, curve)
        if self.counts is not None:
            many = {name: np.full((len(curves), self.counts.replicates), np.nan) for name in names}
        for k, coarse, replicates in self.ranks.curves_of_replicates():
            for name in names:
                change = values_[name][k] - _of_curve(name, coarse)
                many[name][k] = _of_curve(name, replicates) + change
        made = {}
        for name in names:
            reps = mean_of_known(many[name]) if many else None
            bounds = [_bound_of(name, one) for k, one in curves.items() if values_[name][k] >= 0]
            bound = float(np.mean(bounds)) if bounds else 0.0
            value = mean_of_known(values_[name])
            reason = self._why_not(name, curves[0])
            made[name] = self.metric(value, reps, reason, bound)
        absent = int(np.isnan(values_["roc_auc"]).sum())
        if self.several and 0 < absent < len(curves):
            found.remarks.append(
                f"ROC AUC and average precision are means over {len(curves) - absent} classes: "
                f"{absent} of {len(curves)} have no rows here"
            )
        if not self.ranks.exact:
            found.remarks.append(
                f"the scores of more than {self.options.exact:,} rows are counted in bins; ROC AUC "
                f"is within {made['roc_auc'].bound:.2g} of the exact value, average precision "
                f"within {made['average_precision'].bound:.2g}"
            )
        if not self.several:
            self._tables_of(curves[0], found)
        return made

    def _why_not(self, name: str, curve: Curve) -> str:
        """Return why a metric of the ranking is undefined."""
        if self.several:
            return "all rows have the same label"
        second = repr(self.classes.tolist()[1])
        if name == "roc_auc":
            missing = repr(self.classes.tolist()[0]) if curve.totals[0] > 0 else second
            return f"no row has the label {missing}"
        return f"no row has the label {second}"

    def _tables_of(self, curve: Curve, found: Findings) -> None:
        """Add the curves and the tables of two classes."""
        positive, negative = (float(total) for total in curve.totals)
        if positive > 0 and negative > 0:
            x, y = np.append(0.0, curve.misses / negative), np.append(0.0, curve.hits / positive)
            found.tables["roc_curve"] = thinned(x, y)
        if positive > 0:
            recall, precision = curve.hits / positive, ratio(curve.hits, curve.hits + curve.misses)
            found.tables["precision_recall_curve"] = thinned(recall, np.nan_to_num(precision))
        if positive + negative > 0:
            found.tables["thresholds"] = self._thresholds(curve)

    def _thresholds(self, curve: Curve) -> list[dict[str, Any]]:
        """Return precision and recall at thresholds of probability, or of the score."""
        if self.rated:
            points = np.round(np.arange(1, 20) / 20, 2)
            shown = values(curve.thresholds + LOSSES[self.model.loss].decision_at, self.model.loss)
            hits, misses = at_thresholds(Curve(shown, curve.hits, curve.misses), points)
        else:
            shares = np.linspace(0, len(curve.thresholds) - 1, _POINTS).astype(int)
            points = np.unique(np.append(curve.thresholds[shares], 0.0))
            hits, misses = at_thresholds(curve, points)
        positive, negative = curve.totals
        return [
            {
                "threshold": float(point),
                "share": _known(ratio(hit + miss, positive + negative)),
                "precision": _known(ratio(hit, hit + miss)),
                "recall": _known(ratio(hit, positive)),
                "f1": _known(ratio(2 * hit, hit + miss + positive)),
                "false_positive_rate": _known(ratio(miss, negative)),
            }
            for point, hit, miss in zip(points.tolist(), hits, misses, strict=True)
        ]

    def _per_class(self, s: Floats, replicates: Floats | None) -> list[dict[str, Any]]:
        """Return precision, recall and F1 of each class."""
        truth, found, _ = self._counts(s)
        rates = self._rates(s)
        many = None if replicates is None else self._rates(replicates)
        lines = []
        for k, label in enumerate(self.classes.tolist()):
            line: dict[str, Any] = {
                "label": label,
                "weight": _number(truth[k]),
                "predicted": _number(found[k]),
            }
            for name, rate in rates.items():
                made = self.metric(rate[k], None if many is None else many[name][k])
                line[name] = made.value
                line[f"{name}_interval"] = None if made.low is None else [made.low, made.high]
            lines.append(line)
        return lines

    def _rates(self, s: Floats) -> dict[str, Any]:
        """Return precision, recall and F1 of all classes."""
        truth, found, hits = self._counts(s)
        return {
            "precision": ratio(hits, found),
            "recall": ratio(hits, truth),
            "f1": ratio(2 * hits, truth + found),
        }

    def _calibration(self, s: Floats) -> list[dict[str, Any]]:
        """Return the reliability curve: bins that have rows."""
        total, sure, right = s[self.bins :].reshape(3, BINS)
        return [
            {
                "low": b / BINS,
                "high": (b + 1) / BINS,
                "weight": _number(total[b]),
                "predicted": float(sure[b] / total[b]),
                "observed": float(right[b] / total[b]),
            }
            for b in range(BINS)
            if total[b] > 0
        ]


def _of_curve(name: str, curve: Curve) -> Any:
    if name == "roc_auc":
        return roc_auc(curve)
    if name == "average_precision":
        return average_precision(curve)
    return lift(curve, float(name.rpartition("_")[2]))


def _bound_of(name: str, curve: Curve) -> float:
    if name == "roc_auc":
        return roc_auc_bound(curve)
    if name == "average_precision":
        return average_precision_bound(curve)
    return lift_bound(curve, float(name.rpartition("_")[2]))


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _number(value: Any) -> float | int:
    """Return a whole number as an integer."""
    return int(value) if value == int(value) else float(value)
