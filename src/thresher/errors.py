"""What can go wrong, by who has to act.

`DataError`, `DivergenceError` and `CacheError` come from the core: a row is bad, the rate is too
high, or a cache is cut or damaged.
"""

from __future__ import annotations

from thresher._core import CacheError, DataError, DivergenceError

__all__ = [
    "CacheError",
    "ClusterError",
    "DataError",
    "DivergenceError",
    "ModelFileError",
    "ParameterError",
]


class ClusterError(RuntimeError):
    """A cluster cannot be reached, or lost too much; the message says what can be done."""


class ParameterError(ValueError):
    """A parameter has a value that is not allowed; the message says which are."""


class ModelFileError(ValueError):
    """A file is not a model, or is damaged; the message names it."""
