"""What `thresher tune` has found: the model and the page it writes, and what it says."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from thresher.atomic import write_whole
from thresher.cli.show import as_json
from thresher.cli.train import described
from thresher.data.source import Source
from thresher.errors import DivergenceError
from thresher.search.drawing import text_chart
from thresher.search.frontier import Dot, Frontier, errors_of
from thresher.search.grid import Point
from thresher.search.readings import Found
from thresher.search.streams import StreamSearch
from thresher.search.tables import cells_of, error_text, html_page, shown, text_table
from thresher.search.whole import failures_of, name_features, scores_of

if TYPE_CHECKING:
    from thresher.cli.tune import Options


class Result:
    """The end of a search.

    Parameters
    ----------
    points : sequence of Point
    found : mapping
        Scores by numbers of point and fold.
    scoring : str
    search : StreamSearch
    source : Source
    seconds : float
    """

    def __init__(
        self,
        points: Sequence[Point],
        found: Mapping[tuple[int, int], Found],
        scoring: str,
        search: StreamSearch,
        source: Source,
        seconds: float,
    ) -> None:
        self.points, self.search, self.source, self.seconds = points, search, source, seconds
        self.settings = [point.chosen for point in points]
        folds = max(search.splits, 1)
        scores = scores_of(found, len(points), folds)
        failures = failures_of(found, len(points), folds)
        measure, errors = errors_of(scores, scoring, search.estimator._task == "classifier")
        dots = []
        for point, own, failure in zip(points, errors, failures, strict=True):
            spread = float(own.std(ddof=1)) / math.sqrt(folds) if folds > 1 else None
            nonzeros = found[point.number, search.splits].nonzeros  # of the model of all rows
            dots.append(Dot(name_of(point), nonzeros, float(own.mean()), spread, failure))
        self.frontier = Frontier(dots, measure if folds > 1 else f"progressive {measure}")
        if self.frontier.best is None or self.frontier.chosen is None:
            why = next((failure for failure in failures if failure), "no score")
            raise DivergenceError(f"no model of the grid has an error; the first: {why}")
        self.best, self.chosen = self.frontier.best, self.frontier.chosen
        self.scored = (
            f"{search.splits} folds" if search.splits else "each scored before it was learned"
        )

    def write(self, options: Options) -> None:
        """Write the model, and the page where one is wanted: each whole or not at all."""
        kept = self.chosen if options.sparsest else self.best
        view = self.search.models[self.points[kept].number]
        if options.names and self.source.named and self.source.rereadable:
            name_features([view], self.source)
        about = {**view.model_.parameters, **described(options, self.source)}
        page = self._page(options, kept)  # made before anything is written
        replace(view.model_, parameters=about).save(options.model)
        if options.html is not None:
            write_whole(options.html, page.encode())

    def _page(self, options: Options, kept: int) -> str:
        facts = {
            "data": str(self.source),
            "rows": f"{self.search.rows:,}, {self.scored}",
            "passes": str(options.passes or 1),
            "best": self._said(self.best),
        }
        if self.chosen != self.best:
            facts["sparsest within one standard error"] = self._said(self.chosen)
        facts["model"] = f"{options.model}: {self.frontier.dots[kept].name}"
        facts["time"] = f"{self.seconds:.1f} s"
        title = f"{options.rule}: {len(self.points)} models of {self.source}"
        return html_page(title, self.frontier, self.settings, facts)

    def _said(self, number: int) -> str:
        dot = self.frontier.dots[number]
        spread = "" if dot.spread is None else f" +- {error_text(dot.spread)}"
        return (
            f"{dot.name}, {self.frontier.measure} {error_text(dot.error)}{spread}, "
            f"{dot.nonzeros:,} nonzero weights"
        )

    def report(self, options: Options) -> None:
        """Say what was found."""
        kept = self.chosen if options.sparsest else self.best
        if options.json:
            self._as_json(options, kept)
            return
        if self.source.bad_lines.warning:
            print(f"warning: {self.source.bad_lines.warning}", file=sys.stderr)
        if options.quiet:
            return
        print(text_table(*cells_of(self.frontier, self.settings)))
        print()
        print(text_chart(self.frontier))
        print()
        print(
            f"{self.search.rows:,} rows, {self.scored}; {len(self.points)} models in "
            f"{self.seconds:.2f} s"
        )
        print(
            f"{'sparsest' if options.sparsest else 'best'}: {self._said(kept)} -> {options.model}"
        )
        if options.html is not None:
            print(f"page -> {options.html}")

    def _as_json(self, options: Options, kept: int) -> None:
        for number, dot in enumerate(self.frontier.dots):
            facts: dict[str, Any] = {"event": "point", "params": self.settings[number]}
            facts |= {"error": dot.error, "standard_error": dot.spread, "nonzeros": dot.nonzeros}
            facts |= {"failure": dot.failure or None}
            print(as_json(facts | {"frontier": number in self.frontier.efficient}))
        dot = self.frontier.dots[kept]
        facts = {"event": "done", "model": options.model, "html": options.html}
        facts |= {"measure": self.frontier.measure, "folds": self.search.splits}
        facts |= {"best": self.settings[self.best], "chosen": self.settings[self.chosen]}
        facts |= {"kept": self.settings[kept], "error": dot.error, "standard_error": dot.spread}
        facts |= {"nonzeros": dot.nonzeros, "rows": self.search.rows}
        facts |= {"bad_lines": self.source.bad_lines.count, "seconds": round(self.seconds, 3)}
        print(as_json(facts))


def name_of(point: Point) -> str:
    """Return what tells a point from the others.

    Parameters
    ----------
    point : Point
    """
    return ", ".join(f"{name}={shown(value)}" for name, value in point.chosen.items())
