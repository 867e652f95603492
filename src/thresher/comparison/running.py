"""compare: every rule on one data set, under one protocol."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from thresher._version import __version__
from thresher.comparison.candidates import CANDIDATES, Candidate, configured, inner, seeded
from thresher.comparison.checkpoint import Checkpoint, packed, unpacked
from thresher.comparison.choosing import Folds
from thresher.comparison.choosing import choose as by_folds
from thresher.comparison.grids import Sizes
from thresher.comparison.measures import kappas_of, measure_of, measured, support_of
from thresher.comparison.result import Comparison, RuleResult, row_of
from thresher.comparison.rows import SCALES, Rows, rows_of
from thresher.errors import ParameterError
from thresher.stability.supports import is_whole
from thresher.training.lanes import threads_of

_CHOICES = ("best", "sparsest")
_OF_SEARCH = ("chosen", "grid", "cv_error", "cv_standard_error")


class CompareProgress(NamedTuple):
    """How far a comparison has come.

    Attributes
    ----------
    rule, title : str
        Which rule it is about.
    doing : str
        "search", before parameters are chosen; "orders", before each order; then "done", "skipped"
        or "failed".
    number, orders : int
        Of the order, from 1, and how many there are.
    place, rules : int
        Of the rule, from 1, and how many there are.
    seconds : float
        Since the comparison began.
    row : RuleResult or None
        What was found, where the rule is done with.
    """

    rule: str
    title: str
    doing: str
    number: int
    orders: int
    place: int
    rules: int
    seconds: float
    row: RuleResult | None = None


def compare(
    X: Any,
    y: Any = None,
    X_test: Any = None,
    y_test: Any = None,
    *,
    rules: Sequence[str] | None = None,
    loss: str | None = None,
    task: str | None = None,
    test_share: float = 0.25,
    orders: int = 10,
    folds: int = 5,
    choose: str = "best",
    scale: str | None = None,
    seed: int = 0,
    checkpoint: str | PathLike[str] | None = None,
    callback: Callable[[CompareProgress], Any] | None = None,
    n_jobs: int = 1,
) -> Comparison:
    """Compare every rule, and the usual controls, on one data set.

    Parameters of each rule are chosen by cross-validation on the training rows, over a grid that
    follows the data; then as many models as there are `orders` learn from the training rows, each
    in a random order of its own, and each predicts the test rows once. `docs/compare.md` says all
    of it.

    Parameters
    ----------
    X : CSR matrix, array, DataFrame of shape (rows, features), or source
        Training rows; all rows, where no test rows are given. They are held in memory.
    y : array of shape (rows,)
        Labels: two or more classes, or numbers. A source has its own.
    X_test, y_test : like X and y, optional
        Test rows. By default a share of the rows, drawn by `seed`, stratified by classes.
    rules : sequence of str, optional
        Which to compare; by default all that are for the task and not too expensive for the data.
        Those named here are tried at any expense.
    loss : str, optional
        Of all rules that have it; others take the nearest, or are left out, and say so. By default
        "logistic" for classes, "squared" (averaged SGD: "huber") for numbers.
    task : {"classification", "regression"}, optional
        By default what the loss is for, else regression where a label is not whole.
    test_share : float, default=0.25
        Share of the rows that is put aside, where no test rows are given.
    orders : int, default=10
        Models of each rule, each of a random order of the training rows.
    folds : int, default=5
        Of the cross-validation, stratified by classes, and the same for all rules.
    choose : {"best", "sparsest"}, default="best"
        Parameters of the least mean error over folds (of equals, the sparsest), or those of the
        sparsest models whose mean error is within one standard error of it.
    scale : {"unit-norm", "variance"}, optional
        "unit-norm": rows are divided by their norms; "variance": columns by their root mean squares
        over the training rows (`UnitVarianceScaler`). By default rows are taken as they are.
    seed : int, default=0
        Of the split, the folds, the searches, the orders.
    checkpoint : path, optional
        A file that what is finished is kept in. A second call with the same data and settings goes
        on from it; one with others is refused.
    callback : callable, optional
        Called with a `CompareProgress` before and after all that takes time.
    n_jobs : int, default=1
        Threads of the searches; -1 is one for each processor. Models whose fit is timed are
        trained one after the other whatever it says, and results do not depend on it.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np, thresher
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 40))
    >>> y = X[:, 3] - X[:, 7] + rng.normal(size=300) > 0
    >>> found = thresher.compare(X, y, rules=["ftrl", "dual-averaging", "lasso"], orders=3)
    >>> found["ftrl"].error.mean < 35 and found["ftrl"].nonzeros.mean < 100
    True
    >>> found.about["training rows"], found.about["test rows"], len(found)
    (225, 75, 3)
    """
    names = _checked_rules(rules)
    _check_whole("orders", orders, 1)
    _check_whole("folds", folds, 2)
    _check_whole("seed", seed, 0)
    if choose not in _CHOICES:
        raise ParameterError(f"choose must be one of {', '.join(_CHOICES)}; got {choose!r}")
    if scale not in SCALES:
        known = ", ".join(map(repr, SCALES))
        raise ParameterError(f"scale must be one of {known}; got {scale!r}")
    threads_of(n_jobs)
    given = X_test is not None
    rows = rows_of(X, y, X_test, y_test, loss=loss, task=task, test_share=test_share, seed=seed)
    settings: dict[str, Any] = {
        "version": __version__,
        "task": rows.task,
        "loss": loss,
        "test_share": None if given else test_share,
        "orders": orders,
        "folds": folds,
        "choose": choose,
        "scale": scale,
        "seed": seed,
    }
    kept = Checkpoint(checkpoint, {**settings, **rows.digests})
    rows = rows.scaled_by(scale)
    named = rules is not None
    if not named:
        names = [name for name in names if rows.kind in CANDIDATES[name].tasks]
    run = _Run(rows, settings, rows.folds(folds, seed), kept, callback, n_jobs, len(names))
    found = [run.rule(name, place, named) for place, name in enumerate(names, 1)]
    about = {
        **settings,
        "classes": [str(label) for label in rows.classes],
        "training rows": rows.X.shape[0],
        "test rows": rows.X_test.shape[0],
        "columns": rows.X.shape[1],
        "digests": rows.digests,
    }
    return Comparison(about, found)


def _checked_rules(rules: Sequence[str] | None) -> list[str]:
    if rules is None:
        return list(CANDIDATES)
    names = [rules] if isinstance(rules, str) else list(rules)
    for name in names:
        if name not in CANDIDATES:
            raise ParameterError(f"rules: must be of {', '.join(CANDIDATES)}; got {name!r}")
    if not names:
        raise ParameterError(f"rules must name at least one of {', '.join(CANDIDATES)}")
    return list(dict.fromkeys(names))


def _check_whole(name: str, value: Any, least: int) -> None:
    if not is_whole(value) or not least <= value < 2**31:
        raise ParameterError(f"{name} must be a whole number >= {least}; got {value!r}")


@dataclass
class _Run:
    """One comparison: what all rules share."""

    rows: Rows
    settings: Mapping[str, Any]
    folds: Folds
    checkpoint: Checkpoint
    callback: Callable[[CompareProgress], Any] | None
    n_jobs: int
    count: int
    began: float = field(default_factory=time.perf_counter)
    sizes: dict[str, Sizes] = field(default_factory=dict)

    def rule(self, name: str, place: int, named: bool) -> RuleResult:
        """Return what is found of a rule; one that is named is tried at any expense."""
        candidate, kind = CANDIDATES[name], self.rows.kind

        def tell(doing: str, number: int = 0, row: RuleResult | None = None) -> None:
            if self.callback is not None:
                seconds = time.perf_counter() - self.began
                at = number, self.settings["orders"], place, self.count
                self.callback(CompareProgress(name, candidate.title, doing, *at, seconds, row))

        def skipped(why: str) -> RuleResult:
            row = RuleResult(name, candidate.title, control=candidate.control, skipped=why)
            tell("skipped", row=row)
            return row

        known = self.checkpoint.of(name)
        if "row" in known:
            row = row_of(known["row"])
            tell("failed" if row.failure else "done", row=row)
            return row
        if kind not in candidate.tasks:
            wanted = "classes" if kind == "regressor" else "numbers"
            return skipped(f"it is a rule for {wanted}")
        loss = candidate.loss_for(kind, self.settings["loss"])
        if not loss:
            return skipped(f"it has no loss {self.settings['loss']}")
        if loss not in self.sizes:
            self.sizes[loss] = self.rows.sizes(loss)
        cost = "" if named or candidate.cost is None else candidate.cost(self.sizes[loss])
        if cost:
            return skipped(cost)
        row = self._tried(name, candidate, self.sizes[loss], known, tell)
        known.clear()
        known["row"] = asdict(row)
        self.checkpoint.write()
        tell("failed" if row.failure else "done", row=row)
        return row

    def _tried(
        self,
        name: str,
        candidate: Candidate,
        sizes: Sizes,
        known: dict[str, Any],
        tell: Callable[..., None],
    ) -> RuleResult:
        """Choose parameters, train, measure; go on from what is known."""
        found: dict[str, Any] = {
            "rule": name,
            "title": candidate.title,
            "loss": sizes.loss,
            "control": candidate.control,
        }
        try:
            estimator = candidate.make(sizes, self.settings["seed"])
            for work in self._units(candidate, estimator, sizes, known, tell):
                with _failing():
                    work()
                self.checkpoint.write()
            found |= {part: known["search"][part] for part in _OF_SEARCH}
            with _failing():
                return self._concluded(dict(found), known["search"], known["orders"])
        except _Failure as failure:
            return RuleResult(**found, failure=str(failure))

    def _units(
        self,
        candidate: Candidate,
        estimator: Any,
        sizes: Sizes,
        known: dict[str, Any],
        tell: Callable[..., None],
    ) -> Iterator[Callable[[], None]]:
        """Give what is left to do, one thing at a time; each adds to what is known."""
        if "search" not in known:
            tell("search")
            yield lambda: known.update(search=self._search(candidate, estimator, sizes))
        configured(estimator, known["search"]["chosen"])
        orders = known.setdefault("orders", [])
        for number in range(len(orders), self.settings["orders"]):
            tell("orders", number + 1)
            yield lambda: orders.append(self._order(estimator, len(orders)))

    def _search(self, candidate: Candidate, estimator: Any, sizes: Sizes) -> dict[str, Any]:
        """Choose parameters by cross-validation."""
        grid = candidate.grid(inner(estimator), sizes)
        with _warned():  # of all points: those of the chosen one come again
            chosen = by_folds(
                estimator,
                grid,
                self.rows.X,
                self.rows.y,
                self.folds,
                task=self.rows.task,
                lanes=candidate.lanes,
                how=self.settings["choose"],
                n_jobs=self.n_jobs if candidate.threads else 1,
            )
        notes = [f"{name} is at the end of its grid" for name in chosen.edges]
        if chosen.failed:
            notes.append(f"{chosen.failed} of {chosen.tried} points of the grid failed")
        wanted = self.settings["loss"]
        if wanted is not None and sizes.loss != wanted:
            notes.append(f"its loss is {sizes.loss}: it has no loss {wanted}")
        return {
            "chosen": chosen.point,
            "grid": grid,
            "cv_error": chosen.error,
            "cv_standard_error": chosen.standard_error,
            "notes": notes,
        }

    def _order(self, estimator: Any, number: int) -> dict[str, Any]:
        """Train in one random order of the training rows, and predict the test rows once."""
        rng = np.random.default_rng([self.settings["seed"], number])
        order = rng.permutation(self.rows.X.shape[0])
        X, y = self.rows.X[order], self.rows.y[order]
        model = seeded(clone(estimator), int(rng.integers(2**31)))
        with _warned() as warned:
            began = time.perf_counter()
            model.fit(X, y)
            seconds = time.perf_counter() - began
            columns = X.shape[1]
            support = support_of(model, columns)
            measures = measured(model, self.rows.X_test, self.rows.y_test, self.rows.task)
        return {
            **measures,
            "nonzeros": float(100.0 * np.count_nonzero(support) / columns),
            "seconds": seconds,
            "support": packed(support),
            "warnings": warned,
        }

    def _concluded(
        self, found: dict[str, Any], search: Mapping[str, Any], orders: list[dict[str, Any]]
    ) -> RuleResult:
        """Return means and standard deviations over the orders."""
        runs = [
            {name: value for name, value in run.items() if name not in ("support", "warnings")}
            for run in orders
        ]
        for name in runs[0]:
            values = [run[name] for run in runs]
            found[name] = None if None in values else measure_of(values)
        columns = self.rows.X.shape[1]
        kappas = kappas_of([unpacked(run["support"], columns) for run in orders], columns)
        found["kappa"] = measure_of(kappas) if kappas else None
        warned = [run["warnings"] for run in orders if run["warnings"]]
        notes = (*search["notes"], *(warned[0] if warned else ()))
        return RuleResult(**found, runs=tuple(runs), notes=notes)


class _Failure(Exception):
    """Why a rule failed; what goes wrong elsewhere, as in a callback, is not taken for it."""


@contextmanager
def _failing() -> Iterator[None]:
    """Take what a rule raises for its failure."""
    try:
        yield
    except (ArithmeticError, ValueError, RuntimeError, MemoryError) as error:
        raise _Failure(str(error) or type(error).__name__) from error


@contextmanager
def _warned() -> Iterator[list[str]]:
    """Collect what is warned of: of each kind the first."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        yield texts
    first = {warning.category: str(warning.message) for warning in reversed(caught)}
    texts += reversed(first.values())
