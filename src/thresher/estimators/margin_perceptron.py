"""Soft-thresholded margin perceptron."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from thresher.estimators.classifying import StreamingClassifier
from thresher.estimators.documentation import documented
from thresher.model.model import Model, Progress
from thresher.training.hooks import Hooks
from thresher.training.levels import Levels


@documented
class MarginPerceptronClassifier(StreamingClassifier):
    """Classification by the soft-thresholded margin perceptron: only rows with small margins count.

    A row whose margin exceeds `margin` changes nothing. Any other row moves the weights of its
    features towards its label and shrinks them by l1. Training ends after a pass without updates,
    or at `max_density`, which the last update may exceed by the number of features in its row.

    As published, l1 has little effect on the number of nonzero weights, because only the weights of
    the row shrink; `margin` has a larger effect. With shrink="all", l1 determines this number. Its
    default assumes rows of norm 1.

    `model_.certificates` states what the paper's theorems guarantee, for each class if there are
    several: a bound on the norm of the weights (norm); the largest number of updates on these rows,
    if the weights separate them (mistakes); and the error on new rows with probability 0.95, if all
    rows are classified correctly and shuffle is "once" or False (generalisation).

    {parameters}

    {attributes}
    level_models_ : dict of float to thresher.Model
        For each of `levels` that every output has reached, the model at that moment.

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import MarginPerceptronClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 100)) * (rng.random((500, 100)) < 0.05)
    >>> y = X[:, 3] - X[:, 7] + 0.1 * X[:, 9] > 0
    >>> clf = MarginPerceptronClassifier(levels=(0.1, 0.5), random_state=0).fit(X, y)
    >>> {level: model.nnz for level, model in clf.level_models_.items()}
    {0.1: 19, 0.5: 54}
    >>> print(clf.model_.certificates[2])
    generalisation: not available, because it does not hold that ... same order in every pass
    """

    rule: ClassVar[str] = "margin-perceptron"

    def __init__(
        self,
        *,
        margin: float | str = "auto",
        l1: float = 0.001,
        eta0: float = 1.0,
        shrink: str = "touched",
        max_density: float | None = None,
        levels: Any = (),
        n_jobs: int | None = None,
        passes: int = 20,
        shuffle: str | bool = "each",
        fit_intercept: bool = True,
        store: str = "dense",
        dtype: str = "float32",
        tol: float | None = None,
        patience: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self._set(locals())

    @staticmethod
    def hooks_of_pickle(state: dict[str, Any]) -> Hooks:
        """Return the hooks of an estimator that version 0.1.0 pickled."""
        hooks = Levels(tuple(state["levels"]), state["max_density"])
        hooks.reached, hooks.updates = state.pop("_reached"), state.pop("_updates")
        hooks.unit_weights, hooks.of_rows = state.pop("_unit_weights"), state.pop("_of_rows")
        hooks.limit, hooks.width = state.pop("_limit"), state["n_features_in_"]
        return hooks

    @property
    def level_models_(self) -> dict[float, Model]:
        """The models at the levels that every output has reached."""
        check_is_fitted(self, "_fitted")
        hooks = self._fitted.hooks
        assert isinstance(hooks, Levels)
        return {
            level: self._model_of([reached[level] for reached in hooks.reached])
            for level in hooks.levels
            if all(level in reached for reached in hooks.reached)
        }
