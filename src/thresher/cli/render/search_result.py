"""What `thresher tune` has found: the model and the page it writes, and what it says."""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from thresher._version import __version__
from thresher.atomic import written_whole
from thresher.cli.render.progress import as_json
from thresher.data.source import Source
from thresher.errors import DivergenceError
from thresher.model.frontier import Dot, Frontier, Place, errors_of, shown
from thresher.report.frontier import text_chart
from thresher.report.search_results import cells_of, error_text, html_page, text_table
from thresher.search.grid import GridPoint
from thresher.search.model_groups import ModelResult
from thresher.search.results import failures_of, name_features, scores_of
from thresher.search.search import Search

if TYPE_CHECKING:
    from thresher.cli.commands.tune import Options


# Parameters that the page tells by themselves, or that say nothing of the models.
_TOLD = frozenset(
    (
        *("loss", "passes", "shuffle", "random_state", "store", "dtype", "callback", "n_jobs"),
        *("warm_start", "tol", "patience"),
    )
)


class Result:
    """The end of a search.

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
            nonzeros = found[point.number, self.folds].nonzeros  # of the model of all rows
            dots.append(Dot(name_of(point), nonzeros, float(own.mean()), spread, failure))
        self.frontier = Frontier(dots, measure if folds > 1 else f"progressive {measure}")
        if self.frontier.best is None or self.frontier.chosen is None:
            why = next((failure for failure in failures if failure), "no score")
            raise DivergenceError(f"no model of the grid has an error; the first: {why}")
        self.best, self.chosen = self.frontier.best, self.frontier.chosen
        outputs = len(search.models[points[self.best].number].model_.intercept)
        self.models = outputs * len(points) * (self.folds + 1)  # as progress counts them
        self.scored = f"{self.folds} folds" if self.folds else "each scored before it was learned"

    def write(self, options: Options) -> None:
        """Write the model, and the page where one is wanted: both or none, and each whole."""
        kept = self.chosen if options.sparsest else self.best
        best = self.search.models[self.points[kept].number]
        if options.names and self.source.named and self.source.rereadable:
            name_features([best], self.source)
        model = best.amend(place=Place.of(self.frontier, kept)).model_
        if options.html is None:
            model.save(options.model)
            return
        with written_whole(options.html) as file:  # it has its name when the model has its own
            file.write(self._page(options, kept).encode())
            file.flush()
            if os.path.isfile(file.name):
                os.fsync(file.fileno())
            model.save(options.model)

    def _page(self, options: Options, kept: int) -> str:
        model = self.search.models[self.points[kept].number].model_
        params = {**self.points[kept].params, **model.parameters}
        params = {name: params[name] for name in self.points[kept].params}
        fixed = {
            name: value
            for name, value in params.items()
            if not any(name in setting for setting in self.settings)
            and name not in _TOLD
            and value is not None
        }
        facts = {
            "data": str(self.source),
            "rows": f"{self.search.rows:,}, {self.scored}",
            "rule": str(options.rule),
            "loss": self._loss(),
            "score": f"{self.scoring.removeprefix('neg_')}; shown is the {self.frontier.measure}",
            "passes": f"{options.passes or 1}, "
            + ("rows shuffled within blocks" if options.shuffle else "rows in their order"),
            "seed": str(options.seed or 0),
            "store": f"{params.get('store', 'dense')}, {params.get('dtype', 'float64')}",
            "other parameters": ", ".join(f"{name}={shown(v)}" for name, v in fixed.items()),
            "best": self._said(self.best),
        }
        if self.chosen != self.best:
            facts["sparsest within one standard error"] = self._said(self.chosen)
        facts["model"] = f"{options.model}: {self.frontier.dots[kept].name}"
        facts["time"] = f"{self.seconds:.1f} s"
        facts["made by"] = f"thresher {__version__}"
        facts["command"] = shlex.join(["thresher", *sys.argv[1:]])
        title = f"{options.rule}: {counted(len(self.points), 'combination')} on {self.source}"
        return html_page(title, self.frontier, self.settings, facts)

    def _loss(self) -> str:
        losses = dict.fromkeys(model.model_.loss for model in self.search.models.values())
        return ", ".join(losses)

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
        tried = counted(len(self.points), "combination")
        print(
            f"{self.search.rows:,} rows, {self.scored}; {tried}, {counted(self.models, 'model')} "
            f"in {self.seconds:.2f} s"
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
        facts |= {"measure": self.frontier.measure, "folds": self.folds}
        facts |= {"best": self.settings[self.best], "chosen": self.settings[self.chosen]}
        facts |= {"kept": self.settings[kept], "error": dot.error, "standard_error": dot.spread}
        facts |= {"nonzeros": dot.nonzeros, "rows": self.search.rows}
        facts |= {"bad_lines": self.source.bad_lines.count, "seconds": round(self.seconds, 3)}
        print(as_json(facts))


def counted(number: int, what: str) -> str:
    """Return so many of something.

    Parameters
    ----------
    number : int
    what : str
        One of them.

    Examples
    --------
    >>> counted(1, "model"), counted(1200, "model")
    ('1 model', '1,200 models')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def name_of(point: GridPoint) -> str:
    """Return what tells a point from the others.

    Parameters
    ----------
    point : GridPoint
    """
    return ", ".join(f"{name}={shown(value)}" for name, value in point.chosen.items())
