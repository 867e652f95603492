"""A connection to a Ray cluster: found or started, looked over, and left as it was found."""

from __future__ import annotations

import logging
import os
import pickle
import re
import secrets
import socket
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from thresher._version import __version__
from thresher.errors import ClusterError, ParameterError, setting

T = TypeVar("T")

_REACH = 5.0  # seconds in which an address must answer
_SEEN = 10.0  # seconds in which a new file must be seen everywhere
_RETRIES = 3  # of a task whose worker dies
_AHEAD = 4  # tasks for each processor; few, as those behind an error are not cancelled


@dataclass(frozen=True)
class WorkerSlot:
    """Where a worker is to be.

    Attributes
    ----------
    node : str
        Ray's name of the node.
    processors : int
    """

    node: str
    processors: int


@dataclass
class RemoteError:
    """An error, as a result: Ray would wrap it, and print it besides."""

    error: Exception


def as_result(error: Exception) -> RemoteError:
    """Return an error as a result that can be sent; a note in it says where it came from."""
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
        As asked for.
    threaded : bool
        Whether a worker can use several processors.
    started, connected : bool
        Whether it was started, or connected to, here; it is left again then.
    """

    def __init__(self, workers: int | None, threaded: bool, started: bool, connected: bool) -> None:
        self.workers, self.threaded = workers, threaded
        self._started, self._connected = started, connected
        self.holders = 0  # crews whose workers have the processors
        self._checked: set[str | None] = set()  # folders

    @classmethod
    def connect(
        cls, address: str | None = None, workers: int | None = None, threaded: bool = False
    ) -> Cluster:
        """Connect to a cluster, or start one on this machine.

        Parameters
        ----------
        address : str, optional
            ``"host:port"`` of a cluster's head, ``"auto"`` for the one of this machine, ``"local"``
            to start one. By default: the one that this process is connected to already, else that
            of the variable ``RAY_ADDRESS``, else one is started.
        workers : int, optional
            By default one for each processor; if they are threaded, one for each node.
        threaded : bool
            Whether a worker can use several processors.

        Raises
        ------
        ClusterError
            Ray is not installed, no cluster answers, or it is too small.
        """
        if workers is not None and (type(workers) is not int or workers < 1):
            raise ParameterError(
                parameter="workers", value=workers, allowed="a whole number of 0 or more"
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

    def places(self, limit: int) -> list[WorkerSlot]:
        """Return where workers are to be, on as many nodes as possible; `limit` are enough."""
        sizes = {n["NodeID"]: int(n["Resources"].get("CPU", 0)) for n in _nodes()}
        sizes = {node: size for node, size in sorted(sizes.items()) if size > 0}
        default = len(sizes) if self.threaded else sum(sizes.values())
        count = min(self.workers or default, limit)
        taken = dict.fromkeys(sizes, 0)
        order = []
        for _ in range(count):  # always where a worker has the most processors
            node = max(sizes, key=lambda name: sizes[name] / (taken[name] + 1))
            taken[node] += 1
            order.append(node)
        return [WorkerSlot(n, max(1, sizes[n] // taken[n]) if self.threaded else 1) for n in order]

    def check(self, folder: str | None) -> None:
        """Raise ClusterError unless all nodes have this version, and see a folder.

        Parameters
        ----------
        folder : str or None
            Made if it is not there. Workers must be able to write to it, too.
        """
        if folder in self._checked:
            return
        token = Path(folder, f".seen-{secrets.token_hex(8)}") if folder else None
        try:
            if token is not None:
                token.parent.mkdir(parents=True, exist_ok=True)
                token.write_text("driver")
            if not self._started:  # else all is on this machine
                self._check_nodes(token)
            self._checked.add(folder)
        finally:
            for left in token.parent.glob(f"{token.name}*") if token is not None else []:
                left.unlink(missing_ok=True)

    def spread(self, function: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
        """Return the results of a function for items, in their order, from all over the cluster.

        An error of the function comes as itself: that of the first item that has one.
        Items whose worker dies are tried again, so the function must be one that can be.
        """
        ray = imported()
        # Workers of a executor have all processors: a task that asks for one would never begin.
        options = {"num_cpus": 0 if self.holders else 1, "scheduling_strategy": "SPREAD"}
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
        """Leave the cluster, or end it, if it was started or connected to here."""
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
                task = ray.remote(_looked).options(
                    num_cpus=0, scheduling_strategy=strategy(node["NodeID"], soft=False)
                )
                own = None if token is None else f"{token}.{node['NodeID']}"
                name = node.get("NodeManagerHostname") or node["NodeID"]
                asked.append((name, own, task.remote(str(token) if token else None, own, _SEEN)))
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
            if trouble is None and own is not None and not _seen(own, _SEEN):
                trouble = "what it writes there is not seen here"
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
    """Return the first and the last line of an error's message: Ray's are long, and coloured."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip()[:200] for line in text.splitlines() if line.strip(" ^\t")]
    return " ... ".join(dict.fromkeys(lines[:1] + lines[-1:])) or type(error).__name__


