"""`SparseClassifier` and `SparseRegressor`: estimators that choose the rule themselves."""

from __future__ import annotations

from typing import Any, ClassVar

from thresher.data import is_sparse
from thresher.errors import ParameterError
from thresher.estimators.classifying import MultilabelClassifier
from thresher.estimators.tasks import LinearRegressor
from thresher.race.base import RaceEstimator


class SparseClassifier(RaceEstimator, MultilabelClassifier):
    """Classification for people who do not want to choose: a race finds rule and parameters.

    The candidates are FTRL with several numbers of passes, truncated gradient, the rule for one
    pass, and coordinate descent along a path of penalties, with columns as given and with scaled
    columns. All are fitted to the same folds. The measure is the log loss of the rows held out,
    after decisions have been multiplied by one number per candidate, so that probabilities are
    neither too sure nor too careful. The winner is the sparsest candidate within `tolerance`
    standard errors of the least loss. It is fitted to all rows, and its weights are multiplied by
    its number. If the rows are many, the race uses a sample of them.

    A source that can be read again is read into memory if it fits; if not, only rules that learn
    row by row race, on a sample. If a source can be read only once there is no race: the rule for
    one pass learns the rows.

    Parameters
    ----------
    tolerance : float, default=0.5
        How many standard errors a sparser candidate may be worse than the best. 0 is the best.
    budget : float or dict, optional
        Seconds that fitting may take, about. Before the race they are turned, once, into a number
        of candidates, folds and rows, which are kept in `budget_`. Give this dict as `budget` of
        another fit to get the same bits on the same rows. By default no time is measured, and the
        race reads at most 3e9 values: about a minute.
    folds : int, default=5
        Number of folds of the race; fewer, if the budget is small.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, in training and in the measure of the race.
    n_jobs : int, optional
        Number of folds that are fitted at the same time, in threads; -1 is one per processor.
        Results do not depend on it.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1: print each candidate, and the progress of the final fit, to standard error.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner, fitted to all rows.
    race_ : thresher.race.Race
        All candidates with loss, standard error, nonzeros and seconds, and why each was chosen or
        not; `race_.table()`.
    budget_ : dict
        What the race did: candidates, folds and rows.
    model_ : thresher.Model
        Sparse weights, names, history; `model_.top(20)`, `model_.save(path)`.
    coef_ : array of shape (outputs, features)
        Weights; CSR after `sparsify()`.
    intercept_ : array of shape (outputs,)
    history_ : list of thresher.Progress
        The records of the final fit.
    n_iter_ : int
        Number of passes of the final fit.
    n_features_in_ : int
    feature_names_in_ : array
        Names of the columns, if X has them.
    classes_ : array
        Labels.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 30))
    >>> y = X[:, 3] - X[:, 7] + 0.5 * rng.normal(size=500) > 0
    >>> clf = SparseClassifier(random_state=0).fit(X, y)
    >>> sorted(feature.name for feature in clf.model_.top(2))
    [3, 7]
    >>> bool(clf.model_.nnz < 30), clf.race_.chosen.rule
    (True, 'coordinate-descent')
    """

    measure: ClassVar[str] = "log loss"

    def __init__(
        self,
        *,
        tolerance: float = 0.5,
        budget: Any = None,
        folds: int = 5,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._set(locals())

    def _know_classes(self, y: Any) -> None:
        self._multilabel = "sparse" if is_sparse(y) else ""
        if self._multilabel and self.class_weight is not None:
            raise ParameterError(
                "class_weight needs rows with one class each",
                owner=type(self).__name__,
                parameter="class_weight",
                value=self.class_weight,
            )
        self._set_classes(y, None)

    def _streaming(self, estimator: Any) -> Any:
        return estimator.set_params(class_weight=self.class_weight)


class SparseRegressor(RaceEstimator, LinearRegressor):
    """Regression for people who do not want to choose: a race finds rule and parameters.

    See `SparseClassifier` for the race. The measure is the squared error of the rows held out,
    divided by the variance of the targets.

    Parameters
    ----------
    tolerance : float, default=0.5
        How many standard errors a sparser candidate may be worse than the best. 0 is the best.
    budget : float or dict, optional
        Seconds that fitting may take, about, or the `budget_` of another fit; see
        `SparseClassifier`.
    folds : int, default=5
        Number of folds of the race; fewer, if the budget is small.
    n_jobs : int, optional
        Number of folds that are fitted at the same time, in threads; -1 is one per processor.
        Results do not depend on it.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1: print each candidate, and the progress of the final fit, to standard error.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner, fitted to all rows.
    race_ : thresher.race.Race
        All candidates with loss, standard error, nonzeros and seconds, and why each was chosen or
        not; `race_.table()`.
    budget_ : dict
        What the race did: candidates, folds and rows.
    model_ : thresher.Model
        Sparse weights, names, history; `model_.top(20)`, `model_.save(path)`.
    coef_ : array of shape (outputs, features)
        Weights; CSR after `sparsify()`.
    intercept_ : array of shape (outputs,)
    history_ : list of thresher.Progress
        The records of the final fit.
    n_iter_ : int
        Number of passes of the final fit.
    n_features_in_ : int
    feature_names_in_ : array
        Names of the columns, if X has them.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 30))
    >>> y = 300.0 * X[:, 3] - 200.0 * X[:, 7] + 10.0 * rng.normal(size=500) + 1e4
    >>> reg = SparseRegressor(random_state=0).fit(X, y)
    >>> sorted(feature.name for feature in reg.model_.top(2)), bool(reg.score(X, y) > 0.99)
    ([3, 7], True)
    """

    measure: ClassVar[str] = "squared error"

    def __init__(
        self,
        *,
        tolerance: float = 0.5,
        budget: Any = None,
        folds: int = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._set(locals())
