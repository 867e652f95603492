"""A connection to a Ray cluster, which is found or started here, checked, and closed."""

from __future__ import annotations

import logging
import os
import pickle
import re
import secrets
import signal
import socket
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from thresher._version import __version__
from thresher.distributed.ray.helpers import helpers_of_this_process
from thresher.errors import ClusterError, ParameterError, setting

T = TypeVar("T")

_CONNECT_SECONDS = 5.0  # in which an address must answer
_VISIBLE_SECONDS = 10.0  # in which all nodes must see a new file
_RETRIES = 3  # of a task whose worker is lost
_AHEAD = 4  # submitted tasks for each processor; few, as an error does not cancel those after it


@dataclass(frozen=True)
class WorkerSlot:
    """A place for a worker.

    Attributes
    ----------
    node : str
        Ray's id of the node.
    processors : int
    """

    node: str
    processors: int


@dataclass
class RemoteError:
    """An error as a result. Ray would wrap a raised error, and print it as well."""

    error: Exception


def as_result(error: Exception) -> RemoteError:
    """Return an error as a result that can be pickled, with a note that has the traceback."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(f"on {socket.gethostname()}, process {os.getpid()}:\n{text}")
    return RemoteError(error)


class Cluster:
    """A Ray cluster.

    Parameters
    ----------
    workers : int or None
        Number of workers; None for the default of `connect`.
    threaded : bool
        Whether a worker can use several processors.
    started, connected : bool
        Whether `connect` started the cluster, or connected this process to it. If so, `close` ends
        it, or disconnects.

    Attributes
    ----------
    executors : int
        Number of open executors. Their workers have all processors.
    """

    def __init__(self, workers: int | None, threaded: bool, started: bool, connected: bool) -> None:
        self.workers, self.threaded = workers, threaded
        self._started, self._connected = started, connected
        self.executors = 0
        self._checked: set[str | None] = set()  # folders
        self.helpers = helpers_of_this_process() if started else {}

    @classmethod
    def connect(
        cls, address: str | None = None, workers: int | None = None, threaded: bool = False
    ) -> Cluster:
        """Connect to a cluster, or start one on this machine.

        Parameters
        ----------
        address : str, optional
            ``"host:port"`` of a cluster's head, ``"auto"`` for the cluster of this machine,
            ``"local"`` to start one. By default: the cluster that this process is already connected
            to, or that of the variable ``RAY_ADDRESS``, or else a new one.
        workers : int, optional
            By default one for each processor; if workers are threaded, one for each node.
        threaded : bool
            Whether a worker can use several processors.

        Raises
        ------
        ClusterError
            Ray is not installed, no cluster answers, or it is too small.
        """
        if workers is not None and (type(workers) is not int or workers < 1):
            raise ParameterError(
                parameter="workers", value=workers, allowed="a whole number of 1 or more"
            )
        ray = imported()
        if ray.is_initialized():
            _check_same(ray, _checked(address) if address else None)
            started = connected = False
        else:
            address = _checked(address or os.environ.get("RAY_ADDRESS") or "local")
            started, connected = address == "local", True
            _init(ray, address, workers)
        cluster = cls(workers, threaded, started, connected)
        try:
            cluster._check_size()
        except BaseException:
            cluster.close()
            raise
        return cluster

    def worker_slots(self, limit: int) -> list[WorkerSlot]:
        """Return places for at most `limit` workers, on as many nodes as possible."""
        sizes = {n["NodeID"]: int(n["Resources"].get("CPU", 0)) for n in _nodes()}
        sizes = {node: size for node, size in sorted(sizes.items()) if size > 0}
        default = len(sizes) if self.threaded else sum(sizes.values())
        count = min(self.workers or default, limit)
        taken = dict.fromkeys(sizes, 0)
        order = []
        for _ in range(count):  # always the node with the most processors for each worker
            node = max(sizes, key=lambda name: sizes[name] / (taken[name] + 1))
            taken[node] += 1
            order.append(node)
        return [WorkerSlot(n, max(1, sizes[n] // taken[n]) if self.threaded else 1) for n in order]

    def check(self, folder: str | None) -> None:
        """Raise ClusterError unless all nodes have this version, and share a folder.

        Parameters
        ----------
        folder : str or None
            Made if necessary. All workers must be able to write to it.
        """
        if folder in self._checked:
            return
        token = Path(folder, f".seen-{secrets.token_hex(8)}") if folder else None
        try:
            if token is not None:
                token.parent.mkdir(parents=True, exist_ok=True)
                token.write_text("driver")
            if not self._started:  # a cluster started here is on this machine only
                self._check_nodes(token)
            self._checked.add(folder)
        finally:
            for left in token.parent.glob(f"{token.name}*") if token is not None else []:
                left.unlink(missing_ok=True)

    def map(self, function: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
        """Return the results of a function for all items, in their order, computed on all nodes.

        If the function fails for several items, the error of the first of them is raised here. An
        item whose worker is lost is tried again, so the function must give the same result twice.
        """
        ray = imported()
        # Workers of an executor have all processors: a task that needs one would never start.
        options = {"num_cpus": 0 if self.executors else 1, "scheduling_strategy": "SPREAD"}
        task = ray.remote(_result).options(max_retries=_RETRIES, **options)
        given = ray.put(function)
        left = iter(items)
        ahead = _AHEAD * sum(int(node["Resources"].get("CPU", 0)) for node in _nodes())
        tasks = deque(task.remote(given, item) for item in islice(left, ahead))
        found: list[T] = []
        try:
            while tasks:
                result = ray.get(tasks.popleft())
                if isinstance(result, RemoteError):
                    raise result.error
                found.append(result)
                tasks.extend(task.remote(given, item) for item in islice(left, 1))
        except ray.exceptions.RayError as error:
            raise ClusterError(
                f"a task was lost {_RETRIES + 1} times, with its worker: {brief(error)}"
            ) from error
        return found

    def close(self) -> None:
        """End or disconnect the cluster, if `connect` started or connected it."""
        if self._connected:
            self._connected = False
            imported().shutdown()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def _check_size(self) -> None:
        processors = sum(int(node["Resources"].get("CPU", 0)) for node in _nodes())
        if processors < (self.workers or 1):
            raise ClusterError(
                f"{self.workers or 1} workers need as many processors; the cluster has {processors}"
            )

    def _check_nodes(self, token: Path | None) -> None:
        ray = imported()
        strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        asked = []
        for node in _nodes():
            if node["Resources"].get("CPU", 0) > 0:
                task = ray.remote(_check_node).options(
                    num_cpus=0, scheduling_strategy=strategy(node["NodeID"], soft=False)
                )
                own = None if token is None else f"{token}.{node['NodeID']}"
                name = node.get("NodeManagerHostname") or node["NodeID"]
                asked.append(
                    (name, own, task.remote(str(token) if token else None, own, _VISIBLE_SECONDS))
                )
        for name, own, task in asked:
            try:
                version, trouble = ray.get(task)
            except ray.exceptions.RayError as error:
                raise ClusterError(
                    f"node {name}: a worker cannot be started, or has no thresher: {brief(error)}"
                ) from error
            if version != __version__:
                raise ClusterError(
                    f"node {name} has version {version} of thresher, and here it is {__version__}"
                )
            if trouble is None and own is not None and not _is_visible(own, _VISIBLE_SECONDS):
                trouble = "files that it writes there are not visible here"
            if trouble is not None and token is not None:
                raise ClusterError(
                    f"node {name} does not share the folder {token.parent}: {trouble}; checkpoints "
                    "must be where all nodes read and write the same files"
                )


def imported() -> Any:
    """Return the module of Ray."""
    try:
        import ray
        import ray.exceptions
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise ClusterError(
            f'a cluster needs Ray, which cannot be imported ({error}): pip install "thresher[ray]"',
            hint=(setting("workers", 0), " runs in this process without it"),
        ) from error
    return ray


def brief(error: BaseException) -> str:
    """Return the first and the last line of an error's message. Ray's are long and coloured."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip()[:200] for line in text.splitlines() if line.strip(" ^\t")]
    return " ... ".join(dict.fromkeys(lines[:1] + lines[-1:])) or type(error).__name__


