"""The result of `thresher tune`: the model, the page and the printed table."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from thresher._version import __version__
from thresher.atomic import write_whole, written_together
from thresher.cli.options.parsed import TuneOptions
from thresher.cli.render.output import show, show_lines, show_record
from thresher.cli.render.texts import as_json, counted
from thresher.data.distinct import distinct_keys
from thresher.data.source import Source
from thresher.errors import DivergenceError
from thresher.model.frontier import Dot, Frontier, Place, errors_of, shown
from thresher.model.name_arrays import only
from thresher.report.frontier import text_chart
from thresher.report.search_results import cells_of, error_text, html_page, text_table
from thresher.search.grid import GridPoint
from thresher.search.model_groups import ModelResult
from thresher.search.results import failures_of, scores_of
from thresher.search.search import Search

# Parameters that the page shows elsewhere, or that do not change the models.
_NOT_LISTED = frozenset(
    (
        *("loss", "passes", "shuffle", "random_state", "store", "dtype", "callback", "n_jobs"),
        *("warm_start", "tol", "patience", "verbose"),
    )
)
_ORDERS = {"each": "rows shuffled", "blocks": "rows shuffled within blocks"}


class SearchResult:
    """What a search found.

    Parameters
    ----------
    points : sequence of GridPoint
    found : mapping
        Scores by numbers of point and fold.
    scoring : str
    search : Search
    source : Source
    seconds : float
    """

    def __init__(
        self,
        points: Sequence[GridPoint],
        found: Mapping[tuple[int, int], ModelResult],
        scoring: str,
        search: Search,
        source: Source,
        seconds: float,
    ) -> None:
        self.points, self.search, self.source, self.seconds = points, search, source, seconds
        self.settings, self.scoring = [point.chosen for point in points], scoring
        self.folds = search.splits.whole or 0
        folds = max(self.folds, 1)
        scores = scores_of(found, len(points), folds)
        failures = failures_of(found, len(points), folds)
        measure, errors = errors_of(scores, scoring, search.estimator.task == "classifier")
        dots = []
        for point, own, failure in zip(points, errors, failures, strict=True):
            spread = float(own.std(ddof=1)) / math.sqrt(folds) if folds > 1 else None
            nonzeros = found[point.number, self.folds].nonzeros  # of the model trained on all rows
            dots.append(Dot(name_of(point), nonzeros, float(own.mean()), spread, failure))
        self.frontier = Frontier(dots, measure if folds > 1 else f"progressive {measure}")
        if self.frontier.best is None or self.frontier.chosen is None:
            why = next((failure for failure in failures if failure), "no score")
            raise DivergenceError(f"all models of the grid failed; the first: {why}")
        self.best, self.chosen = self.frontier.best, self.frontier.chosen
        outputs = len(search.model_of(points[self.best].number).intercept)
        self.models = outputs * len(points) * (self.folds + 1)  # the same number as in the progress
        self.scored = f"{self.folds} folds" if self.folds else "each scored before it was learned"

    def write(self, options: TuneOptions) -> None:
        """Write the model, and the page if --html was given: both or none of them."""
        kept = self.chosen if options.sparsest else self.best
        model = self.search.model_of(self.points[kept].number)
        if options.names and self.source.named and self.source.rereadable:
            features = distinct_keys([model.indices])
            found = self.source.names(features.tolist())
            model = replace(model, names=only(found, features) or None)
        model = replace(model, frontier=Place.of(self.frontier, kept))
        with written_together():
            model.save(options.model)
            if options.html is not None:
                write_whole(options.html, self._page(options, kept).encode())

    def _page(self, options: TuneOptions, kept: int) -> str:
        model = self.search.model_of(self.points[kept].number)
        params = {**self.points[kept].params, **model.parameters}
        params = {name: params[name] for name in self.points[kept].params}
        fixed = {
            name: value
            for name, value in params.items()
            if not any(name in setting for setting in self.settings)
            and name not in _NOT_LISTED
            and value is not None
        }
        facts = {
            "data": str(self.source),
            "rows": f"{self.search.rows:,}, {self.scored}",
            "rule": str(options.rule),
            "loss": self._loss(),
            "score": f"{self.scoring.removeprefix('neg_')}; the table shows the "
            f"{self.frontier.measure}",
            "passes": f"{params.get('passes', 1)}, "
            + _ORDERS.get(options.shuffle or "", "rows in their order"),
            "seed": str(options.seed or 0),
            "store": f"{params.get('store', 'dense')}, {params.get('dtype', 'float64')}",
            "other parameters": ", ".join(f"{name}={shown(v)}" for name, v in fixed.items()),
            "best": self._dot_text(self.best),
        }
        if self.chosen != self.best:
            facts["sparsest within one standard error"] = self._dot_text(self.chosen)
        facts["model"] = f"{options.model}: {self.frontier.dots[kept].name}"
        facts["time"] = f"{self.seconds:.1f} s"
        facts["made by"] = f"thresher {__version__}"
        facts["command"] = shlex.join(["thresher", *sys.argv[1:]])
        title = f"{options.rule}: {counted(len(self.points), 'combination')} on {self.source}"
        return html_page(title, self.frontier, self.settings, facts)

    def _loss(self) -> str:
        losses = dict.fromkeys(
            self.search.model_of(point.number).loss
            for point in self.points
            if self.search.has_model(point.number)
        )
        return ", ".join(losses)

    def _dot_text(self, number: int) -> str:
        dot = self.frontier.dots[number]
        spread = "" if dot.spread is None else f" +- {error_text(dot.spread)}"
        return (
            f"{dot.name}, {self.frontier.measure} {error_text(dot.error)}{spread}, "
            f"{dot.nonzeros:,} nonzero weights"
        )

    def report(self, options: TuneOptions) -> None:
        """Print the table, the chart and the best model."""
        kept = self.chosen if options.sparsest else self.best
        if options.json:
            self._as_json(options, kept)
            return
        if options.quiet:
            return
        show_lines(text_table(*cells_of(self.frontier, self.settings)))
        show()
        show_lines(text_chart(self.frontier))
        show()
        tried = counted(len(self.points), "combination")
        show(
            f"{self.search.rows:,} rows, {self.scored}; {tried}, {counted(self.models, 'model')} "
            f"in {self.seconds:.2f} s"
        )
        kind = "sparsest" if options.sparsest else "best"
        show(f"{kind}: {self._dot_text(kept)} -> {options.model}")
        if options.html is not None:
            show(f"page -> {options.html}")

    def _as_json(self, options: TuneOptions, kept: int) -> None:
        for number, dot in enumerate(self.frontier.dots):
            facts: dict[str, Any] = {"event": "point", "params": self.settings[number]}
            facts |= {"error": dot.error, "standard_error": dot.spread, "nonzeros": dot.nonzeros}
            facts |= {"failure": dot.failure or None}
            show_record(as_json(facts | {"frontier": number in self.frontier.efficient}))
        dot = self.frontier.dots[kept]
        facts = {"event": "done", "model": options.model, "html": options.html}
        facts |= {"measure": self.frontier.measure, "folds": self.folds}
        facts |= {"best": self.settings[self.best], "chosen": self.settings[self.chosen]}
        facts |= {"kept": self.settings[kept], "error": dot.error, "standard_error": dot.spread}
        facts |= {"nonzeros": dot.nonzeros, "rows": self.search.rows}
        facts |= {"bad_lines": self.source.bad_lines.count, "seconds": round(self.seconds, 3)}
        show_record(as_json(facts))


def name_of(point: GridPoint) -> str:
    """Return the parameters of a point of the grid as text."""
    return ", ".join(f"{name}={shown(value)}" for name, value in point.chosen.items())
