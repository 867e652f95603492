"""Reproduce the papers' tables and figures; see `python -m experiments --help`.

Data sets are in the folder that THRESHER_DATA names, else in ``shared/data`` beside the repository.
"""

import os
from pathlib import Path

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
if _BESIDE.is_dir():
    os.environ.setdefault("THRESHER_DATA", str(_BESIDE))
