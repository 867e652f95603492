"""Features selected by the share of rows that have them, drawn (R-15.5)."""

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
_AREA = 500.0  # of a sign that stands for all features, in square points
_DOT = 8.0  # of one that stands for nearly none


class FeatureDensityDisplay:
    """Share of the features selected, by density: the share of rows in which a feature is not zero.

    The larger the sign, the more features there are of that density. A rule that treats all
    features alike selects dense ones: the curve rises. One that is fair to rare features is flat.

    Parameters
    ----------
    density : array of shape (bins,)
        Share of rows that have the features of a bin.
    selected_share : array of shape (bins,)
        Share of these features that are selected; NaN where a bin is empty, which is not drawn.
    feature_share : array of shape (bins,)
        Share of all features that are in the bin.
    name : str, optional
        Of the selection, for the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_ : matplotlib Line2D
    points_ : matplotlib PathCollection
        Their sizes are areas that go with `feature_share`.

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
                f"{_OWNER}: density, selected_share and feature_share must be of one length, 1 or "
                f"more; their shapes are {', '.join(map(str, shapes))}"
            )
        if not np.isfinite(self.selected_share).any():
            raise ParameterError(
                owner=_OWNER, parameter="selected_share", allowed="known of at least one bin"
            )
        self.name = name

    @classmethod
    def from_bins(
        cls, bins: DensityBins, *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw what `thresher.stability.selected_by_density` has counted.

        Parameters
        ----------
        bins : DensityBins
        ax : matplotlib Axes, optional
        name : str, optional
        **kwargs
            Of `plot`.

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
        """Draw features selected from the columns of rows.

        Parameters
        ----------
        X : sparse matrix or array of shape (rows, features)
            The training rows.
        support : collection of int, boolean mask of shape (features,), or Model
            Features selected.
        bins : int or increasing sequence of float, default=10
            As of `thresher.stability.selected_by_density`.
        ax : matplotlib Axes, optional
        name : str, optional
        **kwargs
            Of `plot`.

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
        """Draw the features that a fitted estimator has selected.

        Parameters
        ----------
        estimator : estimator
            One with weights (`model_` or `coef_`), a `StabilitySelection`, or a Pipeline that ends
            in one of them.
        X : sparse matrix or array of shape (rows, features)
            The training rows, as the estimator was given them.
        bins : int or increasing sequence of float, default=10
            As of `thresher.stability.selected_by_density`.
        ax : matplotlib Axes, optional
        name : str, optional
            Of the selection, for the legend.
        **kwargs
            Of `plot`.

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
                f"{_OWNER}: estimator must have weights or select features, and "
                f"{type(last).__name__} has neither model_, coef_ nor selected_"
            )
        return cls.from_support(X, support, bins=bins, ax=ax, name=name, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default those of a new figure.
        name : str, optional
            In place of the display's own.
        **kwargs
            Of the line, for ``ax.plot``.

        Returns
        -------
        FeatureDensityDisplay
        """
        self.ax_ = ax = style.axes(ax)
        self.figure_ = ax.figure
        name = self.name if name is None else name
        there = np.isfinite(self.selected_share)
        across, up = self.density[there], self.selected_share[there]
        look = style.next_series(ax, zorder=2, linewidth=1, markersize=6)
        look |= {"label": name} if name else {}
        (self.line_,) = ax.plot(across, up, **{**look, **kwargs})
        self.line_.set_markevery([])  # the legend has its sign; points are drawn by size
        self.points_ = ax.scatter(
            across,
            up,
            s=np.maximum(_AREA * self.feature_share[there], _DOT),
            marker=self.line_.get_marker(),
            facecolor=self.line_.get_color(),
            edgecolor="black",
            linewidth=0.6,
            alpha=0.75,
            zorder=3,
        )
        for share in (0.5, 0.1, 0.01):
            key = {"marker": "o", "facecolor": "none", "edgecolor": style.SOFT}
            ax.scatter([], [], s=max(_AREA * share, _DOT), label=f"{share:.0%} of features", **key)
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
