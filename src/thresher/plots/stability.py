"""Display of selection probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.errors import ParameterError, setting
from thresher.model.feature_names import check_names
from thresher.model.model import Model
from thresher.model.supports import (
    checked_n_features,
    feature_numbers,
    is_whole,
    stability_score,
)
from thresher.plots import style
from thresher.plots.fitted import fitted, is_of
from thresher.plots.probabilities import draw_features, draw_paths, draw_ranks, draw_threshold

_OWNER = "StabilityDisplay"
_KINDS = ("features", "paths", "ranks")
_OUTSIDE = {"features": "upper center", "paths": "right center"}  # legends outside the axes


class StabilityDisplay:
    """Selection probabilities of features: by name, over a parameter, or by rank.

    Parameters
    ----------
    probabilities : array of shape (features,) or (values, features)
        Share of fits that select a feature, for each value of a parameter. Features that no fit
        selects may be left out.
    names : sequence, optional
        Names of the features; by default, their numbers.
    threshold : float, optional
        Features with at least this probability are selected; drawn as a line.
    selected : boolean mask of shape (features,), optional
        The selected features; by default those that reach the threshold, or all without a
        threshold.
    values : sequence, optional
        Values of the parameter.
    param_name : str, default="parameter"
        Name of the parameter.
    kappa : float, optional
        Mean of Cohen's kappa over pairs of supports, shown in the legend.
    name : str, optional
        Name of the curve, if several are drawn by rank.

    Attributes
    ----------
    probabilities : array of shape (values, features)
        Sorted by the largest probability of a feature; among equal ones, selected come first.
    names, selected
        In the same order.
    ax_, figure_ : matplotlib Axes and Figure
    line_ : matplotlib Line2D
        The curve by rank, or the dots of the selected features.
    lines_ : list of matplotlib Line2D
        The paths of the selected features.
    others_ : matplotlib Line2D or LineCollection
        The dots or paths of the other features.
    threshold_ : matplotlib Line2D or None

    See Also
    --------
    thresher.StabilitySelection : Selection by fits on halves of the rows.

    Examples
    --------
    >>> from thresher import StabilityDisplay
    >>> display = StabilityDisplay([0.2, 1.0, 0.7], names=["age", "price", "size"], threshold=0.6)
    >>> display.names, display.selected.tolist()
    (['price', 'size', 'age'], [True, True, False])
    >>> [label.get_text() for label in display.plot().ax_.get_yticklabels()]
    ['price', 'size', 'age']
    """

    def __init__(
        self,
        probabilities: ArrayLike,
        *,
        names: Sequence[Any] | None = None,
        threshold: float | None = None,
        selected: ArrayLike | None = None,
        values: Sequence[Any] | None = None,
        param_name: str = "parameter",
        kappa: float | None = None,
        name: str | None = None,
    ) -> None:
        shares = np.atleast_2d(np.asarray(probabilities, float))
        if shares.ndim != 2 or not shares.size:
            raise ParameterError(
                f"{_OWNER}: probabilities must be of shape (features,) or (values, features), and "
                f"not empty; the shape is {shares.shape}"
            )
        if not ((shares >= 0) & (shares <= 1)).all():
            raise ParameterError(owner=_OWNER, parameter="probabilities", allowed="in 0..1")
        known = list(range(shares.shape[1])) if names is None else list(names)
        best = shares.max(axis=0)
        if selected is None:
            mask = best >= (0.0 if threshold is None else threshold)
        else:
            mask = np.asarray(selected, bool)
        if len(known) != shares.shape[1] or mask.shape != best.shape:
            raise ParameterError(f"{_OWNER}: names and selected must have one entry per feature")
        if values is not None and len(values) != len(shares):
            raise ParameterError(
                f"{_OWNER}: values must be {len(shares)}, one for each row of probabilities; got "
                f"{len(values)}"
            )
        order = np.lexsort((~mask, -best))
        self.probabilities, self.selected = shares[:, order], mask[order]
        self.names = [known[i] for i in order]
        self.threshold, self.kappa, self.name = threshold, kappa, name
        self.values = None if values is None else list(values)
        self.param_name = param_name

    # ---- constructors --------------------------------------------------------------------------

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        names: Sequence[str] | None = None,
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the selection probabilities of a fitted estimator.

        Parameters
        ----------
        estimator : StabilitySelection, StreamingStabilitySelection or StabilizedClassifier
        names : sequence of str, optional
            Names of all features, for example ``vectorizer.get_feature_names_out()``.
        ax : matplotlib Axes, optional
        name : str, optional
            Name of the curve, if several are drawn by rank.
        **kwargs
            Arguments of `plot`; for a `StabilizedClassifier` also `label`, as in `from_model`.

        Returns
        -------
        StabilityDisplay

        Examples
        --------
        >>> import numpy as np
        >>> from thresher import FTRLClassifier, StabilityDisplay, StabilitySelection
        >>> X = np.random.default_rng(0).normal(size=(300, 40))
        >>> y = X[:, 3] - X[:, 7] > 0
        >>> ftrl = FTRLClassifier(l1=60.0, passes=5)
        >>> selector = StabilitySelection(ftrl, pairs=5, random_state=0).fit(X, y)
        >>> display = StabilityDisplay.from_estimator(selector)
        >>> sorted(display.names[:2])
        [3, 7]
        """
        wanted = "StabilitySelection, StreamingStabilitySelection or StabilizedClassifier"
        found = fitted(estimator, ("PairSelector", "StabilizedClassifier"), _OWNER, wanted)
        if is_of(found, "StabilizedClassifier"):
            return cls.from_model(found.model_, names=names, ax=ax, name=name, **kwargs)
        table = found.selection_probabilities_.tocsc()
        features = np.flatnonzero(np.diff(table.indptr))
        if not len(features):
            raise ParameterError(f"{_OWNER}: no fit selected a feature")
        shares = table[:, features].toarray()
        if names is None:
            order = np.lexsort(
                (features, -shares.max(axis=0))
            )  # the order of `top`, which returns the names
            features, shares = features[order], shares[:, order]
            known: list[Any] = [feature.name for feature in found.top(len(features))]
        else:
            known = _named(names, features, found.n_features_in_)
        display = cls(
            shares,
            names=known,
            threshold=found.threshold,
            selected=np.isin(features, found.selected_),
            values=found.param_values,
            param_name=found.param_name or "parameter",
            name=name,
        )
        return display.plot(ax, **kwargs)

    @classmethod
    def from_model(
        cls,
        model: Model,
        *,
        label: Any = None,
        names: Sequence[str] | None = None,
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the selection probabilities in a model of the stabilized rule.

        The probability of a feature is from its last test. Features with a nonzero weight are
        selected. A feature with a high probability may still be removed if others rank higher.

        Parameters
        ----------
        model : Model
        label : object, optional
            The class; must be given if there are more than two.
        names : sequence of str, optional
            Names of all features.
        ax : matplotlib Axes, optional
        name : str, optional
        **kwargs
            Arguments of `plot`.

        Returns
        -------
        StabilityDisplay
        """
        if not isinstance(model, Model) or model.evidence is None:
            raise ParameterError(
                owner=_OWNER,
                parameter="model",
                value=model,
                allowed="a model of the stabilized rule",
            )
        output, outputs = 0, len(model.intercept)
        if outputs == 1 and label is not None:
            raise ParameterError(
                f"{_OWNER}: label must not be given for a model of two classes; got {label!r}"
            )
        if outputs > 1:
            labels = [] if model.classes is None else model.classes.tolist()
            if label not in labels:
                raise ParameterError(
                    owner=_OWNER,
                    parameter="label",
                    value=label,
                    allowed=f"a class, one of {labels}",
                )
            output = labels.index(label)
        evidence = model.evidence
        of = slice(*evidence.indptr[output : output + 2].tolist())
        tested = evidence.probability[of] > 0
        features, shares = evidence.features[of][tested], evidence.probability[of][tested]
        if not len(features):
            raise ParameterError(f"{_OWNER}: no feature of the model was tested")
        weights = model.indices[slice(*model.indptr[output : output + 2].tolist())]
        keep = model.parameters.get("keep")
        known = [model.name(int(feature)) for feature in features]
        if names is not None:
            known = _named(names, features, model.n_features)
        display = cls(
            shares,
            names=known,
            threshold=keep if isinstance(keep, int | float) else None,
            selected=np.isin(features, weights),
            name=name,
        )
        return display.plot(ax, **kwargs)

    @classmethod
    def from_supports(
        cls,
        supports: Iterable[Any],
        n_features: int,
        *,
        names: Sequence[str] | None = None,
        threshold: float | None = None,
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw how often features are in the supports of several runs, and their kappa.

        Parameters
        ----------
        supports : iterable of at least two supports
            Each a collection of feature numbers, a boolean mask of shape (n_features,), or a Model.
        n_features : int
            Number of all features.
        names : sequence of str, optional
            Names of all features.
        threshold : float, optional
        ax : matplotlib Axes, optional
        name : str, optional
        **kwargs
            Arguments of `plot`.

        Returns
        -------
        StabilityDisplay

        Examples
        --------
        >>> from thresher import StabilityDisplay
        >>> display = StabilityDisplay.from_supports([[0, 1], [0, 1], [0, 2]], n_features=1000)
        >>> round(display.kappa, 4), display.probabilities[0].round(2).tolist()
        (0.666, [1.0, 0.67, 0.33])
        """
        p, runs = checked_n_features(n_features), list(supports)
        kappa = stability_score(runs, p)
        found = [feature_numbers(support, p, f"supports[{i}]") for i, support in enumerate(runs)]
        features, counts = np.unique(np.concatenate(found), return_counts=True)
        if not len(features):
            raise ParameterError(f"{_OWNER}: all supports are empty")
        known = features.tolist() if names is None else _named(names, features, p)
        shares = counts / len(runs)
        display = cls(shares, names=known, threshold=threshold, kappa=kappa, name=name)
        return display.plot(ax, **kwargs)

    # ---- drawing -------------------------------------------------------------------------------

    def plot(
        self,
        ax: Any = None,
        *,
        kind: str | None = None,
        max_features: int = 20,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, a new figure.
        kind : {"features", "paths", "ranks"}, optional
            "features": the most probable features with names. "paths": the probabilities of all
            features over the values of the parameter. "ranks": all probabilities in decreasing
            order; several displays can share the axes. By default "paths" if there are several
            values, else "features".
        max_features : int, default=20
            Number of features to show with names.
        name : str, optional
            Name of the curve by rank; replaces the name of the display.
        **kwargs
            Arguments of ``ax.plot`` for the selected features or the curve.

        Returns
        -------
        StabilityDisplay
        """
        several = len(self.probabilities) > 1
        kind = ("paths" if several else "features") if kind is None else kind
        if kind not in _KINDS:
            raise ParameterError(
                owner=_OWNER, parameter="kind", value=kind, allowed=f"one of {', '.join(_KINDS)}"
            )
        if kind == "paths" and not several:
            raise ParameterError(
                (setting("kind", "paths"), " needs several values of a parameter"),
                owner=_OWNER,
                parameter="kind",
                value=kind,
            )
        if not is_whole(max_features) or max_features < 1:
            raise ParameterError(
                owner=_OWNER, parameter="max_features", value=max_features, allowed=">= 1"
            )
        shown = min(max_features, len(self.names))
        high = max(2.2, 1.1 + 0.22 * shown) if kind == "features" else 4.0
        self.ax_ = style.axes(ax, high=high)
        self.figure_ = self.ax_.figure
        if kind == "features":
            self.line_, self.others_ = draw_features(self, shown, kwargs)
        elif kind == "paths":
            self.lines_, self.others_ = draw_paths(self, kwargs)
        else:
            self.line_ = draw_ranks(self, self.name if name is None else name, kwargs)
        self.threshold_ = draw_threshold(self, "v" if kind == "features" else "h")
        style.legend(self.ax_, _OUTSIDE.get(kind) if ax is None else None)
        return self


def _named(names: Sequence[str], features: NDArray[Any], n_features: int) -> list[Any]:
    """Return the names of some features from the names of all."""
    check_names(names, n_features, f"{_OWNER}: ")
    return [names[int(feature)] for feature in features]
