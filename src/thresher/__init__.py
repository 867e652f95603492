"""Sparse linear models learned from massive, high-dimensional, sparse streams."""

from thresher._version import __version__

__all__ = ["__version__"]
