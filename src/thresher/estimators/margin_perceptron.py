"""Soft-thresholded margin perceptron."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thresher import _core
from thresher.certificates import Certificate
from thresher.estimators import certifying
from thresher.estimators.classifying import StreamingClassifier
from thresher.estimators.documentation import documented
from thresher.model import Model, Output, Progress
from thresher.training.alone import Alone
from thresher.training.hooks import Hooks
from thresher.training.outputs import Outputs
from thresher.training.trainer import Trainer

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

    def new_hooks(self, **prepare: Any) -> Hooks:
        """Return what keeps models at levels of density, and certifies."""
        return Levels(tuple(self.levels), self.max_density)

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
        """The models at the levels that every output reached."""
        check_is_fitted(self, "_fitted")
        hooks = self._fitted.hooks
        assert isinstance(hooks, Levels)
        return {
            level: self._model_of([reached[level] for reached in hooks.reached])
            for level in hooks.levels
            if all(level in reached for reached in hooks.reached)
        }


class Levels(Hooks):
    """Models at levels of density, a limit of it, the end of learning, and certificates.

    Parameters
    ----------
    levels : tuple of float
        Shares of nonzero weights at which the model is kept.
    max_density : float or None
        Share of nonzero weights at which an output stops learning.

    Attributes
    ----------
    reached : list of dict
        What each output was at the levels that it has reached.
    updates : float
        Updates of all outputs at the end of the pass before.
    """

    def __init__(self, levels: tuple[float, ...], max_density: float | None) -> None:
        self.levels, self.max_density = levels, max_density
        self.limit, self.width, self.updates = math.inf, 0, -1.0
        self.reached: list[dict[float, Output]] = []
        self.unit_weights = True
        self.of_rows: list[tuple[Certificate, Certificate]] = []

    # ---- density -------------------------------------------------------------------------------

    def begin(self, trainer: Trainer) -> None:
        """Let each output pause at its first level, or at the limit."""
        assert isinstance(trainer.outputs, Alone)
        self.width = trainer.plan.width
        self.limit = math.inf if self.max_density is None else self.max_density * self.width
        self.reached = [{} for _ in trainer.outputs]
        for learner, reached in zip(trainer.outputs, self.reached, strict=True):
            self._pause_next(learner, reached)

    def _pause_next(self, learner: _core.Learner, reached: dict[float, Output]) -> None:
        """Let a learner pause at the next level, or at the limit."""
        wanted = [level * self.width for level in self.levels if level not in reached]
        least = min([*wanted, self.limit])
        learner.pause_at(_NEVER if least == math.inf else math.ceil(least))

    def paused(self, output: int, learner: _core.Learner) -> bool:
        """Keep the model at the levels that are reached; tell whether the limit is."""
        nonzeros, reached = learner.facts()["nonzeros"], dict(self.reached[output])
        for level in self.levels:
            if level not in reached and nonzeros >= level * self.width:
                reached[level] = Output(*learner.weights(), learner.intercept())
        # A list of its own: a fit that fails later leaves the one before as it was.
        self.reached = [*self.reached[:output], reached, *self.reached[output + 1 :]]
        self._pause_next(learner, reached)
        return self.is_full(learner)

    def is_full(self, learner: _core.Learner) -> bool:
        """Tell whether an output has reached `max_density`."""
        return self.max_density is not None and learner.facts()["nonzeros"] >= self.limit

    def ended(self, outputs: Outputs) -> bool:
        """Tell whether the pass brought no update."""
        assert isinstance(outputs, Alone)
        before, self.updates = self.updates, sum(m.facts()["updates"] for m in outputs)
        return self.updates == before

    # ---- certificates --------------------------------------------------------------------------

    def conclude(self, trainer: Trainer, first: bool, complete: bool) -> None:
        """Take from the rows what certificates need."""
        self.unit_weights = self.unit_weights and trainer.unit_weights
        self.of_rows = [
            certifying.of_rows(trainer, output, trainer.plan.params, complete)
            if first
            else certifying.without_rows()
            for output in range(len(trainer.outputs))
        ]

    def extras(self, outputs: Outputs, params: Mapping[str, Any], classes: Any) -> dict[str, Any]:
        """Return the certificates."""
        assert isinstance(outputs, Alone)
        found = [
            (certifying.norm(learner, params, self.unit_weights), *of_rows)
            for learner, of_rows in zip(outputs, self.of_rows, strict=True)
        ]
        return {"certificates": certifying.labelled(found, classes)}

    # ---- state ---------------------------------------------------------------------------------

    def state(self) -> Any:
        """Return the levels that were reached, and the number of updates."""
        reached = [
            [[level, o.keys.tolist(), o.weights.tolist(), o.intercept] for level, o in own.items()]
            for own in self.reached
        ]
        return {"updates": self.updates, "reached": reached}

    def restore(self, saved: Any, trainer: Trainer) -> None:
        """Continue from a state."""
        assert isinstance(trainer.outputs, Alone)
        self.updates = saved["updates"]
        self.reached = [
            {
                level: Output(np.array(keys, np.uint64), np.array(weights, np.float64), intercept)
                for level, keys, weights, intercept in own
            }
            for own in saved.get("reached", [[] for _ in trainer.outputs])
        ]
        for learner, own in zip(trainer.outputs, self.reached, strict=True):
            self._pause_next(learner, own)
