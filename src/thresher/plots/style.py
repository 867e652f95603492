"""How plots look: colours that colour-blind people tell apart, signs that print without them."""

from __future__ import annotations

from typing import Any

# Okabe and Ito's palette, without yellow, which is too light for lines on paper.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
SIGNS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
SOFT = "#8a94a0"  # what is in the background


def series(number: int) -> dict[str, Any]:
    """Return the colour, sign and kind of line of a series, each of its own.

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
    return {"color": COLOURS[at], "marker": SIGNS[at], "linestyle": LINES[at]}


def axes(ax: Any = None, wide: float = 6.4, high: float = 4.0) -> Any:
    """Return the axes to draw on, new ones where none are given.

    Parameters
    ----------
    ax : matplotlib Axes, optional
    wide, high : float
        Of a new figure, in inches.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'thresher[plot]'") from error
    if ax is None:
        ax = plt.subplots(figsize=(wide, high), layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="#e3e7ec", linewidth=0.8)
    ax.set_axisbelow(True)
    return ax
