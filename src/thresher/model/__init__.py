"""The learned model: weights, feature names, history, predictions, and its file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresher.model.model import Feature, Model, Progress, Why, load

__all__ = ["Feature", "Model", "Progress", "Why", "load"]


def __getattr__(name: str) -> Any:
    """Import `thresher.model.model` when it is first used: most modules here do not need it."""
    if name in __all__:
        from thresher.model import model

        return getattr(model, name)
    raise AttributeError(f"module 'thresher.model' has no attribute {name!r}")
