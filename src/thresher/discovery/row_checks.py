"""Checks of the rows while they are read: order, copies, row length, calibration, number of rows.

Evidence needs independent rows, and a model that explains what the other features do. Each check
is a few sums over the rows, and becomes a `Check` with a number and, if it fails, a warning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import DataError
from thresher.health.label_runs import neighbour_z

_MOST_HASHES = 1 << 22  # rows whose copies are found: the first ones
_FAR = 4.0  # |z| of the order of rows that does not come from chance
_LENGTH = 4.0
_COPIES = 0.05  # share of rows that repeat an earlier row
_FEW_ROWS, _FEW_OF_CLASS = 500, 50
_SORTED = "the rows are sorted by label or come in runs"
_GROUPED = "groups of rows were given, and rows of a group may depend on each other"


@dataclass(frozen=True)
class Check:
    """One check of a discovery.

    Attributes
    ----------
    name : str
        What was checked: "order of labels", "order of residuals", "drift", "repeated rows", "row
        length", "calibration", "number of rows", "correlated columns" or "near-copies".
    value : float
        The number that was measured; NaN if there is none.
    fine : bool
        Whether the number is as it should be; true if it was not checked.
    message : str
        What the number says; if it is not fine, also what to do.
    checked : bool
        Whether it was checked; if not, the message says why.

    Examples
    --------
    >>> from thresher.discovery.row_checks import Check
    >>> print(Check("repeated rows", 0.0, True, "no row repeats an earlier row"))
    repeated rows: no row repeats an earlier row
    """

    name: str
    value: float
    fine: bool
    message: str
    checked: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", float(self.value))  # not types of NumPy
        object.__setattr__(self, "fine", bool(self.fine))

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"

    @property
    def result(self) -> str:
        """In words: "fine", "warning" or "not checked"."""
        return ("fine" if self.fine else "warning") if self.checked else "not checked"

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as JSON types."""
        return {**asdict(self), "value": self.value if math.isfinite(self.value) else None}


