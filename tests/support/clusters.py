"""A Ray cluster for tests. All tests share it, and can remove and add nodes.

A test module that uses it sets ``pytestmark = clusters.on_ray``, and its tests use the fixture
``ray_nodes``. Its name ends in ``_ray``: all such tests run in one process, one after the other.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib.util
import logging
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from thresher.distributed.ray.cluster import Cluster

HAS_RAY = importlib.util.find_spec("ray") is not None
LIMIT = 150  # seconds for one test, on a busy machine

needs_ray = pytest.mark.skipif(
    not HAS_RAY, reason="Ray is not installed: pip install 'thresher[ray]'"
)
on_ray = [needs_ray, pytest.mark.usefixtures("time_limit")]


class Nodes:
    """A cluster of two nodes with one processor each, and a head without processors."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster as Simulated

        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 100 << 20}
        self._simulated = Simulated(
            initialize_head=True, connect=False, shutdown_at_exit=True, head_node_args=head
        )
        self.address = self._simulated.address
        self.alive: list = []
        self.settle()

    def add(self, processors: int = 1):
        """Add a node."""
        node = self._simulated.add_node(
            wait=False, num_cpus=processors, object_store_memory=100 << 20
        )
        self.alive.append(node)
        return node

    def remove(self, node) -> None:
        """Remove a node as after a power failure: its workers end at the same time."""
        self.alive.remove(node)
        raylet = node.all_processes["raylet"][0].process.pid
        workers = Path(f"/proc/{raylet}/task/{raylet}/children").read_text().split()
        self._simulated.remove_node(node, allow_graceful=False)
        for worker in map(int, workers):
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)

    def settle(self) -> None:
        """Add nodes until there are two again."""
        while len(self.alive) < 2:
            self.add()
        self._simulated.wait_for_nodes()

    def connect(self, workers: int | None = None, threaded: bool = False) -> Cluster:
        """Return the cluster. This process stays connected to it, to save time."""
        return Cluster.connect(self.address, workers, threaded)

    def close(self) -> None:
        self._simulated.shutdown()


@pytest.fixture(scope="session")
def ray_home() -> Iterator[Path]:
    """A temporary home folder for Ray, with its folder of sessions."""
    home = Path(tempfile.mkdtemp(prefix="ray"))  # short, as names of sockets are limited
    changes = {
        "HOME": str(home),
        "RAY_TMPDIR": str(home),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ADDRESS": None,
        "RAY_IGNORE_UNHANDLED_ERRORS": "1",
        "RAY_health_check_initial_delay_ms": "0",  # to notice a lost node soon
        "RAY_health_check_period_ms": "500",
        "RAY_health_check_failure_threshold": "4",
        "RAY_worker_niceness": "0",  # else other tests would slow them down
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *_python_path()]),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in changes.items():
            patch.delenv(name, raising=False) if value is None else patch.setenv(name, value)
        yield home
    left = _processes(home)
    for process in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    shutil.rmtree(home, ignore_errors=True)
    assert not left, "processes of Ray were left"


@pytest.fixture(scope="session")
def shared_nodes(ray_home) -> Iterator[Nodes]:
    import ray

    logging.getLogger("ray").setLevel(logging.ERROR)
    nodes = Nodes()
    ray.init(nodes.address, log_to_driver=False, logging_level=logging.ERROR)
    yield nodes
    ray.shutdown()
    nodes.close()


@pytest.fixture
def ray_nodes(shared_nodes) -> Nodes:
    """The cluster that all tests share, with two nodes at the beginning of a test."""
    shared_nodes.settle()
    return shared_nodes


@pytest.fixture
def time_limit() -> Iterator[None]:
    """End a test that hangs with an error, or if that fails, end the process."""

    def end(number, frame):
        raise TimeoutError(f"the test took more than {LIMIT} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(LIMIT)
    faulthandler.dump_traceback_later(LIMIT + 30, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def process_of(executor, host: int) -> int:
    """Return the process id of a worker that is idle."""
    import ray

    return ray.get(executor._workers[host].hello.remote())


def kill_when(file: Path, seconds: float = 30) -> threading.Thread:
    """Kill the process whose id is in a file, as soon as the file exists."""

    def watch() -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(file.read_text()), signal.SIGKILL)
                return
            time.sleep(0.02)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def _python_path() -> list[str]:
    return [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]


def _processes(home: Path, seconds: float = 15) -> list[int]:
    """Return the processes with this folder in their command line that have not ended in time."""
    until = time.monotonic() + seconds
    while True:
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.fsencode(home) in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.1)