def _nodes() -> list[dict[str, Any]]:
    return [node for node in imported().nodes() if node["Alive"]]


def _init(ray: Any, address: str, workers: int | None) -> None:
    """Connect this process to a cluster, within a limited time."""
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    # Errors are raised here. Ray would also print one for each packet that is never read.
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            with _own_sigterm():
                ray.init(address="local", num_cpus=workers, include_dashboard=False, **quiet)
        except Exception as error:
            raise ClusterError(f"Ray cannot be started on this machine: {brief(error)}") from error
        return
    try:
        if address != "auto":
            _check_answer(address)
        with _own_sigterm():
            ray.init(address=address, **quiet)
    except Exception as error:
        raise ClusterError(_unreachable(address, brief(error))) from error


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep the handler of SIGTERM; Ray's core would print a stack of C++ and end the process.

    Without a handler before, that of Ray's Python part is used: it ends the process by SystemExit.
    """
    before = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        kept = before if callable(before) else signal.getsignal(signal.SIGTERM)
        signal.signal(signal.SIGTERM, kept)  # also in the system, where Ray's core has replaced it


def _checked(address: str) -> str:
    """Return an address; raise ClusterError if it is not valid."""
    if address.startswith("ray://"):
        raise ClusterError(
            (
                f"{address} is an address of Ray's client, which is not supported: run this on a "
                "machine of the cluster, as `ray job submit` does, with ",
                setting("address", "auto"),
            ),
            parameter="address",
            value=address,
        )
    host, _, port = address.rpartition(":")
    if address not in ("auto", "local") and not (host and port.isdecimal() and int(port) < 65536):
        raise ClusterError(
            (setting("address"), f" must be 'host:port', 'auto' or 'local', not {address!r}"),
            parameter="address",
            value=address,
            allowed="'host:port', 'auto' or 'local'",
        )
    return address


def _check_answer(address: str) -> None:
    """Raise OSError unless a gRPC server answers: Ray itself would end this process."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS) as reached:
        if os.environ.get("RAY_USE_TLS", "0") == "0":
            reached.settimeout(_CONNECT_SECONDS)
            reached.sendall(
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
            )
            if reached.recv(9)[3:4] != b"\x04":  # the first frame of a gRPC server
                raise OSError("what answers there is not Ray")


