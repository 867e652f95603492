"""The points of a grid, checked before training begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from thresher import _core
from thresher.data import is_source
from thresher.errors import ParameterError, setting
from thresher.estimators.linear import LinearEstimator
from thresher.losses import LOSSES, PROBABILITY_LOSSES
from thresher.rules import RULES, core_args, validate
from thresher.training.lanes import Lane
from thresher.training.scores import SCORES, Score

_STEERED = (("target_nnz", None, "l1 is steered after the last row"),)
_REFITTED = (("refit", False, "the rows are not read again with target_nnz"),)
_RACE = "it chooses the rule itself"
# Parameters of a reading of the rows: points that differ in them train separately.
OF_THE_RUN = ("passes", "shuffle", "random_state", "store", "dtype", "class_weight")


@dataclass(frozen=True)
class GridPoint:
    """One combination of parameters.

    Attributes
    ----------
    number : int
        Its index in the grid.
    chosen : dict
        The parameters that the grid sets.
    params : dict
        All parameters of the estimator at this point.
    loss : str
    low : float
        Target of rows of other classes.
    waits : bool
        Whether the first rows decide its rate.
    standardised : bool
        Whether its targets are standardised.
    lane_params : dict or None
        The parameters in units of standardised targets, if those in `params` are in the user's.
    diverges : bool
        Whether a rising loss is a sign of divergence.
    obstacle : str
        Why it cannot train together with others and is fitted separately; empty: it can.
    """

    number: int
    chosen: dict[str, Any]
    params: dict[str, Any]
    loss: str
    low: float = -1.0
    waits: bool = False
    standardised: bool = False
    lane_params: dict[str, Any] | None = None
    diverges: bool = True
    obstacle: str = ""

    @property
    def run(self) -> tuple[str, ...]:
        """A key that is equal for points that can train together."""
        scale = ""
        if self.standardised:  # models that train together share mean, sd and unit of the loss
            scale = f"{LOSSES[self.loss].degree} {self.params['fit_intercept']}"
        return (*(repr(self.params.get(name)) for name in OF_THE_RUN), str(self.low), scale)

    @property
    def average(self) -> bool:
        """Whether it predicts with the mean of its weights."""
        return bool(self.params.get("average", False))


def points_of(estimator: Any, param_grid: Any) -> list[GridPoint]:
    """Return the points of a grid, in the order of scikit-learn's `ParameterGrid`.

    Raises ParameterError if the estimator has no such parameter, or if a value is not allowed.

    Parameters
    ----------
    estimator : estimator
        One of Thresher's.
    param_grid : mapping or sequence of mappings
        Lists of values, by parameter.

    Examples
    --------
    >>> from thresher import FTRLClassifier
    >>> [point.chosen for point in points_of(FTRLClassifier(), {"l1": [0.1, 1.0]})]
    [{'l1': 0.1}, {'l1': 1.0}]
    >>> points_of(FTRLClassifier(), {"gravity": [0.1]})
    Traceback (most recent call last):
        ...
    thresher.errors.ParameterError: FTRLClassifier has no parameter 'gravity'; it has loss, l1, ...
    """
    check_estimator(estimator)
    given = estimator.get_params(deep=False)
    return [
        point_of(estimator, n, chosen, given=given)
        for n, chosen in enumerate(combinations(param_grid))
    ]


def combinations(param_grid: Any) -> list[dict[str, Any]]:
    """Return the parameters of all points of a grid; raise ParameterError if there are none."""
    try:
        grid = list(ParameterGrid(param_grid))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"param_grid: {error}") from None
    if not grid:
        raise ParameterError("param_grid has no points: give at least one value to a parameter")
    return grid


def point_of(
    estimator: Any,
    number: int,
    chosen: Mapping[str, Any],
    together: bool = False,
    given: Mapping[str, Any] | None = None,
) -> GridPoint:
    """Return a point of the grid; raise ParameterError if its parameters are not allowed.

    Parameters
    ----------
    estimator : estimator
    number : int
    chosen : mapping
    together : bool
        Whether all points must be able to train together; ParameterError if this one is not.
    given : mapping, optional
        The parameters of the estimator, if known: to find them takes time.
    """
    owner = type(estimator).__name__
    own = estimator.get_params(deep=False) if given is None else given
    params = {**own, **clone(dict(chosen), safe=False)}
    if estimator.rule not in RULES:  # a race, which chooses the rule itself
        for name in params:
            if name not in own:
                raise ParameterError(f"{owner} has no parameter {name!r}", parameter=name)
        return GridPoint(number, dict(chosen), params, "", obstacle=_RACE)
    validate.check(estimator.rule, estimator.task, params, owner)
    params = core_args.canonical(params)
    obstacle = _obstacle(estimator.rule, params, owner)
    if together and obstacle is not None:
        raise obstacle
    loss = core_args.loss_of(estimator.rule, params)
    low = LOSSES[loss].low if estimator.task == "classifier" else -1.0
    if obstacle is not None:
        return GridPoint(number, dict(chosen), params, loss, low, obstacle=str(obstacle))
    standardised = core_args.standardises(estimator.rule, estimator.task, params)
    waits = core_args.waits_for_rows(estimator.rule, params, standardised)
    diverges = RULES[estimator.rule].diverges
    return GridPoint(
        number, dict(chosen), params, loss, low, waits, standardised, diverges=diverges
    )


def zero_loss_of(point: GridPoint) -> float:
    """Return the largest loss of a classifier that predicts zero, by the loss of a point."""
    epsilon = point.params.get("epsilon", 0.0)  # no loss of a classifier depends on it
    epsilon = 0.0 if epsilon == "auto" else float(epsilon)
    loss = point.loss, epsilon, float(point.params.get("quantile", 0.5))
    return float(_core.loss_values(*loss, np.zeros(2), np.array([point.low, 1.0]))[0].max())


def check_estimator(estimator: Any) -> None:
    """Raise ParameterError if it is not an estimator of Thresher."""
    if not isinstance(estimator, LinearEstimator):
        raise ParameterError(
            f"estimator must be one of Thresher's, or a Pipeline whose last step is one; got "
            f"{type(estimator).__name__}"
        )


def check_searchable(estimator: Any) -> None:
    """Raise ParameterError if models of this estimator cannot train together."""
    name, rule = type(estimator).__name__, getattr(estimator, "rule", None)
    spec = RULES.get(str(rule))
    if spec is not None and spec.lanes:
        return
    why = f": {spec.no_lanes}" if spec is not None else ""
    if hasattr(estimator, "steps"):
        why = "; transform the rows first, and give the last step of the pipeline"
    able = ", ".join(rule for rule, spec in RULES.items() if spec.lanes)
    raise ParameterError(
        f"estimator must be one of Thresher's that learn row by row ({able}); {name} is not{why}"
    )


def check_single_labels(owner: str, estimator: Any, X: Any, y: Any) -> None:
    """Raise ParameterError if rows have several labels, which a search does not support.

    Parameters
    ----------
    owner : str
        Class name for the message.
    estimator : estimator
    X, y : arguments of `fit`
        Rows and labels, or a source and None.
    """
    if estimator.task == "classifier" and _has_several(X, y):
        raise ParameterError(
            f"{owner}: y must have one label per row; for rows with several labels use "
            f"{type(estimator).__name__}.fit"
        )


def check_label_sets(estimator: Any, X: Any, y: Any) -> None:
    """Raise ParameterError if rows have several labels, and the estimator cannot learn them.

    Parameters
    ----------
    estimator : estimator
    X, y : arguments of `fit`
        Rows and labels, or a source and None.
    """
    if estimator.task != "classifier" or not _has_several(X, y):
        return
    name = type(estimator).__name__
    if not hasattr(estimator, "_multilabel"):
        raise ParameterError(
            f"{name}: y must have one label per row; rules that learn row by row, such as "
            f"FTRLClassifier, take rows with several labels"
        )
    if isinstance(y, list | tuple) and len({np.size(row) for row in y}) > 1:
        raise ParameterError(
            f"{name}: y has lists of different lengths; give a matrix of 0 and 1 with one column "
            f"per label (sklearn.preprocessing.MultiLabelBinarizer makes one)"
        )


def _has_several(X: Any, y: Any) -> bool:
    """Tell whether rows may have several labels."""
    if is_source(X):
        return bool(X.multilabel)
    try:
        given = isinstance(y, list | tuple)
        shape: tuple[int, ...] = np.shape(y) if given else getattr(y, "shape", ())
    except ValueError:  # lists of different lengths
        return True
    return issparse(y) or (len(shape) == 2 and shape[1] > 1)


def check_probabilities(named: Mapping[str, Score], points: list[GridPoint]) -> None:
    """Raise ParameterError if a score needs probabilities, and the loss of a point has none."""
    names = {id(score): name for name, score in SCORES.items()}
    for score in named.values():
        for point in points:
            known = point.loss in PROBABILITY_LOSSES or not point.loss  # a race may have them
            if score.needs == "probabilities" and not known:
                raise ParameterError(
                    (setting("scoring", names[id(score)]), " needs probabilities, which models "
                     f"with loss {point.loss!r} do not have ({point.chosen})"),
                    parameter="scoring",
                    value=names[id(score)],
                    hint=f"losses with probabilities: {', '.join(PROBABILITY_LOSSES)}",
                )  # fmt: skip


def _obstacle(rule: str, params: Mapping[str, Any], owner: str) -> ParameterError | None:
    """Return why a model cannot train together with others; None: it can."""
    if RULES[rule].no_lanes:
        return ParameterError(f"{owner}: {RULES[rule].no_lanes}")
    stores = "dense", "hashed"
    if params.get("store", "dense") not in (*stores, "auto"):
        return ParameterError(
            owner=owner,
            parameter="store",
            value=params["store"],
            allowed=f"one of {', '.join(stores)} if models train together",
        )
    for name, allowed, why in (
        ("tol", None, "each model would stop at another time"),
        ("max_density", None, "each model would stop at another time"),
        ("center", False, "each fold has another mean"),
        *(_STEERED if RULES[rule].steers else ()),
        *(_REFITTED if params.get("target_nnz") is not None else ()),
    ):
        if params.get(name, allowed) != allowed:
            return ParameterError(
                owner=owner,
                parameter=name,
                value=params[name],
                allowed=f"{allowed!r} if models train together, because {why}",
            )
    return None


def runs_of(points: Sequence[GridPoint]) -> list[list[GridPoint]]:
    """Group points that can train together."""
    groups: dict[tuple[str, ...], list[GridPoint]] = {}
    for point in points:
        groups.setdefault(point.run, []).append(point)
    return list(groups.values())


def lanes_of(
    rule: str,
    params: Mapping[str, Any],
    steps: int | None,
    width: int,
    clock: int = 0,
    classes: int = 2,
    standardised: bool = False,
    sets: bool = False,
) -> list[Lane]:
    """Return the lanes of one model: one per class or label; one for two classes or a regression.

    Parameters
    ----------
    rule : str
        A key of ``RULES``.
    params : mapping
        All parameters of an estimator of this rule.
    steps : int or None
        Steps it makes in a pass, if known.
    width : int
        Number of features.
    clock : int
        The column of `seen` for the rows that it learns from.
    classes : int
        Number of classes; 1 for a regression.
    standardised : bool
        Whether the targets are standardised.
    sets : bool
        Whether rows have any number of labels, so that each label has a lane.
    """
    rate = RULES[rule].rate_from_rows
    plain = {**params, **({"certify": False} if "certify" in params else {})}
    if core_args.waits_for_rows(rule, params, standardised):
        plain[rate] = 1.0  # replaced after the first rows
    numbers, words = core_args.core_parameters(rule, plain, steps, width, standardised)
    targets = range(classes) if sets or classes > 2 else (-1,)
    return [Lane(numbers, words, clock, target) for target in targets]
