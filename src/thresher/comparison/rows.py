"""The rows of a comparison: read into memory, split, scaled and identified by digests."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.preprocessing import normalize

from thresher.comparison.cross_validation import Folds
from thresher.comparison.grids import Sizes
from thresher.comparison.inputs import (
    check_alike,
    checked,
    checked_weights,
    hint_of,
    is_regression,
    numbers_of,
    share_of,
)
from thresher.data import is_source
from thresher.data.block import Block
from thresher.data.in_memory import gather
from thresher.data.label_checks import tidy
from thresher.data.scaled import refuse_scaled
from thresher.data.unseen_labels import UnseenLabels
from thresher.errors import DataError, InputError, ParameterError, setting
from thresher.health import dynamic_range
from thresher.losses import ANY_LABEL, LOSSES, Task
from thresher.preprocessing import UnitVarianceScaler
from thresher.search.gravities import GravityScale
from thresher.training.target_scale import TargetScale

SCALES = ("unit-norm", "variance", None)
_MEMORY = 1 << 30  # most bytes for gradients at a time
_LARGEST = 1e12  # largest value: its square is still allowed as a parameter of all rules
_LARGEST_TO_NORM = 1e150  # largest value whose square is finite
_LARGER, _SMALLER = 100.0, 1e-3  # scale of a column, relative to the median, that gets a remark


@dataclass(frozen=True)
class ComparisonRows:
    """Training rows and test rows.

    Attributes
    ----------
    X, X_test : CSR matrix or array
    y, y_test : array
        Numbers of the classes, or targets.
    task : str
        "binary", "multiclass" or "regression".
    classes : list
        The labels of the classes, in the order of their numbers; empty for a regression.
    digests : dict of str to str
        SHA-256 of the training rows and of the test rows, as they were given.
    unit : float
        The standard deviation of the training targets of a regression. All targets have been
        standardised by it and by the mean, so rates and penalties do not depend on their units.
        1 for losses with a range of labels, whose targets stay as they are.
    names : list of str or None
        Names of the columns.
    scaled : bool
        Whether columns have been scaled to unit variance.
    weights, weights_test : array or None
        Weights of the rows; None: all are 1.
    """

    X: Any
    y: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]
    task: str
    classes: list[Any]
    digests: dict[str, str]
    unit: float = 1.0
    names: list[str] | None = None
    scaled: bool = False
    weights: NDArray[np.float64] | None = None
    weights_test: NDArray[np.float64] | None = None

    @property
    def kind(self) -> Task:
        """The kind of the estimators: "classifier" or "regressor"."""
        return "regressor" if self.task == "regression" else "classifier"

    def scaled_by(self, scale: str | None) -> ComparisonRows:
        """Return the rows scaled; scales of columns are computed from the training rows only.

        Parameters
        ----------
        scale : str or None
        """
        if scale is None:
            return self
        if scale == "unit-norm":
            for X in (self.X, self.X_test):
                _check_size(X.data if sp.issparse(X) else X, _LARGEST_TO_NORM)
            return replace(self, X=normalize(self.X), X_test=normalize(self.X_test))
        scaler = UnitVarianceScaler().fit(self.X)
        X, X_test = scaler.transform(self.X), scaler.transform(self.X_test)
        return replace(self, X=X, X_test=X_test, scaled=True)

    def remarks(self) -> list[str]:
        """Return remarks on the training rows that readers of the results should know."""
        odd = [
            column
            for column in dynamic_range(self.X, self.names, _LARGER).columns
            if not _SMALLER < column.ratio < _LARGER
        ]
        found = []
        if odd:
            ratio = odd[0].ratio
            farthest = max(ratio, 1 / max(ratio, 1e-300))
            first = odd[0].column if odd[0].name is None else repr(odd[0].name)
            than = "larger" if ratio > 1 else "smaller"
            more = f", and {len(odd) - 1:,} more columns differ as much" if len(odd) > 1 else ""
            found.append(
                f"columns differ in scale: column {first} is {farthest:.2g} times {than} than the "
                f"median column{more}; most rules use the same rate for all columns, so scale the "
                f"columns (scale: variance)"
            )
        if self.weights is not None or self.weights_test is not None:
            found.append("rows have weights, which count in training and in all errors")
        if self.unit != 1:
            found.append(
                f"rules learned from standardised labels (their standard deviation is "
                f"{self.unit:.3g}), and the chosen parameters are for these labels; errors are in "
                f"the original unit"
            )
        return found

    def folds(self, count: int, seed: int) -> Folds:
        """Return folds of the training rows; for classes, they are stratified.

        Parameters
        ----------
        count, seed : int
        """
        if self.task == "regression":
            if len(self.y) < count:
                raise ParameterError(
                    (setting("folds", count), f" needs as many training rows; got {len(self.y)}"),
                    parameter="folds",
                    value=count,
                )
            return list(KFold(count, shuffle=True, random_state=seed).split(self.X))
        fewest = int(np.bincount(self.y).argmin())
        rows = int(np.count_nonzero(self.y == fewest))
        if rows < count:
            raise ParameterError(
                (setting("folds", count), " needs as many training rows of each class; class "
                 f"{self.classes[fewest]!r} has {rows}"),
                parameter="folds",
                value=count,
                hint=hint_of(np.array(self.classes)),
            )  # fmt: skip
        splitter = StratifiedKFold(count, shuffle=True, random_state=seed)
        return list(splitter.split(self.X, self.y))

    def sizes(self, loss: str) -> Sizes:
        """Return the facts about the training rows that grids depend on.

        Parameters
        ----------
        loss : str
            The loss of the rule.
        """
        values = self.X.data if sp.issparse(self.X) else self.X
        _check_size(values, _LARGEST)
        square = self._mean_square()
        if not square > 0:
            raise DataError("all values of the training rows are zero")
        scale = GravityScale(loss, 0.1, 0.5, True, _MEMORY)
        outputs = len(self.classes) if self.task == "multiclass" else 1
        while scale.more(outputs):
            scale.add(self.X, self._targets, self.weights)
        return Sizes(
            task=self.kind,
            loss=loss,
            rows=self.X.shape[0],
            columns=self.X.shape[1],
            stored=int(np.count_nonzero(values)),
            square=square,
            scale=scale,
            scaled=self.scaled,
        )

    def _mean_square(self) -> float:
        """Return the mean squared norm of the training rows, with their weights."""
        X = self.X
        values = np.square(X.data if sp.issparse(X) else X, dtype=np.float64)
        if self.weights is None:
            return float(np.sum(values) / X.shape[0])
        each = np.repeat(self.weights, np.diff(X.indptr)) if sp.issparse(X) else self.weights
        total = float(np.sum(values * (each if sp.issparse(X) else each[:, np.newaxis])))
        return total / float(self.weights.sum())

    def _targets(self, output: int) -> NDArray[np.float64]:
        if self.task == "regression":
            return self.y
        return np.where(self.y == (1 if self.task == "binary" else output), 1.0, -1.0)


def rows_of(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    loss: str | None,
    task: str | None,
    test_share: float,
    seed: int,
    weights: Any = None,
    weights_test: Any = None,
) -> ComparisonRows:
    """Read rows into memory, find the task, and split the rows if no test rows are given.

    Parameters
    ----------
    X, X_test : CSR matrix, array, DataFrame or source
    y, y_test : array, or None with a source
    loss, task : str or None
    test_share : float
    seed : int
    weights, weights_test : array or None
        Weights of the rows.
    """
    if is_source(X):
        for source in (X, X_test):
            refuse_scaled(source, "compare", "compare has its own parameter `scale`")
        if any(given is not None for given in (y, y_test, weights, weights_test)):
            raise ParameterError(
                "a source has its own labels and weights; do not give y, y_test or weights",
                owner="compare",
            )
        X, y, X_test, y_test, weights, weights_test = gathered(X, X_test)
    if y is None:
        raise ParameterError("y is needed, unless X is a source", owner="compare", parameter="y")
    if (X_test is None) != (y_test is None):
        raise ParameterError("X_test and y_test must be given together", owner="compare")
    if X_test is None and weights_test is not None:
        raise ParameterError("sample_weight_test needs X_test", owner="compare")
    X, y, names = checked(X, y, "")
    weights = checked_weights(weights, len(y), "sample_weight")
    if X_test is not None:
        X_test, y_test, others = checked(X_test, y_test, "_test")
        check_alike(names, others)
        weights_test = checked_weights(weights_test, len(y_test), "sample_weight_test")
        if X_test.shape[1] != X.shape[1]:
            raise ParameterError(
                f"X_test has {X_test.shape[1]} columns and X has {X.shape[1]}; they must be equal"
            )
        words = [labels.dtype.kind in "US" for labels in (y, y_test)]
        if words[0] != words[1]:
            raise DataError(
                f"y has labels such as {y.tolist()[0]!r}, but y_test has labels such as "
                f"{y_test.tolist()[0]!r}: both must be words, or both numbers"
            )
    regresses = is_regression(y, loss, task)
    if X_test is None:
        train, test = _split(y, test_share, seed, regresses)
        X, X_test, y, y_test = X[train], X[test], y[train], y[test]
        if weights is not None:
            weights, weights_test = weights[train], weights[test]
    for which, own in (("training", weights), ("test", weights_test)):
        if own is not None and not own.any():
            raise DataError(f"the weights of all {which} rows are 0")
    digests = {
        "training rows": _digest(X, y, weights),
        "test rows": _digest(X_test, y_test, weights_test),
    }
    both = {"weights": weights, "weights_test": weights_test}
    if regresses:
        limited = loss is not None and LOSSES[loss].label_range != ANY_LABEL
        mean, unit = (0.0, 1.0) if limited else _scale(numbers_of(y))
        y, y_test = ((numbers_of(labels) - mean) / unit for labels in (y, y_test))
        return ComparisonRows(X, y, X_test, y_test, "regression", [], digests, unit, names, **both)
    classes, numbers = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise DataError(f"all training rows have the label {classes.tolist()[0]!r}")
    unseen = UnseenLabels()
    known = _class_numbers(classes, y_test, unseen)
    if unseen.unseen == len(y_test):
        label = y_test.tolist()[0]
        raise InputError(
            f"no training row has a label of the test rows, such as {label!r}",
            value=label,
            hint=hint_of(y),
        )
    if (warning := unseen.warning("test rows")) is not None:
        warnings.warn(warning, stacklevel=3)
    which = "binary" if len(classes) == 2 else "multiclass"
    rows = X, numbers, X_test, known, which, classes.tolist(), digests
    return ComparisonRows(*rows, names=names, **both)


def _class_numbers(
    classes: NDArray[Any], y: NDArray[Any], unseen: UnseenLabels
) -> NDArray[np.intp]:
    """Return the number of each row's class; -1 if no training row has its label."""
    seen = unseen.count(classes, y)
    return np.where(seen, np.searchsorted(classes, y), -1)


