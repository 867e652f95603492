"""Where version 0.1.0 had `Dot` and `Frontier`: its pickles of searches look here."""

from thresher.frontier import Dot, Frontier

__all__ = ["Dot", "Frontier"]
