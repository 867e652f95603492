"""`thresher tune`: from files and a grid to the best model."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from thresher.cli.grid import grid_of
from thresher.cli.options import parameters, task_of
from thresher.cli.outputs import aside_of, check_outputs
from thresher.cli.show import Shown
from thresher.cli.show import shown as watched_by
from thresher.cli.train import Options as TrainOptions
from thresher.cli.train import (
    check_loss,
    class_weights,
    classes_of,
    store_of,
)
from thresher.cli.tune_result import Result
from thresher.cli.tune_show import Table
from thresher.cli.wording import shell_words
from thresher.data.block import Block
from thresher.data.source import Source, scan
from thresher.errors import ParameterError
from thresher.estimators import estimator_class
from thresher.losses import Task
from thresher.rules import RULES
from thresher.search.grid import Point, check_probabilities, point_of
from thresher.search.readings import checked_limit
from thresher.search.streams import StreamSearch
from thresher.training.labels import Labels, ManyClasses, TwoClasses
from thresher.training.plan import alpha_for
from thresher.training.scores import SCORES, scores_named

LANE_RULES = tuple(name for name, rule in RULES.items() if rule.lanes)
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass
class Options(TrainOptions):
    """What the command line said."""

    grid: Sequence[str] = ()
    folds: int | None = None
    scoring: str | None = None
    sparsest: bool = False
    memory: str | None = None
    html: str | None = None


def tune(options: Options) -> int:
    """Search as the options say; return the exit code."""
    try:
        with shell_words():
            _tune(options)
    except KeyboardInterrupt:  # files are written whole or not at all
        print("interrupted", file=sys.stderr)
        return 130
    return 0


def _tune(options: Options) -> None:
    began = time.perf_counter()
    task, grid, scoring, limit = _checked(options)
    watcher = watched_by(True, False, options.passes or 1)  # it minds Ctrl-C, and shows warnings
    source = _opened(options, watcher)
    params = _params(options, task, source)
    estimator = estimator_of(options.rule, task, params)
    points = points_of(estimator, grid)
    named = scores_named(scoring, task)
    check_probabilities({scoring.removeprefix("neg_"): named["score"]}, points)
    source = _readied(options, source, watcher, params)
    if options.class_weight is not None:
        weights = class_weights(options.class_weight, _labels(options, source))
        points = points_of(estimator.set_params(class_weight=weights), grid)
    rate = RULES[options.rule].rate_from_rows
    if rate and options.chosen.get(rate, "auto") == "auto" and rate not in grid:
        source, found_rate = _with_rate(source, str(params["dtype"]))
        points = points_of(estimator.set_params(**{rate: found_rate}), grid)
    folds = (options.folds or 5) if source.rereadable else 0
    table = Table(points, options.quiet, options.json)
    table.search = search = _Search(
        estimator,
        source,
        folds,
        named,
        limit,
        options.reading.get("threads") or -1,
        table.tell,
        classes_of(options),
        whole=True,
    )
    search.two = task == "classifier" and not options.multiclass and options.classes is None
    try:
        found = search.go(points)
    finally:
        table.close()
    result = Result(points, found, scoring, search, source, time.perf_counter() - began)
    result.write(options)
    result.report(options)


class _Search(StreamSearch):
    """A search over a source, whose labels are -1 and 1, or 0 and 1, where `two` is true."""

    two = False
    _labels: Labels | None = None

    def see(self, block: Block) -> None:
        """Raise DataError for other labels."""
        if self.two:
            self._labels = self._labels or TwoClasses()
            self._labels.targets(block)


# ---- before rows are read ------------------------------------------------------------------------


def _checked(options: Options) -> tuple[Task, dict[str, list[Any]], str, int]:
    """Return the task, the grid, the score and the limit of memory."""
    if options.rule not in LANE_RULES:
        raise ParameterError(
            f"--rule must be one of {', '.join(LANE_RULES)}, which learn row by row; got "
            f"{options.rule!r}"
        )
    own_loss = {}
    if options.loss is not None:
        check_loss(options)
        own_loss["loss"] = options.loss
    grid = grid_of(options.rule, options.grid, {**options.chosen, **own_loss})
    if not grid:
        own = RULES[options.rule].penalty or next(iter(RULES[options.rule].own))
        raise ParameterError(
            f"--grid is needed: NAME=A,B,C or NAME=A..B:N, such as {own}=1e-6..1e-2:9"
        )
    labelled = options.multiclass or options.classes is not None
    losses = grid.get("loss", [options.loss])
    task = task_of(options.rule, losses[0], labelled)
    if any(task_of(options.rule, loss, labelled) != task for loss in losses):
        raise ParameterError(
            f"--grid loss={','.join(losses)}: losses must be all for classes, or all for numbers; "
            f"--classes says that labels are classes"
        )
    scoring, limit = scoring_of(options.scoring, task), checked_limit(bytes_of(options.memory))
    if task == "regressor" and options.class_weight is not None:
        raise ParameterError("--class-weight needs classes; the loss is one for numbers")
    results = {"--model": options.model, "--html": options.html}
    check_outputs(results, {"--cache": options.cache, "--on-bad-line": aside_of(options.reading)})
    return task, grid, scoring, limit


def _opened(options: Options, watcher: Shown) -> Source:
    """Return the source, of which nothing has been read but its first bytes."""
    source = watcher.watched(scan(list(options.data), **options.reading))
    aside = aside_of(options.reading)
    source.spare(options.model, options.cache, options.html, aside)
    if source.rereadable or options.cache is not None:
        return source
    if (options.passes or 1) > 1:
        raise ParameterError("more than one pass over standard input needs --cache FILE")
    if options.folds is not None:
        raise ParameterError(
            "--folds needs rows that can be read twice: standard input needs --cache FILE; without "
            "--folds each row is scored before it is learned"
        )
    if options.sparsest:
        raise ParameterError(
            "--sparsest needs the standard errors of folds, and so rows that can be read twice: "
            "standard input needs --cache FILE"
        )
    if options.multiclass and options.classes is None:
        raise ParameterError(
            "--multiclass from standard input needs --classes, or --cache FILE to find them"
        )
    return source


def _params(options: Options, task: Task, source: Source) -> dict[str, Any]:
    """Return all parameters of the estimator but for those of the grid and of what rows tell."""
    defaults: dict[str, Any] = {"random_state": options.seed}
    if options.loss is not None:
        defaults["loss"] = options.loss
    chosen = {k: v for k, v in options.chosen.items() if (k, v) != ("alpha", "auto")}
    params = parameters(options.rule, task, chosen, defaults)
    params |= {"passes": options.passes or 1, "shuffle": "each" if options.shuffle else False}
    if "store" in params:
        params["store"] = store_of(options, source)
    return params


def _readied(options: Options, source: Source, watcher: Shown, params: Mapping[str, Any]) -> Source:
    """Return the cache of the source, where one is wanted."""
    if options.cache is None:
        return source
    from thresher.cli.caching import cached

    dtype = str(params.get("dtype", "float64"))
    return watcher.watched(cached(source, options.cache, options.reading, watcher, dtype))


def _labels(options: Options, source: Source) -> Labels:
    known = classes_of(options)
    if known is None and not options.multiclass:
        return TwoClasses()
    return ManyClasses(source.labels() if known is None else known)


def points_of(estimator: Any, grid: dict[str, list[Any]]) -> list[Point]:
    """Return all combinations of a grid, the last parameter changing fastest."""
    return [
        point_of(estimator, number, dict(zip(grid, values, strict=True)))
        for number, values in enumerate(product(*grid.values()))
    ]


def estimator_of(rule: str, task: Task, params: Mapping[str, Any]) -> Any:
    """Return the estimator of a rule, with those of the parameters that it has."""
    cls = estimator_class(rule, task)
    known = cls().get_params()
    return cls(**{name: value for name, value in params.items() if name in known})


def scoring_of(name: str | None, task: Task) -> str:
    """Return the score that a name stands for, with or without neg_ before it.

    Raises ParameterError for one that there is not, or not for this task.

    Examples
    --------
    >>> scoring_of("log_loss", "classifier")
    'neg_log_loss'
    """
    if name is None:
        return "accuracy" if task == "classifier" else "r2"
    allowed = {s.removeprefix("neg_"): s for s, score in SCORES.items() if score.task == task}
    word = name.replace("-", "_").removeprefix("neg_")
    if word not in allowed:
        what = "classes" if task == "classifier" else "numbers"
        raise ParameterError(
            f"--scoring must be one of {', '.join(allowed)} for {what}; got {name!r}"
        )
    return allowed[word]


def bytes_of(text: str | None) -> int | None:
    """Return the bytes of 500M, 4G or 1e9.

    Examples
    --------
    >>> bytes_of("1.5G")
    1500000000
    """
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d*)?(?:e\d+)?)\s*([kMGT]?)B?", text.strip())
    if found is None or float(found[1]) * _UNITS[found[2]] < 1:
        raise ParameterError(f"--memory must be a size such as 500M or 4G; got {text!r}")
    return int(float(found[1]) * _UNITS[found[2]])


# ---- the rate of FTRL ----------------------------------------------------------------------------


class Begun(Source):
    """A source of which the first block has been read, and comes again from memory.

    Parameters
    ----------
    source : Source
        One that can be read only once.
    dtype : str
        Number type of the values.
    """

    def __init__(self, source: Source, dtype: str) -> None:
        vars(self).update(vars(source))
        self._rest = source.blocks(dtype=dtype, names="blocks" if source.named else False)
        self.first_block = next(self._rest, None)

    def blocks(self, *args: Any, **options: Any) -> Iterator[Block]:
        """Read the rows, once, as they were begun."""
        if self.first_block is not None:
            yield self.first_block
        yield from self._rest


def _with_rate(source: Source, dtype: str) -> tuple[Source, float]:
    """Return the source, and the rate of FTRL that fits its first rows, as `train` chooses it."""
    if source.rereadable:
        first = next(iter(source.blocks()), None)
    else:
        source = Begun(source, dtype)
        first = source.first_block
    return source, 1.0 if first is None or not first.rows else alpha_for(first)
