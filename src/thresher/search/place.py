"""Where version 0.1.0 had `Place`: its pickles of searches look here."""

from thresher.frontier import Place

__all__ = ["Place"]
