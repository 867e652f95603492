"""The protocol of the paper's Tables 2 to 4: data, grids, choice, random orders."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from thresher import (
    DualAveragingClassifier,
    ForwardBackwardClassifier,
    StabilizedClassifier,
    TruncatedGradientClassifier,
    UnitVarianceScaler,
    datasets,
    stability_score,
)

# By the paper's name of a data set: our name, and the number of features = 100 %.
SETS = {
    "rcv1": ("rcv1_train", 47_236),
    "dexter": ("dexter_scaled", 20_000),
    "dorothea": ("dorothea", 100_000),
    "gisette": ("gisette", 5_000),
    "arcene": ("arcene", 10_000),
}
_SCALED = ("dexter",)  # its file is already scaled
PUBLISHED, ROBUST, MEAN = "STSGD, published", "STSGD, robust", "mean of 16 SGD"
SPARSE = ", sparse"  # ends the name of a line whose parameters are chosen for few weights
FEW = 10  # % of the features: with fewer weights than this a model is sparse

Point = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """A line of the tables.

    Attributes
    ----------
    name : str
    make : callable
        Takes the loss; returns an estimator.
    grid : sequence of dict
        Parameters to choose from.
    losses : tuple of str
    orders : int
        Largest number of orders.
    sparse : bool
        Whether a second line chooses among the points that give sparse models.
    """

    name: str
    make: Callable[[str], Any]
    grid: Sequence[Point]
    losses: tuple[str, ...] = ("hinge", "logistic")
    orders: int = 1000
    sparse: bool = False

    @property
    def lines(self) -> list[str]:
        """The names of its lines."""
        return [self.name, self.name + SPARSE] if self.sparse else [self.name]


@dataclass(frozen=True)
class Found:
    """The results of a rule over random orders.

    Attributes
    ----------
    error, error_sd, nonzeros, nonzeros_sd : float
        In percent; sample standard deviations.
    kappa : float
        Mean over pairs of orders.
    chosen : dict
        Parameters.
    orders : int
    """

    error: float
    error_sd: float
    nonzeros: float
    nonzeros_sd: float
    kappa: float
    chosen: Point
    orders: int


@dataclass(frozen=True, eq=False)
class Rows:
    """A data set with columns of unit variance.

    Attributes
    ----------
    X, X_test : CSR matrix
    y, y_test : array
    width : int
        Number of features that is 100 %.
    """

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    width: int


def rows_of(name: str) -> Rows:
    """Load a data set by its name in the paper; scale its columns by the training rows.

    Parameters
    ----------
    name : str
    """
    file, width = SETS[name]
    data = datasets.load(file, unit_norm=False)
    X, X_test = data.X_train, data.X_test
    if name not in _SCALED:
        scaler = UnitVarianceScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    return Rows(X, data.y_train, X_test, data.y_test, width)


def grid(**values: Sequence[Any]) -> list[Point]:
    """Return all combinations.

    Parameters
    ----------
    **values : sequence
        By parameter.
    """
    return [dict(zip(values, point, strict=True)) for point in product(*values.values())]


def plain(loss: str, **options: Any) -> Any:
    """Return truncated gradient as in the paper: constant rate, no intercept, bursts of 5.

    Parameters
    ----------
    loss : str
    **options : object
        Other parameters.
    """
    return TruncatedGradientClassifier(
        loss=loss, period=5, schedule="constant", decay=1.0, fit_intercept=False, **options
    )


def _published(loss: str, **options: Any) -> Any:
    return StabilizedClassifier(variant="paper", loss=loss, passes=10, **options)


def rules(grids: Mapping[str, Any]) -> list[Rule]:
    """Return the lines of the tables.

    Parameters
    ----------
    grids : mapping
        Values to choose from, by their names in the parameters of an experiment.
    """
    rates, passes, penalties = grids["eta"], grids["passes"], grids["lambda"]
    pulls = [pull / 0.1 for pull in grids["g_0 at eta 0.1"]]  # gravity is relative to eta
    return [
        Rule("SGD", lambda loss: plain(loss, gravity=0.0), grid(eta0=rates, passes=passes)),
        Rule("TG", plain, grid(eta0=rates, gravity=pulls, passes=passes), sparse=True),
        Rule(
            "RDA",
            lambda loss: DualAveragingClassifier(loss=loss, boost=0.005, fit_intercept=False),
            grid(strength=grids["gamma of RDA"], l1=penalties, passes=passes),
            sparse=True,
        ),
        Rule(
            "FOBOS",
            lambda loss: ForwardBackwardClassifier(
                loss=loss, schedule="sqrt", decay=1.0, fit_intercept=False
            ),
            grid(eta0=rates, l1=penalties, passes=passes),
            sparse=True,
        ),
        Rule(
            PUBLISHED,
            _published,
            grid(
                eta0=grids["eta of STSGD"],
                keep=grids["keep"],
                rejection=grids["rejection"],
                gravity_rule=grids["gravity rule"],
            ),
            orders=20,
            sparse=True,
        ),
        Rule(ROBUST, lambda loss: StabilizedClassifier(loss=loss), [{}]),
        Rule(
            MEAN,  # the published rule without rejection and purging (P-16)
            lambda loss: _published(loss, rejection=0.0, keep=0.0),
            grid(eta0=rates),
            orders=20,
        ),
        Rule(
            "l1 logistic regression",
            lambda loss: LogisticRegression(solver="liblinear", l1_ratio=1.0, max_iter=2000),
            grid(C=grids["C"]),
            losses=("logistic",),
            orders=10,
        ),
    ]


def measured(rule: Rule, loss: str, rows: Rows, orders: int, folds: int) -> dict[str, Found]:
    """Choose parameters by cross-validation on training rows; train in random orders; test once.

    Returns the results of each line of the rule.

    Parameters
    ----------
    rule : Rule
    loss : str
    rows : Rows
    orders, folds : int
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        points = _chosen(rule, loss, rows, folds)
        return {
            line: _over_orders(rule, loss, rows, min(orders, rule.orders), point)
            for line, point in zip(rule.lines, points, strict=True)
        }


