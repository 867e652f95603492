"""The one table of all losses: tasks, slopes, curvatures, labels and links.

The C++ core computes the losses (loss/loss.hpp); this table has the facts that the Python code
needs. It imports no large package.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

Task = Literal["classifier", "regressor"]
Link = Literal["identity", "sigmoid", "clip", "exp"]

_CLASSES: tuple[Task, ...] = ("classifier",)
_VALUES: tuple[Task, ...] = ("regressor",)
_BOTH: tuple[Task, ...] = ("classifier", "regressor")
ANY_LABEL = (-math.inf, math.inf)


@dataclass(frozen=True)
class Loss:
    """A loss, as a function of the raw prediction p and the label y.

    Parameters
    ----------
    name : str
        Name in the core.
    tasks : tuple of {"classifier", "regressor"}
        The tasks it is a loss for.
    slope_bound : pair of float or None
        A and B of slope^2 <= A loss + B (R-1.*); None: no such bound exists.
    largest_slope : float, str or None
        Largest absolute slope, or the name of the parameter that equals it; None: no bound.
    curvature : float or None
        Largest second derivative in p; None: the loss has kinks, or no bound exists.
    start_curvature : float or None
        Second derivative at p = 0, for losses whose curvature has no bound.
    link : {"identity", "sigmoid", "clip", "exp"}
        Turns raw predictions into probabilities or values: a key of ``model.links.LINKS``.
    low : float
        The target of an output for rows of other classes; for its own class it is 1.
    decision_at : float
        The raw prediction at which the decision between two classes changes.
    label_range : pair of float
        Smallest and largest label of a regression.
    scales_rows : bool
        Whether each row is divided by the square root of its number of nonzero values.
    sparse_updates : bool
        Whether rows that are predicted well enough have a slope of 0 and change no weight.
    nonzero_store : bool
        Whether it can be used with store="nonzero".
    smooth : str
        The most similar loss that has a curvature, for rules that need one.
    degree : int
        d, if the loss of s p and s y is s^d times that of p and y (with epsilon s times as large);
        0: there is no d, or p is not in the units of y.
    auto_epsilon : float
        The value of epsilon="auto" where targets are standardised.
    selectable : bool
        Whether users can choose it; if not, it belongs to one rule that has no other loss.
    """

    name: str
    tasks: tuple[Task, ...]
    slope_bound: tuple[float, float] | None
    largest_slope: float | str | None = None
    curvature: float | None = None
    start_curvature: float | None = None
    link: Link = "identity"
    low: float = -1.0
    decision_at: float = 0.0
    label_range: tuple[float, float] = ANY_LABEL
    scales_rows: bool = False
    sparse_updates: bool = False
    nonzero_store: bool = False
    smooth: str = ""
    degree: int = 0
    auto_epsilon: float = 0.1
    selectable: bool = True

    @property
    def auto_eta(self) -> float:
        """The value of eta0="auto" for rows of norm 1.

        It is 0.75 over the curvature: a step of weights and intercept then moves a prediction at
        most 1.5 times the distance to the minimum of the row's loss (2 is the limit of
        stability). For losses without curvature, 1 is used instead.
        """
        return 0.75 / (self.curvature or self.start_curvature or 1.0)

    @property
    def auto_strength(self) -> float:
        """The value of strength="auto" for rows of norm 1.

        It is the curvature, so that the first step does not pass the minimum of the row's loss.
        Losses with a bounded slope cannot diverge; for them it is 0.04 times the curvature
        (docs/decisions/0018).
        """
        grows = self.slope_bound is None or self.slope_bound[0] > 0
        return (self.curvature or self.start_curvature or 1.0) * (1.0 if grows else 0.04)

    @property
    def has_probabilities(self) -> bool:
        """Whether a classifier's raw predictions can be converted to probabilities."""
        return "classifier" in self.tasks and self.link in ("sigmoid", "clip")

    def refuses(self, labels: Any) -> Any:
        """Return for each label of a regression whether it is outside `label_range`.

        Parameters
        ----------
        labels : array
        """
        smallest, largest = self.label_range
        return (labels < smallest) | (labels > largest)

    @property
    def labels_needed(self) -> str:
        """The allowed labels, as text: ">= 0" or "0..1"."""
        smallest, largest = self.label_range
        return f">= {smallest:g}" if math.isinf(largest) else f"{smallest:g}..{largest:g}"


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss(
            "logistic",
            _CLASSES,
            slope_bound=(0.0, 1.0),
            largest_slope=1.0,
            curvature=0.25,
            link="sigmoid",
            nonzero_store=True,
        ),
        Loss(
            "hinge",
            _CLASSES,
            slope_bound=(0.0, 1.0),
            largest_slope=1.0,
            sparse_updates=True,
            nonzero_store=True,
            smooth="squared_hinge",
        ),
        Loss(
            "squared_hinge",
            _CLASSES,
            slope_bound=(4.0, 0.0),
            curvature=2.0,
            sparse_updates=True,
            nonzero_store=True,
        ),
        Loss(
            "modified_huber",
            _CLASSES,
            slope_bound=(4.0, 0.0),
            largest_slope=4.0,
            curvature=2.0,
            link="clip",
            sparse_updates=True,
            nonzero_store=True,
        ),
        Loss("squared", _BOTH, slope_bound=(2.0, 0.0), curvature=1.0, degree=2),
        Loss("square", _BOTH, slope_bound=(4.0, 0.0), curvature=2.0, degree=2),
        Loss("absolute", _VALUES, slope_bound=(0.0, 1.0), largest_slope=1.0, degree=1),
        Loss(
            "huber",
            _VALUES,
            slope_bound=(2.0, 0.0),
            largest_slope="epsilon",
            curvature=1.0,
            degree=2,
            auto_epsilon=1.0,
        ),
        Loss(
            "epsilon_insensitive",
            _VALUES,
            slope_bound=(0.0, 1.0),
            largest_slope=1.0,
            sparse_updates=True,
            degree=1,
        ),
        Loss("quantile", _VALUES, slope_bound=(0.0, 1.0), largest_slope=1.0, degree=1),
        Loss(
            "poisson",
            _VALUES,
            slope_bound=None,
            start_curvature=1.0,
            link="exp",
            label_range=(0.0, math.inf),
        ),
        Loss(
            "clipped_square",
            _BOTH,
            slope_bound=(4.0, 0.0),
            largest_slope=2.0,
            curvature=2.0,
            link="clip",
            low=0.0,
            decision_at=0.5,
            label_range=(0.0, 1.0),
            scales_rows=True,
            sparse_updates=True,
        ),
        Loss(
            "margin",
            _CLASSES,
            slope_bound=(0.0, 1.0),
            largest_slope=1.0,
            sparse_updates=True,
            selectable=False,
        ),
    )
}

