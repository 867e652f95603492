"""Functions that draw selection probabilities: by name, over a parameter, by rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.plots import style

if TYPE_CHECKING:
    from thresher.plots.stability import StabilityDisplay

_MOST_NAMED = len(style.COLOURS)  # paths with their own colour and name
_CROWD = 100  # if there are more paths without a name, they are drawn fainter
_LONGEST = 32  # characters of a name
_PROBABILITY, _HIGH = "selection probability", (-0.02, 1.04)


def draw_features(
    display: StabilityDisplay, shown: int, options: Mapping[str, Any]
) -> tuple[Any, Any]:
    """Draw a dot for each of the most probable features, with its name; return the dots."""
    ax, best = display.ax_, display.probabilities.max(axis=0)[:shown]
    down, mine = np.arange(shown), display.selected[:shown]
    ax.hlines(down, 0.0, best, color=style.FAINT, linewidth=1, zorder=1)
    look = {"linestyle": "none", "marker": "o", "markersize": 7, "zorder": 3}
    blue = {**look, "color": style.COLOURS[0], "label": _legend_text(display, "")}
    hollow = {**look, "color": style.SOFT, "markerfacecolor": "white"}
    if not mine.all():
        hollow["label"] = f"not selected ({int((~display.selected).sum()):,})"
    (dots,) = ax.plot(best[mine], down[mine], **{**blue, **options})
    (others,) = ax.plot(best[~mine], down[~mine], **hollow)
    ax.set_yticks(down, [short(name) for name in display.names[:shown]])
    ax.set(xlabel=_PROBABILITY, xlim=(0.0, 1.03), ylim=(shown - 0.4, -0.6))
    ax.grid(False, axis="y")
    if shown < len(display.names):
        ax.set_ylabel(f"first {shown} of {len(display.names):,} features")
    return dots, others


def draw_paths(display: StabilityDisplay, options: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """Draw the probabilities of each feature over the values; return all lines."""
    from matplotlib.collections import LineCollection

    ax, mine = display.ax_, display.selected
    across, ticks = _places(display.values, len(display.probabilities))
    order = np.argsort(across, kind="stable")
    shares, across = display.probabilities[order], across[order]
    count, few = int(mine.sum()), int(mine.sum()) <= _MOST_NAMED
    lines = []
    for number, feature in enumerate(np.flatnonzero(mine)):
        look = {"zorder": 3, **style.series(number if few else 0)}
        name = short(display.names[feature]) if few else f"selected ({count:,})"
        look |= {"markersize": 5} if few else {"marker": "", "linewidth": 0.9, "alpha": 0.8}
        lines += ax.plot(across, shares[:, feature], **{**look, "label": name, **options})
    paths = [np.column_stack([across, path]) for path in shares[:, ~mine].T]
    grey = style.SOFT if len(paths) <= _CROWD else style.FAINT
    others = LineCollection(paths, color=grey, linewidth=0.7, alpha=0.6, zorder=1)
    ax.add_collection(others)
    if paths:
        ax.plot([], [], color=grey, linewidth=1, label=f"not selected ({len(paths):,})")
    ax.autoscale_view()
    if ticks is not None:
        ax.set_xticks(np.arange(len(ticks)), ticks)
    elif across[0] > 0 and across[-1] >= 10 * across[0]:
        style.logarithmic(ax, "x")
    ax.set(xlabel=display.param_name, ylabel=_PROBABILITY, ylim=_HIGH)
    return lines, others


def draw_ranks(display: StabilityDisplay, name: str | None, options: Mapping[str, Any]) -> Any:
    """Draw the probabilities of all features, the largest first; return the curve."""
    ax, best = display.ax_, display.probabilities.max(axis=0)
    look = style.next_series(ax, markersize=4, zorder=3, markevery=0.04)
    look["label"] = _legend_text(display, name or "")
    (line,) = ax.plot(np.arange(1, len(best) + 1), best, **{**look, **options})
    style.counts(ax, "x")
    ax.set(xlabel="features, the most probable first", ylabel=_PROBABILITY, ylim=_HIGH)
    return line


def _legend_text(display: StabilityDisplay, name: str) -> str | None:
    """Return the legend: a name, the number of selected features, and kappa."""
    facts = [name] if name else []
    if not display.selected.all() or display.threshold is not None:
        facts.append(f"selected ({int(display.selected.sum()):,})" if not name else "")
    if display.kappa is not None:
        facts.append(f"kappa {display.kappa:.2f}")
    return ", ".join(filter(None, facts)) or None


def draw_threshold(display: StabilityDisplay, across: str) -> Any:
    """Draw the threshold, if there is one."""
    if display.threshold is None:
        return None
    draw = display.ax_.axvline if across == "v" else display.ax_.axhline
    look = {"color": "black", "linewidth": 1, "linestyle": ":", "zorder": 2}
    return draw(display.threshold, label=f"threshold {display.threshold:g}", **look)


def short(name: Any) -> str:
    """Return a name that matplotlib shows unchanged, shortened if it is long.

    Matplotlib takes text between dollars for formulas and hides labels that begin with "_": both
    are escaped. Line breaks become spaces, and empty names are quoted.

    Parameters
    ----------
    name : object

    Examples
    --------
    >>> from thresher.plots.probabilities import short
    >>> short("price"), short("x" * 100), short("")
    ('price', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…', "''")
    """
    text = str(name) if str(name).strip() else repr(name)
    text = "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text)
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def _places(values: list[Any] | None, count: int) -> tuple[NDArray[np.float64], list[str] | None]:
    """Return x-coordinates of values, and tick texts if the values are not all numbers."""
    side_by_side = np.arange(count, dtype=float)
    if values is None:
        return side_by_side, None
    try:
        return np.asarray(values, float), None
    except (TypeError, ValueError):
        return side_by_side, [short(value) for value in values]
