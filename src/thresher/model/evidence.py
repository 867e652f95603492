"""Evidence of the stabilized rule for each feature: why it was kept, or when it was purged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.printable import printable

if TYPE_CHECKING:
    from thresher.model.model import Model

KEPT = -1  # in place of the stage of a purge
NO_SIGNAL = "no signal: no model predicted other rows better than the intercept alone"


class Why(NamedTuple):
    """The weight of a feature, and its evidence; None for what the rule does not record.

    Attributes
    ----------
    feature : str or int
    weight : float
    selection_probability : float or None
        Share of paths (in the published variant, of their bursts) that selected the feature when
        it was last judged; 0 if it was never judged. Features can reach 1 with random labels too.
    updates : int or None
        Number of steps counted as evidence, over all paths.
    purged_at : int or None
        Number of the stage after which it was purged; None: it was not purged.
    documents : int or None
        Number of training rows that have it.
    reason : str or None
        Why it was purged, or never judged.
    z : float or None
        Relation of the feature alone to the label, over all training rows: their covariance in
        units of its standard error. The sign is that of the relation.
    expected_false : float or None
        Number of features that would have evidence at least as strong if labels were random. It
        depends on z and on the number of rows: in few rows, a large z is frequent by chance if
        one class is rare.
    q : float or None
        Expected share of features unrelated to the label, among those with evidence at least as
        strong (the method of Benjamini and Hochberg). Related is not the same as useful: a feature
        may only go along with others.

    Examples
    --------
    >>> print(Why("price", 0.0, 0.69, 1200, 2, 300, "others ranked higher"))
    price: weight 0, in 300 training rows, 1,200 updates, selected with probability 0.69,
    purged at stage 2: others ranked higher
    >>> print(Why("price", 0.8, 1.0, 1200, None, 300, z=3.1, expected_false=0.19, q=0.011))
    price: weight 0.8, in 300 training rows, z = 3.1 (0.19 features expected by chance, q = 0.011)
    """

    feature: str | int
    weight: float
    selection_probability: float | None = None
    updates: int | None = None
    purged_at: int | None = None
    documents: int | None = None
    reason: str | None = None
    z: float | None = None
    expected_false: float | None = None
    q: float | None = None

    def __str__(self) -> str:
        facts = [f"weight {self.weight:.4g}"]
        if self.documents is not None:
            facts.append(f"in {self.documents:,} training rows")
        if self.z is not None:
            chance = ""
            if self.expected_false is not None and self.q is not None:
                false = f"{self.expected_false:.2g}" if self.expected_false < 10 else (
                    f"{self.expected_false:,.0f}"
                )  # fmt: skip
                chance = f" ({false} features expected by chance, q = {self.q:.2g})"
            facts.append(f"z = {self.z:.1f}{chance}")
        elif self.updates is not None:
            facts.append(f"{self.updates:,} updates")
            if self.selection_probability is not None and self.updates != 0:
                facts.append(f"selected with probability {self.selection_probability:.2f}")
        because = "" if self.reason is None else f": {self.reason}"
        if self.purged_at is not None:
            facts.append(f"purged at stage {self.purged_at}{because}")
        elif self.updates == 0 and self.documents:
            facts.append(f"never judged{because}")
        elif self.reason is not None:
            facts.append(f"not in the model{because}")
        return f"{printable(self.feature)}: {', '.join(facts)}"


def reason(
    known: Mapping[str, Any], parameters: Mapping[str, Any], without_signal: bool = False
) -> str | None:
    """Return why a feature was purged or never judged, from its evidence and the parameters.

    `without_signal`: the labels of the output gave no signal.
    """
    published = parameters.get("variant") == "paper"
    if without_signal and known.get("documents") and known.get("z") is not None:
        return NO_SIGNAL
    if known.get("purged_at") is not None:
        probability, keep = known["selection_probability"], parameters.get("keep")
        if not isinstance(keep, int | float):
            return None
        # in the robust variant a probability of 0 means that it is unknown
        if probability < keep and (published or probability > 0):
            return f"its probability is below keep = {keep:g}"
        return None if published else "others ranked higher"
    if known.get("documents") and known.get("updates") == 0:
        return "no step counted as evidence" if published else "too few rows have it"
    return None


@dataclass(frozen=True)
class Evidence:
    """For every output, the features it has seen and their evidence; sparse.

    Attributes
    ----------
    indptr : array of shape (outputs + 1,)
    features : array of uint64, increasing within an output
    probability : array of float64
    updates, purged, documents : arrays of int64
        `purged` is -1 for a feature that was not purged.
    z : array of float64, or None
        Relation of each feature alone to the label, see `Why`; NaN if it is not known. None: the
        variant does not record it, or the model is of version 0.1.0.
    rows : array of float64, or None
        Effective number of rows of each feature (`thresher.estimators.effective_rows`); NaN or
        None: not known, and `documents` is taken.
    shares : array of float64 of shape (outputs,), or None
        Share of positive rows of each output, by weight; NaN or None: not known.
    signal : array of uint8 of shape (outputs,), or None
        0 for an output whose labels gave no signal; None: not known.
    """

    indptr: NDArray[np.int64]
    features: NDArray[np.uint64]
    probability: NDArray[np.float64]
    updates: NDArray[np.int64]
    purged: NDArray[np.int64]
    documents: NDArray[np.int64]
    z: NDArray[np.float64] | None = None
    rows: NDArray[np.float64] | None = None
    shares: NDArray[np.float64] | None = None
    signal: NDArray[np.uint8] | None = None

    def of(self, output: int, feature: int) -> dict[str, Any]:
        """Return the evidence of a feature, as arguments of `Why`."""
        begin, end = self.indptr[output], self.indptr[output + 1]
        at = int(begin + np.searchsorted(self.features[begin:end], np.uint64(feature)))
        if at == end or int(self.features[at]) != feature:
            return {"documents": 0, "updates": 0}
        stage = int(self.purged[at])
        return {
            "selection_probability": float(self.probability[at]),
            "updates": int(self.updates[at]),
            "purged_at": None if stage == KEPT else stage,
            "documents": int(self.documents[at]),
        } | self._relation(output, at)

    def _relation(self, output: int, at: int) -> dict[str, float]:
        """Return z of a feature of an output, and how it compares with random labels."""
        if self.z is None or np.isnan(self.z[at]):
            return {}
        known = {"z": float(self.z[at])}
        if self.shares is None or np.isnan(self.shares[output]):
            return known
        begin, end = self.indptr[output], self.indptr[output + 1]
        if output not in self._tables:
            rows = self.documents[begin:end].astype(float)
            if self.rows is not None:
                effective = self.rows[begin:end]
                rows = np.where(np.isnan(effective), rows, effective)
            chances = _chances(self.z[begin:end], rows, float(self.shares[output]))
            self._tables[output] = _false_shares(chances)
        expected, shares = self._tables[output]
        return known | {
            "expected_false": float(expected[at - begin]),
            "q": float(shares[at - begin]),
        }

    @cached_property
    def _tables(self) -> dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """For the features of an output: the number expected by chance, and q."""
        return {}

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by their names in a model file."""
        found = {f"evidence_{name}": getattr(self, name) for name in KINDS}
        more = {f"evidence_{name}": getattr(self, name) for name in MORE}
        return found | {name: array for name, array in more.items() if array is not None}

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, NDArray[Any]], outputs: int, n_features: int
    ) -> Evidence:
        """Return the evidence in the arrays of a model file; raise ValueError if they are wrong.

        Parameters
        ----------
        tensors : dict of arrays
            As returned by `tensors`.
        outputs : int
            Number of outputs of the model.
        n_features : int
            Number of features of the model.
        """
        arrays = {name: tensors[f"evidence_{name}"] for name in KINDS}
        indptr, features = arrays["indptr"], arrays["features"]
        count = features.size
        more: dict[str, Any] = {name: tensors.get(f"evidence_{name}") for name in MORE}
        for name, array in more.items():
            length = outputs if name in ("shares", "signal") else count
            if array is not None and (array.dtype != MORE[name] or array.shape != (length,)):
                raise ValueError("the arrays of its evidence do not match")
        shares, rows = more["shares"], more["rows"]
        if shares is not None and ((shares < 0) | (shares > 1)).any():
            raise ValueError("its evidence has a share outside of 0..1")
        if rows is not None and (~(rows >= 1) & ~np.isnan(rows) | np.isinf(rows)).any():
            raise ValueError("its evidence has numbers of rows that are not possible")
        sizes = {array.size for name, array in arrays.items() if name != "indptr"}
        if (
            any(array.dtype != KINDS[name] or array.ndim != 1 for name, array in arrays.items())
            or sizes != {count}
            or len(indptr) != outputs + 1
            or indptr[0] != 0
            or indptr[-1] != count
            or (np.diff(indptr) < 0).any()
        ):
            raise ValueError("the arrays of its evidence do not match")
        if count and int(features.max()) >= n_features:
            raise ValueError("its evidence has a feature number that is too large")
        rises = features[1:] > features[:-1]
        starts = indptr[(indptr > 0) & (indptr < count)]
        rises[starts - 1] = True  # the start of the next output
        if not rises.all():
            raise ValueError("the feature numbers of its evidence are not increasing")
        return cls(**arrays, **more)


