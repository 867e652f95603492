import os
from pathlib import Path

import pytest
from hypothesis import settings

from support.clusters import ray_home, ray_nodes, shared_nodes, time_limit  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile("ci", derandomize=True, max_examples=25, deadline=None)
settings.register_profile("soak", max_examples=500, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Run all tests of files test_*_ray.py in one process, so that there is one Ray cluster.

    The mark `xdist_group` has no effect since pytest 9.2: xdist 3.8 cannot change the ids of tests.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return "ray" if nodeid.partition("::")[0].endswith("_ray.py") else nodeid

    return Scheduling(config, log)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of data sets: $THRESHER_DATA, or shared/data beside the repository."""
    folder = Path(os.environ.get("THRESHER_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data sets in {folder}; set THRESHER_DATA to their folder")
    return folder
