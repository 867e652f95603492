"""`thresher.evaluate`: how well a model predicts rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any

import numpy as np

from thresher.data import is_source
from thresher.errors import DataError, ParameterError, setting
from thresher.evaluation.bootstrap import Floats
from thresher.evaluation.class_tally import ClassTally
from thresher.evaluation.metric import Metric
from thresher.evaluation.paired import delong, mcnemar
from thresher.evaluation.rank_scores import EXACT
from thresher.evaluation.result import Evaluation, ModelComparison
from thresher.evaluation.rows import RowReader, Rows, aligned, check_known
from thresher.evaluation.tally import EvaluationOptions, Tally
from thresher.evaluation.tasks import tally_of, task_of
from thresher.losses import LOSSES
from thresher.model.model import Model, load

__all__ = ["evaluate"]

_MOST = 10_000  # replicates


def evaluate(
    model: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    against: Any = None,
    against_X: Any = None,
    replicates: int = 200,
    level: float = 0.95,
    seed: int = 0,
    at: Sequence[int] = (1, 3, 5),
    shares: Sequence[float] = (0.01, 0.05, 0.1, 0.2),
    quantile: float | None = None,
    exact: int = EXACT,
    on_progress: Callable[[int, int], None] | None = None,
) -> Evaluation | ModelComparison:
    """Return how well a model predicts rows, with intervals; or compare two models.

    A source is read once, in bounded memory. All weights of rows are respected. Metrics are those
    of scikit-learn; a metric that these rows do not define is None, and the result says why.

    Parameters
    ----------
    model : Model, path, estimator or pipeline
        A model, its file, or a fitted estimator of this package; or a pipeline that ends with one.
    X : CSR matrix, array, DataFrame, list of dicts, or source
        Rows; a source (`thresher.scan`) has its own labels and weights.
    y : array, optional
        Labels of the rows, unless X is a source. For a multilabel model, a matrix of 0 and 1.
    sample_weight : array of shape (rows,), optional
        Weights of the rows, unless X is a source.
    against : Model, path, estimator or pipeline, optional
        Another model: the result says how `model` differs from it on the same rows.
    against_X : as X, optional
        The same rows as `against` needs them, if that differs from `X`.
    replicates : int
        Replicates of the bootstrap for the intervals; 0: no intervals.
    level : float
        Confidence level of the intervals.
    seed : int
        Seed of the bootstrap.
    at : sequence of int
        For multilabel models: the k of precision at k and nDCG at k.
    shares : sequence of float
        For two classes: the shares of rows with the largest scores, for the lift.
    quantile : float, optional
        For a regression: the quantile of the quantile loss. By default that of a model with the
        loss "quantile", else 0.5.
    exact : int
        Scores that are kept in memory for metrics of a ranking (ROC AUC, average precision, lift).
        With more rows, scores are counted in bins, and the result has a bound of the error.
    on_progress : callable, optional
        Called now and then with the number of rows and of bytes that were read.

    Returns
    -------
    Evaluation or ModelComparison

    Examples
    --------
    >>> import thresher
    >>> from thresher import FTRLClassifier
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 50, [0, 1, 1] * 50
    >>> found = thresher.evaluate(FTRLClassifier().fit(X, y), X, y, replicates=100)
    >>> found["accuracy"], found["recall"], found["log_loss"] < 0.5
    (1.0, 1.0, True)
    """
    options = _options(replicates, level, seed, at, shares, quantile, exact)
    given = [(model, X)] if against is None else [
        (model, X), (against, X if against_X is None else against_X)
    ]  # fmt: skip
    models = [_as_model(one, rows) for one, rows in given]
    if against is not None:
        _check_same_task(models[0][0], models[1][0])
    tallies = [tally_of(one, options) for one, _ in models]
    pair = _Pair([one for one, _ in models]) if against is not None else None
    readers, stream = _stream(models, y, sample_weight, on_progress)
    for parts in stream:
        for tally, part in zip(tallies, parts, strict=True):
            tally.add(part)
        if pair is not None:
            pair.add(*parts)
    _check_rows(tallies[0], readers[0], X)
    remarks = list(dict.fromkeys(words for reader in readers for words in reader.warn()))
    unknown = readers[0].unseen.unseen
    found = [_result(tally, remarks, unknown, options) for tally in tallies]
    if pair is None:
        return found[0]
    differences = {
        name: _difference(one, found[1].metrics[name], options)
        for name, one in found[0].metrics.items()
    }
    return ModelComparison(found[0], found[1], differences, pair.tests(tallies))


def _options(
    replicates: int,
    level: float,
    seed: int,
    at: Sequence[int],
    shares: Sequence[float],
    quantile: float | None,
    exact: int,
) -> EvaluationOptions:
    """Check the parameters."""

    def check(sound: bool, name: str, value: Any, allowed: str) -> None:
        if not sound:
            raise ParameterError(parameter=name, value=value, allowed=allowed)

    known = isinstance(replicates, int | np.integer) and 0 <= replicates <= _MOST
    check(known and replicates != 1, "replicates", replicates, f"0, or from 2 to {_MOST}")
    for name, value in (("level", level), ("seed", seed), ("exact", exact)):
        check(isinstance(value, int | float | np.number), name, value, "a number")
    for name, values in (("at", at), ("shares", shares)):
        check(np.ndim(values) == 1, name, values, "a list of numbers")
    check(0 < level < 1, "level", level, "between 0 and 1")
    check(0 <= seed < 2**63, "seed", seed, "a whole number >= 0")
    check(all(k >= 1 for k in at), "at", at, "whole numbers >= 1")
    check(all(0 < share <= 1 for share in shares), "shares", shares, "above 0 and at most 1")
    check(quantile is None or 0 < quantile < 1, "quantile", quantile, "between 0 and 1")
    check(exact >= 1, "exact", exact, "at least 1")
    places, parts = dict.fromkeys(map(int, at)), dict.fromkeys(map(float, shares))
    return EvaluationOptions(
        int(replicates), float(level), int(seed), tuple(places), tuple(parts), quantile, int(exact)
    )


def _as_model(given: Any, X: Any) -> tuple[Model, Any]:
    """Return a model, and the rows as it needs them."""
    if isinstance(given, str | PathLike):
        return load(given), X
    if hasattr(given, "steps"):  # a pipeline
        return _as_model(given[-1], given[:-1].transform(X) if len(given.steps) > 1 else X)
    found = given if isinstance(given, Model) else getattr(given, "model_", None)
    if not isinstance(found, Model):
        raise ParameterError(
            parameter="model",
            value=type(given).__name__,
            allowed="a Model, the path of one, or a fitted estimator of thresher",
        )
    return found, X


def _check_same_task(first: Model, second: Model) -> None:
    """Raise ParameterError if two models do not have the same task and classes."""
    tasks = task_of(first), task_of(second)
    if tasks[0] != tasks[1]:
        raise ParameterError(
            f"the models have different tasks: the first is {tasks[0]}, the second {tasks[1]}",
            parameter="against",
        )
    if first.classes is None or second.classes is None:
        return
    classes = [one.classes.tolist() for one in (first, second) if one.classes is not None]
    low = [[0 if label == -1 else label for label in own] for own in classes]
    if classes[0] != classes[1] and not (tasks[0] == "binary" and low[0] == low[1] == [0, 1]):
        missing = [label for label in (*classes[0], *classes[1])
                   if label not in classes[0] or label not in classes[1]]  # fmt: skip
        raise ParameterError(
            f"the models have different classes: only one has {', '.join(map(repr, missing[:5]))}",
            parameter="against",
        )


def _stream(
    models: list[tuple[Model, Any]], y: Any, weights: Any, on_progress: Any
) -> tuple[list[RowReader], Iterator[list[Rows]]]:
    """Return the readers, and the rows of all models."""
    X = models[0][1]
    same = all(one is X for _, one in models)
    groups = [[one for one, _ in models]] if same else [[one] for one, _ in models]
    readers = [
        RowReader(group, on_progress if number == 0 else None)
        for number, group in enumerate(groups)
    ]
    streams = []
    for reader, (_, rows) in zip(readers, models, strict=False):
        if is_source(rows):
            for name, value in (("y", y), ("sample_weight", weights)):
                if value is not None:
                    raise ParameterError(
                        parameter=name, allowed="None with a source, which has labels and weights"
                    )
            streams.append(reader.of_source(rows))
        elif y is None:
            raise ParameterError(
                ("y is missing: rows in memory need labels; a source (", setting("X"),
                 " made by scan) has its own"),
                parameter="y",
            )  # fmt: skip
        else:
            streams.append(reader.of_memory(rows, y, weights))
    if same:
        return readers, streams[0]
    first, second = streams
    return readers, aligned(first, second, classifies=models[0][0].classes is not None)


def _check_rows(tally: Tally, reader: RowReader, X: Any) -> None:
    """Raise DataError if there was nothing to evaluate."""
    where = f"{X}: " if is_source(X) else ""
    if tally.rows == 0:
        raise DataError(f"{where}there are no rows")
    if tally.weight == 0:
        raise DataError(f"{where}the weights of all rows are 0")
    check_known(reader.unseen, tally.model)


def _result(
    tally: Tally, remarks: list[str], unknown: int, options: EvaluationOptions
) -> Evaluation:
    found = tally.findings()
    return Evaluation(
        task_of(tally.model), tally.rows, tally.weight, found.metrics, found.tables,
        remarks + found.remarks, options.replicates, options.level, options.seed,
        unknown,
    )  # fmt: skip


def _difference(one: Metric, other: Metric, options: EvaluationOptions) -> Metric:
    """Return the difference of two metrics, with the interval of the paired bootstrap."""
    if one.value is None or other.value is None:
        return Metric(None, reason=one.reason or other.reason)
    replicates: Floats | None = None
    if one.replicates is not None and other.replicates is not None:
        replicates = one.replicates - other.replicates
    value = one.value - other.value
    return Metric.of(value, replicates, options.level, bound=one.bound + other.bound)


class _Pair:
    """Rows that only one of two models predicts correctly."""

    def __init__(self, models: Sequence[Model]) -> None:
        self.models, self.task = models, task_of(models[0])
        self.only = [0, 0]
        self.weighted = False

    def add(self, first: Rows, second: Rows) -> None:
        """Add rows."""
        self.weighted = self.weighted or (
            first.weights is not None and bool((first.weights != 1).any())
        )
        if self.task == "regression":
            return
        pairs = zip((first, second), self.models, strict=True)
        right = [self._right(rows, model) for rows, model in pairs]
        self.only[0] += int((right[0] & ~right[1]).sum())
        self.only[1] += int((right[1] & ~right[0]).sum())

    def _right(self, rows: Rows, model: Model) -> Any:
        """Return for each row whether its label, or all its labels, are predicted."""
        at = LOSSES[model.loss].decision_at
        if self.task == "binary":
            return (rows.raw[:, 0] >= at).astype(np.intp) == rows.classes
        if self.task == "multiclass":
            return rows.raw.argmax(axis=1) == rows.classes
        assert rows.sizes is not None
        found = rows.raw >= at
        row = np.repeat(np.arange(len(rows)), np.diff(rows.targets.starts))
        hits = np.bincount(row, found[row, rows.targets.numbers], len(rows))
        return (hits == rows.sizes) & (hits == found.sum(axis=1))

    def tests(self, tallies: list[Tally]) -> dict[str, dict[str, Any]]:
        """Return the tests that the task has; with a reason if they are not possible."""
        found: dict[str, dict[str, Any]] = {}
        weighted = {"undefined": "it is not defined for rows with weights"}
        if self.task != "regression":
            p = mcnemar(*self.only)
            test = {"only_first": self.only[0], "only_second": self.only[1], "p_value": p}
            found["mcnemar"] = weighted if self.weighted else test
        if self.task == "binary":
            found["delong"] = weighted if self.weighted else _delong(tallies)
        return found


def _delong(tallies: list[Tally]) -> dict[str, Any]:
    ranks = [one.ranks for one in tallies if isinstance(one, ClassTally)]
    if not all(one.exact for one in ranks):
        return {"undefined": "it needs all scores, and there are too many rows to keep them"}
    (first, classes, _, _), (second, _, _, _) = (one.kept() for one in ranks)
    positive = classes == 1
    if min(positive.sum(), (~positive).sum()) < 2:
        return {"undefined": "it needs two rows of each class"}
    difference, error, p = delong(first[:, 0], second[:, 0], positive)
    return {"difference": difference, "standard_error": error, "p_value": p}
