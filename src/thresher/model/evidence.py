"""Evidence of the stabilized rule for each feature: why it was kept, or when it was purged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
        Number of features that would have such a z, or a larger one, if labels were random.
    q : float or None
        Expected share of features unrelated to the label, among those with at least this z (the
        method of Benjamini and Hochberg). Related is not the same as useful: a feature may only
        go along with others.

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
        return f"{self.feature}: {', '.join(facts)}"


def reason(
    known: Mapping[str, Any], parameters: Mapping[str, Any], without_weights: bool = False
) -> str | None:
    """Return why a feature was purged or never judged, from its evidence and the parameters.

    `without_weights`: no feature of the output has a weight.
    """
    published = parameters.get("variant") == "paper"
    if without_weights and known.get("documents") and known.get("z") is not None:
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
    """

    indptr: NDArray[np.int64]
    features: NDArray[np.uint64]
    probability: NDArray[np.float64]
    updates: NDArray[np.int64]
    purged: NDArray[np.int64]
    documents: NDArray[np.int64]
    z: NDArray[np.float64] | None = None

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
        """Return z of a feature of an output, and how it compares with random labels.

        With random labels, z is about normal with mean 0 and variance 1.
        """
        if self.z is None or np.isnan(self.z[at]):
            return {}
        if output not in self._tables:
            self._tables[output] = _false_shares(
                self.z[self.indptr[output] : self.indptr[output + 1]]
            )
        sizes, expected, shares = self._tables[output]
        place = int(np.searchsorted(sizes, abs(self.z[at])))
        return {
            "z": float(self.z[at]),
            "expected_false": float(expected[place]),
            "q": float(shares[place]),
        }

    @cached_property
    def _tables(self) -> dict[int, tuple[NDArray[np.float64], ...]]:
        """Sizes of z of an output, and for each how it compares with random labels."""
        return {}

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by their names in a model file."""
        found = {f"evidence_{name}": getattr(self, name) for name in KINDS}
        return found if self.z is None else found | {Z_TENSOR: self.z}

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
        z = tensors.get(Z_TENSOR)
        if z is not None and (z.dtype != np.float64 or z.shape != (count,)):
            raise ValueError("the arrays of its evidence do not match")
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
        return cls(**arrays, z=z)


def _false_shares(z: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Return |z|, increasing; for each, the features expected by chance to be as large, and q."""
    from scipy.special import erfc

    sizes = np.sort(np.abs(z[~np.isnan(z)]))
    expected = sizes.size * erfc(sizes / np.sqrt(2.0))
    as_large = sizes.size - np.searchsorted(
        sizes, sizes
    )  # number of features with this |z| or more
    return sizes, expected, np.minimum(1.0, np.minimum.accumulate(expected / as_large))


def join_z(arrays: Sequence[NDArray[np.float64] | None]) -> NDArray[np.float64] | None:
    """Join z of several outputs; None if one of them does not have it."""
    found = [array for array in arrays if array is not None]
    return np.concatenate(found) if found and len(found) == len(arrays) else None


def outputs_without_signal(model: Model) -> list[int]:
    """Return the outputs of a model of the robust variant whose labels gave no signal."""
    if model.evidence is None or model.evidence.z is None:
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
Z_TENSOR = "evidence_z"  # not in files of version 0.1.0, nor of the published variant
