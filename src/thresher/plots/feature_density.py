"""Display of selected features by density (R-15.5)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from thresher.data import is_sparse
from thresher.errors import ParameterError
from thresher.model.density import DensityBins, selected_by_density
from thresher.plots import style
from thresher.plots.fitted import fitted, is_of

_OWNER = "FeatureDensityDisplay"
_AREA = 500.0  # of a marker for all features, in square points
_SMALLEST = 8.0  # area of a marker for very few features


class FeatureDensityDisplay:
    """Share of features selected, by density: the share of rows in which a feature is nonzero.

    A larger marker stands for more features of that density. A rule with the same penalty for all
    features selects dense features: the curve rises. For a rule that does not prefer dense
    features, the curve is flat.

    Parameters
    ----------
    density : array of shape (bins,)
        Share of rows in which the features of a bin are nonzero.
    selected_share : array of shape (bins,)
        Share of these features that are selected. NaN: the bin is empty and is not drawn.
    feature_share : array of shape (bins,)
        Share of all features that are in the bin.
    name : str, optional
        Name of the selection, for the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_ : matplotlib Line2D
    points_ : matplotlib PathCollection
        Their areas are proportional to `feature_share`.

    See Also
    --------
    thresher.stability.selected_by_density : The numbers.

    Examples
    --------
    >>> from thresher import FeatureDensityDisplay
    >>> display = FeatureDensityDisplay([0.001, 0.01, 0.1], [0.01, 0.02, 0.4], [0.7, 0.2, 0.1])
    >>> display.plot().ax_.get_xscale()
    'log'
    """

    def __init__(
        self,
        density: ArrayLike,
        selected_share: ArrayLike,
        feature_share: ArrayLike,
        *,
        name: str | None = None,
    ) -> None:
        self.density = np.asarray(density, float)
        self.selected_share = np.asarray(selected_share, float)
        self.feature_share = np.asarray(feature_share, float)
        shapes = [a.shape for a in (self.density, self.selected_share, self.feature_share)]
        if len(set(shapes)) > 1 or self.density.ndim != 1 or not self.density.size:
            raise ParameterError(
                f"{_OWNER}: density, selected_share and feature_share must have the same length, "
                f"1 or more; their shapes are {', '.join(map(str, shapes))}"
            )
        if not np.isfinite(self.selected_share).any():
            raise ParameterError(
                owner=_OWNER, parameter="selected_share", allowed="finite for at least one bin"
            )
        self.name = name

    @classmethod
    def from_bins(
        cls, bins: DensityBins, *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw the result of `thresher.stability.selected_by_density`.

        Parameters
        ----------
        bins : DensityBins
        ax : matplotlib Axes, optional
        name : str, optional
        **kwargs
            Arguments of `plot`.

        Returns
        -------
        FeatureDensityDisplay
        """
        if not isinstance(bins, DensityBins):
            raise ParameterError(f"{_OWNER}: bins must be DensityBins; got {type(bins).__name__}")
        low, high = bins.edges[:-1], bins.edges[1:]
        middle = np.where(low > 0, np.sqrt(low * high), (low + high) / 2)
        display = cls(middle, bins.selected_share, bins.feature_share, name=name)
        return display.plot(ax, **kwargs)

    @classmethod
    def from_support(
        cls,
        X: Any,
        support: Any,
        *,
        bins: int | ArrayLike = 10,
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the selected features of rows.

        Parameters
        ----------
        X : sparse matrix or array of shape (rows, features)
            The training rows.
        support : collection of int, boolean mask of shape (features,), or Model
            The selected features.
        bins : int or increasing sequence of float, default=10
            As in `thresher.stability.selected_by_density`.
        ax : matplotlib Axes, optional
        name : str, optional
        **kwargs
            Arguments of `plot`.

        Returns
        -------
        FeatureDensityDisplay
        """
        return cls.from_bins(selected_by_density(X, support, bins), ax=ax, name=name, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        bins: int | ArrayLike = 10,
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the features that a fitted estimator selected.

        Parameters
        ----------
        estimator : estimator
            An estimator with weights (`model_` or `coef_`), a `StabilitySelection`, or a Pipeline
            that ends in one of them.
        X : sparse matrix or array of shape (rows, features)
            The training rows, as given to `fit` of the estimator.
        bins : int or increasing sequence of float, default=10
            As in `thresher.stability.selected_by_density`.
        ax : matplotlib Axes, optional
        name : str, optional
            Name of the selection, for the legend.
        **kwargs
            Arguments of `plot`.

        Returns
        -------
        FeatureDensityDisplay

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from thresher import FeatureDensityDisplay, FTRLClassifier
        >>> X = sp.random(500, 200, 0.05, "csr", random_state=0)
        >>> y = X[:, :10].toarray().sum(axis=1) > 0.2
        >>> clf = FTRLClassifier(l1=3.0, random_state=0).fit(X, y)
        >>> display = FeatureDensityDisplay.from_estimator(clf, X, bins=3)
        >>> display.ax_.get_ylabel()
        'share of them selected'
        """
        last = fitted(estimator, ("BaseEstimator",), _OWNER, "an estimator")
        if isinstance(estimator, Pipeline) and len(estimator) > 1:
            X = estimator[:-1].transform(X)
        if is_of(last, "PairSelector"):
            support = last.selected_
        elif hasattr(last, "model_"):
            support = last.model_
        elif hasattr(last, "coef_"):
            weights = last.coef_ if is_sparse(last.coef_) else np.atleast_2d(last.coef_)
            support = np.unique(weights.nonzero()[-1])
        else:
            raise ParameterError(
                f"{_OWNER}: estimator must have weights or select features, but "
                f"{type(last).__name__} has neither model_, coef_ nor selected_"
            )
        return cls.from_support(X, support, bins=bins, ax=ax, name=name, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, a new figure.
        name : str, optional
            Replaces the name of the display.
        **kwargs
            Arguments of ``ax.plot`` for the line.

        Returns
        -------
        FeatureDensityDisplay
        """
        self.ax_ = ax = style.axes(ax)
        self.figure_ = ax.figure
        name = self.name if name is None else name
        known = np.isfinite(self.selected_share)
        across, up = self.density[known], self.selected_share[known]
        look = style.next_series(ax, zorder=2, linewidth=1, markersize=6)
        look |= {"label": name} if name else {}
        (self.line_,) = ax.plot(across, up, **{**look, **kwargs})
        self.line_.set_markevery([])  # `points_` are the markers; the legend shows that of the line
        self.points_ = ax.scatter(
            across,
            up,
            s=np.maximum(_AREA * self.feature_share[known], _SMALLEST),
            marker=self.line_.get_marker(),
            facecolor=self.line_.get_color(),
            edgecolor="black",
            linewidth=0.6,
            alpha=0.75,
            zorder=3,
        )
        for share in (0.5, 0.1, 0.01):
            key = {"marker": "o", "facecolor": "none", "edgecolor": style.SOFT}
            ax.scatter(
                [], [], s=max(_AREA * share, _SMALLEST), label=f"{share:.0%} of features", **key
            )
        if across.min() > 0:
            style.logarithmic(ax, "x", _percent)
        else:
            ax.xaxis.set_major_formatter(lambda value, _: _percent(value))
        ax.yaxis.set_major_formatter(lambda value, _: _percent(value))
        top = max(ax.dataLim.intervaly[1], 0.001)
        ax.set_ylim(-0.05 * top, 1.1 * top)
        ax.set(xlabel="share of rows that have the feature", ylabel="share of them selected")
        style.legend(ax, spacing=0.8)
        return self


def _percent(value: float) -> str:
    return f"{100 * value:.6g}%"
