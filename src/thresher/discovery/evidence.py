"""All that readings have found; evidence of other rows can be added, for example on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from thresher.data.labels import Labels
from thresher.discovery.plan import DiscoveryPlan
from thresher.discovery.row_checks import Check, RowChecks
from thresher.discovery.sums import EvidenceSums
from thresher.errors import DataError, ParameterError

_SLOPES = (0.5, 2.0)  # of predictions that are calibrated


@dataclass(frozen=True)
class Evidence:
    """The sums of each output, and the checks of the rows.

    Attributes
    ----------
    plan : DiscoveryPlan
    labels : Labels
    sums : list of EvidenceSums
        Of each output.
    checks : list of Check
    rows : int
        Number of rows.
    width : int
        The largest feature number plus 1; 2^64: any.
    names : mapping
        Names of features, if the rows can be read only once.
    residual_variance : float
        Of a regression, in variances of the targets; 1 otherwise.
    used : int
        Number of rows with a weight above 0.
    positives : tuple of float
        Sum of the targets of these rows, for each output: of classes, the number of rows.
    """

    plan: DiscoveryPlan
    labels: Labels
    sums: list[EvidenceSums]
    checks: list[Check]
    rows: int
    width: int
    names: Mapping[int, bytes] = field(default_factory=dict)
    residual_variance: float = 1.0
    used: int = 0
    positives: tuple[float, ...] = ()

    def refuse_one_class(self) -> None:
        """Raise DataError if all rows are of one class."""
        checks = RowChecks(len(self.sums), self.plan.task == "classification")
        checks.rows, checks.sums["y"] = self.used, np.array(self.positives)
        checks.refuse_one_class(self.labels.classes)

    @classmethod
    def total(cls, parts: Sequence[Evidence]) -> Evidence:
        """Return the evidence of the rows of all parts.

        Each part has models of its own, learned from its own rows, and redraws with a seed of its
        own. A check of the whole is that of the part where it is worst.

        Parameters
        ----------
        parts : sequence of Evidence
        """
        first = parts[0]
        if len({len(part.sums) for part in parts}) != 1:
            raise ParameterError("evidence needs the same labels in all parts")
        outputs = range(len(first.sums))
        known = [part.labels for part in parts if part.labels.state is not None]
        if len({labels.state for labels in known}) > 1:
            raise DataError("labels are -1 and 1 in some parts, and 0 and 1 in others")
        return cls(
            plan=first.plan,
            labels=known[0] if known else first.labels,
            sums=[EvidenceSums.total([part.sums[output] for part in parts]) for output in outputs],
            checks=_worst([part.checks for part in parts], sum(part.rows for part in parts)),
            rows=sum(part.rows for part in parts),
            width=max(part.width for part in parts),
            residual_variance=float(
                np.average(
                    [part.residual_variance for part in parts],
                    weights=[part.rows for part in parts],
                )
            ),
            used=sum(part.used for part in parts),
            positives=tuple(np.sum([part.positives for part in parts], axis=0).tolist()),
        )


def calibration(facts: Sequence[Mapping[str, float]]) -> Check:
    """Return the check of the slope of honest predictions.

    Parameters
    ----------
    facts : sequence of mapping
        Of the core of each output.
    """
    far = max(facts, key=lambda each: _far(each["slope"]))
    slope, error = far["slope"], far["slope_error"]
    outside = not _SLOPES[0] <= slope <= _SLOPES[1]
    fine = not outside or abs(slope - 1) < 4 * error
    message = f"predictions are calibrated with slope {slope:.2f} (standard error {error:.2f})"
    if not fine:
        message += (
            ": far from 1, so the model does not capture what the features do, and more of the "
            "selected features than stated may be false"
        )
    return Check("calibration", float(slope), fine, message)


def _worst(parts: Sequence[Sequence[Check]], rows: int) -> list[Check]:
    """Return for each check that of the part where it is worst."""
    found = []
    for checks in zip(*parts, strict=True):
        if checks[0].name == "number of rows":
            least = min(checks, key=lambda check: (check.fine, check.value))
            message = f"{rows:,} rows; a part has only {least.message}"
            if least.fine:
                message = f"{rows:,} rows; the smallest part has {least.message}"
            found.append(Check(least.name, float(rows), least.fine, message))
        else:
            found.append(max(checks, key=lambda check: (not check.fine, _badness(check))))
    return found


def _badness(check: Check) -> float:
    """Return how far the number of a check is from what it should be."""
    return _far(check.value) if check.name == "calibration" else abs(check.value)


def _far(slope: float) -> float:
    return float(abs(np.log(max(slope, 1e-3))))
