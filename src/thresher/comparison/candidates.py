"""What is compared, and over which values: the one table of rules, controls and their grids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline

from thresher.comparison.controls import MeanOfRuns
from thresher.comparison.grids import (
    MIRROR_PASSES,
    Grid,
    Sizes,
    averaged_grid,
    coordinate_grid,
    dual_averaging_grid,
    forward_backward_grid,
    ftrl_grid,
    hard_cost,
    hard_grid,
    lasso_grid,
    logistic_grid,
    mean_plain_grid,
    mirror_cost,
    mirror_grid,
    perceptron_grid,
    plain_grid,
    published_grid,
    rounding_grid,
    stabilized_grid,
    truncated_grid,
)
from thresher.estimators import estimator_class
from thresher.losses import LOSSES, Task
from thresher.preprocessing import UnitVarianceScaler
from thresher.rules import RULES

RUNS = 16  # of plain SGD whose mean is a control: as many as the stabilized rule has paths


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
    threads : bool
        Whether points and folds may be fitted side by side.
    fixed : mapping
        Parameters other than the defaults.
    cost : callable or None
        Takes the sizes; returns why it is too expensive, or "".
    control : bool
        Whether it is there to be compared with, rather than a sparse learner of ours.
    foreign : callable or None
        Makes an estimator that is not ours.
    foreign_task : str or None
        Its task.
    wrap : callable or None
        Takes the estimator and the sizes; returns what is fitted in its place.
    """

    title: str
    rule: str
    grid: Callable[[Any, Sizes], Grid]
    tried: str
    threads: bool = True
    fixed: Mapping[str, Any] | None = None
    cost: Callable[[Sizes], str] | None = None
    control: bool = False
    foreign: Callable[[], Any] | None = None
    foreign_task: Task | None = None
    wrap: Callable[[Any, Sizes], Any] | None = None

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks it has estimators for."""
        return RULES[self.rule].tasks if self.foreign_task is None else (self.foreign_task,)

    @property
    def lanes(self) -> bool:
        """Whether all points and folds can learn from the same reading of the rows."""
        return bool(self.rule) and RULES[self.rule].lanes and self.wrap is None

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
        losses = spec.losses_for(task)
        if len(spec.losses) == 1 and not LOSSES[spec.losses[0]].selectable:
            return spec.losses[0]
        own = "logistic" if task == "classifier" else spec.regressor_loss
        for loss in (own,) if wanted is None else (wanted, LOSSES[wanted].smooth):
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
            made = estimator_class(self.rule, sizes.task)(**(self.fixed or {}))
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


def _by_class(estimator: Any, sizes: Sizes) -> Any:
    return OneVsRestClassifier(estimator)


def _unit_variance(estimator: Any, sizes: Sizes) -> Any:
    """Scale columns as the paper of the stabilized rule does, unless they have been."""
    if sizes.scaled:
        return estimator
    return Pipeline([("scale", UnitVarianceScaler()), ("model", estimator)])


def _mean_of_runs(estimator: Any, sizes: Sizes) -> Any:
    return MeanOfRuns(estimator, RUNS)


CANDIDATES: dict[str, Candidate] = {
    "stabilized": Candidate(
        "stabilized (robust)",
        "stabilized",
        stabilized_grid,
        "nothing: how many weights stay follows from rows and columns",
    ),
    "stabilized-paper": Candidate(
        "stabilized as published",
        "stabilized",
        published_grid,
        "annealing -5, 0, 3; keep 0.5, 0.8; 10 passes; columns of unit variance",
        fixed={"variant": "paper", "passes": 10},
        wrap=_unit_variance,
    ),
    "truncated-gradient": Candidate(
        "truncated gradient",
        "truncated-gradient",
        truncated_grid,
        "15 gravities, 0.0003 to 3 pulls; eta0 auto, and 0.1, 1 times that of the mean squared "
        "norm",
    ),
    "rounding": Candidate(
        "rounding",
        "truncated-gradient",
        rounding_grid,
        "15 ceilings, 0.0001 to 1 of the largest step of a weight",
        fixed={"shrink": "round"},
    ),
    "ftrl": Candidate(
        "FTRL",
        "ftrl",
        ftrl_grid,
        "15 values of l1, 0.0001 to 1 pull times rows and passes; alpha 0.1, 1, 10 over the norm",
    ),
    "forward-backward": Candidate(
        "forward-backward",
        "forward-backward",
        forward_backward_grid,
        "15 values of l1, 0.0003 to 3 pulls; eta0 auto, and 0.1, 1 times that of the mean squared "
        "norm",
    ),
    "dual-averaging": Candidate(
        "dual averaging",
        "dual-averaging",
        dual_averaging_grid,
        "15 values of l1, 0.0001 to 1 pull; strength 0.01 to 100 times auto, by tens",
    ),
    "margin-perceptron": Candidate(
        "margin perceptron",
        "margin-perceptron",
        perceptron_grid,
        "15 values of l1, 0.0001 to 1 of the largest value; margin 0.01 to 10 squared norms",
    ),
    "mirror-descent": Candidate(
        "mirror descent",
        "mirror-descent",
        mirror_grid,
        f"5 values of l1, 0.0001 to 1 pull; p 2 and 0.5ln; {MIRROR_PASSES} passes",
        fixed={"threshold": "scaled", "passes": MIRROR_PASSES},
        cost=mirror_cost,
    ),
    "coordinate-descent": Candidate(
        "coordinate descent",
        "coordinate-descent",
        coordinate_grid,
        "9 values of l1, 0.0001 to 1 pull",
    ),
    "hard-threshold": Candidate(
        "hard threshold",
        "hard-threshold",
        hard_grid,
        "n_nonzero 1, 3, 10, 30, ... 10,000 up to the number of columns",
        cost=hard_cost,
    ),
    "averaged-sgd": Candidate(
        "averaged SGD (Dekel)",
        "averaged-sgd",
        averaged_grid,
        "13 values of alpha, 0.000001 to 1 squared norm",
        control=True,
    ),
    "sgd": Candidate(
        "plain SGD",
        "truncated-gradient",
        plain_grid,
        "eta0 auto, and 0.01, 0.03, 0.1, 0.3, 1, 3 times that of the mean squared norm",
        fixed={"gravity": 0.0},
        control=True,
    ),
    "sgd-mean": Candidate(
        f"mean of {RUNS} plain SGD runs",
        "truncated-gradient",
        mean_plain_grid,
        "eta0 auto, and 0.1, 1 times that of the mean squared norm",
        fixed={"gravity": 0.0},
        control=True,
        wrap=_mean_of_runs,
    ),
    "l1-logistic": Candidate(
        "l1 logistic regression",
        "",
        logistic_grid,
        "scikit-learn's, by liblinear; 13 values of C, whose penalty is 0.000001 to 1 pull",
        foreign_task="classifier",
        threads=False,  # liblinear has one source of random numbers for all threads
        control=True,
        foreign=partial(LogisticRegression, solver="liblinear", l1_ratio=1.0, max_iter=200),
        wrap=_by_class,
    ),
    "lasso": Candidate(
        "lasso",
        "",
        lasso_grid,
        "scikit-learn's; 9 values of alpha, 0.0001 to 1 pull",
        foreign_task="regressor",
        control=True,
        foreign=partial(Lasso, max_iter=10_000, selection="random"),
    ),
}