def _nodes() -> list[dict[str, Any]]:
    return [node for node in imported().nodes() if node["Alive"]]


def _init(ray: Any, address: str, workers: int | None) -> None:
    """Connect this process, within bounded time."""
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    # Errors come to whom they concern; Ray would print them also for each packet that is not sent.
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            ray.init(address="local", num_cpus=workers, include_dashboard=False, **quiet)
        except Exception as error:
            raise ClusterError(f"Ray cannot be started on this machine: {brief(error)}") from error
        return
    try:
        if address != "auto":
            _reach(address)
        ray.init(address=address, **quiet)
    except Exception as error:
        raise ClusterError(_unreachable(address, brief(error))) from error


def _checked(address: str) -> str:
    """Raise ClusterError unless an address is one."""
    if address.startswith("ray://"):
        raise ClusterError(
            (
                f"{address} is of Ray's client, which is not supported: run this on a machine of "
                "the cluster, as `ray job submit` does, with ",
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


def _reach(address: str) -> None:
    """Raise OSError unless what answers speaks as Ray does: Ray itself would end this process."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), _REACH) as reached:
        if os.environ.get("RAY_USE_TLS", "0") == "0":
            reached.settimeout(_REACH)
            reached.sendall(
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
            )
            if reached.recv(9)[3:4] != b"\x04":  # the settings that open a connection of gRPC
                raise OSError("what answers there is not Ray")


def _unreachable(address: str, why: str) -> str:
    return (
        f"no Ray cluster can be used at {address}: {why}. "
        "`ray start --head` starts one, `ray status` shows where it is"
    )


def _check_same(ray: Any, address: str | None) -> None:
    """Raise ClusterError where another cluster is asked for than the one that is connected."""
    here = ray.get_runtime_context().gcs_address
    if address not in (None, "auto", here):
        raise ClusterError(
            f"this process is connected to the cluster at {here}, not to {address}: leave the "
            "address out, or call ray.shutdown() before"
        )


def _result(function: Callable[[Any], Any], item: Any) -> Any:
    """Call a function on a worker."""
    try:
        return function(item)
    except Exception as error:
        return as_result(error)


def _looked(token: str | None, own: str | None, seconds: float) -> tuple[str, str | None]:
    """Look around on a node: return the version, and what is wrong with the folder."""
    if token is None or own is None:
        return __version__, None
    if not _seen(token, seconds):
        return __version__, "what is written there elsewhere is not seen"
    try:
        Path(own).write_text("worker")
    except OSError as error:
        return __version__, str(error)
    return __version__, None


def _seen(file: str, seconds: float) -> bool:
    """Return whether a file is there, or is so soon: network folders take their time."""
    until = time.monotonic() + (seconds if os.path.isdir(os.path.dirname(file)) else 0)
    while not os.path.exists(file):
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True