def _chances(
    z: NDArray[np.float64], rows: NDArray[np.float64], share: float
) -> NDArray[np.float64]:
    """Return a p value for each z, which is also valid for features in few rows.

    For a feature in k rows, of equal values, the number of rows of the rarer class is about
    binomial if labels are random. Twice the tail of this distribution is taken at as many standard
    deviations as |z|, at most k rows, or the tail of the normal distribution if that is larger. So
    p is at least twice the probability that all k rows are of the rarer class.
    """
    from scipy.special import betainc, erfc

    size, rows, rarer = np.abs(z), np.maximum(rows, 1.0), min(share, 1.0 - share)
    found = rows * rarer + size * np.sqrt(rows * rarer * (1.0 - rarer))
    found = np.clip(found, 1e-9, rows)
    few = 2.0 * betainc(found, rows - found + 1.0, rarer)
    return np.asarray(np.minimum(1.0, np.maximum(few, erfc(size / np.sqrt(2.0)))))


def _false_shares(
    chances: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return for each p value how many features chance would give such a value, and q."""
    count = int((~np.isnan(chances)).sum())
    order = np.argsort(chances)  # NaN last
    expected = count * chances
    shares = expected[order[:count]] / np.arange(1, count + 1)
    q = np.full(len(chances), np.nan)
    q[order[:count]] = np.minimum.accumulate(shares[::-1])[::-1]
    return expected, q


def join_known(arrays: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Join z, or another array, of several outputs; None if one of them does not have it."""
    found = [array for array in arrays if array is not None]
    return np.concatenate(found) if found and len(found) == len(arrays) else None


def outputs_without_signal(model: Model) -> list[int]:
    """Return the outputs of a model of the robust variant whose labels gave no signal."""
    evidence = model.evidence
    if evidence is None or evidence.z is None:
        return []
    if evidence.signal is not None:
        return np.flatnonzero(evidence.signal == 0).tolist()
    if model.parameters.get("target_nnz") is not None:
        return []
    return np.flatnonzero(np.diff(model.indptr) == 0).tolist()


def no_signal_text(model: Model) -> str | None:
    """Return what is said about outputs without a signal; None if there are none."""
    outputs = outputs_without_signal(model)
    if not outputs:
        return None
    of = ""
    if len(model.intercept) > 1 and model.classes is not None:
        classes = model.classes.tolist()
        of = f" for {', '.join(repr(classes[output]) for output in outputs)}"
    return f"{NO_SIGNAL}{of}; no feature is kept"


KINDS = {
    "indptr": np.int64,
    "features": np.uint64,
    "probability": np.float64,
    "updates": np.int64,
    "purged": np.int64,
    "documents": np.int64,
}
TENSORS = {f"evidence_{name}": kind for name, kind in KINDS.items()}
# Not in files of version 0.1.0, nor of the published variant; `rows` not in those of clusters.
MORE = {"z": np.float64, "rows": np.float64, "shares": np.float64, "signal": np.uint8}
MORE_TENSORS = {f"evidence_{name}" for name in MORE}
