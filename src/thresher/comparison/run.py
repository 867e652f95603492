"""`compare`: compare all rules on one data set, with the same protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

from thresher._version import __version__
from thresher.comparison.candidates import CANDIDATES
from thresher.comparison.checkpoint import ComparisonCheckpoint
from thresher.comparison.inputs import share_of
from thresher.comparison.models import ComparedModels
from thresher.comparison.protocol import CompareProgress, ComparisonRun
from thresher.comparison.result import Comparison
from thresher.comparison.rows import SCALES, rows_of
from thresher.errors import ParameterError, setting
from thresher.losses import canonical_loss
from thresher.model.supports import is_whole
from thresher.progress.verbose import StatusLine
from thresher.threads import threads_of

_CHOICES = ("best", "sparsest")


def compare(
    X: Any,
    y: Any = None,
    X_test: Any = None,
    y_test: Any = None,
    sample_weight: Any = None,
    sample_weight_test: Any = None,
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
    verbose: int = 0,
) -> Comparison:
    """Compare all rules, and the usual controls, on one data set.

    Cross-validation on the training rows chooses the parameters of each rule, from a grid that
    depends on the data. Then each rule trains `orders` models, each on another random order of the
    training rows, and each model predicts the test rows once. `docs/compare.md` has the details.

    Parameters
    ----------
    X : CSR matrix, array, DataFrame of shape (rows, features), or source
        Training rows, or all rows if no test rows are given. They are held in memory.
    y : array of shape (rows,)
        Labels: two or more classes, or numbers. Not given if X is a source, which has labels.
    X_test, y_test : like X and y, optional
        Test rows. By default a random share of the rows, stratified by class.
    sample_weight : array of shape (rows,), optional
        Weights of the rows of X. They count in training, in the grids and in all errors. A source
        has its own.
    sample_weight_test : array, optional
        Weights of the rows of X_test.
    rules : sequence of str, optional
        The rules to compare. By default all rules for the task that are not too expensive for the
        data. A rule that is named here is run even if it takes long.
    loss : str, optional
        The loss of all rules that have it. Other rules use a similar loss or are skipped; a remark
        says so. By default "logistic" for classes, "squared" (averaged SGD: "huber") for numbers.
    task : {"classification", "regression"}, optional
        By default regression if the loss is for numbers and the labels are numbers, or if no loss
        is given and a label is not a whole number. Otherwise labels are classes.
    test_share : float, default=0.25
        Share of test rows, if no test rows are given.
    orders : int, default=10
        Models of each rule, each trained on another random order of the training rows.
    folds : int, default=5
        Folds of the cross-validation: stratified by class, and the same for all rules.
    choose : {"best", "sparsest"}, default="best"
        "best": the parameters with the least mean error over the folds (among equal ones, the
        sparsest). "sparsest": the parameters of the sparsest models whose mean error is within one
        standard error of the least.
    scale : {"unit-norm", "variance"}, optional
        "unit-norm": divide each row by its norm. "variance": divide each column by its root mean
        square over the training rows (`UnitVarianceScaler`). By default, no scaling.
    seed : int, default=0
        Random seed of the split, the folds, the searches and the orders.
    checkpoint : path, optional
        A file for finished work. A second call with the same data and settings continues from it;
        a call with other data or settings raises ParameterError.
    callback : callable, optional
        Called with a `CompareProgress` before and after each search, model and rule.
    n_jobs : int, default=1
        Number of threads of the searches; -1: one for each processor. Timed fits run one at a time.
        Results do not depend on it.
    verbose : int, default=0
        1: print progress to standard error.

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
    >>> found.best_estimator_.predict(X[:2]).tolist() == y[:2].tolist()
    True
    """
    names, loss = _checked_rules(rules), canonical_loss(loss)
    orders = _whole("orders", orders, 1)
    folds = _whole("folds", folds, 2)
    seed = _whole("seed", seed, 0)
    if choose not in _CHOICES:
        raise ParameterError(
            parameter="choose", value=choose, allowed=f"one of {', '.join(_CHOICES)}"
        )
    if scale not in SCALES:
        known = ", ".join(repr(known) for known in SCALES if known)
        raise ParameterError(parameter="scale", value=scale, allowed=f"one of {known}, or None")
    threads_of(n_jobs, "compare")
    given = X_test is not None
    test_share = test_share if given else share_of(test_share)
    rows = rows_of(
        X, y, X_test, y_test, loss=loss, task=task, test_share=test_share, seed=seed,
        weights=sample_weight, weights_test=sample_weight_test,
    )  # fmt: skip
    settings: dict[str, Any] = {
        "task": rows.task,
        "loss": loss,
        "test_share": None if given else test_share,
        "orders": orders,
        "folds": folds,
        "choose": choose,
        "scale": scale,
        "seed": seed,
    }
    unit = {"unit of the targets": rows.unit} if rows.task == "regression" else {}
    saved = ComparisonCheckpoint(checkpoint, {**settings, **rows.digests, **unit})
    settings = {"version": __version__, **settings}
    models = ComparedModels(X, y, sample_weight, rows, settings)
    rows = rows.scaled_by(scale)
    named = rules is not None
    if not named:
        names = [name for name in names if rows.kind in CANDIDATES[name].tasks]
    all_folds = rows.folds(folds, seed)
    with StatusLine(verbose) as line:

        def tell(progress: CompareProgress) -> None:
            line.show(str(progress), (progress.place - 1) / progress.rules)
            if callback is not None:
                callback(progress)

        run = ComparisonRun(rows, settings, all_folds, saved, tell, n_jobs, len(names))
        found = [run.run_rule(name, place, named) for place, name in enumerate(names, 1)]
    if all(row.skipped for row in found):
        why = "; ".join(f"{row.rule}: {row.skipped}" for row in found)
        raise ParameterError(
            (setting("rules"), f": all rules are skipped: {why}"), parameter="rules"
        )
    about = {
        **settings,
        "classes": [str(label) for label in rows.classes],
        "training rows": rows.X.shape[0],
        "test rows": rows.X_test.shape[0],
        "columns": rows.X.shape[1],
        "digests": rows.digests,
        "remarks": rows.remarks(),
    }
    return Comparison(about, found, models)


def _checked_rules(rules: Sequence[str] | None) -> list[str]:
    if rules is None:
        return list(CANDIDATES)
    names = [rules] if isinstance(rules, str) else list(rules)
    for name in names:
        if name not in CANDIDATES:
            raise ParameterError(
                (setting("rules"), f" must be from {', '.join(CANDIDATES)}; got {name!r}"),
                parameter="rules",
                value=name,
            )
    if not names:
        raise ParameterError(
            (setting("rules"), f" must name at least one of {', '.join(CANDIDATES)}"),
            parameter="rules",
        )
    return list(dict.fromkeys(names))


def _whole(name: str, value: Any, least: int) -> int:
    if not is_whole(value) or not least <= value < 2**31:
        raise ParameterError(parameter=name, value=value, allowed=f"a whole number >= {least}")
    return int(value)
