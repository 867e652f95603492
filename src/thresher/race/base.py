"""Base class of estimators that choose the rule themselves: look, plan, race, fit the winner."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from thresher.atomic import all_or_nothing, write_whole
from thresher.data import is_source, is_sparse
from thresher.data.frame_parts import scan_frame, words_as_source
from thresher.data.read_options import ReadOptions
from thresher.data.source import Source
from thresher.errors import DataError, ParameterError
from thresher.estimators import estimator_class
from thresher.estimators.fit_arguments import check_source_alone
from thresher.estimators.linear import LinearEstimator
from thresher.estimators.solvers import label_check, of_source
from thresher.model.frontier import Place
from thresher.model.model import Model, Progress
from thresher.model.supports import is_whole
from thresher.progress.verbose import shown
from thresher.race.candidates import Candidate, candidate_named, for_one_reading
from thresher.race.choice import judged
from thresher.race.contest import Contest, FinalObserver, QuietObserver, run
from thresher.race.facts import Facts, facts_of
from thresher.race.folds import ALWAYS, folds_of, sample_of, strata_of
from thresher.race.page import page_of
from thresher.race.plan import RacePlan, speed_of
from thresher.race.result import Entrant, Race
from thresher.race.sample import SampledRows, read_sample
from thresher.race.scaling import multiplied
from thresher.threads import threads_of
from thresher.training.observer import Observer
from thresher.training.run_options import RunOptions
from thresher.training.seeds import seed_of

_SPREAD = 100.0  # ratio of the scales of columns that gets a remark
_RARE = 0.01  # share of the rarest class that gets a remark


class RaceEstimator(LinearEstimator):
    """Base of the classifier and the regressor: a race chooses the rule and its parameters."""

    rule: ClassVar[str] = "auto"
    measure: ClassVar[str]

    # parameters
    tolerance: float
    budget: Any
    folds: int
    n_jobs: int | None
    random_state: Any
    verbose: int = 0  # estimators pickled before it existed do not have it

    # set by fitting
    best_estimator_: Any
    race_: Race
    budget_: dict[str, Any]

    # ---- fitting -------------------------------------------------------------------------------

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        classes: Any = None,
        observer: Observer | None = None,
        names: bool = True,
        label: str | None = None,
    ) -> Self:
        """Race the candidates, and fit the winner to all rows.

        If it fails or is interrupted, the estimator stays as it was before.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        y : array of shape (rows,)
            Labels of at least two classes, or values of a regression.
        sample_weight : array of shape (rows,), optional
            Weights of the rows, in training and in the measure of the race. A row is in one fold,
            whatever its weight.
        classes : array, "binary" or "arriving", optional
            Labels of a source; as for other estimators.
        observer : thresher.Observer, optional
            Receives progress: the event "candidate" for each candidate, then the events of the
            final fit. It may stop the run.
        names : bool
            Whether to look up the names of features, if the source has names.
        label : str, optional
            The column of a frame that holds the labels, instead of y.

        Returns
        -------
        self
        """
        if label is not None:
            X, y = scan_frame(X, ReadOptions.of(label=label)), None
        given = {"sample_weight": sample_weight}
        X, y = words_as_source(X, y, given, type(self).__name__)
        sample_weight = given.get("sample_weight")
        options = RunOptions.of(observer, names=names)
        with all_or_nothing(self), shown(options, self.verbose) as options:
            self.__dict__.pop("_sparse_coef", None)
            self._check()
            if is_source(X):
                check_source_alone(self, y, sample_weight)
                return self._fit_source(X, None, classes, options)
            if classes is not None:
                raise ParameterError(
                    "classes= is for classifiers on sources; y has them",
                    owner=type(self).__name__,
                    parameter="classes",
                    value=classes,
                )
            X, y = self._checked(X, y, reset=True)
            self._set_classes(y, None)
            return self._fit(X, y, sample_weight, None, options)

    def _check(self) -> None:
        """Check the parameters."""
        owner = type(self).__name__
        if not (_is_number(self.tolerance) and self.tolerance >= 0):
            raise ParameterError(
                owner=owner, parameter="tolerance", value=self.tolerance, allowed="a number >= 0"
            )
        if not (is_whole(self.folds) and self.folds >= 2):
            raise ParameterError(
                owner=owner, parameter="folds", value=self.folds, allowed="a whole number >= 2"
            )
        recorded = self.budget is None or isinstance(self.budget, Mapping)
        if not recorded and not (_is_number(self.budget) and self.budget > 0):
            raise ParameterError(
                owner=owner,
                parameter="budget",
                value=self.budget,
                allowed="None, a number of seconds > 0, or the budget_ of another fit",
            )
        threads_of(self.n_jobs)

    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any, run: RunOptions) -> Self:
        weights = self._row_weights(y, self._checked_weights(sample_weight, X))
        contest, facts, seed = self._contest(X, y, weights, run)
        candidate, slope = self._race(contest, facts, seed)
        best = contest.fitted(candidate, X, y, weights, FinalObserver(run.observer))
        columns = getattr(self, "feature_names_in_", None)
        if columns is not None:
            best.amend(names={k: str(name) for k, name in enumerate(columns)})
        return self._keep(multiplied(best, slope), run)

    def _contest(
        self,
        X: Any,
        y: Any,
        weights: NDArray[np.float64] | None,
        run: RunOptions,
        total: int | None = None,
    ) -> tuple[Contest, Facts, int]:
        """Return the rows of the race, the facts about them, and the seed; set `budget_`."""
        if weights is not None and not weights.sum() > 0:
            raise DataError(f"{type(self).__name__}: the weights of all rows are zero")
        classes = getattr(self, "classes_", None) if self.task == "classifier" else None
        if classes is not None and total is not None:  # a sample may not have all classes
            classes = np.arange(y.shape[1]) if is_sparse(y) else np.unique(y)
        outputs = 0 if classes is None else (1 if len(classes) == 2 else len(classes))
        if is_sparse(y):
            outputs = y.shape[1]
        facts = facts_of(X, y, outputs, total)
        seed = seed_of(self.random_state, type(self).__name__)
        whole = Contest(self.task, X, y, weights, classes, seed, run.observer, self.n_jobs)
        strata = strata_of(y, classes is not None and not is_sparse(y))
        plan = self._planned(whole, facts, strata)
        self.budget_ = plan.to_dict()
        rows = sample_of(strata, plan.rows, np.random.default_rng([seed, 0]))
        if len(rows) == X.shape[0]:
            return whole, facts, seed
        some = None if weights is None else weights[rows]
        return replace(whole, X=X[rows], y=y[rows], weights=some), facts, seed

    def _planned(self, contest: Contest, facts: Facts, strata: NDArray[np.int64]) -> RacePlan:
        """Return the plan; time is measured only if `budget` is a number of seconds."""
        if isinstance(self.budget, Mapping):
            return RacePlan.recorded(self.budget).restricted(self.task, facts)
        if self.budget is None:
            return RacePlan.of(self.task, facts, int(self.folds))
        once = candidate_named("ftrl, 1 pass")

        def fit(count: int) -> Any:
            rows = sample_of(strata, count, np.random.default_rng(contest.seed))
            weights = None if contest.weights is None else contest.weights[rows]
            quiet = QuietObserver(contest.observer)
            return contest.fitted(once, contest.X[rows], contest.y[rows], weights, quiet)

        speed = speed_of(fit, facts)
        return RacePlan.timed(self.task, facts, int(self.folds), float(self.budget), speed)

    def _race(self, contest: Contest, facts: Facts, seed: int) -> tuple[Candidate, float]:
        """Run the race; return the winner and the slope of its decisions, and set `race_`."""
        plan = RacePlan.recorded(self.budget_)
        single = self.task == "classifier" and not is_sparse(contest.y)
        strata = strata_of(contest.y, single)
        folds = folds_of(strata, plan.folds, np.random.default_rng([seed, 1]))
        held = contest.row_weights[folds != ALWAYS]
        if len(np.unique(folds[folds != ALWAYS])) < 2 or not held.sum() > 0:
            return self._unraced(plan.candidates, facts, "there are too few rows for a race")
        count = len(plan.candidates)

        def tell(number: int, entrant: Entrant) -> None:
            shown = f"{self.measure} {entrant.loss:.4g}, {entrant.nonzeros:,.0f} nonzeros"
            message = f"{number + 1}/{count} {entrant.name}: "
            message += shown if entrant.measured else entrant.why
            facts = {"name": entrant.name, "loss": entrant.loss, "nonzeros": entrant.nonzeros}
            contest.observer.tell(
                "candidate", message=message, number=number + 1, candidates=count, **facts
            )

        entrants, scored, failures = run(contest, plan.candidates, folds, tell)
        if not scored:
            raise next(iter(failures.values()))
        for number, failure in failures.items():
            if isinstance(failure, MemoryError):  # another machine might choose another candidate
                contest.observer.warn(
                    f"{type(self).__name__}: not enough memory to try "
                    f"{plan.candidates[number].name}: the others decided"
                )
        entrants = judged(entrants, scored, held, float(self.tolerance))
        rows = contest.X.shape[0]
        how = f"{plan.folds} folds of {rows:,} rows, the same for all candidates"
        self.race_ = Race(
            tuple(entrants), self.measure, facts.to_dict(), how, float(self.tolerance),
            self._remarks(facts, rows),
        )  # fmt: skip
        chosen = next(n for n, entrant in enumerate(entrants) if entrant.chosen)
        return plan.candidates[chosen], scored[chosen].slope

    def _unraced(
        self, candidates: Sequence[Candidate], facts: Facts, why: str
    ) -> tuple[Candidate, float]:
        """Choose a candidate without a race: the one with the most passes that learns by row."""
        candidate = max(candidates, key=lambda one: (one.streams, one.cost))
        entrant = Entrant(candidate.name, candidate.rule, candidate.params, chosen=True, why=why)
        self.race_ = Race((entrant,), self.measure, facts.to_dict(), "not measured", remarks=(why,))
        return candidate, 1.0

    def _remarks(self, facts: Facts, raced: int) -> tuple[str, ...]:
        found = []
        if raced < facts.total:
            found.append(
                f"the race used {raced:,} of {facts.total:,} rows; the winner was fitted to all"
            )
        if not facts.complete:
            found.append("not all rows fit in memory: only rules that learn row by row took part")
        if facts.spread > _SPREAD:
            found.append(
                f"columns differ in scale: the largest is {facts.spread:.2g} times the smallest"
            )
        if facts.rarest is not None and facts.rarest < _RARE:
            found.append(f"the rarest class has {100 * facts.rarest:.2g} % of the rows")
        return tuple(found)

    def _keep(self, best: Any, run: RunOptions) -> Self:
        """Set all fitted attributes from the fitted winner."""
        best.amend(multilabel=getattr(self, "_multilabel", ""))
        if any(entrant.measured for entrant in self.race_):
            at = next(n for n, entrant in enumerate(self.race_) if entrant.chosen)
            best.amend(place=Place.of(self.race_.frontier, at))
        self.best_estimator_ = best
        if best.model_.nnz == 0:
            run.observer.warn(
                f"{type(self).__name__}: all weights are zero: no candidate predicts better than "
                f"a constant"
            )
        return self.take(best.state_)

    # ---- sources -------------------------------------------------------------------------------

    def _fit_source(self, source: Source, eval_set: Any, classes: Any, run: RunOptions) -> Self:
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if not source.rereadable:
            return self._fit_once(source, classes, run)
        seed = seed_of(self.random_state, type(self).__name__)
        sample = read_sample(source, seed, label_check(self.task, self._loss(), classes))
        if sample.total == len(sample.rows.labels):
            return self._fit_gathered(source, sample, run)
        X, _ = sample.rows.compact()
        y, _ = sample.labels()
        self._know_classes(y)
        weights = self._row_weights(y, sample.rows.weights)
        contest, facts, seed = self._contest(X, y, weights, run, sample.total)
        candidate, slope = self._race(contest, facts, seed)
        best = self._streaming(contest.estimator(candidate, sample.total))
        given = {} if self.task == "regressor" else {"classes": classes}
        best.fit(source, observer=FinalObserver(run.observer), names=run.names, **given)
        return self._keep(multiplied(best, slope), run)

    def _fit_gathered(self, source: Source, sample: SampledRows, run: RunOptions) -> Self:
        """Race and fit all rows of a source in memory."""
        rows = sample.rows
        X, seen = rows.compact() if source.named else (rows.matrix(), None)
        y, labels = sample.labels()
        self._know_classes(y)
        self._fit(X, y, rows.weights, None, run)
        state = of_source(self.best_estimator_.state_, source, seen, run.names)
        if labels is not None:
            state = replace(state, classes=labels, multilabel="sparse")
        self.best_estimator_.take(state)
        return self.take(state)

    def _fit_once(self, source: Source, classes: Any, run: RunOptions) -> Self:
        """Fit the one candidate for rows that can be read only once."""
        candidate = for_one_reading()
        made = estimator_class(candidate.rule, self.task)(random_state=self.random_state)
        store = "hashed" if source.named and source.bits is None else "dense"
        best = self._streaming(made.set_params(store=store, **candidate.params))
        given = {} if self.task == "regressor" else {"classes": classes}
        best.fit(source, observer=run.observer, names=run.names, **given)
        why = f"{source} can be read only once: there was no race"
        run.observer.tell("note", message=f"{why}; {candidate.name} learned the rows")
        model, history = best.model_, best.history_
        entrant = Entrant(
            candidate.name,
            candidate.rule,
            candidate.params,
            loss=_progressive(history),
            nonzeros=float(model.nnz),
            seconds=history[-1].seconds if history else 0.0,
            chosen=True,
            why=why,
        )
        rows = history[-1].examples if history else 0
        facts = {"rows": rows, "features": model.n_features}
        how = "progressive: each row was predicted before it was learned"
        self.race_ = Race((entrant,), self.measure, facts, how, remarks=(why,))
        self.budget_ = RacePlan((candidate,), 2, max(rows, 1)).to_dict()
        return self._keep(best, run)

    def _know_classes(self, y: Any) -> None:
        """Set what is known about the labels of a source."""

    def _streaming(self, estimator: Any) -> Any:
        """Return the estimator of the winner, prepared to be fitted to a source."""
        return estimator

    # ---- results -------------------------------------------------------------------------------

    @property
    def model_(self) -> Model:
        """The model of the winner: sparse weights, names and history."""
        check_is_fitted(self, "best_estimator_")
        model: Model = self.best_estimator_.model_
        return model

    def _loss(self) -> str:
        return "squared" if self.task == "regressor" else "logistic"

    def report(self, path: str | PathLike[str], *, title: str | None = None) -> None:
        """Write a page about the race: one HTML file, which needs no network.

        `model_.report(path)` writes a page about the model.

        Parameters
        ----------
        path : path
            The file; it is written atomically.
        title : str, optional
        """
        check_is_fitted(self, "race_")
        write_whole(path, page_of(self.race_, self.budget_, self.model_, title).encode())


def _is_number(value: Any) -> bool:
    """Tell whether a value is a finite number."""
    known = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return known and math.isfinite(value)


def _progressive(history: list[Progress]) -> float:
    """Return the mean progressive loss; a record has the mean since the record before."""
    ends = np.array([record.examples for record in history], np.float64)
    counts = np.diff(ends, prepend=0.0)
    if not len(counts) or not counts.sum() > 0:
        return float("nan")
    return float(np.average([record.loss for record in history], weights=counts))