SELECTABLE_LOSSES = tuple(name for name, loss in LOSSES.items() if loss.selectable)
CLASSIFIER_LOSSES = tuple(n for n in SELECTABLE_LOSSES if "classifier" in LOSSES[n].tasks)
REGRESSOR_LOSSES = tuple(n for n in SELECTABLE_LOSSES if "regressor" in LOSSES[n].tasks)
PROBABILITY_LOSSES = tuple(name for name, loss in LOSSES.items() if loss.has_probabilities)


# Names of scikit-learn for the same losses. Its other names are the same as here.
SKLEARN_NAMES = {"log_loss": "logistic", "squared_error": "squared", "absolute_error": "absolute"}

# Losses of scikit-learn that are not here, and what to use instead.
OTHER_LOSSES = {
    "perceptron": "it is hinge without a margin; the rule margin-perceptron learns so",
    "squared_epsilon_insensitive": "epsilon_insensitive and huber are the most similar",
    "exponential": "logistic is the most similar",
    "gamma": "poisson is the most similar",
}


def canonical_loss(name: Any) -> Any:
    """Return our name of a loss that has a name of scikit-learn; any other value as it is.

    Parameters
    ----------
    name : object
        The value of a parameter `loss`, not checked.

    Examples
    --------
    >>> canonical_loss("log_loss"), canonical_loss("huber"), canonical_loss(None)
    ('logistic', 'huber', None)
    """
    return SKLEARN_NAMES.get(name, name) if isinstance(name, str) else name


def check_labels(loss: str, labels: Any) -> None:
    """Raise ValueError for labels that a regression's loss does not allow.

    Parameters
    ----------
    loss : str
        A key of ``LOSSES``.
    labels : array

    Examples
    --------
    >>> import numpy as np
    >>> check_labels("poisson", np.array([3.0, -1.0]))
    Traceback (most recent call last):
        ...
    ValueError: loss 'poisson' needs y >= 0
    """
    if LOSSES[loss].refuses(labels).any():
        smallest, largest = LOSSES[loss].label_range
        needed = f">= {smallest:g}" if math.isinf(largest) else f"in [{smallest:g}, {largest:g}]"
        raise ValueError(f"loss {loss!r} needs y {needed}")
