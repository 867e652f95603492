"""Rows for tests of displays, and functions that read figures."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 60))
Y = np.where(X[:, 3] - X[:, 7] + 0.5 * RNG.normal(size=400) > 0, "yes", "no")
THREE = np.digitize(X[:, 3], [-0.5, 0.5])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def legend(ax):
    """Return the texts of the legends of a figure."""
    found = [ax.get_legend(), *ax.figure.legends]
    return [text.get_text() for one in found if one is not None for text in one.get_texts()]


def drawn(figure):
    """Draw the figure; return its pixels."""
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())
