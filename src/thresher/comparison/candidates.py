"""What is compared, and over which values: the one table of rules, controls and their grids.

Ranges follow the training rows, so that a grid fits data of any size. Of these, `Sizes` knows: the
*pull* that leaves no weight at all (the largest mean gradient of any column at zero weights), the
mean of the *squared norms* of the rows, the largest value, and how many rows and columns there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline

from thresher import estimators
from thresher.comparison.controls import MeanOfRuns
from thresher.parameters import AUTO_ETA, AUTO_ETA_ELSE, AUTO_STRENGTH, AUTO_STRENGTH_ELSE, Task
from thresher.preprocessing import UnitVarianceScaler
from thresher.rules import RULES
from thresher.search.gravities import Scale, default_gravities

_ESTIMATORS: list[Any] = [getattr(estimators, name) for name in estimators.__all__]
_CLASSES = {(cls._rule, cls._task): cls for cls in _ESTIMATORS}
_NEAREST = {"hinge": "squared_hinge"}  # for rules that need a curvature
_COUNTS = (10, 30, 100, 300, 1000, 3000, 10_000)
RUNS = 16  # of plain SGD whose mean is a control: as many as the stabilized rule has paths

Grid = dict[str, list[Any]]


@dataclass(frozen=True)
class Sizes:
    """What grids need to know of the training rows.

    Attributes
    ----------
    task : str
    loss : str
        Of the rule that is to be tried.
    rows, columns : int
    stored : int
        Values that are not zero.
    square : float
        Mean of the squared norms of the rows.
    scale : Scale
        Of the loss: the pull that leaves nothing, and the largest value.
    scaled : bool
        Whether columns have been scaled to unit variance.
    """

    task: Task
    loss: str
    rows: int
    columns: int
    stored: int
    square: float
    scale: Scale
    scaled: bool

    def pulls(self, least: float, count: int) -> list[float]:
        """Return pulls of equal ratios, from a share of the one that leaves nothing up to it."""
        top = self.scale.largest
        return _rounded(np.geomspace(least * top, top, count))

    def rates(self, *factors: float) -> list[float]:
        """Return multiples of the rate that eta0="auto" is for rows of the mean squared norm."""
        auto = AUTO_ETA.get(self.loss, AUTO_ETA_ELSE) / self.square
        return _rounded([auto * factor for factor in factors])

    def counts(self) -> list[int]:
        """Return numbers of weights to keep, below the number of columns."""
        return [count for count in _COUNTS if count < self.columns]


@dataclass(frozen=True)
class Candidate:
    """One line of the comparison.

    Attributes
    ----------
    title : str
        What it is, in words.
    rule : str
        Its key in ``RULES``; empty for what is not ours.
    grid : callable
        Takes an estimator and the sizes; returns lists of values by parameter.
    tried : str
        The grid in words.
    tasks : tuple of str
    lanes : bool
        Whether all points and folds can learn from the same reading of the rows.
    fixed : mapping
        Parameters other than the defaults.
    cost : callable or None
        Takes the sizes; returns why it is too expensive, or "".
    control : bool
        Whether it is there to be compared with, rather than a sparse learner of ours.
    foreign : callable or None
        Makes an estimator that is not ours.
    wrap : callable or None
        Takes the estimator and the sizes; returns what is fitted in its place.
    """

    title: str
    rule: str
    grid: Callable[[Any, Sizes], Grid]
    tried: str
    tasks: tuple[Task, ...] = ("classifier", "regressor")
    lanes: bool = True
    fixed: Mapping[str, Any] | None = None
    cost: Callable[[Sizes], str] | None = None
    control: bool = False
    foreign: Callable[[], Any] | None = None
    wrap: Callable[[Any, Sizes], Any] | None = None

    def loss_for(self, task: Task, wanted: str | None) -> str:
        """Return the loss it is tried with; "" where it has none for what is wanted.

        Parameters
        ----------
        task : str
        wanted : str or None
            None: its own default.
        """
        if not self.rule:
            return "logistic" if task == "classifier" else "squared"
        spec = RULES[self.rule]
        if spec.losses == ("margin",):
            return "margin"
        own = "logistic" if task == "classifier" else spec.regressor_loss
        losses = spec.losses_for(task)
        for loss in (own,) if wanted is None else (wanted, _NEAREST.get(wanted, "")):
            if loss in losses:
                return loss
        return ""

    def make(self, sizes: Sizes, seed: int) -> Any:
        """Return an estimator, with the parameters that no grid chooses.

        Parameters
        ----------
        sizes : Sizes
        seed : int
        """
        if self.foreign is not None:
            made = self.foreign()
        else:
            made = _CLASSES[self.rule, sizes.task](**(self.fixed or {}))
            if "loss" in made.get_params():
                made.set_params(loss=sizes.loss)
        made = made if self.wrap is None else self.wrap(made, sizes)
        seeded(made, seed)
        return made


def configured(estimator: Any, point: Mapping[str, Any]) -> Any:
    """Set parameters of an estimator, or of the one inside it; return it.

    Parameters
    ----------
    estimator : estimator
    point : mapping
    """
    inner(estimator).set_params(**point)
    return estimator


def seeded(estimator: Any, seed: int) -> Any:
    """Set the seed of an estimator that has one; return it.

    Parameters
    ----------
    estimator : estimator
    seed : int
    """
    for part in (estimator, inner(estimator)):
        if "random_state" in part.get_params(deep=False):
            part.set_params(random_state=seed)
            break
    return estimator


def inner(estimator: Any) -> Any:
    """Return the estimator whose parameters are chosen: the last of a pipeline, that of a wrapper.

    Parameters
    ----------
    estimator : estimator
    """
    if isinstance(estimator, Pipeline):
        return estimator[-1]
    return getattr(estimator, "estimator", estimator)


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.3g}") for value in values]


def _by_class(estimator: Any, sizes: Sizes) -> Any:
    return OneVsRestClassifier(estimator)


def _unit_variance(estimator: Any, sizes: Sizes) -> Any:
    """Scale columns as the paper of the stabilized rule does, unless they have been."""
    if sizes.scaled:
        return estimator
    return Pipeline([("scale", UnitVarianceScaler()), ("model", estimator)])


def _mean_of_runs(estimator: Any, sizes: Sizes) -> Any:
    return MeanOfRuns(estimator, RUNS)


# ---- grids ---------------------------------------------------------------------------------------


def _gravities(estimator: Any, sizes: Sizes) -> list[float]:
    return [float(gravity) for gravity in default_gravities(estimator, sizes.scale)]


def _truncated(estimator: Any, sizes: Sizes) -> Grid:
    return {"gravity": _gravities(estimator, sizes), "eta0": ["auto", *sizes.rates(0.1, 1.0)]}


def _rounding(estimator: Any, sizes: Sizes) -> Grid:
    step = sizes.rates(1.0)[0] * sizes.scale.top
    return {"ceiling": _rounded(np.geomspace(1e-4 * step, step, 15))}


def _forward_backward(estimator: Any, sizes: Sizes) -> Grid:
    return {"l1": _gravities(estimator, sizes), "eta0": ["auto", *sizes.rates(0.1, 1.0)]}


def _ftrl(estimator: Any, sizes: Sizes) -> Grid:
    alphas = _rounded([factor / np.sqrt(sizes.square) for factor in (0.1, 1.0, 10.0)])
    return {"l1": _gravities(estimator, sizes), "alpha": alphas}


def _dual_averaging(estimator: Any, sizes: Sizes) -> Grid:
    auto = AUTO_STRENGTH.get(sizes.loss, AUTO_STRENGTH_ELSE) * sizes.square
    strengths = _rounded([factor * auto for factor in (0.01, 0.1, 1.0, 10.0, 100.0)])
    return {"l1": _gravities(estimator, sizes), "strength": strengths}


def _perceptron(estimator: Any, sizes: Sizes) -> Grid:
    margins = _rounded([factor * sizes.square for factor in (0.01, 0.1, 1.0, 10.0)])
    return {"l1": _gravities(estimator, sizes), "margin": margins}


def _mirror(estimator: Any, sizes: Sizes) -> Grid:
    return {"l1": sizes.pulls(1e-4, 5), "p": [2.0, "0.5ln"]}


def _stabilized(estimator: Any, sizes: Sizes) -> Grid:
    return {"target_nnz": [None]}


def _published(estimator: Any, sizes: Sizes) -> Grid:
    return {"annealing": [-5.0, 0.0, 3.0], "keep": [0.5, 0.8]}


def _coordinate(estimator: Any, sizes: Sizes) -> Grid:
    return {"l1": sizes.pulls(1e-5, 9)}


def _hard(estimator: Any, sizes: Sizes) -> Grid:
    return {"n_nonzero": sorted({1, 3, *sizes.counts()} & set(range(1, sizes.columns + 1)))}


def _plain(estimator: Any, sizes: Sizes) -> Grid:
    return {"eta0": ["auto", *sizes.rates(0.01, 0.03, 0.1, 0.3, 1.0, 3.0)]}


def _mean_plain(estimator: Any, sizes: Sizes) -> Grid:
    return {"eta0": ["auto", *sizes.rates(0.1, 1.0)]}


def _averaged(estimator: Any, sizes: Sizes) -> Grid:
    return {"alpha": _rounded(sizes.square * np.geomspace(1e-6, 1.0, 13))}


def _logistic(estimator: Any, sizes: Sizes) -> Grid:
    return {"C": _rounded(1 / (sizes.rows * np.array(sizes.pulls(1e-6, 13))))}


def _lasso(estimator: Any, sizes: Sizes) -> Grid:
    return {"alpha": sizes.pulls(1e-4, 9)}


# ---- what is too much ----------------------------------------------------------------------------

_MOST_STEPS = 3e8  # coordinates that a fit of mirror descent goes through: some five seconds
_MOST_VALUES = 3e6  # values that each of 1,000 iterations of hard thresholding reads
_MIRROR_PASSES = 5


def _mirror_cost(sizes: Sizes) -> str:
    work = sizes.rows * sizes.columns * _MIRROR_PASSES
    if work <= _MOST_STEPS:
        return ""
    return (
        f"every step goes through all {sizes.columns:,} columns: {work:.1e} updates a fit, more "
        f"than {_MOST_STEPS:.0e}"
    )


def _hard_cost(sizes: Sizes) -> str:
    if sizes.stored <= _MOST_VALUES:
        return ""
    return (
        f"every iteration goes through all {sizes.stored:,} values, up to 1,000 times a fit; more "
        f"than {_MOST_VALUES:.0e} are too many"
    )


CANDIDATES: dict[str, Candidate] = {
    "stabilized": Candidate(
        "stabilized (robust)",
        "stabilized",
        _stabilized,
        "nothing: how many weights stay follows from rows and columns",
        tasks=("classifier",),
        lanes=False,
    ),
    "stabilized-paper": Candidate(
        "stabilized as published",
        "stabilized",
        _published,
        "annealing -5, 0, 3; keep 0.5, 0.8; 10 passes; columns of unit variance",
        tasks=("classifier",),
        lanes=False,
        fixed={"variant": "paper", "passes": 10},
        wrap=_unit_variance,
    ),
    "truncated-gradient": Candidate(
        "truncated gradient",
        "truncated-gradient",
        _truncated,
        "15 gravities, 0.0003 to 3 pulls; eta0 auto, and 0.1, 1 times that of the mean squared "
        "norm",
    ),
    "rounding": Candidate(
        "rounding",
        "truncated-gradient",
        _rounding,
        "15 ceilings, 0.0001 to 1 of the largest step of a weight",
        fixed={"shrink": "round"},
    ),
    "ftrl": Candidate(
        "FTRL",
        "ftrl",
        _ftrl,
        "15 values of l1, 0.0001 to 1 pull times rows and passes; alpha 0.1, 1, 10 over the norm",
    ),
    "forward-backward": Candidate(
        "forward-backward",
        "forward-backward",
        _forward_backward,
        "15 values of l1, 0.0003 to 3 pulls; eta0 auto, and 0.1, 1 times that of the mean squared "
        "norm",
    ),
    "dual-averaging": Candidate(
        "dual averaging",
        "dual-averaging",
        _dual_averaging,
        "15 values of l1, 0.0001 to 1 pull; strength 0.01 to 100 times auto, by tens",
    ),
    "margin-perceptron": Candidate(
        "margin perceptron",
        "margin-perceptron",
        _perceptron,
        "15 values of l1, 0.0001 to 1 of the largest value; margin 0.01 to 10 squared norms",
        tasks=("classifier",),
    ),
    "mirror-descent": Candidate(
        "mirror descent",
        "mirror-descent",
        _mirror,
        f"5 values of l1, 0.0001 to 1 pull; p 2 and 0.5ln; {_MIRROR_PASSES} passes",
        fixed={"threshold": "scaled", "passes": _MIRROR_PASSES},
        cost=_mirror_cost,
    ),
    "coordinate-descent": Candidate(
        "coordinate descent",
        "coordinate-descent",
        _coordinate,
        "9 values of l1, 0.00001 to 1 pull; at most 200 scans",
        lanes=False,
        fixed={"passes": 200},
    ),
    "hard-threshold": Candidate(
        "hard threshold",
        "hard-threshold",
        _hard,
        "n_nonzero 1, 3, 10, 30, ... 10,000 up to the number of columns",
        tasks=("regressor",),
        lanes=False,
        cost=_hard_cost,
    ),
    "averaged-sgd": Candidate(
        "averaged SGD (Dekel)",
        "averaged-sgd",
        _averaged,
        "13 values of alpha, 0.000001 to 1 squared norm",
        control=True,
    ),
    "sgd": Candidate(
        "plain SGD",
        "truncated-gradient",
        _plain,
        "eta0 auto, and 0.01, 0.03, 0.1, 0.3, 1, 3 times that of the mean squared norm",
        fixed={"gravity": 0.0},
        control=True,
    ),
    "sgd-mean": Candidate(
        f"mean of {RUNS} plain SGD runs",
        "truncated-gradient",
        _mean_plain,
        "eta0 auto, and 0.1, 1 times that of the mean squared norm",
        lanes=False,
        fixed={"gravity": 0.0},
        control=True,
        wrap=_mean_of_runs,
    ),
    "l1-logistic": Candidate(
        "l1 logistic regression",
        "",
        _logistic,
        "scikit-learn's, by liblinear; 13 values of C, whose penalty is 0.000001 to 1 pull",
        tasks=("classifier",),
        lanes=False,
        control=True,
        foreign=partial(LogisticRegression, solver="liblinear", l1_ratio=1.0, max_iter=5000),
        wrap=_by_class,
    ),
    "lasso": Candidate(
        "lasso",
        "",
        _lasso,
        "scikit-learn's; 9 values of alpha, 0.0001 to 1 pull",
        tasks=("regressor",),
        lanes=False,
        control=True,
        foreign=partial(Lasso, max_iter=10_000, selection="random"),
    ),
}
