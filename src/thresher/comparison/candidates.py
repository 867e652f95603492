"""The table of all rules and controls that are compared, and of their grids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sklearn import config_context
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline

from thresher.comparison.controls import MeanOfRuns
from thresher.comparison.grids import (
    MIRROR_PASSES,
    Grid,
    Sizes,
    adaptive_grid,
    averaged_grid,
    coordinate_grid,
    cut_grid,
    dual_averaging_grid,
    forward_backward_grid,
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

RUNS = 16  # of the control "mean of plain SGD runs"; the stabilized rule has 16 paths


@dataclass(frozen=True)
class Candidate:
    """A rule or control of the comparison.

    Attributes
    ----------
    title : str
        Its name in tables.
    rule : str
        Its key in ``RULES``; empty for an estimator of scikit-learn.
    grid : callable
        Takes an estimator and the sizes; returns lists of values by parameter.
    tried : str
        The grid in words.
    threads : bool
        Whether several threads may fit points and folds at the same time.
    fixed : mapping
        Parameters that differ from the defaults.
    cost : callable or None
        Takes the sizes; returns why the rule is too expensive, or "".
    control : bool
        Whether it is a control, not a sparse learner of Thresher.
    foreign : callable or None
        Returns an estimator of scikit-learn.
    foreign_task : str or None
        The task of that estimator.
    wrap : callable or None
        Takes the estimator and the sizes; returns the estimator that is fitted instead.
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
        """Tasks that it has estimators for."""
        return RULES[self.rule].tasks if self.foreign_task is None else (self.foreign_task,)

    @property
    def lanes(self) -> bool:
        """Whether all points and folds can learn from the same reading of the rows."""
        return bool(self.rule) and RULES[self.rule].lanes and self.wrap is None

    def loss_for(self, task: Task, wanted: str | None) -> str:
        """Return the loss to train with: `wanted`, or a similar one if the rule lacks it, or "".

        Parameters
        ----------
        task : str
        wanted : str or None
            None: the default of the rule.
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
        """Return an estimator; parameters in the grid have their defaults.

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


def fit_weighted(estimator: Any, X: Any, y: Any, weights: Any = None) -> Any:
    """Fit an estimator of a candidate with weights of the rows; return it.

    Parameters
    ----------
    estimator : estimator
    X : CSR matrix or array
    y : array
    weights : array or None
        None: all rows count the same.
    """
    if weights is None:
        return estimator.fit(X, y)
    if isinstance(estimator, OneVsRestClassifier):  # it passes weights on only by request
        with config_context(enable_metadata_routing=True):
            estimator.estimator.set_fit_request(sample_weight=True)
            return estimator.fit(X, y, sample_weight=weights)
    return estimator.fit(X, y, **{_weight_argument(estimator): weights})


def _weight_argument(estimator: Any) -> str:
    """Return the argument of `fit` that gives weights to the last estimator inside."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__{_weight_argument(last)}"
    if isinstance(estimator, TransformedTargetRegressor):
        return _weight_argument(estimator.regressor)
    return "sample_weight"


def inner(estimator: Any) -> Any:
    """Return the estimator whose parameters are chosen, without its pipeline or wrapper.

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
    """Scale columns as in the paper of the stabilized rule, unless they are scaled already."""
    if sizes.scaled:
        return estimator
    return Pipeline([("scale", UnitVarianceScaler()), ("model", estimator)])


def _mean_of_runs(estimator: Any, sizes: Sizes) -> Any:
    return MeanOfRuns(estimator, RUNS)


def _adaptive_rules() -> dict[str, Candidate]:
    """Return the rules whose rate is relative to the norms of the rows, such as FTRL."""
    found = {}
    for name, rule in RULES.items():
        if rule.rate_from_rows and rule.norm_power < 0:
            unit = " times rows times passes" if rule.penalty_unit == "gradients" else ""
            found[name] = Candidate(
                rule.estimators["classifier"].removesuffix("Classifier"),
                name,
                adaptive_grid,
                f"15 values of {rule.penalty}, 0.0001 to 1 times lambda_max{unit}; "
                f"{rule.rate_from_rows} 0.1, 1, 10 divided by the root of the mean squared norm",
            )
    return found


