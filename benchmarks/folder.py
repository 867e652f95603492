"""The folder of data sets: $THRESHER_DATA, or shared/data beside the repository."""

from __future__ import annotations

import os
from pathlib import Path

DATA = Path(
    os.environ.get("THRESHER_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
)
