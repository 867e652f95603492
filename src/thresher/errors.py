"""What can go wrong, by who has to act.

`DataError` and `DivergenceError` come from the core: a row is bad, or the rate is too high.
"""

from __future__ import annotations

from thresher._core import DataError, DivergenceError

__all__ = ["DataError", "DivergenceError", "ModelFileError", "ParameterError"]


class ParameterError(ValueError):
    """A parameter has a value that is not allowed; the message says which are."""


class ModelFileError(ValueError):
    """A file is not a model, or is damaged; the message names it."""