def _unreachable(address: str, why: str) -> str:
    return (
        f"no Ray cluster can be used at {address}: {why}. "
        "`ray start --head` starts one, `ray status` shows where it is"
    )


def _check_same(ray: Any, address: str | None) -> None:
    """Raise ClusterError if this process is connected to another cluster than the wanted one."""
    here = ray.get_runtime_context().gcs_address
    if address not in (None, "auto", here):
        raise ClusterError(
            f"this process is connected to the cluster at {here}, not to {address}: leave the "
            "address out, or call ray.shutdown() before"
        )


def _result(function: Callable[[Any], Any], item: Any) -> Any:
    """Call a function on a worker; return an error as a result."""
    try:
        return function(item)
    except Exception as error:
        return as_result(error)


def _check_node(token: str | None, own: str | None, seconds: float) -> tuple[str, str | None]:
    """Return a node's version of Thresher, and what is wrong with the folder there."""
    if token is None or own is None:
        return __version__, None
    if not _is_visible(token, seconds):
        return __version__, "files that other nodes write there are not visible"
    try:
        Path(own).write_text("worker")
    except OSError as error:
        return __version__, str(error)
    return __version__, None


def _is_visible(file: str, seconds: float) -> bool:
    """Return whether a file exists within some seconds: network folders are slow."""
    until = time.monotonic() + (seconds if os.path.isdir(os.path.dirname(file)) else 0)
    while not os.path.exists(file):
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True
