import os
from pathlib import Path

import pytest
from hypothesis import settings

from clusters import ray_home, ray_nodes, shared_nodes, time_limit  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile("ci", derandomize=True, max_examples=25, deadline=None)
settings.register_profile("soak", max_examples=500, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of data sets: $THRESHER_DATA, or shared/data beside the repository."""
    folder = Path(os.environ.get("THRESHER_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data sets in {folder}; set THRESHER_DATA to a folder that has them")
    return folder