class RowChecks:
    """Sums over the rows, in their stored order, for the checks.

    Parameters
    ----------
    outputs : int
        Number of outputs.
    classifies : bool
    shuffled : bool
        Whether the models learned the rows in a random order.

    Attributes
    ----------
    groups : array of int of shape (rows,) or None
        The group of each row, if rows of a group may depend on each other.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.discovery.row_checks import RowChecks
    >>> checks = RowChecks(1, classifies=True)
    >>> y = np.repeat([0.0, 1.0], 500)  # sorted by label
    >>> hashes = np.arange(1000, dtype=np.uint64)
    >>> checks.add(y[None], np.full((1, 1000), 0.5), np.ones(1000), hashes)
    >>> [check.name for check in checks.checks() if not check.fine]
    ['order of labels', 'order of residuals', 'drift']
    """

    groups: NDArray[np.int64] | None = None

    def __init__(self, outputs: int, classifies: bool, shuffled: bool = False) -> None:
        self.outputs, self.classifies, self.shuffled = outputs, classifies, shuffled
        self.rows = 0
        self.sums: dict[str, NDArray[np.float64]] = {
            name: np.zeros(outputs)
            for name in ("lag", "lag_v", "label_lag", "y", "yy", "e", "v", "et", "vt", "vtt",
                         "el", "vl", "vll")
        }  # fmt: skip
        self.last: NDArray[np.float64] | None = None  # e, v and y of the last row
        self.origin: NDArray[np.float64] | None = None  # the first target of a regression
        self.weighed = [0.0, 0.0]  # sums of the weights of rows, and of their squares
        self.hashed = 0  # number of hashes
        self._seen: list[NDArray[np.uint64]] = []

    def add(
        self,
        y: NDArray[np.float64],
        p: NDArray[np.float64],
        lengths: NDArray[np.int64],
        hashes: NDArray[np.uint64],
    ) -> None:
        """Add rows that come after all rows so far.

        Parameters
        ----------
        y, p : array of shape (outputs, rows)
            Targets, and honest predictions.
        lengths : array of int of shape (rows,)
            Number of nonzero values.
        hashes : array of uint64 of shape (rows,)
            Hash of the features, values and label of each row.
        """
        if not y.shape[1]:
            return
        e = y - p
        if not self.classifies:
            if self.origin is None:
                self.origin = y[:, 0].copy()
                e[:, 0] = 0.0  # in a stream, no row predicts the first one
            y = y - self.origin[:, None]
        v = p * (1 - p) if self.classifies else e * e
        long = np.log1p(lengths)
        t = np.arange(self.rows, self.rows + y.shape[1], dtype=np.float64)
        add = self._add
        before = np.zeros((3, self.outputs, 0)) if self.last is None else self.last[:, :, None]
        e_all, v_all, y_all = (
            np.concatenate([b, now], axis=1) for b, now in zip(before, (e, v, y), strict=True)
        )
        add("lag", e_all[:, 1:] * e_all[:, :-1]), add("lag_v", v_all[:, 1:] * v_all[:, :-1])
        add("label_lag", y_all[:, 1:] * y_all[:, :-1])
        add("y", y), add("yy", y * y), add("e", e), add("v", v)
        add("et", e * t), add("vt", v * t), add("vtt", v * t * t)
        add("el", e * long), add("vl", v * long), add("vll", v * long * long)
        self.last = np.stack([e[:, -1], v[:, -1], y[:, -1]])
        self.rows += y.shape[1]
        if self.hashed < _MOST_HASHES:
            self._seen.append(hashes[: _MOST_HASHES - self.hashed])
            self.hashed += len(self._seen[-1])

    def refuse_one_class(self, classes: NDArray[Any] | None) -> None:
        """Raise DataError if all rows are of one class.

        Parameters
        ----------
        classes : array or None
            All labels; None in a regression.
        """
        if classes is None:
            return
        present = self.sums["y"] > 0
        if len(classes) == 2:
            present = np.array([self.sums["y"][0] < self.rows, present[0]])
        if present.sum() < 2:
            raise DataError(
                f"a classifier needs rows of at least 2 classes; found {classes[present].tolist()}"
            )

    def _add(self, name: str, values: NDArray[np.float64]) -> None:
        self.sums[name] += values.sum(axis=1)

    # ---- results -------------------------------------------------------------------------------

    def checks(self) -> list[Check]:
        """Return the checks of all rows so far."""
        return [
            self._label_order(),
            self._residual_order(),
            self._drift(),
            self._repeated(),
            self._length(),
            self._number(),
        ]

    def _label_lag(self) -> tuple[float, bool]:
        """Return z of the lag of labels, and whether the rows are sorted or come in runs."""
        n, s = max(self.rows, 2), self.sums
        each = neighbour_z(n, s["y"], s["yy"], s["label_lag"])
        z = float(each[np.abs(each).argmax()])
        return z, abs(z) >= max(_FAR, 0.05 * np.sqrt(n))

    def _label_order(self) -> Check:
        z, runs = self._label_lag()
        fine = self.shuffled or not runs
        what = "neighbouring rows have similar labels" if z > 0 else "labels alternate"
        message = f"labels of neighbouring rows are independent (z = {z:.1f})"
        if self.shuffled:
            message = "rows were shuffled: their order does not matter"
        if not fine:
            message = (
                f"{what} (z = {z:.1f}): the rows are sorted, or not in a random order. A reading "
                f"in stored order learns the order; shuffle the rows, or read them into memory and "
                f"use the form crossfit, which shuffles them"
            )
        return Check("order of labels", z, fine, message)

    def _residual_order(self) -> Check:
        z = _largest(self.sums["lag"], np.sqrt(self.sums["lag_v"]))
        if self.shuffled and self._label_lag()[1]:  # so residuals follow the labels
            return Check("order of residuals", z, True, _SORTED, checked=False)
        if self.groups is not None:
            return Check("order of residuals", z, True, _GROUPED, checked=False)
        fine = abs(z) < _FAR
        message = f"residuals of neighbouring rows are independent (z = {z:.1f})"
        if not fine:
            message = (
                f"residuals of neighbouring rows are not independent (z = {z:.1f}): rows are "
                f"copies, or come in runs or groups. More features than stated may be false; "
                f"shuffle or deduplicate the rows, or (in Python) give fit the groups of the rows"
            )
        return Check("order of residuals", z, fine, message)

    def _drift(self) -> Check:
        s, n = self.sums, max(self.rows, 1)
        mean = np.divide(s["vt"], s["v"], out=np.zeros(self.outputs), where=s["v"] > 0)
        spread = s["vtt"] - 2 * mean * s["vt"] + mean**2 * s["v"]
        z = _largest(s["et"] - mean * s["e"], np.sqrt(np.maximum(spread, 0.0)))
        if self.shuffled and self._label_lag()[1]:
            return Check("drift", z, True, _SORTED, checked=False)
        fine = abs(z) < _FAR
        message = f"residuals do not drift over the rows (z = {z:.1f})"
        if not fine:
            message = (
                f"residuals drift over the {n:,} rows (z = {z:.1f}): the data change with time. "
                f"Features that follow this change may be selected"
            )
        return Check("drift", z, fine, message)

    def _repeated(self) -> Check:
        seen = np.concatenate([np.zeros(0, np.uint64), *self._seen])
        rows, distinct = max(len(seen), 1), len(np.unique(seen))
        share, advice = (len(seen) - distinct) / rows, "(in Python) give fit the groups of the rows"
        message = f"{share:.1%} of the rows repeat an earlier row"
        if self.groups is not None:
            pairs = np.unique(np.stack([seen, self.groups[: len(seen)].astype(np.uint64)]), axis=1)
            share, advice = (pairs.shape[1] - distinct) / rows, "put all copies into one group"
            message += f", {share:.1%} a row of another group"
        fine = share < _COPIES
        if not fine:
            message += (
                f". If they are copies of one observation, evidence counts it several times: "
                f"deduplicate the rows, or {advice}"
            )
        return Check("repeated rows", share, fine, message)

    def _length(self) -> Check:
        s = self.sums
        mean = np.divide(s["vl"], s["v"], out=np.zeros(self.outputs), where=s["v"] > 0)
        spread = s["vll"] - 2 * mean * s["vl"] + mean**2 * s["v"]
        z = _largest(s["el"] - mean * s["e"], np.sqrt(np.maximum(spread, 0.0)))
        fine = abs(z) < _LENGTH
        message = f"residuals do not depend on the number of values in a row (z = {z:.1f})"
        if not fine:
            message = (
                f"residuals depend on the number of values in a row (z = {z:.1f}): the length of "
                f"a row has an effect of its own. Features of long rows may be selected for it; "
                f"add a column with the logarithm of the length"
            )
        return Check("row length", z, fine, message)

    @property
    def rarest(self) -> int:
        """Number of rows of the rarest class."""
        positive = self.sums["y"]
        return int(np.minimum(positive, self.rows - positive).min())

    def weigh(self, weights: NDArray[np.float64]) -> None:
        """Add the weights of the next rows, which `add` then gets.

        Parameters
        ----------
        weights : array of shape (rows,)
            May have zeros, of rows that `add` does not get.
        """
        self.weighed[0] += float(weights.sum())
        self.weighed[1] += float(weights @ weights)

    @property
    def effective(self) -> float:
        """Number of rows of equal weight that tell as much: (sum of h)^2 / sum of h^2."""
        total, squares = self.weighed
        return total**2 / squares if squares > 0 else float(self.rows)

    def _number(self) -> Check:
        n, effective = self.rows, self.effective
        message, fine = f"{n:,} rows", effective >= _FEW_ROWS
        if self.classifies:
            least = self.rarest
            message += f", {least:,} of the rarest class"
            fine = fine and least * effective / max(n, 1) >= _FEW_OF_CLASS
        if effective < 0.5 * n:
            fine = False
            message += (
                f"; with such different weights they tell no more than {effective:,.0f} rows, and "
                f"more features than stated may be false"
            )
        if not fine:
            message += ": few features with effect can be found with so few rows"
        return Check("number of rows", float(n), fine, message)

    # ---- checkpoints ---------------------------------------------------------------------------

    @property
    def state(self) -> dict[str, Any]:
        """Everything in types that JSON has, except the hashes."""
        return {
            "rows": self.rows,
            "weighed": self.weighed,
            "sums": {name: values.tolist() for name, values in self.sums.items()},
            "last": None if self.last is None else self.last.tolist(),
            "origin": None if self.origin is None else self.origin.tolist(),
        }

    def restore(self, saved: Mapping[str, Any], hashes: bytes) -> None:
        """Set everything from `state` and `hashes`."""
        self.rows, self.weighed = int(saved["rows"]), list(saved["weighed"])
        self.sums = {name: np.array(values) for name, values in saved["sums"].items()}
        self.last = None if saved["last"] is None else np.array(saved["last"])
        self.origin = None if saved.get("origin") is None else np.array(saved["origin"])
        self._seen = [np.frombuffer(hashes, np.uint64).copy()]
        self.hashed = len(self._seen[0])

    @property
    def hashes(self) -> bytes:
        """The hashes of the rows, for a checkpoint."""
        return np.concatenate([np.zeros(0, np.uint64), *self._seen]).tobytes()


def _largest(values: NDArray[np.float64], sd: NDArray[np.float64]) -> float:
    """Return the ratio of largest absolute value over the outputs."""
    z = np.divide(values, sd, out=np.zeros(len(values)), where=sd > 0)
    return float(z[np.abs(z).argmax()])
