"""Soft-thresholded margin perceptron."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from thresher import _core
from thresher.certificates import Certificate
from thresher.estimators import certifying
from thresher.estimators.classifying import StreamingClassifier
from thresher.estimators.documentation import documented
from thresher.estimators.training import Run
from thresher.model import Model, Output, Progress
from thresher.training.alone import Alone
from thresher.training.outputs import Outputs
from thresher.training.passes import Run as SourceRun

_NEVER = 2**63 - 1


@documented
class MarginPerceptronClassifier(StreamingClassifier):
    """Classification by the soft-thresholded margin perceptron: only rows near the border teach.

    A row whose margin is beyond `margin` changes nothing; another one moves the weights of its
    features towards its label and shrinks them by l1. Learning ends when a pass brings no update,
    or at `max_density`. An update may overshoot that by the features of its row.

    As published, l1 hardly governs how many weights stay, since only touched ones shrink; `margin`
    does, and shrink="all" lets l1 do it. Rows of norm 1 are assumed by the defaults.

    `model_.certificates` says what the paper's theorems guarantee, for each class where there are
    several: that the weights stay small (norm), how many updates can ever happen on these rows
    (mistakes, where the weights separate them), and the error on new rows, with probability 0.95
    (generalisation, where all rows are classified correctly and shuffle is "once" or False).

    {parameters}

    {attributes}
    level_models_ : dict of float to thresher.Model
        The model at the moment when each of `levels` was reached by every output.

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
    {0.1: 15, 0.5: 50}
    >>> print(clf.model_.certificates[2])
    generalisation: not available, because it does not hold that ... same order in every pass
    """

    rule: ClassVar[str] = "margin-perceptron"
    _reached: list[dict[float, Output]]  # what each output was at the levels
    _diverges: ClassVar[bool] = False  # its weights grow as they will, and are bounded

    def __init__(
        self,
        *,
        margin: float = 1.0,
        l1: float = 0.001,
        eta0: float = 1.0,
        shrink: str = "touched",
        max_density: float | None = None,
        levels: Any = (),
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
    ) -> None:
        self.margin = margin
        self.l1 = l1
        self.eta0 = eta0
        self.shrink = shrink
        self.max_density = max_density
        self.levels = levels
        self.passes = passes
        self.shuffle = shuffle
        self.fit_intercept = fit_intercept
        self.store = store
        self.dtype = dtype
        self.tol = tol
        self.patience = patience
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback

    # ---- certificates --------------------------------------------------------------------------

    def _conclude(self, run: Run, first: bool, complete: bool) -> None:
        self._unit_weights &= certifying.are_ones(run.weights)
        same_order = self.shuffle in ("once", False)
        self._of_rows: list[tuple[Certificate, Certificate]] = [
            certifying.of_rows(run, output, self._made_of[0], same_order, complete)
            if first
            else certifying.without_rows()
            for output in range(len(run.learners))
        ]

    def _conclude_source(self, run: SourceRun) -> None:
        outputs = range(len(run.learning.learners))
        self._unit_weights, self._updates = False, -1.0
        self._of_rows = [certifying.without_rows() for _ in outputs]
        self._reached = [{} for _ in outputs]
        self._limit = math.inf if self.max_density is None else self.max_density * self._width

    def _extras(self) -> dict[str, Any]:
        assert isinstance(self._learners, Alone)
        found = [
            (certifying.norm(learner, self._made_of[0], self._unit_weights), *of_rows)
            for learner, of_rows in zip(self._learners, self._of_rows, strict=True)
        ]
        return {"certificates": certifying.labelled(found, self.classes_)}

    # ---- density -------------------------------------------------------------------------------

    def _prepare(self, learners: Alone, X: Any) -> None:
        self._reached = [{} for _ in learners]
        self._updates, self._unit_weights = -1.0, True
        self._limit = math.inf if self.max_density is None else self.max_density * X.shape[1]
        for learner, reached in zip(learners, self._reached, strict=True):
            self._pause_next(learner, reached, X.shape[1])

    def _pause_next(self, learner: _core.Learner, reached: dict[float, Output], width: int) -> None:
        """Let the learner pause at the next level, or at the limit."""
        wanted = [level * width for level in self.levels if level not in reached] + [self._limit]
        learner.pause_at(_NEVER if min(wanted) == math.inf else math.ceil(min(wanted)))

    def _paused(self, output: int, learner: _core.Learner) -> bool:
        nonzeros, width = learner.facts()["nonzeros"], self.n_features_in_
        reached = dict(self._reached[output])
        for level in self.levels:
            if level not in reached and nonzeros >= level * width:
                reached[level] = Output(*learner.weights(), learner.intercept())
        # A list of its own: a fit that fails later leaves the one before as it was.
        self._reached = [*self._reached[:output], reached, *self._reached[output + 1 :]]
        self._pause_next(learner, reached, width)
        return self._is_full(learner)

    def _is_full(self, learner: _core.Learner) -> bool:
        return self.max_density is not None and learner.facts()["nonzeros"] >= self._limit

    def _converged(self, learners: Outputs) -> bool:
        assert isinstance(learners, Alone)
        before, self._updates = self._updates, sum(m.facts()["updates"] for m in learners)
        return self._updates == before

    @property
    def level_models_(self) -> dict[float, Model]:
        """The models at the levels that every output reached."""
        return {
            level: self._model_of([reached[level] for reached in self._reached])
            for level in self.levels
            if all(level in reached for reached in self._reached)
        }
