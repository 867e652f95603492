"""Training on the rows of several machines, with a Ray cluster: `fit`."""

from __future__ import annotations

from thresher.distributed.discovery import discover
from thresher.distributed.engine.loop import ContinueLater, StageReport
from thresher.distributed.fitting import fit
from thresher.errors import ClusterError

__all__ = ["ClusterError", "ContinueLater", "StageReport", "discover", "fit"]
