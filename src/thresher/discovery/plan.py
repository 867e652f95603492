"""What decides the evidence of a discovery, besides the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from thresher.data.matrix_source import MatrixSource

if TYPE_CHECKING:
    from thresher.data.source import Source

_LIMIT = 1 << 31  # bytes for models, if none are given
_MODEL = {"float32": 128, "float64": 240}  # bytes of a feature, about


@dataclass(frozen=True)
class DiscoveryPlan:
    """What decides the evidence, besides the rows.

    Attributes
    ----------
    form : {"stream", "crossfit"}
    task : {"classification", "regression"}
    folds : int
        Number of folds of a crossfit.
    redraws : int
    dtype : {"float32", "float64"}
    store : {"dense", "hashed"}
    width : int
        Number of features; 0: any 64-bit key.
    seed : int
    """

    form: str
    task: str
    folds: int
    redraws: int
    dtype: str
    store: str
    width: int
    seed: int

    @property
    def models(self) -> int:
        """Number of models of an output."""
        return self.folds if self.form == "crossfit" else 1


def folds_at_once(
    plan: DiscoveryPlan,
    source: Source | MatrixSource,
    outputs: int,
    memory_limit: float | None = None,
) -> int:
    """Return how many folds may learn in one reading.

    Parameters
    ----------
    plan : DiscoveryPlan
    source : Source or MatrixSource
    outputs : int
    memory_limit : number, optional
        Bytes for the models, 2 GiB by default. If it is given, and the number of features is not
        known before the rows are read, it is one fold.
    """
    known = plan.width > 0
    if not known and not isinstance(source, MatrixSource):
        known = len(source.parts) == 1 and bool(source.parts[0].sketch)  # a cache counts features
    if not known and memory_limit is not None:
        return 1
    features = plan.width or source.distinct or 0  # at least
    model = max(1, features * _MODEL[plan.dtype] * outputs)
    return int(min(plan.folds, max(1, (memory_limit or _LIMIT) // model)))
