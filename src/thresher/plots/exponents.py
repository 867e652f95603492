"""Display of the exponents of weights (R-11.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from thresher.errors import ParameterError
from thresher.health import ExponentSpread, exponents
from thresher.health.weights import DOUBLE, SINGLE
from thresher.model.model import Model
from thresher.plots import style
from thresher.plots.fitted import fitted

_OWNER = "ExponentDisplay"


class ExponentDisplay:
    """The range of the exponents of weights, and how many weights are lost in a sum.

    A weight is within double precision if its exponent is at most 51 below the largest exponent,
    and within single precision if it is at most 22 below. In a sum with the largest weight, any
    other weight keeps at most one binary digit; it counts as lost.

    Parameters
    ----------
    counts : mapping of int to int
        Number of weights by exponent, floor(log2 |w|).
    name : str, optional
        Name of the model, for the legend.

    Attributes
    ----------
    exponents, counts : arrays
        All exponents from the smallest to the largest, and their numbers of weights.
    lost_single, lost_double : float
        Share of the weights that are lost in each precision.
    ax_, figure_ : matplotlib Axes and Figure
    stairs_ : matplotlib StepPatch
    single_, double_ : matplotlib Line2D or None
        Limits of single and double precision. The limit of double precision is drawn only if some
        weights are lost in single precision.

    See Also
    --------
    thresher.health.exponents : The numbers.

    Examples
    --------
    >>> from thresher import ExponentDisplay
    >>> display = ExponentDisplay({-30: 1, -1: 5, 0: 2})
    >>> display.lost_single, display.lost_double
    (0.125, 0.0)
    >>> display.plot().ax_.get_ylabel()
    'weights'
    """

    def __init__(self, counts: Mapping[int, int], *, name: str | None = None) -> None:
        if not counts or min(counts.values()) < 1:
            raise ParameterError(
                f"{_OWNER}: counts must not be empty: there are no nonzero weights"
            )
        low, high = min(counts), max(counts)
        self.exponents = np.arange(low, high + 1)
        self.counts = np.array([counts.get(int(e), 0) for e in self.exponents])
        lost = [self.counts[self.exponents < high - bits].sum() for bits in (SINGLE, DOUBLE)]
        self.lost_single, self.lost_double = (float(n / self.counts.sum()) for n in lost)
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw the exponents of the weights of a fitted estimator.

        Parameters
        ----------
        estimator : estimator of thresher, or a Pipeline that ends in one
        ax : matplotlib Axes, optional
        name : str, optional
        **kwargs
            Arguments of `plot`.

        Returns
        -------
        ExponentDisplay

        Examples
        --------
        >>> import numpy as np
        >>> from thresher import ExponentDisplay, MirrorDescentClassifier
        >>> X = np.random.default_rng(0).normal(size=(300, 40))
        >>> clf = MirrorDescentClassifier(random_state=0).fit(X, X[:, 0] > 0)
        >>> display = ExponentDisplay.from_estimator(clf)
        >>> int(display.counts.sum()) == clf.model_.nnz
        True
        """
        wanted = "an estimator of thresher with weights, or a pipeline that ends in one"
        found = fitted(estimator, ("LinearEstimator",), _OWNER, wanted)
        return cls.from_model(found.model_, ax=ax, name=name, **kwargs)

    @classmethod
    def from_model(
        cls, model: Model, *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw the exponents of the weights of a model.

        Parameters
        ----------
        model : Model
        ax : matplotlib Axes, optional
        name : str, optional
        **kwargs
            Arguments of `plot`.

        Returns
        -------
        ExponentDisplay
        """
        if not isinstance(model, Model):
            raise ParameterError(f"{_OWNER}: model must be a Model; got {type(model).__name__}")
        return cls.from_weights(model.weights, ax=ax, name=name, **kwargs)

    @classmethod
    def from_weights(
        cls, weights: Any, *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw the exponents of nonzero weights.

        Parameters
        ----------
        weights : array, sparse matrix, or result of `thresher.health.exponents`
        ax : matplotlib Axes, optional
        name : str, optional
        **kwargs
            Arguments of `plot`.

        Returns
        -------
        ExponentDisplay
        """
        spread = weights if isinstance(weights, ExponentSpread) else exponents(weights)
        return cls(spread.counts, name=name).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, a new figure.
        name : str, optional
            Replaces the name of the display.
        **kwargs
            Arguments of ``ax.stairs``.

        Returns
        -------
        ExponentDisplay
        """
        self.ax_ = ax = style.axes(ax)
        self.figure_ = ax.figure
        name = self.name if name is None else name
        look = style.next_series(ax)
        del look["marker"]
        total = int(self.counts.sum())
        look |= {"linewidth": 1.6, "zorder": 3, "label": f"{name or 'weights'} ({total:,})"}
        edges = np.append(self.exponents, self.exponents[-1] + 1) - 0.5
        self.stairs_ = ax.stairs(self.counts, edges, **{**look, **kwargs})
        colour = self.stairs_.get_edgecolor()
        ax.stairs(self.counts, edges, fill=True, color=colour, alpha=0.18, zorder=2)
        self.single_ = self._limit("single", SINGLE, self.lost_single, ":", name)
        self.double_ = None
        if self.lost_single:
            self.double_ = self._limit("double", DOUBLE, self.lost_double, "--", name)
        style.counts(ax, "y")
        ax.set_ylim(0, 1.5 * ax.dataLim.intervaly[1])
        ax.set(xlabel="exponent of the weight, floor(log2 |w|)", ylabel="weights")
        style.legend(ax)
        return self

    def _limit(self, precision: str, bits: int, lost: float, dashes: str, name: str | None) -> Any:
        """Draw the limit of a precision; return the line."""
        prefix = f"{name}: " if name else ""
        return self.ax_.axvline(
            self.exponents[-1] - bits - 0.5,
            color="black" if name is None else self.stairs_.get_edgecolor(),
            linestyle=dashes,
            linewidth=1.2,
            zorder=1,
            label=f"{prefix}{precision} precision loses {f'{100 * lost:.2g}%' if lost else 'none'}",
        )
