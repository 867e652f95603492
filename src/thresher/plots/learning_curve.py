"""Display of loss and nonzeros during training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.errors import ParameterError
from thresher.model.history import OBJECTIVES, merge_short_records, runs_of
from thresher.model.model import Model, Progress
from thresher.plots import style
from thresher.plots.fitted import fitted

_OWNER = "LearningCurveDisplay"


class LearningCurveDisplay:
    """Loss over the number of examples learned; below it, the number of nonzero weights.

    Parameters
    ----------
    examples : array of shape (records,)
        Number of rows learned so far.
    loss : array of shape (records,)
        Mean loss since the record before.
    nonzeros : array of shape (records,), optional
        Number of nonzero weights; NaN if not counted.
    valid_loss : array of shape (records,), optional
        Loss on an evaluation set; NaN if not known.
    measure : str, default="loss"
        Name of the loss, for the axis.
    name : str, optional
        Name of the learner, for the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the loss.
    nonzeros_ax_ : matplotlib Axes or None
        Axes of the nonzeros.
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
    valid_line_, nonzeros_line_ : matplotlib Line2D or None

    Examples
    --------
    >>> from thresher import LearningCurveDisplay
    >>> display = LearningCurveDisplay([100, 200, 400], [0.7, 0.5, 0.4], [9, 7, 3]).plot()
    >>> display.ax_.get_xscale(), display.nonzeros_ax_.get_ylabel()
    ('log', 'nonzero weights')
    """

    def __init__(
        self,
        examples: ArrayLike,
        loss: ArrayLike,
        nonzeros: ArrayLike | None = None,
        valid_loss: ArrayLike | None = None,
        *,
        measure: str = "loss",
        name: str | None = None,
    ) -> None:
        self.examples, self.loss = np.asarray(examples, float), np.asarray(loss, float)
        nothing = np.full(self.examples.shape, np.nan)
        self.nonzeros = nothing if nonzeros is None else np.asarray(nonzeros, float)
        self.valid_loss = nothing if valid_loss is None else np.asarray(valid_loss, float)
        shapes = {a.shape for a in (self.examples, self.loss, self.nonzeros, self.valid_loss)}
        if len(shapes) > 1 or self.examples.ndim != 1 or not self.examples.size:
            raise ParameterError(
                f"{_OWNER}: examples, loss, nonzeros and valid_loss must have the same length, 1 "
                f"or more; their shapes are {', '.join(map(str, sorted(shapes)))}"
            )
        if not np.isfinite(self.loss).any():
            raise ParameterError(f"{_OWNER}: loss must have at least one finite number")
        self.measure, self.name = measure, name

    @classmethod
    def from_history(
        cls,
        history: Sequence[Progress],
        *,
        measure: str = "progressive loss",
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw records of training.

        A record with less than a quarter of the rows of the record before is merged with its
        neighbour; the point shows their mean loss.

        Parameters
        ----------
        history : sequence of Progress
        measure : str, default="progressive loss"
        ax : matplotlib Axes, or a pair of them, optional
        name : str, optional
        **kwargs
            Arguments of `plot`.

        Returns
        -------
        LearningCurveDisplay
        """
        if not history:
            raise ParameterError(f"{_OWNER}: history must have at least one record; it is empty")
        examples = [record.examples for record in history]
        display = cls(
            examples,
            merge_short_records(examples, [record.loss for record in history]),
            [np.nan if record.nonzeros is None else record.nonzeros for record in history],
            [np.nan if record.valid_loss is None else record.valid_loss for record in history],
            measure=measure,
            name=name,
        )
        return display.plot(ax, **kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw the training of a fitted estimator.

        Parameters
        ----------
        estimator : estimator of thresher, or a Pipeline that ends in one
        ax : matplotlib Axes, or a pair of them, optional
            As in `plot`. To compare two displays, give ``display.axes_`` of the other.
        name : str, optional
        **kwargs
            Arguments of `plot`.

        Returns
        -------
        LearningCurveDisplay

        Examples
        --------
        >>> import numpy as np
        >>> from thresher import DualAveragingClassifier, FTRLClassifier, LearningCurveDisplay
        >>> X = np.random.default_rng(0).normal(size=(500, 40))
        >>> y = X[:, 3] - X[:, 7] > 0
        >>> ftrl, dual = FTRLClassifier().fit(X, y), DualAveragingClassifier().fit(X, y)
        >>> one = LearningCurveDisplay.from_estimator(ftrl, name="FTRL")
        >>> two = LearningCurveDisplay.from_estimator(dual, name="dual averaging", ax=one.axes_)
        >>> len(two.ax_.lines), two.ax_.get_ylabel()
        (2, 'progressive logistic loss')
        """
        wanted = "an estimator of thresher with weights, or a pipeline that ends in one"
        found = fitted(estimator, ("LinearEstimator",), _OWNER, wanted)
        return cls.from_model(found.model_, ax=ax, name=name, **kwargs)

    @classmethod
    def from_model(
        cls, model: Model, *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw the training of a model, which may be loaded from a file.

        Parameters
        ----------
        model : Model
        ax : matplotlib Axes, or a pair of them, optional
        name : str, optional
        **kwargs
            Arguments of `plot`.

        Returns
        -------
        LearningCurveDisplay
        """
        if not isinstance(model, Model):
            raise ParameterError(f"{_OWNER}: model must be a Model; got {type(model).__name__}")
        loss = model.loss.replace("_", " ")
        solver = model.parameters.get("rule") in OBJECTIVES
        both = any(record.valid_loss is not None for record in model.history)
        measure = f"{loss} loss" if both else f"progressive {loss} loss"
        measure = "objective" if solver else measure
        return cls.from_history(model.history, measure=measure, ax=ax, name=name, **kwargs)

    @property
    def axes_(self) -> tuple[Any, ...]:
        """The Axes of the loss and, if drawn, of the nonzeros."""
        return tuple(ax for ax in (self.ax_, self.nonzeros_ax_) if ax is not None)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, or a pair of them, optional
            One Axes shows only the loss; in a pair, the second shows the nonzeros. By default, a
            pair in a new figure.
        name : str, optional
            Replaces the name of the display.
        **kwargs
            Arguments of ``ax.plot`` for the lines.

        Returns
        -------
        LearningCurveDisplay
        """
        self.ax_, self.nonzeros_ax_ = self._axes(ax)
        self.figure_ = self.ax_.figure
        name = self.name if name is None else name
        look = style.next_series(self.ax_, markersize=4, zorder=3, markevery=0.03)
        look |= {"label": name or "before learning each row", **kwargs}
        self.line_ = self._draw(self.ax_, self.loss, look)
        self.valid_line_ = self.nonzeros_line_ = None
        if np.isfinite(self.valid_loss).any():
            label = f"{name}, validation" if name else "validation"
            look |= {"markerfacecolor": "white", "markersize": 6, "label": label, "gid": None}
            self.valid_line_ = self._draw(self.ax_, self.valid_loss, look)
        style.counts(self.ax_, "x")
        self.ax_.set_ylabel(self.measure)
        if self.nonzeros_ax_ is not None and np.isfinite(self.nonzeros).any():
            same = {"color": self.line_.get_color(), "linestyle": self.line_.get_linestyle()}
            same |= {"marker": self.line_.get_marker(), "markersize": 4, "markevery": 0.03}
            self.nonzeros_line_ = self._draw(self.nonzeros_ax_, self.nonzeros, same)
            style.counts(self.nonzeros_ax_, "x")
            style.counts(self.nonzeros_ax_, "y")
            self.nonzeros_ax_.set_ylabel("nonzero weights")
        self.axes_[-1].set_xlabel("examples")
        if name or self.valid_line_ is not None:
            style.legend(self.ax_)
        return self

    def _axes(self, ax: Any) -> tuple[Any, Any]:
        """Return the axes of the loss and of the nonzeros."""
        if ax is None and np.isfinite(self.nonzeros).any():
            return style.panels((3, 2))
        pair = list(np.ravel(ax)) if isinstance(ax, list | tuple | np.ndarray) else [ax]
        if len(pair) not in (1, 2):
            raise ParameterError(f"{_OWNER}: ax must be one Axes or two; got {len(pair)}")
        drawn = [style.axes(one) for one in pair]
        return drawn[0], drawn[1] if len(drawn) == 2 else None

    def _draw(self, ax: Any, values: NDArray[np.float64], look: dict[str, Any]) -> Any:
        """Draw the finite values; return the line."""
        known = np.isfinite(values)
        across, up = self.examples[known], values[known]
        breaks = [run.start for run in runs_of(across.tolist())[1:]]  # the next class begins
        across, up = np.insert(across, breaks, np.nan), np.insert(up, breaks, np.nan)
        return ax.plot(across, up, **look)[0]