CANDIDATES: dict[str, Candidate] = {
    "stabilized": Candidate(
        "stabilized (robust)",
        "stabilized",
        stabilized_grid,
        "no grid: the rule sets the number of weights from the rows and columns",
    ),
    "stabilized-paper": Candidate(
        "stabilized as published",
        "stabilized",
        published_grid,
        "eta0 0.001, 0.1; keep 0.2, 0.5; rejection 0.05, 0.1, 0.3, 0.7; gravity a quantile of the "
        "updates or of the weights; 10 passes; columns of unit variance",
        fixed={"variant": "paper", "passes": 10},
        wrap=_unit_variance,
    ),
    "truncated-gradient": Candidate(
        "truncated gradient",
        "truncated-gradient",
        truncated_grid,
        "15 values of gravity, 0.0003 to 3 times lambda_max; eta0 auto, and 0.1 and 1 times the "
        "rate that auto would use if all rows had the mean squared norm",
    ),
    "rounding": Candidate(
        "rounding",
        "truncated-gradient",
        rounding_grid,
        "15 values of ceiling, 0.0001 to 1 times the largest step of a weight",
        fixed={"shrink": "round"},
    ),
    **_adaptive_rules(),
    "one-pass": Candidate(
        "one-pass",
        "one-pass",
        cut_grid,
        "cut 0.0001, 0.001, 0.01, 0.05, 0.2, 0.5; one pass",
    ),
    "forward-backward": Candidate(
        "forward-backward",
        "forward-backward",
        forward_backward_grid,
        "15 values of l1, 0.0003 to 3 times lambda_max; eta0 as for truncated gradient",
    ),
    "dual-averaging": Candidate(
        "dual averaging",
        "dual-averaging",
        dual_averaging_grid,
        "15 values of l1, 0.0001 to 1 times lambda_max; strength 0.01, 0.1, 1, 10, 100, 1000 times "
        "auto",
    ),
    "margin-perceptron": Candidate(
        "margin perceptron",
        "margin-perceptron",
        perceptron_grid,
        "15 values of l1, 0.0001 to 1 times the largest value; margin 0.01, 0.1, 1, 10 times the "
        "mean squared norm",
    ),
    "mirror-descent": Candidate(
        "mirror descent",
        "mirror-descent",
        mirror_grid,
        f"6 values of l1, 0.00001 to 1 times lambda_max; p 2 and 0.5ln; {MIRROR_PASSES} passes",
        fixed={"threshold": "scaled", "passes": MIRROR_PASSES},
        cost=mirror_cost,
    ),
    "coordinate-descent": Candidate(
        "coordinate descent",
        "coordinate-descent",
        coordinate_grid,
        "9 values of l1, 0.0001 to 1 times lambda_max",
    ),
    "hard-threshold": Candidate(
        "hard threshold",
        "hard-threshold",
        hard_grid,
        "n_nonzero 1, 3, 10, 30, ..., 10,000, up to the number of columns",
        cost=hard_cost,
    ),
    "averaged-sgd": Candidate(
        "averaged SGD (Dekel)",
        "averaged-sgd",
        averaged_grid,
        "13 values of alpha, 0.000001 to 1 times the mean squared norm",
        control=True,
    ),
    "sgd": Candidate(
        "plain SGD",
        "truncated-gradient",
        plain_grid,
        "eta0 auto, and 0.01, 0.03, 0.1, 0.3, 1, 3 times the rate that auto would use if all rows "
        "had the mean squared norm",
        fixed={"gravity": 0.0},
        control=True,
    ),
    "sgd-mean": Candidate(
        f"mean of {RUNS} plain SGD runs",
        "truncated-gradient",
        mean_plain_grid,
        "eta0 auto, and 0.1 and 1 times the rate that auto would use if all rows had the mean "
        "squared norm",
        fixed={"gravity": 0.0},
        control=True,
        wrap=_mean_of_runs,
    ),
    "l1-logistic": Candidate(
        "l1 logistic regression",
        "",
        logistic_grid,
        "scikit-learn with liblinear; 13 values of C, penalties 0.000001 to 1 times lambda_max",
        foreign_task="classifier",
        threads=False,  # all threads would share the random numbers of liblinear
        control=True,
        foreign=partial(LogisticRegression, solver="liblinear", l1_ratio=1.0, max_iter=200),
        wrap=_by_class,
    ),
    "lasso": Candidate(
        "lasso",
        "",
        lasso_grid,
        "scikit-learn; 9 values of alpha, 0.0001 to 1 times lambda_max",
        foreign_task="regressor",
        control=True,
        foreign=partial(Lasso, max_iter=10_000, selection="random"),
    ),
}
