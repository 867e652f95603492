"""Models of complementary halves as lanes: all of them learn from one reading of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core, settings
from thresher.errors import DivergenceError, ParameterError
from thresher.estimators.streaming import StreamingEstimator
from thresher.model import Output
from thresher.rules import RULES
from thresher.stability.dealing import Dealer
from thresher.training.lanes import Lane, LaneTeam

# What all lanes have in common.
_SHARED = frozenset(
    (
        *("loss", "passes", "shuffle", "store", "dtype", "tol", "patience", "class_weight"),
        *("warm_start", "random_state", "callback"),
    )
)
# Parameters that a lane cannot have, and the values that do without them.
_WITHOUT: dict[str, tuple[Any, ...]] = {
    "tol": (None,),
    "callback": (None,),
    "warm_start": (False,),
    "certify": (False,),
    "levels": ((), []),
    "max_density": (None,),
    "center": (False,),
}


def checked_lanes(
    owner: str, estimator: Any, varied: str | None, values: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return all parameters of the estimator for each value of the parameter that is varied.

    Raises ParameterError where they cannot be trained as lanes.
    """
    if not isinstance(estimator, StreamingEstimator):
        raise ParameterError(
            f"{owner}: estimator must be one of thresher that learns row by row, such as "
            f"TruncatedGradientClassifier; got {type(estimator).__name__}, which "
            f"StabilitySelection takes"
        )
    name, rule = type(estimator).__name__, estimator._rule
    if varied in _SHARED:
        raise ParameterError(
            f"{owner}: param_name must be a parameter that models of one reading may differ in, "
            f"one of {', '.join(sorted(set(RULES[rule].parameters) - _SHARED))}; got {varied!r}"
        )
    lanes = [{**estimator.get_params(deep=False), **value} for value in values]
    for params in lanes:
        settings.check(rule, estimator._task, params, name)
        for word, without in _WITHOUT.items():
            if word in params and params[word] not in without:
                raise ParameterError(
                    f"{owner}: {name} must have {word}={without[0]!r}, as all halves learn from "
                    f"the same reading; got {params[word]!r}"
                )
        if params.get("class_weight") == "balanced":
            raise ParameterError(
                f"{owner}: class_weight='balanced' depends on all rows of a half; give a dict of "
                f"weights"
            )
        if rule == "ftrl" and params["target_nnz"] is not None:
            raise ParameterError(
                f"{owner}: {name} steers to target_nnz={params['target_nnz']} at the end of all "
                f"rows; StabilitySelection does so, and here several values of l1 take its place"
            )
    return lanes


class LanedHalves:
    """A model for each half, value of a parameter and output, all learned at once.

    Parameters
    ----------
    estimator : StreamingEstimator
    lanes : sequence of mapping
        All parameters for each value, checked.
    dealer : Dealer
        Tells which rows a half has.
    outputs : int
        Outputs of a model: 1, or the number of classes.
    width : int
        Number of features; 0 for any 64-bit key.
    rows : int or None
        Rows of a half, where that is known beforehand.
    n_jobs : int or None
        Threads.
    """

    def __init__(
        self,
        estimator: StreamingEstimator,
        lanes: Sequence[Mapping[str, Any]],
        dealer: Dealer,
        outputs: int,
        width: int,
        rows: int | None,
        n_jobs: int | None,
    ) -> None:
        self.dealer, self.outputs, self.values = dealer, outputs, len(lanes)
        self.low = 0.0 if estimator._loss() == "clipped_square" else -1.0
        self.averages = [bool(params.get("average", False)) for params in lanes]
        self.targets = [params.get("target_nnz") for params in lanes]
        self.store = str(lanes[0].get("store", "dense"))
        self.room = max(width, 1) if self.store == "dense" else width
        told = [
            settings.core_parameters(estimator._rule, params, rows, max(width, 1))
            for params in lanes
        ]
        models = [
            Lane(numbers, words, half, -1 if outputs == 1 else output)
            for numbers, words in told
            for half in range(2 * dealer.pairs)
            for output in range(outputs)
        ]
        core, self.dtype = RULES[estimator._rule].core, str(lanes[0].get("dtype", "float64"))
        try:
            self._team = LaneTeam(core, self.store, self.dtype, self.room, models, n_jobs)
        except MemoryError:
            raise MemoryError(
                f"no memory for {len(models)} models of {self.room} features in a dense store; "
                f"fewer pairs or values, or store='hashed', need less"
            ) from None

    def learn(
        self,
        batch: _core.Batch,
        targets: Sequence[NDArray[np.float64]],
        weights: NDArray[np.float64] | None,
        halves: NDArray[np.uint8],
        width: int,
        order: NDArray[np.int64] | None = None,
    ) -> None:
        """Let each half learn those rows that it has."""
        if self.room and width > self.room:
            self.room = 1 << (width - 1).bit_length()
            self._team.widen(self.room)
        batch.set_targets(targets[0], weights)
        classes = None
        if self.outputs > 1:
            starts = np.arange(len(halves) + 1, dtype=np.int64)
            classes = starts, np.argmax(targets, axis=0).astype(np.int32)
        self._team.learn(batch, order, seen=halves, classes=classes, low=self.low)
        for lane, what in enumerate(self._team.divergences):
            if what:
                half = lane // self.outputs % (2 * self.dealer.pairs)
                raise DivergenceError(f"half {half % 2 + 1} of pair {half // 2 + 1}: {what}")

    def close(self) -> None:
        """End the threads."""
        self._team.close()

    def next_pass(self) -> None:
        """Let the rates decay as after a pass."""
        self._team.next_pass()

    def support(self, half: int, value: int) -> NDArray[np.int64]:
        """Return the features that a half selects with a value of the parameter."""
        first = (value * 2 * self.dealer.pairs + half) * self.outputs
        average, target = self.averages[value], self.targets[value]
        found = [
            Output(*self._team.weights(lane, average), 0.0).largest(target).keys
            for lane in range(first, first + self.outputs)
        ]
        return np.unique(np.concatenate(found)).astype(np.int64)
