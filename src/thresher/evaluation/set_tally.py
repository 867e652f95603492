"""Metrics of a model whose rows have any number of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.evaluation.bootstrap import CellSums
from thresher.evaluation.metric import mean_of_known, ratio
from thresher.evaluation.rows import Rows
from thresher.evaluation.tally import EvaluationOptions, Findings, Tally
from thresher.losses import LOSSES

if TYPE_CHECKING:
    from thresher.model.model import Model

Floats = NDArray[np.float64]

_CELLS = 1 << 23  # numbers in the sums of the bootstrap of all labels: 64 MiB
_SHOWN = 1000  # labels in the table of labels
_COMPARED = 1 << 22  # scores that are compared with a true label's at once


class SetTally(Tally):
    """Sums over rows with any number of labels.

    Labels that the model does not know count as missed.

    Parameters
    ----------
    model : Model
    options : EvaluationOptions
    """

    def __init__(self, model: Model, options: EvaluationOptions) -> None:
        super().__init__(model, options)
        assert model.classes is not None
        self.classes, self.at = model.classes, options.at
        labels = len(self.classes)
        # Cells: rows, exactly right rows, wrong cells, correct labels, predicted labels, true
        # labels, rows with labels; then precision and nDCG at each k.
        self.cells = CellSums(7 + 2 * len(self.at), self.counts)
        fits = self.counts is not None and 3 * labels * self.counts.replicates <= _CELLS
        self.each = CellSums(3 * labels, self.counts if fits else None)

    def add_part(
        self, rows: Rows, weights: Floats, numbers: NDArray[np.int64], counts: Floats | None
    ) -> None:
        """Add some rows."""
        raw, labels = rows.raw, len(self.classes)
        assert rows.sizes is not None
        found = raw >= LOSSES[self.model.loss].decision_at
        at = np.repeat(np.arange(len(rows)), np.diff(rows.targets.starts))
        own = rows.targets.numbers
        right = found[at, own]
        hits = np.bincount(at, right, len(rows))
        named, true = found.sum(axis=1), rows.sizes
        wrong = named + true - 2 * hits
        columns = [np.ones(len(rows)), wrong == 0, wrong, hits, named, true, true > 0]
        columns += _at_k(raw, at, own, true, self.at)
        values = np.stack(columns).astype(np.float64) * weights
        every = np.arange(len(rows))
        cells = np.repeat(np.arange(len(columns)), len(rows))
        self.cells.add(np.tile(every, len(columns)), cells, values.ravel(), counts)
        where, which = np.nonzero(found)
        self.each.add(
            np.concatenate([at[right], where, at]),
            np.concatenate([own[right], labels + which, 2 * labels + own]),
            weights[np.concatenate([at[right], where, at])],
            counts,
        )

    def findings(self) -> Findings:
        """Return the metrics and tables."""
        found = Findings()
        sums, many = self.sums(self.cells)
        assert sums is not None
        each, own = self.sums(self.each)
        assert each is not None
        for name, reason in self._names():
            if name == "f1_macro":
                value, reps = _macro(each), None if own is None else _macro(own)
            else:
                value = self._value(name, sums)
                reps = None if many is None else self._value(name, many)
            found.metrics[name] = self.metric(value, reps, reason)
        if self.counts is not None and self.each.replicates is None:
            found.remarks.append("F1, macro has no interval: there are too many labels")
        found.metrics["loss"] = self.loss.metric(self.options.level)
        empty = sums[0] - sums[6]
        if empty > 0:
            found.remarks.append(
                f"rows of weight {empty:,.6g} have no label: nDCG leaves them out, and precision "
                f"at k counts them as 0"
            )
        found.tables["per_label"] = self._per_label(each)
        if len(self.classes) > _SHOWN:
            found.remarks.append(
                f"the table of labels has the {_SHOWN:,} most frequent of {len(self.classes):,}"
            )
        return found

    def _names(self) -> list[tuple[str, str]]:
        """Return the metrics, each with the reason why it may be undefined."""
        rows = "the weights of all rows are 0"
        return [
            ("f1_micro", "no row has a label, and none is predicted"),
            ("f1_macro", "no label occurs or is predicted"),
            ("precision_micro", "no label is predicted"),
            ("recall_micro", "no row has a label"),
            *((f"precision_at_{k}", rows) for k in self.at),
            *((f"ndcg_at_{k}", "no row has a label") for k in self.at),
            ("accuracy", rows),
            ("hamming_loss", rows),
        ]

    def _value(self, name: str, s: Floats) -> Any:
        """Return a metric from the sums, or from those of each replicate in the columns."""
        rows, exact, wrong, hits, named, true, labelled = s[:7]
        kind, _, k = name.partition("_at_")
        if k:
            place = 7 + self.at.index(int(k)) + (len(self.at) if kind == "ndcg" else 0)
            return ratio(s[place], labelled if kind == "ndcg" else rows)
        return {
            "f1_micro": lambda: ratio(2 * hits, named + true),
            "precision_micro": lambda: ratio(hits, named),
            "recall_micro": lambda: ratio(hits, true),
            "accuracy": lambda: ratio(exact, rows),
            "hamming_loss": lambda: ratio(wrong, rows * len(self.classes)),
        }[name]()

    def _per_label(self, each: Floats) -> list[dict[str, Any]]:
        """Return precision, recall and F1 of the most frequent labels."""
        hits, named, true = each.reshape(3, -1)
        shown = np.argsort(-true, kind="stable")[:_SHOWN]
        parts = ((hits, named), (hits, true), (2 * hits, named + true))
        rates = [ratio(part, whole) for part, whole in parts]
        return [
            {
                "label": self.classes[k].item() if hasattr(self.classes[k], "item") else
                self.classes[k],
                "weight": float(true[k]),
                "predicted": float(named[k]),
                **{
                    name: float(rate[k]) if np.isfinite(rate[k]) else None
                    for name, rate in zip(("precision", "recall", "f1"), rates, strict=True)
                },
            }
            for k in shown.tolist()
        ]  # fmt: skip


def _macro(each: Floats) -> Any:
    """Return the mean F1 over labels that occur or are predicted."""
    hits, named, true = each.reshape(3, -1, *each.shape[1:])
    return mean_of_known(ratio(2 * hits, named + true))


def _at_k(
    raw: Floats,
    at: NDArray[np.intp],
    own: NDArray[Any],
    true: NDArray[Any],
    at_k: tuple[int, ...],
) -> list[Floats]:
    """Return the precision of each row at each k, then its nDCG.

    Labels with the same score are in random order: these are the expected values. The gain of a
    true label is 1, divided by the logarithm of its place plus 1.
    """
    labels = raw.shape[1]
    above, equal = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
    step = max(1, _COMPARED // labels)
    for start in range(0, len(at), step):
        part = slice(start, start + step)
        scores = raw[at[part]]
        mine = scores[np.arange(len(scores)), own[part]][:, None]
        above[part], equal[part] = (scores > mine).sum(axis=1), (scores == mine).sum(axis=1)
    discounts = np.append(0.0, np.cumsum(1.0 / np.log2(np.arange(2, labels + 2))))
    precisions, gains = [], []
    for k in at_k:
        top = min(k, labels)
        low, high = np.minimum(above, top), np.minimum(above + equal, top)
        precisions.append(np.bincount(at, (high - low) / equal, len(raw)) / k)
        gain = np.bincount(at, (discounts[high] - discounts[low]) / equal, len(raw))
        best = discounts[np.minimum(np.minimum(true, k), labels)]
        gains.append(np.nan_to_num(ratio(gain, best)))
    return precisions + gains
