"""The trade-off between error and nonzeros among the models of a search.

A `Dot` has the two numbers of one model. `Frontier` finds the best models among several, and
`Place` is what a model file stores about the search that found the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MANY = 500  # a `Place` stores at most this many models
_LEAST = 1e-9  # a mean number of nonzeros is 0 or at least this


@dataclass(frozen=True)
class Dot:
    """One model of a search: its number of nonzeros and its error.

    Attributes
    ----------
    name : str
        The parameters that differ from those of other models, such as "gravity=0.0001".
    nonzeros : float
        Number of nonzero weights; a mean over folds.
    error : float
        The error of the model; not finite if training failed.
    spread : float or None
        Standard error of the error, if known.
    failure : str
        Why training failed.

    Examples
    --------
    >>> from thresher.model.frontier import Dot
    >>> Dot("gravity=0.01", 120, 0.08, 0.01).failed
    False
    """

    name: str
    nonzeros: float
    error: float
    spread: float | None = None
    failure: str = ""

    @property
    def failed(self) -> bool:
        """Whether the error is not finite."""
        return not math.isfinite(self.error)


class Frontier:
    """Finds the best model, the chosen one and the efficient ones among several models.

    Parameters
    ----------
    dots : sequence of Dot
        One for each model, in any order.
    measure : str
        Name of the error.

    Attributes
    ----------
    best : int or None
        Index of the model with the smallest error; if several have it, of the sparsest of them.
        None if all models failed.
    chosen : int or None
        Index of the sparsest model whose error is at most one standard error above that of the best
        model. Without standard errors: the same as `best`.
    efficient : tuple of int
        Indices of the models for which no sparser model has an error as small; sparsest first.

    Examples
    --------
    >>> from thresher.model.frontier import Dot, Frontier
    >>> dots = [Dot("a", 900, 0.07, 0.01), Dot("b", 90, 0.075, 0.01), Dot("c", 80, 0.3)]
    >>> frontier = Frontier([*dots, Dot("d", 1000, 0.08, 0.01)])
    >>> frontier.best, frontier.chosen, frontier.efficient
    (0, 1, (2, 1, 0))
    """

    def __init__(self, dots: Sequence[Dot], measure: str = "error") -> None:
        self.dots, self.measure = tuple(dots), measure
        sound = [i for i, dot in enumerate(self.dots) if not dot.failed]
        order = sorted(sound, key=lambda i: (self.dots[i].nonzeros, self.dots[i].error, i))
        self.best = min(
            order, key=lambda i: (self.dots[i].error, self.dots[i].nonzeros), default=None
        )
        self.chosen = self.best
        if self.best is not None:
            limit = self.dots[self.best].error + (self.dots[self.best].spread or 0.0)
            self.chosen = next(i for i in order if self.dots[i].error <= limit)
        efficient: list[int] = []
        for i in order:
            if not efficient or self.dots[i].error < self.dots[efficient[-1]].error:
                efficient.append(i)
        self.efficient = tuple(efficient)

    def __len__(self) -> int:
        return len(self.dots)

    def mark(self, at: int) -> str:
        """Return "best", "chosen", "frontier" or "" for a model, or why training it failed.

        Parameters
        ----------
        at : int
            Index of the model.
        """
        if self.dots[at].failed:
            why = self.dots[at].failure
            return f"failed: {why}" if why else "failed"
        words = [("best", at == self.best), ("chosen", at == self.chosen)]
        found = [word for word, true in words if true]
        return " and ".join(found) or ("frontier" if at in self.efficient else "")


@dataclass(frozen=True)
class Place:
    """A model and the other models of its search, by error and nonzeros.

    Attributes
    ----------
    dots : tuple of Dot
        The models of the search that did not fail.
    measure : str
        Name of the error.
    at : int
        Index of the model in `dots`.

    Examples
    --------
    >>> from thresher.model.frontier import Dot, Frontier, Place
    >>> dots = [Dot("a", 9, 0.3), Dot("b", 9, float("nan")), Dot("c", 99, 0.1)]
    >>> place = Place.of(Frontier(dots), 2)
    >>> place.at, place.frontier.best
    (1, 1)
    >>> Place.from_dict(place.to_dict()) == place
    True
    """

    dots: tuple[Dot, ...]
    measure: str
    at: int

    @classmethod
    def of(cls, frontier: Frontier, at: int) -> Place | None:
        """Return the place of a model; None if the model failed.

        After a large search, only the efficient models and the first of the others are stored.

        Parameters
        ----------
        frontier : Frontier
        at : int
            Index of the model.
        """
        sound = [i for i, dot in enumerate(frontier.dots) if not dot.failed]
        if at not in sound:
            return None
        needed = {at, *frontier.efficient}  # the best and the chosen are among the efficient
        others = [i for i in sound if i not in needed][: max(0, _MANY - len(needed))]
        kept = sorted({*needed, *others})
        dots = (frontier.dots[i] for i in kept)
        plain = tuple(Dot(d.name, float(d.nonzeros), float(d.error), _real(d.spread)) for d in dots)
        return cls(plain, frontier.measure, kept.index(at))

    @property
    def frontier(self) -> Frontier:
        """The frontier of the stored models."""
        return Frontier(self.dots, self.measure)

    def to_dict(self) -> dict[str, Any]:
        """Return the place in types that JSON has."""
        dots = [[dot.name, dot.nonzeros, dot.error, dot.spread] for dot in self.dots]
        return {"measure": self.measure, "at": self.at, "models": dots}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Place:
        """Return the place from the result of `to_dict`; raise ValueError for anything else.

        Parameters
        ----------
        values : mapping
        """
        measure, at, models = values["measure"], values["at"], values["models"]
        if (
            not isinstance(measure, str)
            or not isinstance(models, list)
            or isinstance(at, bool)
            or not isinstance(at, int)
            or not 0 <= at < len(models)
        ):
            raise ValueError("the entry 'frontier' has values of the wrong type")
        dots = []
        for name, nonzeros, error, spread in models:
            numbers = [nonzeros, error, 0.0 if spread is None else spread]
            if not isinstance(name, str) or not all(type(number) is float for number in numbers):
                raise ValueError("the entry 'frontier' has values of the wrong type")
            if (
                not all(map(math.isfinite, numbers))
                or not (nonzeros == 0 or _LEAST <= nonzeros < 2.0**64)
                or numbers[2] < 0
            ):
                raise ValueError("the entry 'frontier' has numbers out of range")
            dots.append(Dot(name, nonzeros, error, spread))
        return cls(tuple(dots), measure, at)


def _real(spread: float | None) -> float | None:
    return None if spread is None or not math.isfinite(spread) else float(spread)


def errors_of(
    scores: NDArray[np.float64], scoring: Any, classifies: bool
) -> tuple[str, NDArray[np.float64]]:
    """Return the name of the error, and the errors computed from scores.

    Parameters
    ----------
    scores : array
    scoring : str, callable or None
    classifies : bool

    Examples
    --------
    >>> import numpy as np
    >>> errors_of(np.array([0.9]), None, True)[0]
    'error rate'
    >>> errors_of(np.array([-0.25]), "neg_log_loss", True)
    ('log loss', array([0.25]))
    """
    name = scoring or ("accuracy" if classifies else "r2")
    if not isinstance(name, str):
        return "minus score", -scores
    if name.startswith("neg_"):
        return name.removeprefix("neg_").replace("_", " "), -scores
    return "error rate" if name == "accuracy" else f"1 - {name}", 1.0 - scores


def frontier_of(search: Any, metric: str) -> Frontier:
    """Return the models of a fitted search, with their mean error and mean nonzeros over folds.

    Parameters
    ----------
    search : OnePassSearchCV
    metric : str
        One of its scores, by the name in ``cv_results_``.
    """
    from sklearn.base import is_classifier  # slow to import, not needed to read model files

    scoring, results, splits = search.scoring, search.cv_results_, search.n_splits_
    if search.multimetric_:
        scoring = scoring.get(metric, metric) if isinstance(scoring, Mapping) else metric
    scores = np.array([results[f"split{split}_test_{metric}"] for split in range(splits)])
    measure, errors = errors_of(scores, scoring, is_classifier(search.estimator))
    spreads: list[float | None] = [None] * errors.shape[1]
    if splits > 1:
        spreads = (errors.std(axis=0, ddof=1) / np.sqrt(splits)).tolist()
    dots = [
        Dot(", ".join(f"{key}={shown(value)}" for key, value in setting.items()), *numbers)
        for setting, *numbers in zip(
            results["params"],
            search.nonzeros_.mean(axis=1).tolist(),
            errors.mean(axis=0).tolist(),
            spreads,
            strict=True,
        )
    ]
    return Frontier(dots, measure)


def shown(value: Any) -> str:
    """Return a value of a parameter as short text.

    Parameters
    ----------
    value : object
    """
    return f"{value:.4g}" if isinstance(value, float) else " ".join(str(value).split())
