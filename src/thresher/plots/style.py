"""Style of plots: colours for colour-blind readers, and markers that also work in grey."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from thresher.scales import counts_of, ticks_of

# Okabe and Ito's palette, without yellow, which is too light for lines on paper.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
SOFT = "#8a94a0"  # for the background
FAINT = "#c3cad2"  # for guide lines
_SERIES = "series"  # gid of the artists that are a series


def series(number: int) -> dict[str, Any]:
    """Return the colour, marker and line style of a series.

    Parameters
    ----------
    number : int

    Examples
    --------
    >>> from thresher.plots.style import series
    >>> series(1)
    {'color': '#d55e00', 'marker': 's', 'linestyle': '--'}
    """
    at = number % len(COLOURS)
    return {"color": COLOURS[at], "marker": MARKERS[at], "linestyle": LINES[at]}


def axes(ax: Any = None, wide: float = 6.4, high: float = 4.0) -> Any:
    """Return the axes to draw on; by default, new ones.

    Parameters
    ----------
    ax : matplotlib Axes, optional
    wide, high : float
        Size of a new figure, in inches.
    """
    return _styled(
        _pyplot().subplots(figsize=(wide, high), layout="constrained")[1] if ax is None else ax
    )


def panels(heights: Sequence[float], wide: float = 6.4, high: float = 5.2) -> tuple[Any, ...]:
    """Return axes of a new figure, one below the other with the same x-axis.

    Parameters
    ----------
    heights : sequence of float
        Relative heights of the axes.
    wide, high : float
        Size of the figure, in inches.
    """
    _, found = _pyplot().subplots(
        len(heights),
        1,
        sharex=True,
        figsize=(wide, high),
        layout="constrained",
        height_ratios=heights,
    )
    return tuple(_styled(ax) for ax in found)


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'thresher[plot]'") from error
    return plt


def _styled(ax: Any) -> Any:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="#e3e7ec", linewidth=0.8)
    ax.set_axisbelow(True)
    return ax


def next_series(ax: Any, **given: Any) -> dict[str, Any]:
    """Return the style of the next series on these axes, different from those drawn before.

    Parameters
    ----------
    ax : matplotlib Axes
    **given
        Values that are kept.
    """
    drawn = sum(artist.get_gid() == _SERIES for artist in ax.get_children())
    return {**series(drawn), "gid": _SERIES, **given}


def legend(ax: Any, outside: str | None = None, spacing: float = 0.5) -> None:
    """Draw a legend with each label once; series come first.

    Parameters
    ----------
    ax : matplotlib Axes
    outside : str, optional
        Place in the figure outside the axes: "upper center", "right center". By default, the
        legend is inside the axes.
    spacing : float, default=0.5
        Space between entries, relative to the font size.
    """
    handles, labels = ax.get_legend_handles_labels()
    found: dict[str, Any] = {}
    for handle, label in zip(handles, labels, strict=True):
        found.setdefault(label, handle)
    order = sorted(found, key=lambda label: found[label].get_gid() != _SERIES)
    look: dict[str, Any] = {"fontsize": "small", "edgecolor": "none", "framealpha": 0.85}
    look["labelspacing"] = spacing
    if outside is not None:
        look |= {"loc": f"outside {outside}", "ncols": 3 if "upper" in outside else 1}
    if order:
        home = ax if outside is None else ax.figure
        home.legend([found[label] for label in order], order, **look)


def counts(ax: Any, axis: str) -> None:
    """Make an axis logarithmic for counts, with round numbers; it includes zero if needed.

    Parameters
    ----------
    ax : matplotlib Axes
        All data must be drawn already.
    axis : {"x", "y"}
    """
    low, high = ax.dataLim.intervalx if axis == "x" else ax.dataLim.intervaly
    scale = {"value": "log"} if low >= 1 else {"value": "symlog", "linthresh": 1.0}
    getattr(ax, f"set_{axis}scale")(**scale)
    _ticks(ax, axis, counts_of(np.log10(low + 1.0), np.log10(high + 1.0)), "{:,}".format)


def logarithmic(ax: Any, axis: str, text: Callable[[float], str] = "{:.6g}".format) -> None:
    """Make an axis of numbers above zero logarithmic, with round numbers.

    Parameters
    ----------
    ax : matplotlib Axes
        All data must be drawn already.
    axis : {"x", "y"}
    text : callable
        Returns the text of a number.
    """
    low, high = ax.dataLim.intervalx if axis == "x" else ax.dataLim.intervaly
    getattr(ax, f"set_{axis}scale")("log")
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    for steps in ((1,), (1, 2, 5), range(1, 10)):
        found = [step * 10.0**power for power in powers for step in steps]
        found = [tick for tick in found if 0.999 * low <= tick <= 1.001 * high]
        if len(found) >= 3:
            break
    else:
        found = ticks_of(low, high) if low < high else [low]
    _ticks(ax, axis, found, text)


def _ticks(ax: Any, axis: str, ticks: Sequence[float], text: Callable[[Any], str]) -> None:
    from matplotlib.ticker import NullFormatter

    ticks = _apart(ax, ticks, text) if axis == "x" else ticks
    getattr(ax, f"set_{axis}ticks")(ticks, [text(tick) for tick in ticks])
    getattr(ax, f"{axis}axis").set_minor_formatter(NullFormatter())


def _apart(ax: Any, ticks: Sequence[float], text: Callable[[Any], str]) -> list[float]:
    """Return the ticks without those whose numbers would overlap."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    ax.autoscale_view()
    size = FontProperties(size=rcParams["xtick.labelsize"]).get_size_in_points()
    letter = 0.65 * size * ax.figure.dpi / 72  # width in pixels
    kept: list[float] = []
    free = -np.inf
    for tick in ticks:
        middle, half = ax.transData.transform((tick, 1.0))[0], letter * len(text(tick)) / 2
        if middle - half >= free:
            kept.append(tick)
            free = middle + half + letter
    return kept
