"""One rule after the other: parameters by cross-validation, models of random orders, measures."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from thresher.comparison.candidates import CANDIDATES, Candidate, configured, inner, seeded
from thresher.comparison.checkpoint import Checkpoint, packed, unpacked
from thresher.comparison.cross_validation import Folds
from thresher.comparison.cross_validation import choose as by_folds
from thresher.comparison.grids import Sizes
from thresher.comparison.measures import kappas_of, measure_of, measured, support_of
from thresher.comparison.result import RuleResult, row_of
from thresher.comparison.rows import Rows

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


@dataclass
class Run:
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
            tell("done", row=row)
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
        if not row.failure:  # one that failed is tried again from where it did
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
        square = self.rows.unit**2
        return {
            "chosen": chosen.point,
            "grid": grid,
            "cv_error": chosen.error * square,
            "cv_standard_error": chosen.standard_error * square,
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
            if (mse := measures.get("mse")) is not None:
                measures["mse"] = mse * self.rows.unit**2
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
