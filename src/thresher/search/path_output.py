"""The results of a `SparsityPath` as text, as a plot and in a notebook."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from thresher.model.frontier import Frontier
from thresher.report.frontier import text_chart
from thresher.report.search_results import cells_of, html_fragment, text_table


class PathOutput:
    """Adds tables and charts to an object with `frontier_`, `gravities_` and `param_name_`."""

    frontier_: Frontier
    gravities_: NDArray[np.float64]
    param_name_: str

    def _settings(self) -> list[dict[str, Any]]:
        return [{self.param_name_: float(gravity)} for gravity in self.gravities_]

    def table(self) -> str:
        """Return a text table of gravity, error, standard error and nonzeros."""
        check_is_fitted(self, "frontier_")
        return text_table(*cells_of(self.frontier_, self._settings()))

    def chart(self) -> str:
        """Return the frontier as a text chart."""
        check_is_fitted(self, "frontier_")
        return text_chart(self.frontier_)

    def plot(self, ax: Any = None) -> Any:
        """Draw error against nonzeros, as `thresher.SparsityPathDisplay`; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib Axes
        """
        check_is_fitted(self, "frontier_")
        from thresher.plots import SparsityPathDisplay

        return SparsityPathDisplay.from_estimator(self, ax=ax).ax_

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        if not hasattr(self, "frontier_"):
            bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
            return bundle
        return {"text/plain": self.table(), "text/html": self._repr_html_()}

    def _repr_html_(self) -> str:
        """Return the table and the chart as HTML, for a notebook."""
        check_is_fitted(self, "frontier_")
        return html_fragment(self.frontier_, self._settings())
