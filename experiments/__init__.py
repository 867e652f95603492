"""The papers' tables and figures again; `python -m experiments --help` says how.

Data sets are looked for in the folder that THRESHER_DATA names, else in ``shared/data`` beside the
repository.
"""

import os
from pathlib import Path

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
if _BESIDE.is_dir():
    os.environ.setdefault("THRESHER_DATA", str(_BESIDE))
