"""The rows of a comparison: taken into memory, split, scaled, and recognised again by a digest."""

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
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import type_of_target

from thresher.comparison.choosing import Folds
from thresher.comparison.grids import Sizes
from thresher.data import is_source
from thresher.data.block import Block
from thresher.data.gathering import gather
from thresher.errors import DataError, ParameterError
from thresher.parameters import CLASSIFIER_LOSSES, REGRESSOR_LOSSES, Task
from thresher.preprocessing import UnitVarianceScaler
from thresher.search.gravities import Scale
from thresher.training.labels import tidy

SCALES = ("unit-norm", "variance", None)
_MEMORY = 1 << 30  # bytes that gradients may take at a time


@dataclass(frozen=True)
class Rows:
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
    scaled : bool
        Whether columns have been scaled to unit variance.
    """

    X: Any
    y: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]
    task: str
    classes: list[Any]
    digests: dict[str, str]
    scaled: bool = False

    @property
    def kind(self) -> Task:
        """Which of the estimators: classifiers or regressors."""
        return "regressor" if self.task == "regression" else "classifier"

    def scaled_by(self, scale: str | None) -> Rows:
        """Return the rows scaled; what scales columns is learned from the training rows alone.

        Parameters
        ----------
        scale : str or None
        """
        if scale is None:
            return self
        if scale == "unit-norm":
            return replace(self, X=normalize(self.X), X_test=normalize(self.X_test))
        scaler = UnitVarianceScaler().fit(self.X)
        X, X_test = scaler.transform(self.X), scaler.transform(self.X_test)
        return replace(self, X=X, X_test=X_test, scaled=True)

    def folds(self, count: int, seed: int) -> Folds:
        """Return folds of the training rows, stratified where there are classes.

        Parameters
        ----------
        count, seed : int
        """
        if self.task == "regression":
            if len(self.y) < count:
                raise ParameterError(
                    f"folds={count} needs as many training rows; got {len(self.y)}"
                )
            return list(KFold(count, shuffle=True, random_state=seed).split(self.X))
        fewest = int(np.bincount(self.y).argmin())
        rows = int(np.count_nonzero(self.y == fewest))
        if rows < count:
            raise ParameterError(
                f"folds={count} needs as many training rows of each class; class "
                f"{self.classes[fewest]!r} has {rows}"
            )
        splitter = StratifiedKFold(count, shuffle=True, random_state=seed)
        return list(splitter.split(self.X, self.y))

    def sizes(self, loss: str) -> Sizes:
        """Return what grids need to know of the training rows.

        Parameters
        ----------
        loss : str
            Of the rule that is to be tried.
        """
        values = self.X.data if sp.issparse(self.X) else self.X
        square = float(np.sum(np.square(values, dtype=np.float64)) / self.X.shape[0])
        if not square > 0:
            raise DataError("all values of the training rows are zero: there is nothing to learn")
        scale = Scale("hinge" if loss == "margin" else loss, 0.1, 0.5, True, _MEMORY)
        outputs = len(self.classes) if self.task == "multiclass" else 1
        while scale.more(outputs):
            scale.add(self.X, self._told, None)
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

    def _told(self, output: int) -> NDArray[np.float64]:
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
) -> Rows:
    """Take rows into memory, find out what the labels are, and split where no test rows are given.

    Parameters
    ----------
    X, X_test : CSR matrix, array, DataFrame or source
    y, y_test : array, or None with a source
    loss, task : str or None
    test_share : float
    seed : int
    """
    if is_source(X):
        if y is not None or y_test is not None:
            raise ParameterError("compare: a source has its own labels; give it alone")
        X, y, X_test, y_test = gathered(X, X_test)
    if y is None:
        raise ParameterError("compare: y is needed, but with a source")
    if (X_test is None) != (y_test is None):
        raise ParameterError("compare: X_test and y_test go together")
    X, y = _checked(X, y, "")
    if X_test is not None:
        X_test, y_test = _checked(X_test, y_test, "_test")
        if X_test.shape[1] != X.shape[1]:
            raise ParameterError(
                f"X_test has {X_test.shape[1]} columns and X has {X.shape[1]}; they must be equal"
            )
    regresses = _regresses(y, loss, task)
    if X_test is None:
        X, X_test, y, y_test = _split(X, y, test_share, seed, regresses)
    digests = {"training rows": _digest(X, y), "test rows": _digest(X_test, y_test)}
    if regresses:
        y, y_test = (_numbers(labels) for labels in (y, y_test))
        return Rows(X, y, X_test, y_test, "regression", [], digests)
    classes, numbers = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise DataError(f"all training rows have the label {classes.tolist()[0]!r}")
    unknown = np.setdiff1d(y_test, classes)
    if len(unknown):
        raise DataError(f"no training row has the label {unknown.tolist()[0]!r} of a test row")
    known = np.searchsorted(classes, y_test)
    which = "binary" if len(classes) == 2 else "multiclass"
    return Rows(X, numbers, X_test, known, which, classes.tolist(), digests)


def gathered(
    train: Any, test: Any, check: Callable[[], Callable[[Block], Any]] | None = None
) -> tuple[Any, Any, Any, Any]:
    """Read sources into X, y, X_test, y_test; columns are the features of the training rows.

    Weights of rows are not taken: all count the same, and a warning says so.

    Parameters
    ----------
    train : Source
    test : Source or None
    check : callable, optional
        Makes what is called with each block, for each source anew.
    """
    rows = gather(train, None if check is None else check())
    if rows.weights is not None and np.ptp(rows.weights) > 0:
        warnings.warn("weights of rows are not used: all count the same", stacklevel=2)
    X, seen = rows.compact() if train.named else (rows.matrix(), np.arange(rows.width))
    if test is None:
        return X, tidy(rows.labels), None, None
    if not is_source(test):
        raise ParameterError("compare: X_test must be a source where X is one")
    others = gather(test, None if check is None else check(), train.kinds)
    return X, tidy(rows.labels), others.matrix_of(seen), tidy(others.labels)


def _checked(X: Any, y: Any, which: str) -> tuple[Any, NDArray[Any]]:
    try:
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        y = column_or_1d(y)
    except (TypeError, ValueError) as error:
        raise DataError(f"X{which}, y{which}: {error}") from None
    if len(y) != X.shape[0]:
        raise DataError(f"X{which} has {X.shape[0]} rows and y{which} has {len(y)} labels")
    if sp.issparse(X):
        X = sp.csr_matrix(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    return X, y


def _regresses(y: NDArray[Any], loss: str | None, task: str | None) -> bool:
    known = ("classification", "regression", None)
    if task not in known:
        raise ParameterError(f"task must be one of {', '.join(map(repr, known))}; got {task!r}")
    losses = tuple(dict.fromkeys(CLASSIFIER_LOSSES + REGRESSOR_LOSSES))
    if loss is not None and loss not in losses:
        raise ParameterError(f"loss must be one of {', '.join(losses)}, or None; got {loss!r}")
    if (
        task is None
        and loss is not None
        and (loss in CLASSIFIER_LOSSES) != (loss in REGRESSOR_LOSSES)
    ):
        return loss in REGRESSOR_LOSSES
    regresses = task == "regression" if task else type_of_target(y) == "continuous"
    fitting = REGRESSOR_LOSSES if regresses else CLASSIFIER_LOSSES
    if loss is not None and loss not in fitting:
        what = "regression" if regresses else "classification"
        raise ParameterError(f"loss must be one of {', '.join(fitting)} for {what}; got {loss!r}")
    return regresses


def _split(X: Any, y: NDArray[Any], share: float, seed: int, regresses: bool) -> Any:
    if not 0 < share < 1:
        raise ParameterError(f"test_share must be a number > 0 and < 1; got {share!r}")
    try:
        parts = train_test_split(
            np.arange(len(y)),
            test_size=share,
            random_state=seed,
            stratify=None if regresses else y,
        )
    except ValueError as error:
        raise DataError(f"test_share={share}: {error}") from None
    train, test = (np.sort(part) for part in parts)
    return X[train], X[test], y[train], y[test]


def _numbers(y: NDArray[Any]) -> NDArray[np.float64]:
    try:
        numbers = y.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError("labels must be numbers where the loss is one for numbers") from None
    if not np.isfinite(numbers).all():
        raise DataError("labels must be finite")
    return numbers


def _digest(X: Any, y: NDArray[Any]) -> str:
    """Return the SHA-256 of rows, the same for a matrix and an array of the same values."""
    X = sp.csr_matrix(X, copy=True)  # the caller's own stays as it is
    X.eliminate_zeros()
    X.sort_indices()
    found = hashlib.sha256(repr(X.shape).encode())
    for part, kind in ((X.indptr, "<i8"), (X.indices, "<i8"), (X.data, "<f8")):
        found.update(np.asarray(part, kind).tobytes())
    found.update("\0".join(map(str, y.tolist())).encode())
    return found.hexdigest()
