import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from support.clusters import ray_home, ray_nodes, shared_nodes, time_limit  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile("ci", derandomize=True, max_examples=10, deadline=None)
settings.register_profile("soak", max_examples=500, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_configure():
    """Let Ctrl-C work in tests, also if the shell started them in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _signal_handlers():
    """Restore the handlers of signals that a command of the shell leaves in this process."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Run the tests of a file in one process, in order, so that its fixtures are made once.

    All files test_*_ray.py run in one process, so that there is one Ray cluster. The mark
    `xdist_group` has no effect since pytest 9.2: xdist 3.8 cannot change the ids of tests.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return "ray" if _is_on_ray(nodeid) else nodeid.partition("::")[0]

    config.option.loadscopereorder = False  # else files with many tests would be the first
    return Scheduling(config, log)


def pytest_collection_modifyitems(items):
    """Begin with the tests on Ray: they take long, and mostly wait."""
    items.sort(key=lambda item: not _is_on_ray(item.nodeid))


def _is_on_ray(nodeid):
    return nodeid.partition("::")[0].endswith("_ray.py")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of data sets: $THRESHER_DATA, or shared/data beside the repository."""
    folder = Path(os.environ.get("THRESHER_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data sets in {folder}; set THRESHER_DATA to their folder")
    return folder
