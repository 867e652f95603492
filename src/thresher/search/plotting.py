"""A frontier drawn by matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.search.frontier import Frontier, counts_of

_EDGE, _BEST, _OTHER = "#1668b8", "#c2410c", "#9aa5b1"


def plot_frontier(frontier: Frontier, ax: Any = None) -> Any:
    """Draw error against nonzeros, the best, and the sparsest within one standard error.

    Parameters
    ----------
    frontier : Frontier
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "plot needs matplotlib: pip install 'thresher[plot]'; table() and chart() do without"
        ) from error
    if ax is None:
        ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")[1]
    dots = frontier.dots
    sound = [i for i, dot in enumerate(dots) if not dot.failed]
    across = np.array([dots[i].nonzeros for i in sound], float)
    up = np.array([dots[i].error for i in sound])
    spread = np.array([dots[i].spread or 0.0 for i in sound])
    if spread.any():
        ax.errorbar(across, up, spread, fmt="none", ecolor=_OTHER, elinewidth=1, zorder=1)
    ax.scatter(across, up, s=24, color=_OTHER, zorder=2)
    edge = list(frontier.efficient)
    points = [dots[i].nonzeros for i in edge], [dots[i].error for i in edge]
    ax.plot(*points, "-o", color=_EDGE, markersize=5, zorder=3, label="frontier")
    best, chosen = frontier.best, frontier.chosen
    if best is not None and chosen is not None:
        if one := dots[best].spread:
            limit = dots[best].error + one
            line = {"color": _OTHER, "linewidth": 1, "linestyle": ":", "zorder": 0}
            ax.axhline(limit, label="best + one s.e.", **line)
        ax.plot(
            dots[best].nonzeros,
            dots[best].error,
            "o",
            color=_BEST,
            markersize=8,
            zorder=4,
            label=f"best: {dots[best].nonzeros:,} ({dots[best].name})",
        )
        if chosen != best:
            ax.plot(
                dots[chosen].nonzeros,
                dots[chosen].error,
                "o",
                markersize=13,
                markerfacecolor="none",
                markeredgecolor=_BEST,
                markeredgewidth=1.5,
                zorder=4,
                label=f"within one s.e.: {dots[chosen].nonzeros:,} ({dots[chosen].name})",
            )
    _scale(ax, across)
    ax.set_xlabel("nonzero weights")
    ax.set_ylabel(frontier.measure)
    ax.legend(frameon=False, fontsize="small")
    return ax


def _scale(ax: Any, across: Any) -> None:
    """Make the scale of nonzeros logarithmic, with a place for zero where there is one."""
    from matplotlib.ticker import NullFormatter

    if (across < 1).any():
        ax.set_xscale("symlog", linthresh=1.0)
    else:
        ax.set_xscale("log")
    ticks = counts_of(np.log10(across.min() + 1.0), np.log10(across.max() + 1.0))
    if len(ticks) >= 2:
        ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        ax.xaxis.set_minor_formatter(NullFormatter())
