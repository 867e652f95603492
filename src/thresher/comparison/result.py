"""The result of a comparison, as text, JSON or an HTML page."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike, fspath
from typing import Any

from thresher.atomic import write_whole
from thresher.comparison.measures import MEASURES, Measure
from thresher.errors import DataError, ParameterError
from thresher.model.frontier import Dot, Frontier, shown
from thresher.printable import printable
from thresher.report.search_results import text_table

FORMAT = 1
_MEASURED = ("error", "auc", "mse", "r2", "nonzeros", "kappa", "seconds")


@dataclass(frozen=True)
class RuleResult:
    """The result of one rule.

    Attributes
    ----------
    rule : str
        Its name in ``rules=``.
    title : str
        Its name in tables.
    loss : str
        The loss it was trained with.
    control : bool
        Whether it is a control.
    chosen : dict
        Parameters that cross-validation chose.
    grid : dict of lists
        Values that were tried.
    cv_error, cv_standard_error : float or None
        Mean and standard error over the folds, with the chosen parameters, of the error in percent
        or of the mean square error.
    error, auc, mse, r2 : Measure or None
        Measures on the test rows, over the orders: error in percent and area under the ROC curve,
        or mean square error and R2.
    nonzeros : Measure or None
        Percent of all columns with a nonzero weight.
    kappa : Measure or None
        Cohen's kappa of the supports of two orders, over all pairs.
    seconds : Measure or None
        Time of a fit.
    runs : tuple of dict
        The measures of each order.
    skipped : str
        Why it was skipped.
    failure : str
        Why it failed.
    notes : tuple of str
        Remarks.
    """

    rule: str
    title: str
    loss: str = ""
    control: bool = False
    chosen: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)
    cv_error: float | None = None
    cv_standard_error: float | None = None
    error: Measure | None = None
    auc: Measure | None = None
    mse: Measure | None = None
    r2: Measure | None = None
    nonzeros: Measure | None = None
    kappa: Measure | None = None
    seconds: Measure | None = None
    runs: tuple[dict[str, Any], ...] = ()
    skipped: str = ""
    failure: str = ""
    notes: tuple[str, ...] = ()

    @property
    def measured(self) -> bool:
        """Whether it was neither skipped nor failed."""
        return not (self.skipped or self.failure)

    @property
    def reason(self) -> str:
        """Why it was skipped or failed; empty if it was measured."""
        if self.skipped:
            return f"skipped: {self.skipped}"
        return f"failed: {self.failure}" if self.failure else ""

    @property
    def parameters(self) -> str:
        """The chosen parameters as text, without those that the rule sets itself."""
        chosen = {name: value for name, value in self.chosen.items() if value is not None}
        return ", ".join(f"{name} {shown(value)}" for name, value in chosen.items())


def row_of(values: Mapping[str, Any]) -> RuleResult:
    """Return the result of a rule from its JSON object.

    Parameters
    ----------
    values : mapping
    """
    found = dict(values)
    for name in _MEASURED:
        if found.get(name) is not None:
            found[name] = Measure(*found[name])
    for name in ("runs", "notes"):
        found[name] = tuple(found.get(name, ()))
    return RuleResult(**found)


class Comparison(Sequence[RuleResult]):
    """The results of all rules on one data set, best first.

    A sequence of `RuleResult`, which can also be indexed by rule: ``comparison["ftrl"]``.

    Parameters
    ----------
    about : mapping
        Task, rows, columns, split, folds, seeds and version.
    rows : sequence of RuleResult
        In any order.
    models : object, optional
        Has a method `fit` that returns a fitted estimator for a RuleResult. A comparison that is
        read from JSON has none.

    Attributes
    ----------
    about : dict
    rows : tuple of RuleResult
        Sorted by test error; rules that were skipped or failed are last.
    best_ : RuleResult
        The rule with the least error over the folds of the training rows.
    best_estimator_ : estimator
        That rule with its chosen parameters, fitted on all rows.

    Examples
    --------
    >>> import numpy as np, thresher
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 30))
    >>> found = thresher.compare(X, X[:, 0] > X[:, 1], rules=["ftrl", "sgd"], orders=2, folds=3)
    >>> [row.rule for row in found] == sorted(("ftrl", "sgd"), key=lambda r: found[r].error.mean)
    True
    >>> found.best_.rule, found.best_estimator_.predict(X).shape
    ('ftrl', (200,))
    """

    def __init__(
        self, about: Mapping[str, Any], rows: Sequence[RuleResult], models: Any = None
    ) -> None:
        self.about = dict(about)
        self._models, self._fitted = models, dict[str, Any]()
        self.rows = tuple(sorted(rows, key=self._rank))

    @property
    def task(self) -> str:
        """The task: "binary", "multiclass" or "regression"."""
        return str(self.about["task"])

    @property
    def remarks(self) -> list[str]:
        """Remarks on the training rows that readers of the results should know."""
        return list(self.about.get("remarks", ()))

    @property
    def frontier(self) -> list[RuleResult]:
        """Rules for which no other is better in both error and nonzeros, from sparse to dense."""
        first = next(iter(MEASURES[self.task]))
        rows = [row for row in self.rows if row.measured]
        dots = [Dot(r.title, r.nonzeros.mean, getattr(r, first).mean) for r in rows if r.nonzeros]
        return [rows[at] for at in Frontier(dots).efficient]

    # ---- models --------------------------------------------------------------------------------

    @property
    def best_(self) -> RuleResult:
        """The rule with the least error over the folds; among equal ones, the sparsest.

        Test rows have no influence, so the test error of this rule is an honest estimate. Controls
        are left out, unless all rules are controls; for them, use `estimator`.
        """
        able = [row for row in self.rows if row.measured and row.cv_error is not None]
        if not able:
            raise AttributeError("no rule could be measured, so there is no best one")
        able = [row for row in able if not row.control] or able
        return min(able, key=lambda row: (row.cv_error, row.nonzeros.mean if row.nonzeros else 0))

    @property
    def best_estimator_(self) -> Any:
        """The estimator of `best_`, fitted on all rows when it is first used; see `estimator`."""
        return self._estimator(self.best_)

    def estimator(self, rule: str) -> Any:
        """Return the estimator of a rule with its chosen parameters, fitted on all rows.

        All rows are those of X, also the ones that were split off as test rows; rows of X_test are
        not used. It takes rows as they were given, without scaling, and predicts the labels of y.
        It is fitted at the first call, and kept.

        Parameters
        ----------
        rule : str
            A rule that was neither skipped nor failed.
        """
        row: RuleResult = self[rule]
        if not row.measured:
            raise ParameterError(f"{row.title} has no model: {row.reason}", parameter="rule")
        return self._estimator(row)

    def _estimator(self, row: RuleResult) -> Any:
        if self._models is None:
            raise AttributeError(
                "a comparison that was read from JSON has no rows to fit a model on; "
                "thresher.compare returns one that has"
            )
        if row.rule not in self._fitted:
            self._fitted[row.rule] = self._models.fit(row)
        return self._fitted[row.rule]

    def _rank(self, row: RuleResult) -> tuple[float, float]:
        first = getattr(row, next(iter(MEASURES[self.task])))
        if first is None or row.nonzeros is None:
            return math.inf, math.inf
        return first.mean, row.nonzeros.mean

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[RuleResult]:
        return iter(self.rows)

    def __getitem__(self, which: Any) -> Any:
        if not isinstance(which, str):
            return self.rows[which]
        for row in self.rows:
            if row.rule == which:
                return row
        raise KeyError(f"{which!r} is not one of {', '.join(row.rule for row in self.rows)}")

    # ---- as text and JSON ----------------------------------------------------------------------

    def columns(self) -> dict[str, str]:
        """Return the measures of the task and their headings."""
        return {
            **MEASURES[self.task],
            "nonzeros": "nonzeros %",
            "kappa": "kappa",
            "seconds": "seconds",
        }

    def table(self) -> str:
        """Return a table as text: means, and standard deviations in parentheses.

        Remarks on the training rows are above the table, remarks on rules below.
        """
        columns = self.columns()
        wide = max(len(row.title) for row in self.rows)
        lines = []
        for row in self.rows:
            cells = [measure_text(getattr(row, name), name) for name in columns]
            lines.append([row.title.ljust(wide), *cells, row.reason or row.parameters])
        table = text_table(["rule".ljust(wide), *columns.values(), "chosen"], lines)
        notes = [f"{row.title}: {'; '.join(row.notes)}" for row in self.rows if row.notes]
        return "\n".join([*map(printable, self.remarks), table, *map(printable, notes)])

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.rows)} rules>\n{self.table()}"

    def to_json(self) -> str:
        """Return the whole comparison as JSON, with all digits."""
        return json.dumps(
            {"format": FORMAT, "about": self.about, "rows": [asdict(row) for row in self.rows]},
            indent=1,
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Comparison:
        """Return the comparison that `to_json` wrote.

        Parameters
        ----------
        text : str
        """
        try:
            found = json.loads(text)
            if found["format"] != FORMAT:
                raise DataError(
                    f"not a comparison of format {FORMAT}: the format is {found['format']!r}"
                )
            return cls(found["about"], [row_of(row) for row in found["rows"]])
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise DataError(f"not a comparison: {error}") from None

    def to_html(self) -> str:
        """Return a complete HTML page: chart, tables, protocol and parameters."""
        from thresher.comparison.page import page_of

        return page_of(self)

    def _repr_html_(self) -> str:
        from thresher.comparison.page import fragment_of

        return fragment_of(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write an HTML page or JSON, depending on the ending of the name: .html or .json.

        Parameters
        ----------
        path : path
        """
        name = fspath(path)
        for ending, made in ((".html", self.to_html), (".json", self.to_json)):
            if name.lower().endswith(ending):
                write_whole(path, made().encode() + b"\n")
                return
        raise ParameterError(
            f"path must end in .html or .json; got {name!r}", parameter="path", value=name
        )


def measure_text(measure: Measure | None, name: str) -> str:
    """Return a measure with its standard deviation as text.

    Parameters
    ----------
    measure : Measure or None
    name : str
        Name of the measure.

    Examples
    --------
    >>> measure_text(Measure(6.5333, 0.4219), "error"), measure_text(Measure(0.97, None), "auc")
    ('6.53 (0.42)', '0.970')
    """
    if measure is None:
        return "-"
    digits = {
        **{"error": ".2f", "nonzeros": ".2f", "kappa": ".2f"},
        **dict.fromkeys(("auc", "r2", "seconds"), ".3f"),
    }
    pattern = digits.get(name, ".3g")
    spread = "" if measure.sd is None else f" ({measure.sd:{pattern}})"
    return f"{measure.mean:{pattern}}{spread}"
