"""Evidence of the stabilized rule for each feature: why it was kept, or when it was purged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

KEPT = -1  # in place of the stage of a purge


class Why(NamedTuple):
    """The weight of a feature, and its evidence; None for what the rule does not record.

    Attributes
    ----------
    feature : str or int
    weight : float
    selection_probability : float or None
        Share of paths (in the published variant, of their bursts) that selected the feature when
        it was last judged; 0 if it was never judged.
    updates : int or None
        Number of steps counted as evidence, over all paths.
    purged_at : int or None
        Number of the stage after which it was purged; None: it was not purged.
    documents : int or None
        Number of training rows that have it.
    reason : str or None
        Why it was purged, or never judged.

    Examples
    --------
    >>> print(Why("price", 0.0, 0.69, 1200, 2, 300, "others ranked higher"))
    price: weight 0, in 300 training rows, 1,200 updates, selected with probability 0.69,
    purged at stage 2: others ranked higher
    """

    feature: str | int
    weight: float
    selection_probability: float | None = None
    updates: int | None = None
    purged_at: int | None = None
    documents: int | None = None
    reason: str | None = None

    def __str__(self) -> str:
        facts = [f"weight {self.weight:.4g}"]
        if self.documents is not None:
            facts.append(f"in {self.documents:,} training rows")
        if self.updates is not None:
            facts.append(f"{self.updates:,} updates")
        if self.selection_probability is not None and self.updates != 0:
            facts.append(f"selected with probability {self.selection_probability:.2f}")
        because = "" if self.reason is None else f": {self.reason}"
        if self.purged_at is not None:
            facts.append(f"purged at stage {self.purged_at}{because}")
        elif self.updates == 0 and self.documents:
            facts.append(f"never judged{because}")
        return f"{self.feature}: {', '.join(facts)}"


def reason(known: Mapping[str, Any], parameters: Mapping[str, Any]) -> str | None:
    """Return why a feature was purged or never judged, from its evidence and the parameters."""
    published = parameters.get("variant") == "paper"
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
    """

    indptr: NDArray[np.int64]
    features: NDArray[np.uint64]
    probability: NDArray[np.float64]
    updates: NDArray[np.int64]
    purged: NDArray[np.int64]
    documents: NDArray[np.int64]

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
        }

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by their names in a model file."""
        return {f"evidence_{name}": getattr(self, name) for name in KINDS}

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
        return cls(**arrays)


KINDS = {
    "indptr": np.int64,
    "features": np.uint64,
    "probability": np.float64,
    "updates": np.int64,
    "purged": np.int64,
    "documents": np.int64,
}
TENSORS = {f"evidence_{name}": kind for name, kind in KINDS.items()}