def _over_orders(rule: Rule, loss: str, rows: Rows, orders: int, chosen: Point) -> Found:
    """Train in random orders with the chosen parameters; test each model once."""
    errors, supports = [], []
    for seed in range(orders):
        model = _fitted(rule.make(loss).set_params(**chosen), rows.X, rows.y, seed)
        errors.append(100 * _error(model, rows.X_test, rows.y_test))
        supports.append(np.flatnonzero(model.coef_))
    nonzeros = [len(support) for support in supports]
    return Found(
        error=float(np.mean(errors)),
        error_sd=float(np.std(errors, ddof=1)),
        nonzeros=100 * float(np.mean(nonzeros)) / rows.width,
        nonzeros_sd=100 * float(np.std(nonzeros, ddof=1)) / rows.width,
        kappa=stability_score(supports, rows.width),
        chosen=chosen,
        orders=len(errors),
    )


def _chosen(rule: Rule, loss: str, rows: Rows, folds: int) -> list[Point]:
    """Return the chosen point of each line."""
    if len(rule.grid) == 1:
        return [dict(rule.grid[0])] * len(rule.lines)
    errors, shares = searched(rule, loss, rows, folds)
    found = [best_point(errors, shares), sparse_point(errors, shares)]
    return [dict(rule.grid[number]) for number in found[: len(rule.lines)]]


def searched(rule: Rule, loss: str, rows: Rows, folds: int) -> tuple[Any, Any]:
    """Return errors and shares of nonzero weights (%) over folds, by the points of the grid.

    Parameters
    ----------
    rule : Rule
    loss : str
    rows : Rows
    folds : int
    """
    splits = list(StratifiedKFold(folds, shuffle=True, random_state=0).split(rows.X, rows.y))
    errors, sizes = np.zeros((2, len(rule.grid), folds))
    for number, point in enumerate(rule.grid):
        estimator = rule.make(loss).set_params(**point)
        for seed, (train, held) in enumerate(splits):
            model = _fitted(clone(estimator), rows.X[train], rows.y[train], seed)
            errors[number, seed] = _error(model, rows.X[held], rows.y[held])
            sizes[number, seed] = np.count_nonzero(model.coef_)
    return errors.mean(axis=1).round(9), 100 * sizes.mean(axis=1) / rows.width


def best_point(errors: Any, shares: Any) -> int:
    """Return the point with the smallest error; ties go to the sparser.

    Parameters
    ----------
    errors, shares : array of shape (points,)
        Mean errors over folds, and mean shares of nonzero weights.

    Examples
    --------
    >>> best_point([0.2, 0.2, 0.3], [90, 50, 1])
    1
    """
    return int(np.lexsort((shares, errors))[0])


def sparse_point(errors: Any, shares: Any) -> int:
    """Return the point with the smallest error among those that give sparse models.

    If no point does, it is the sparsest point.

    Parameters
    ----------
    errors, shares : array of shape (points,)
        Mean errors over folds, and mean shares of nonzero weights in %.

    Examples
    --------
    >>> sparse_point([0.1, 0.2, 0.4], [90, 5, 1])
    1
    >>> sparse_point([0.1, 0.2, 0.4], [90, 50, 40])
    2
    """
    few = np.asarray(shares) < FEW
    if not few.any():
        return int(np.lexsort((errors, shares))[0])
    return int(np.lexsort((shares, errors, ~few))[0])


def _fitted(estimator: Any, X: Any, y: Any, seed: int) -> Any:
    order = np.random.default_rng(seed).permutation(len(y))
    return estimator.set_params(random_state=seed).fit(X[order], y[order])


def _error(model: Any, X: Any, y: Any) -> float:
    """Return the share of wrong labels; a row with w.x = 0 counts as wrong (A-20)."""
    return float(np.mean(y * model.decision_function(X) <= 0))
