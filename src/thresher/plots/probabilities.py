"""The ways to draw selection probabilities: by name, over a parameter, by rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.plots import style

if TYPE_CHECKING:
    from thresher.plots.stability import StabilityDisplay

_NAMED = len(style.COLOURS)  # paths that have a colour and a name of their own
_LONGEST = 32  # characters of a name
_PROBABILITY = "selection probability"


def draw_features(
    display: StabilityDisplay, shown: int, options: Mapping[str, Any]
) -> tuple[Any, Any]:
    """Draw a dot for each of the most probable features, beside its name; return the dots."""
    ax, best = display.ax_, display.probabilities.max(axis=0)
    down = np.arange(shown)
    mine = display.selected[:shown]
    ax.hlines(down, 0.0, best[:shown], color=style.SOFT, linewidth=1, zorder=1)
    look = {"linestyle": "none", "markersize": 7, "zorder": 3}
    blue = {"marker": "o", "color": style.COLOURS[0], **look}
    count, all_of_them = int(display.selected.sum()), len(display.names)
    (dots,) = ax.plot(
        best[:shown][mine], down[mine], **{**blue, "label": f"selected ({count:,})", **options}
    )
    hollow = {"marker": "o", "color": style.SOFT, "markerfacecolor": "white", **look}
    (others,) = ax.plot(best[:shown][~mine], down[~mine], **hollow)
    if not mine.all():
        others.set_label(f"not selected ({all_of_them - count:,})")
    ax.set_yticks(down, [short(name) for name in display.names[:shown]])
    ax.set_ylim(shown - 0.4, -0.6)
    ax.set_xlim(0.0, 1.03)
    ax.grid(False, axis="y")
    ax.set_xlabel(_PROBABILITY)
    if shown < all_of_them:
        ax.set_ylabel(f"first {shown} of {all_of_them:,} features")
    return dots, others


def draw_paths(display: StabilityDisplay, options: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """Draw the probabilities of each feature over the values; return the lines, and the others."""
    from matplotlib.collections import LineCollection

    ax, mine = display.ax_, display.selected
    across = _places(display)
    order = np.argsort(across, kind="stable")
    shares, across = display.probabilities[order], across[order]
    others = LineCollection(
        [np.column_stack([across, path]) for path in shares[:, ~mine].T],
        colors=style.SOFT,
        linewidths=0.7,
        alpha=0.6,
        zorder=1,
    )
    if not mine.all():
        others.set_label(f"not selected ({int((~mine).sum()):,})")
    ax.add_collection(others)
    few = int(mine.sum()) <= _NAMED
    lines = []
    for number, feature in enumerate(np.flatnonzero(mine)):
        look = {"markersize": 5, "zorder": 3, **style.series(number if few else 0)}
        label = short(display.names[feature]) if few else f"selected ({int(mine.sum()):,})"
        look |= {"label": label} if few else {"label": label, "marker": "", "linewidth": 1}
        lines += ax.plot(across, shares[:, feature], **{**look, **options})
    ax.autoscale_view()
    ax.set_ylim(-0.02, 1.04)
    ax.set(xlabel=display.param_name, ylabel=_PROBABILITY)
    return lines, others


def draw_ranks(display: StabilityDisplay, label: str, options: Mapping[str, Any]) -> Any:
    """Draw the probabilities of all features, the largest first; return the curve."""
    ax, best = display.ax_, display.probabilities.max(axis=0)
    look = style.next_series(ax, markersize=4, zorder=3, markevery=max(1, len(best) // 15))
    look |= {"label": label} if label else {}
    (line,) = ax.plot(np.arange(1, len(best) + 1), best, **{**look, **options})
    style.counts(ax, "x")
    ax.set_ylim(-0.02, 1.04)
    ax.set(xlabel="features, the most probable first", ylabel=_PROBABILITY)
    return line


def draw_threshold(display: StabilityDisplay, across: str) -> Any:
    """Draw the threshold, where there is one."""
    if display.threshold is None:
        return None
    draw = display.ax_.axvline if across == "v" else display.ax_.axhline
    look = {"color": "black", "linewidth": 1, "linestyle": ":", "zorder": 2}
    return draw(display.threshold, label=f"threshold {display.threshold:g}", **look)


def short(name: Any) -> str:
    """Return a name, cut where it is long.

    Parameters
    ----------
    name : object

    Examples
    --------
    >>> from thresher.plots.probabilities import short
    >>> short("price"), short("x" * 100)
    ('price', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…')
    """
    text = str(name)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _places(display: StabilityDisplay) -> NDArray[np.float64]:
    """Return where the values stand, and set the scale: by size, or side by side if no numbers."""
    count = len(display.probabilities)
    values: list[Any] = list(range(count)) if display.values is None else display.values
    try:
        places = np.asarray(values, float)
    except (TypeError, ValueError):
        display.ax_.set_xticks(range(count), [short(value) for value in values])
        return np.arange(count, dtype=float)
    if places.min() > 0 and places.max() >= 10 * places.min():
        display.ax_.set_xscale("log")
    return places
