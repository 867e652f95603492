"""What decides the evidence of a discovery, besides the rows."""

from __future__ import annotations

from dataclasses import dataclass


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
