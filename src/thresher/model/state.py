"""The learner's state that a model may carry: with it, training goes on as if it never stopped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from thresher.model.model import Model


class LearnerState(ABC):
    """The state of the learner of a model, as arrays that a file can hold."""

    @abstractmethod
    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return the arrays; raise an error that says why if there is no state."""


class Continuing:
    """Mixin of `Model`: training goes on from the model."""

    learner: LearnerState | None

    def estimator(self: Any) -> Any:
        """Return a fitted estimator with the parameters and the weights of this model.

        It has `score`, and works in pipelines, with `clone` and in searches. If the model comes
        from an estimator, or from a file with the learner's state, then `partial_fit`, and `fit`
        with ``warm_start=True``, go on as if training had never stopped. Otherwise their error says
        why they cannot.

        Returns
        -------
        estimator

        Raises
        ------
        ModelFileError
            The learner's state is damaged, or the file has changed since it was loaded.

        Examples
        --------
        >>> import os, tempfile, thresher
        >>> from thresher import FTRLClassifier
        >>> X, y = [[0.0, 1.0], [1.0, 0.0]] * 20, ["no", "yes"] * 20
        >>> clf = FTRLClassifier().partial_fit(X, y, classes=["no", "yes"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "a.thresher")
        ...     clf.model_.save(path, state=True)
        ...     loaded = thresher.load(path).estimator()
        >>> bool((loaded.partial_fit(X, y).coef_ == clf.partial_fit(X, y).coef_).all())
        True
        """
        from thresher.estimators.from_model import estimator_of  # imports scikit-learn

        model: Model = self
        return estimator_of(model)
