"""Display of error against nonzeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from thresher.errors import ParameterError
from thresher.model.frontier import Dot, Frontier, frontier_of
from thresher.plots import style
from thresher.plots.fitted import fitted, is_of

_OWNER = "SparsityPathDisplay"


class SparsityPathDisplay:
    """Error against nonzeros: the frontier, the best model, and the sparsest that is as good.

    A model is on the frontier if no other model is better in both error and nonzeros; other models
    are dots in the background. If there are standard errors, the sparsest model within one standard
    error of the best is marked, too.

    Parameters
    ----------
    nonzeros : array of shape (models,)
        Numbers of nonzero weights.
    errors : array of shape (models,)
        Errors of the models. NaN: the model failed and is not drawn.
    standard_errors : array of shape (models,), optional
        Standard errors of the errors; NaN if not known.
    settings : sequence of str, optional
        Parameters of each model, such as "gravity=0.01".
    measure : str, default="error"
        Name of the errors, for the axis.
    name : str, optional
        Name of the curve, if one figure has several.

    Attributes
    ----------
    frontier : Frontier
        The numbers drawn, and which models are best, chosen and efficient.
    ax_, figure_ : matplotlib Axes and Figure
    line_ : matplotlib Line2D
        The frontier.
    points_ : matplotlib PathCollection
        All models.
    errorbar_ : matplotlib ErrorbarContainer or None
    best_, chosen_ : matplotlib Line2D or None
        Markers of the two models; `chosen_` is None if it is the best model.
    limit_ : matplotlib Line2D or None
        One standard error above the best; only for a curve without a name.

    See Also
    --------
    thresher.SparsityPath : Computes errors and nonzeros for a range of gravities.

    Examples
    --------
    >>> from thresher import SparsityPathDisplay
    >>> display = SparsityPathDisplay([10, 100, 900], [0.2, 0.08, 0.07], [0.02, 0.02, 0.02])
    >>> display.frontier.best, display.frontier.chosen
    (2, 1)
    >>> display.plot().ax_.get_xlabel()
    'nonzero weights'
    """

    def __init__(
        self,
        nonzeros: ArrayLike,
        errors: ArrayLike,
        standard_errors: ArrayLike | None = None,
        *,
        settings: Sequence[str] | None = None,
        measure: str = "error",
        name: str | None = None,
    ) -> None:
        across, up = np.asarray(nonzeros, float), np.asarray(errors, float)
        spread = np.full(up.shape, np.nan)
        if standard_errors is not None:
            spread = np.asarray(standard_errors, float)
        names = [""] * up.size if settings is None else list(settings)
        shapes: list[Any] = [across.shape, up.shape, spread.shape, (len(names),)]
        if shapes.count(shapes[-1]) < len(shapes):
            raise ParameterError(
                f"{_OWNER}: nonzeros, errors, standard_errors and settings must have the same "
                f"length; their shapes are {', '.join(map(str, shapes))}"
            )
        spreads = [None if np.isnan(one) else float(one) for one in spread]
        columns = names, across.tolist(), up.tolist(), spreads
        self.frontier = Frontier([Dot(*dot) for dot in zip(*columns, strict=True)], measure)
        if self.frontier.best is None:
            raise ParameterError(f"{_OWNER}: errors must have at least one finite number")
        self.name = name

    @classmethod
    def from_frontier(
        cls, frontier: Frontier, *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw a frontier.

        Parameters
        ----------
        frontier : Frontier
        ax : matplotlib Axes, optional
        name : str, optional
        **kwargs
            Arguments of `plot`.

        Returns
        -------
        SparsityPathDisplay
        """
        dots = frontier.dots
        display = cls(
            [dot.nonzeros for dot in dots],
            [dot.error for dot in dots],
            [np.nan if dot.spread is None else dot.spread for dot in dots],
            settings=[dot.name for dot in dots],
            measure=frontier.measure,
            name=name,
        )
        return display.plot(ax, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        metric: str | None = None,
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the result of a fitted search.

        Parameters
        ----------
        estimator : SparsityPath or OnePassSearchCV
            For OnePassSearchCV, nonzeros are means over the models of the splits.
        metric : str, optional
            The score to draw, if the search has several. By default, the score of `refit`.
        ax : matplotlib Axes, optional
        name : str, optional
            Name of the curve, for the legend.
        **kwargs
            Arguments of `plot`.

        Returns
        -------
        SparsityPathDisplay

        Examples
        --------
        >>> import numpy as np
        >>> from thresher import FTRLClassifier, OnePassSearchCV, SparsityPathDisplay
        >>> X = np.random.default_rng(0).normal(size=(300, 40))
        >>> y = X[:, 0] - X[:, 1] > 0
        >>> search = OnePassSearchCV(FTRLClassifier(passes=2), {"l1": [1, 30, 100]}, cv=3)
        >>> display = SparsityPathDisplay.from_estimator(search.fit(X, y))
        >>> display.ax_.get_ylabel()
        'error rate'
        """
        wanted = "SparsityPath or OnePassSearchCV"
        found = fitted(estimator, ("SparsityPath", "OnePassSearchCV"), _OWNER, wanted)
        if is_of(found, "SparsityPath"):
            if metric is not None:
                raise ParameterError(
                    f"{_OWNER}: metric must not be given for a SparsityPath: it has one score"
                )
            frontier = found.frontier_
        else:
            frontier = _frontier_of(found, metric)
        return cls.from_frontier(frontier, ax=ax, name=name, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Without a name, the legend describes the best and the chosen model. With names, several
        curves can share the axes, and the legend names the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, a new figure.
        name : str, optional
            Replaces the name of the display.
        **kwargs
            Arguments of ``ax.plot`` for the line of the frontier.

        Returns
        -------
        SparsityPathDisplay
        """
        self.ax_ = ax = style.axes(ax)
        self.figure_ = ax.figure
        name = self.name if name is None else name
        frontier, dots = self.frontier, self.frontier.dots
        edge = list(frontier.efficient)
        look = style.next_series(ax, markersize=5, zorder=3, label=name or "frontier")
        (self.line_,) = ax.plot(
            [dots[i].nonzeros for i in edge], [dots[i].error for i in edge], **{**look, **kwargs}
        )
        self._draw_all(style.SOFT if name is None else self.line_.get_color())
        self._draw_choice(name, self.line_.get_color())
        style.counts(ax, "x")
        ax.set(xlabel="nonzero weights", ylabel=frontier.measure)
        style.legend(ax)
        return self

    def _draw_all(self, colour: Any) -> None:
        """Draw all models that did not fail, in the background."""
        sound = [dot for dot in self.frontier.dots if not dot.failed]
        across, up = [dot.nonzeros for dot in sound], [dot.error for dot in sound]
        self.points_ = self.ax_.scatter(across, up, s=20, color=colour, alpha=0.6, zorder=2)
        self.errorbar_ = None
        if any(dot.spread for dot in sound):
            self.errorbar_ = self.ax_.errorbar(
                across, up, [dot.spread or 0.0 for dot in sound],
                fmt="none", ecolor=colour, alpha=0.6, elinewidth=1, zorder=1,
            )  # fmt: skip

    def _draw_choice(self, name: str | None, colour: Any) -> None:
        """Mark the best model, the limit one standard error above it, and the sparsest within."""
        both = self.frontier.best, self.frontier.chosen
        best, chosen = (self.frontier.dots[i] for i in both if i is not None)
        self.limit_ = self.chosen_ = None
        if name is None:
            colour = style.COLOURS[1]
            if best.spread:
                limit = best.error + best.spread
                look = {"color": style.SOFT, "linewidth": 1, "linestyle": ":", "zorder": 0}
                self.limit_ = self.ax_.axhline(limit, label="best + one s.e.", **look)
        ring = {"color": colour, "linestyle": "none", "zorder": 4}
        self.best_ = self._mark("*", best, "best", name, markersize=13, **ring)
        if chosen is not best:
            ring |= {"markerfacecolor": "none", "markeredgewidth": 1.6}
            label = "sparsest within one s.e."
            self.chosen_ = self._mark("o", chosen, label, name, markersize=14, **ring)

    def _mark(self, marker: str, dot: Dot, label: str, name: str | None, **look: Any) -> Any:
        """Mark a model. The legend describes the model, or with several curves only the marker."""
        if name is None:
            look["label"] = f"{label}: {dot.nonzeros:,.0f}" + (f" ({dot.name})" if dot.name else "")
        else:
            self.ax_.plot([], [], marker, label=label, **{**look, "color": "black"})
        return self.ax_.plot(dot.nonzeros, dot.error, marker, **look)[0]


def _frontier_of(search: Any, metric: str | None) -> Frontier:
    """Return the frontier of a search, by one of its scores."""
    start = "mean_test_"
    names = [key.removeprefix(start) for key in search.cv_results_ if key.startswith(start)]
    if metric is None:
        metric = search.refit if search.multimetric_ else "score"
    if metric not in names:
        raise ParameterError(
            owner=_OWNER,
            parameter="metric",
            value=metric,
            allowed=f"one of {', '.join(names)}",
        )
    return frontier_of(search, metric)
