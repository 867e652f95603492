"""The protocol of a comparison: cross-validation, models of random orders, measures."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from thresher.comparison.candidates import (
    CANDIDATES,
    Candidate,
    configured,
    fit_weighted,
    inner,
    seeded,
)
from thresher.comparison.checkpoint import (
    ComparisonCheckpoint,
    support_from_text,
    support_to_text,
)
from thresher.comparison.cross_validation import Folds
from thresher.comparison.cross_validation import choose as choose_by_folds
from thresher.comparison.grids import Sizes
from thresher.comparison.measures import kappas_of, measure_of, measured, support_of
from thresher.comparison.result import RuleResult, row_of
from thresher.comparison.rows import ComparisonRows

_SEARCH_RESULTS = ("chosen", "grid", "cv_error", "cv_standard_error")


class CompareProgress(NamedTuple):
    """Progress of a comparison.

    Attributes
    ----------
    rule, title : str
        The rule, and its name in tables.
    doing : str
        "search" before parameters are chosen; "orders" before each order; at the end "done",
        "skipped" or "failed".
    number, orders : int
        Number of the order, from 1, and the number of all orders.
    place, rules : int
        Number of the rule, from 1, and the number of all rules.
    seconds : float
        Time since the comparison began.
    row : RuleResult or None
        The result, at the end of a rule.
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

    def __str__(self) -> str:
        doing = self.doing
        if doing in ("search", "orders"):
            order = f"order {self.number} of {self.orders}"
            doing = "choosing parameters" if doing == "search" else order
        return f"rule {self.place} of {self.rules}, {self.title}: {doing}"


@dataclass
class ComparisonRun:
    """Runs one rule after the other, with the same rows, settings and folds."""

    rows: ComparisonRows
    settings: Mapping[str, Any]
    folds: Folds
    checkpoint: ComparisonCheckpoint
    callback: Callable[[CompareProgress], Any] | None
    n_jobs: int
    count: int
    began: float = field(default_factory=time.perf_counter)
    sizes: dict[str, Sizes] = field(default_factory=dict)

    def run_rule(self, name: str, place: int, named: bool) -> RuleResult:
        """Return the result of a rule; one that is `named` is run even if it takes long."""
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
            other = "classification" if kind == "regressor" else "regression"
            return skipped(f"it is only for {other}")
        loss = candidate.loss_for(kind, self.settings["loss"])
        if not loss:
            return skipped(f"it has no loss {self.settings['loss']}")
        if loss not in self.sizes:
            self.sizes[loss] = self.rows.sizes(loss)
        cost = "" if named or candidate.cost is None else candidate.cost(self.sizes[loss])
        if cost:
            return skipped(cost)
        row = self._result(name, candidate, self.sizes[loss], known, tell)
        if not row.failure:  # a rule that failed is tried again when the comparison is continued
            known.clear()
            known["row"] = asdict(row)
            self.checkpoint.write()
        tell("failed" if row.failure else "done", row=row)
        return row

    def _result(
        self,
        name: str,
        candidate: Candidate,
        sizes: Sizes,
        known: dict[str, Any],
        tell: Callable[..., None],
    ) -> RuleResult:
        """Choose parameters, train and measure, without repeating what is in the checkpoint."""
        found: dict[str, Any] = {
            "rule": name,
            "title": candidate.title,
            "loss": sizes.loss,
            "control": candidate.control,
        }
        try:
            estimator = candidate.make(sizes, self.settings["seed"])
            for step in self._steps(candidate, estimator, sizes, known, tell):
                with _catch_failure():
                    step()
                self.checkpoint.write()
            found |= {part: known["search"][part] for part in _SEARCH_RESULTS}
            with _catch_failure():
                return self._summary(dict(found), known["search"], known["orders"])
        except _Failure as failure:
            return RuleResult(**found, failure=str(failure))

    def _steps(
        self,
        candidate: Candidate,
        estimator: Any,
        sizes: Sizes,
        known: dict[str, Any],
        tell: Callable[..., None],
    ) -> Iterator[Callable[[], None]]:
        """Yield the steps that are left; each adds its result to `known`."""
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
        with _collect_warnings():  # discarded: the chosen point gives its warnings again below
            chosen = choose_by_folds(
                estimator,
                grid,
                self.rows.X,
                self.rows.y,
                self.folds,
                task=self.rows.task,
                lanes=candidate.lanes,
                how=self.settings["choose"],
                n_jobs=self.n_jobs if candidate.threads else 1,
                weights=self.rows.weights,
            )
        notes = [f"the chosen {name} is at the end of its grid" for name in chosen.edges]
        if chosen.failed:
            notes.append(f"{chosen.failed} of {chosen.tried} points of the grid failed")
        wanted = self.settings["loss"]
        if wanted is not None and sizes.loss != wanted:
            notes.append(f"trained with the loss {sizes.loss}: it has no loss {wanted}")
        square = self.rows.unit**2
        return {
            "chosen": chosen.point,
            "grid": grid,
            "cv_error": chosen.error * square,
            "cv_standard_error": chosen.standard_error * square,
            "notes": notes,
        }

    def _order(self, estimator: Any, number: int) -> dict[str, Any]:
        """Train on a random order of the training rows, and predict the test rows once."""
        rng = np.random.default_rng([self.settings["seed"], number])
        order = rng.permutation(self.rows.X.shape[0])
        X, y, weights = self.rows.X[order], self.rows.y[order], self.rows.weights
        model = seeded(clone(estimator), int(rng.integers(2**31)))
        with _collect_warnings() as warned:
            began = time.perf_counter()
            fit_weighted(model, X, y, None if weights is None else weights[order])
            seconds = time.perf_counter() - began
            columns = X.shape[1]
            support = support_of(model, columns)
            test = self.rows.X_test, self.rows.y_test, self.rows.task, self.rows.weights_test
            measures = measured(model, *test)
            if (mse := measures.get("mse")) is not None:
                measures["mse"] = mse * self.rows.unit**2
        return {
            **measures,
            "nonzeros": float(100.0 * np.count_nonzero(support) / columns),
            "seconds": seconds,
            "support": support_to_text(support),
            "warnings": warned,
        }

    def _summary(
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
        kappas = kappas_of([support_from_text(run["support"], columns) for run in orders], columns)
        found["kappa"] = measure_of(kappas) if kappas else None
        warned = [run["warnings"] for run in orders if run["warnings"]]
        notes = (*search["notes"], *(warned[0] if warned else ()))
        return RuleResult(**found, runs=tuple(runs), notes=notes)


class _Failure(Exception):
    """A rule failed. Errors in other code, such as a callback, are not turned into this."""


@contextmanager
def _catch_failure() -> Iterator[None]:
    """Turn an error of a rule into a _Failure."""
    try:
        yield
    except (ArithmeticError, ValueError, RuntimeError, MemoryError) as error:
        raise _Failure(str(error) or type(error).__name__) from error


@contextmanager
def _collect_warnings() -> Iterator[list[str]]:
    """Collect the first warning of each category."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        yield texts
    first = {warning.category: str(warning.message) for warning in reversed(caught)}
    texts += reversed(first.values())
