"""Results of an evaluation: metrics with intervals, tables, text, JSON and pages."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from thresher.atomic import write_whole
from thresher.evaluation.metric import Metric
from thresher.evaluation.text import comparison_lines, evaluation_lines
from thresher.printable import printable


class _Result(Mapping[str, float | None], ABC):
    """A mapping from the names of metrics to values, with its table, its JSON and its page."""

    @property
    @abstractmethod
    def _values(self) -> Mapping[str, Metric]:
        """The metrics, or their differences."""

    @abstractmethod
    def _page(self, title: str | None) -> str:
        """Return the page."""

    @abstractmethod
    def table(self) -> str:
        """Return the metrics as text."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types."""

    def __getitem__(self, name: str) -> float | None:
        """Return the value, or the difference, of a metric."""
        return self._values[name].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __str__(self) -> str:
        """Return the table."""
        return self.table()

    def to_json(self) -> str:
        """Return `to_dict` as JSON; it has no NaN."""
        return json.dumps(self.to_dict(), allow_nan=False, default=_plain)

    def report(self, path: str | PathLike[str], title: str | None = None) -> None:
        """Write a page: one HTML file, which needs no network.

        Parameters
        ----------
        path : path
            The file; it is written atomically.
        title : str, optional
        """
        write_whole(path, self._page(title).encode())

    def _doubts(self) -> dict[str, Any]:
        """Return intervals, reasons of undefined values, and bounds of errors, by metric."""
        found = self._values.items()
        return {
            "intervals": intervals_of(self._values),
            "undefined": {name: one.reason for name, one in found if one.value is None},
            "error_bounds": {name: one.bound for name, one in found if one.bound},
        }


@dataclass(frozen=True, repr=False, eq=False)
class Evaluation(_Result):
    """How well a model predicts rows: a mapping from metrics to values.

    Made by `thresher.evaluate`. A metric that is undefined has the value None; `metrics` has the
    reason.

    Attributes
    ----------
    task : {"binary", "multiclass", "multilabel", "regression"}
    rows : int
    weight : float
        Sum of the weights of the rows.
    metrics : dict of str to Metric
        Values, intervals and reasons.
    tables : dict
        Confusion matrix, metrics of each class, reliability curve, ROC and precision-recall curve,
        metrics at thresholds: those that the task has.
    remarks : list of str
        What one should know, such as labels that the model does not know.
    replicates, level, seed : int, float, int
        Of the bootstrap.
    unknown_labels : int
        Rows with a label that the model does not know.
    about : dict
        What was evaluated: names of the model and of the data.

    Examples
    --------
    >>> import thresher
    >>> from thresher import FTRLClassifier
    >>> X, y = [[0.0, 1.0], [1.0, 0.0]] * 50, ["no", "yes"] * 50
    >>> found = thresher.evaluate(FTRLClassifier().fit(X, y), X, y)
    >>> found["accuracy"], found["roc_auc"], found.metrics["accuracy"].low
    (1.0, 1.0, 1.0)
    """

    task: str
    rows: int
    weight: float
    metrics: dict[str, Metric]
    tables: dict[str, Any]
    remarks: list[str]
    replicates: int
    level: float
    seed: int
    unknown_labels: int = 0
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def _values(self) -> Mapping[str, Metric]:
        return self.metrics

    def __repr__(self) -> str:
        """Return a summary in one line."""
        shown = [
            f"{name} {one.value:.4g}" for name, one in self.metrics.items() if one.value is not None
        ]
        return f"<Evaluation: {self.rows:,} rows, {', '.join(shown[:3])}>"

    def table(self) -> str:
        """Return the metrics as text, with their intervals.

        Names of strangers are escaped.
        """
        return "\n".join(evaluation_lines(self))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types; values of metrics are at the top, by name."""
        return {
            **self.about,
            "task": self.task,
            "rows": self.rows,
            "weight": self.weight,
            "unknown_labels": self.unknown_labels,
            **({} if self.positive is None else {"positive": self.positive}),
            **{name: one.value for name, one in self.metrics.items()},
            **self._doubts(),
            "bootstrap": self.bootstrap,
            **self.tables,
            "remarks": self.remarks,
        }

    @property
    def positive(self) -> Any:
        """Of two classes, the one that precision, recall, F1 and lift are about: the second.

        None for other tasks.
        """
        return self.tables["per_class"][1]["label"] if self.task == "binary" else None

    @property
    def bootstrap(self) -> dict[str, Any]:
        """How the intervals were made."""
        return {"replicates": self.replicates, "level": self.level, "seed": self.seed}

    def _page(self, title: str | None) -> str:
        from thresher.evaluation.page import page_of

        return page_of(self, title)

    def _repr_html_(self) -> str:
        """Return a short description for a notebook."""
        from thresher.evaluation.page import fragment_of

        return fragment_of(self)


@dataclass(frozen=True, repr=False, eq=False)
class ModelComparison(_Result):
    """How two models differ on the same rows: a mapping from metrics to differences.

    A difference is the value of the first model minus that of the second. Its interval is that of
    the paired bootstrap: each replicate has the same rows for both models.

    Attributes
    ----------
    first, second : Evaluation
    differences : dict of str to Metric
    tests : dict
        ``mcnemar``: rows that only one model predicts correctly, and the p value. ``delong``:
        difference of the AUCs, standard error and p value. With ``undefined``, the reason why there
        is no test.

    Examples
    --------
    >>> import thresher
    >>> from thresher import FTRLClassifier
    >>> X, y = [[0.0, 1.0], [1.0, 0.0]] * 50, ["no", "yes"] * 50
    >>> good, bad = FTRLClassifier().fit(X, y), FTRLClassifier(l1=1e6).fit(X, y)
    >>> found = thresher.evaluate(good, X, y, against=bad)
    >>> found["accuracy"], found.tests["mcnemar"]["only_first"]
    (0.5, 50)
    """

    first: Evaluation
    second: Evaluation
    differences: dict[str, Metric]
    tests: dict[str, dict[str, Any]]

    @property
    def _values(self) -> Mapping[str, Metric]:
        return self.differences

    def __repr__(self) -> str:
        """Return a summary in one line."""
        return f"<ModelComparison: {self.first.rows:,} rows, {len(self)} metrics>"

    def table(self) -> str:
        """Return the metrics of both models and their differences as text."""
        return "\n".join(comparison_lines(self))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types."""
        return {
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
            "differences": {name: one.value for name, one in self.differences.items()},
            **self._doubts(),
            "bootstrap": self.first.bootstrap,
            **self.tests,
        }

    def _page(self, title: str | None) -> str:
        from thresher.evaluation.page import comparison_page

        return comparison_page(self, title)

    def _repr_html_(self) -> str:
        """Return a short description for a notebook."""
        from thresher.evaluation.page import comparison_fragment

        return comparison_fragment(self)


def intervals_of(metrics: Mapping[str, Metric]) -> dict[str, list[float | None]]:
    """Return the intervals of the metrics that have one.

    Parameters
    ----------
    metrics : mapping of str to Metric
    """
    return {n: [one.low, one.high] for n, one in metrics.items() if one.low is not None}


def _plain(value: Any) -> Any:
    """Return a label of a type that JSON does not have as text."""
    return value.item() if hasattr(value, "item") else printable(value)