def gathered(
    train: Any,
    test: Any,
    check: Callable[[Block], Any] | None = None,
    check_test: Callable[[Block], Any] | None = None,
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Read sources into X, y, X_test, y_test and the weights of both; None: all are 1.

    Columns are the features of the training rows.

    Parameters
    ----------
    train : Source
    test : Source or None
    check, check_test : callable, optional
        Called with each block of the source.
    """
    rows = gather(train, check)
    X, seen = rows.compact() if train.named else (rows.matrix(), np.arange(rows.width))
    if test is None:
        return X, tidy(rows.labels), None, None, rows.weights, None
    if not is_source(test):
        raise ParameterError(
            owner="compare", parameter="X_test", allowed="a source if X is a source"
        )
    others = gather(test, check_test, train.kinds)
    test_rows = others.matrix_of(seen), tidy(others.labels)
    return X, tidy(rows.labels), *test_rows, rows.weights, others.weights


def _split(y: NDArray[Any], share: float, seed: int, regresses: bool) -> Any:
    """Return the numbers of training rows and of test rows."""
    share = share_of(share)
    classes, counts = np.unique(y, return_counts=True)
    if not regresses and len(classes) > 1 and counts.min() < 2:
        label = classes.tolist()[counts.argmin()]
        raise InputError(
            f"only one row has the label {label!r}: each class needs training rows and test rows",
            value=label,
            hint=hint_of(y),
        )
    try:
        parts = train_test_split(
            np.arange(len(y)),
            test_size=share,
            random_state=seed,
            stratify=None if regresses else y,
        )
    except ValueError as error:
        raise ParameterError(
            (setting("test_share", share), f": {error}"),
            parameter="test_share",
            value=share,
            hint=hint_of(y),
        ) from None
    return tuple(np.sort(part) for part in parts)


def _check_size(values: NDArray[Any], limit: float) -> None:
    largest = float(np.abs(values).max(initial=0.0))
    if largest > limit:
        raise DataError(
            f"the largest value is {largest:.3g}, and its square is too large; divide the values"
        )


def _scale(y: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean and the standard deviation of targets; 0 and 1 if they are equal."""
    scale = TargetScale.of(2, True, y, None)
    return (scale.mean, scale.sd) if scale.sd > 0 else (0.0, 1.0)


def _digest(X: Any, y: NDArray[Any], weights: NDArray[np.float64] | None = None) -> str:
    """Return the SHA-256 of rows, the same for a matrix and an array of the same values."""
    X = sp.csr_matrix(X, copy=True)  # the caller's matrix must not change
    X.eliminate_zeros()
    X.sort_indices()
    found = hashlib.sha256(f"{X.shape} {X.dtype} {y.dtype.kind}".encode())
    for part, kind in ((X.indptr, "<i8"), (X.indices, "<i8"), (X.data, "<f8")):
        found.update(np.asarray(part, kind).tobytes())
    for label in map(str, y.tolist()):
        found.update(f"{len(label)}:{label}".encode())
    if weights is not None:
        found.update(np.asarray(weights, "<f8").tobytes())
    return found.hexdigest()
