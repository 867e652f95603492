"""Standardised targets of regressions: their mean and sd, and the way back to the user's units.

A regressor whose parameters are all "auto" learns y' = (y - mean) / sd, so its result does not
depend on the units of y (docs/decisions/0017-targets.md). The model, predictions and losses are in
the user's units. Mean and sd are running ones in the first pass, and stay as they are in later
passes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.targets import Losses
from thresher.model.model import Output

_NUMBERS = 5  # of a clock: weight, mean, sd, rows, sd after the first 1000 rows
_JUMP = 1000.0  # a growth of sd after the first 1000 rows that deserves a warning

KnownScale = tuple[float, float, float]  # weight, mean and sd of all rows


@dataclass(frozen=True)
class StandardisedTargets:
    """Targets of some rows. Only the entries of rows that were asked for are defined.

    Attributes
    ----------
    labels, sds, units : arrays of shape (rows, clocks)
        y' = (y - mean) / sd; sd; the factor from losses of y' to losses of y.
    end : int
        The position after the last row done.
    """

    labels: NDArray[np.float64]
    sds: NDArray[np.float64]
    units: NDArray[np.float64]
    end: int


class TargetScale:
    """Mean and standard deviation of targets; one of each for every clock.

    Parameters
    ----------
    degree : int
        How losses grow with the units of y: ``Loss.degree``.
    centred : bool
        Whether the mean is subtracted; if not, sd is the root mean square. It is subtracted where
        the model has an intercept.
    clocks : int
        Number of groups of models that see the same rows.

    Attributes
    ----------
    fixed : bool
        Whether mean and sd stay as they are.

    Examples
    --------
    >>> scale = TargetScale(2, True)
    >>> scale.standardise(np.array([1.0, 3.0, 2.0])).labels.ravel().tolist()
    [0.0, 1.0, 0.0]
    >>> scale.mean, scale.restored(np.array([0.0]))
    (2.0, array([2.]))
    """

    def __init__(self, degree: int, centred: bool, clocks: int = 1) -> None:
        self.degree, self.centred, self.fixed = degree, centred, False
        self.table = np.zeros((clocks, _NUMBERS))
        self._made: list[NDArray[np.float64]] = []  # arrays of the last call, which are used again
        self._known: NDArray[np.float64] | None = None  # targets that they have, if it is fixed
        self._told = False  # whether there was a warning

    @classmethod
    def of(
        cls,
        degree: int,
        centred: bool,
        targets: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
    ) -> TargetScale:
        """Return the scale of all these targets; it is fixed."""
        scale = cls(degree, centred)
        scale.standardise(targets, weights)
        scale.fixed = True
        return scale

    # ---- numbers -------------------------------------------------------------------------------

    @property
    def clocks(self) -> int:
        """Number of clocks."""
        return len(self.table)

    @property
    def mean(self) -> float:
        """The mean, of the first clock; 0 if it is not subtracted."""
        return float(self.table[0, 1])

    @property
    def sd(self) -> float:
        """The standard deviation, of the first clock."""
        return float(self.table[0, 2])

    @property
    def known(self) -> KnownScale:
        """Weight, mean and sd, of the first clock."""
        weight, mean, sd = self.table[0, :3].tolist()
        return weight, mean, sd

    @property
    def unit(self) -> float:
        """The factor from losses of y' to losses of y, of the first clock."""
        return self.sd if self.degree == 1 else min(self.sd * self.sd, 1e250)

    def set(self, known: KnownScale) -> None:
        """Set weight, mean and sd, and keep them."""
        self.table[:, :3], self.fixed = known, True
        self.forget()

    def warning(self) -> str | None:
        """Return a text, once, if sd has grown much since the first 1000 rows."""
        early, now = self.table[:, 4], self.table[:, 2]
        jumped = (early > 0) & (now > _JUMP * early)
        if self._told or not jumped.any():
            return None
        self._told = True
        return (
            f"the standard deviation of the targets is {now[jumped][0]:.3g}, and was "
            f"{early[jumped][0]:.3g} in the first 1,000 rows: what was learned from these rows is "
            f"in another scale; shuffle the rows, or transform the targets"
        )

    # ---- standardising -------------------------------------------------------------------------

    def standardise(
        self,
        targets: NDArray[np.float64],
        weights: NDArray[np.float64] | None = None,
        order: NDArray[np.int64] | None = None,
        first: int = 0,
        last: int | None = None,
        seen: NDArray[np.uint8] | None = None,
    ) -> StandardisedTargets:
        """Count the rows order[first:last], unless the scale is fixed, and standardise them.

        Parameters
        ----------
        targets : array of shape (rows,)
        weights : array of shape (rows,), optional
        order : array of int, optional
        first, last : int
        seen : array of shape (rows, clocks), optional
            1 if the clock sees the row, else 0.

        Returns
        -------
        StandardisedTargets
            Valid until the next call. Unless the scale is fixed, it ends before the first row that
            is repeated, and after a row that learners refuse.
        """
        if last is None:
            last = len(targets) if order is None else len(order)
        rows = order, first, last, seen
        if self.fixed:
            rows = None, 0, len(targets), None  # all rows, for further calls
        labels, sds, units = self._arrays(targets)
        if not self.fixed or self._known is not targets:
            end = _core.standardise(
                self.table, labels, sds, units, targets, weights, *rows,
                self.centred, not self.fixed, self.degree,
            )  # fmt: skip
            last = last if self.fixed else end
        self._known = targets if self.fixed else None
        return StandardisedTargets(labels, sds, units, last)

    def _arrays(self, targets: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        shape = len(targets), self.clocks
        if not self._made or self._made[0].shape != shape:
            self._made = [np.empty(shape) for _ in range(3)]
        return self._made

    def forget(self) -> None:
        """Free the arrays of the last call."""
        self._made, self._known = [], None

    # ---- the user's units ----------------------------------------------------------------------

    def restored(
        self, raw: NDArray[np.float64], clocks: NDArray[np.int64] | int = 0
    ) -> NDArray[np.float64]:
        """Return raw predictions in the user's units; `clocks` are those of the columns."""
        return np.asarray(self.table[clocks, 1] + self.table[clocks, 2] * raw)

    def output(self, output: Output, clock: int = 0) -> Output:
        """Return weights and intercept in the user's units."""
        mean, sd = self.table[clock, 1:3].tolist()
        weights = sd * output.weights
        kept = weights != 0.0
        return Output(output.keys[kept], weights[kept], mean + sd * output.intercept)

    def losses(self, losses: Losses) -> Losses:
        """Return losses for predictions and targets in the user's units.

        Parameters
        ----------
        losses : callable
            Losses of standardised predictions and targets.
        """
        mean, sd, unit = self.mean, self.sd or 1.0, self.unit if self.sd else 1.0

        def restored(
            predictions: NDArray[np.float64], targets: NDArray[np.float64]
        ) -> NDArray[np.float64]:
            return unit * losses((predictions - mean) / sd, (targets - mean) / sd)

        return restored

    # ---- state ---------------------------------------------------------------------------------

    def state(self) -> bytes:
        """Return the state."""
        about = {"targets": self.table.tolist(), "fixed": self.fixed, "told": self._told}
        return json.dumps(about).encode()

    def restore(self, state: bytes) -> None:
        """Continue from a state; raise ValueError if it is of another run."""
        try:
            about: dict[str, Any] = json.loads(state)
            table = np.array(about["targets"], np.float64)
            fixed, told = bool(about["fixed"]), bool(about["told"])
        except (KeyError, TypeError, ValueError):
            raise ValueError("the state of its targets is damaged") from None
        if table.shape != self.table.shape:
            raise ValueError("it standardises the targets of other models")
        if not np.isfinite(table).all() or (table[:, [0, 2, 3, 4]] < 0).any():
            raise ValueError("the state of its targets is damaged")
        self.table, self.fixed, self._told = table, fixed, told


def merged(one: KnownScale, other: KnownScale) -> KnownScale:
    """Return weight, mean and sd of the rows of two parts.

    Examples
    --------
    >>> merged((1.0, 1.0, 0.0), (1.0, 3.0, 0.0))
    (2.0, 2.0, 1.0)
    """
    if one[0] == 0 or other[0] == 0:
        return other if one[0] == 0 else one
    weight = one[0] + other[0]
    share, difference = other[0] / weight, other[1] - one[1]
    unit = max(one[2], other[2], abs(difference))
    if unit == 0:
        return weight, one[1], 0.0
    a, b, d = one[2] / unit, other[2] / unit, difference / unit
    variance = (1 - share) * a * a + share * b * b + share * (1 - share) * d * d
    return weight, one[1] + share * difference, unit * float(np.sqrt(variance))
