"""`look`: what data are, before training (`thresher look`)."""

from thresher.overview.look import Look, look

__all__ = ["Look", "look"]
