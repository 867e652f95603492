"""Pieces on Ray clusters: bit-identical to one process, also when workers or nodes die."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from support import clusters
from support.clusters import kill_when, process_of
from support.toys import Toy, bits
from thresher.distributed.engine.executor import InProcessExecutor
from thresher.distributed.engine.folder import CheckpointFolder
from thresher.distributed.engine.loop import run_stages
from thresher.distributed.ray.cluster import Cluster, _init, imported
from thresher.distributed.ray.executor import RayExecutor
from thresher.errors import (
    CacheError,
    ClusterError,
    DataError,
    DivergenceError,
    ModelFileError,
    ParameterError,
)

pytestmark = clusters.on_ray


def in_process(mode):
    calm = Toy(**{**vars(mode), "trouble": {}, "log": None})
    return bits(run_stages(calm, InProcessExecutor(calm, None), None, 1))


class Run:
    """A run on a cluster, with its notes and reports."""

    def __init__(self, cluster, mode, folder, every=1, patience=20.0, watch=None, committed=None):
        self.notes, self.reports, self.executor = [], [], None
        with RayExecutor(mode, folder, cluster, patience, self.notes.append) as self.executor:

            def see(report):
                self.reports.append(report)
                return watch(self, report) if watch is not None else None

            self.bits = bits(run_stages(mode, self.executor, folder, every, committed, see))

    @property
    def remade(self):
        return {report.stage: set(report.remade) for report in self.reports if report.remade}


OWN = {("part", 1), ("part", 3), ("range", 1)}  # pieces of the second of two workers


def test_two_nodes_equal_one_process(ray_nodes, tmp_path):
    with ray_nodes.connect() as cluster:
        slots = cluster.worker_slots(9)
        assert len({slot.node for slot in slots}) == len(slots) == 2

        def watch(run, report):  # while workers have all processors
            assert cluster.map(len, ["a", "bb"]) == [1, 2]

        for mode in (Toy(keep=True, every=3), Toy(combine=True, width=30_000)):
            run = Run(cluster, mode, CheckpointFolder(str(tmp_path)), mode.every, watch=watch)
            assert run.bits == in_process(mode)
            assert (run.remade, run.notes) == ({}, [])
        assert run.reports[0].bytes == (2 * 3 + 3 * 2) * 30_000 * 8


def test_a_killed_worker_makes_its_own_pieces_again(ray_nodes, tmp_path):
    def watch(run, report):
        if report.stage == 3:
            os.kill(process_of(run.executor, 1), signal.SIGKILL)  # between two stages

    mode = Toy(keep=True, trouble={"3:2": "sleep 0.6"}, log=str(tmp_path))
    with ray_nodes.connect() as cluster:
        killer = kill_when(tmp_path / "3-2")  # in a step
        run = Run(
            cluster, mode, CheckpointFolder(str(tmp_path / "checkpoint")), every=3, watch=watch
        )
        killer.join()
    assert run.bits == in_process(mode)
    assert run.remade == {2: OWN, 4: OWN}
    assert run.notes[0].startswith("worker 1 was lost; waiting for it (")
    assert run.notes[1] == "worker 1 is back"
    assert len(run.notes) == 4


@pytest.mark.soak
def test_a_node_is_lost_and_another_one_added(ray_nodes, tmp_path):
    def watch(run, report):
        if report.stage == 2:
            ray_nodes.remove(ray_nodes.alive[0])
            ray_nodes.add()

    mode = Toy(width=30_000, keep=True)  # large enough to be stored on the node, and lost with it
    with ray_nodes.connect() as cluster:
        run = Run(cluster, mode, CheckpointFolder(str(tmp_path)), watch=watch)
    assert run.bits == in_process(mode)
    assert "lost" in run.notes[0]


@pytest.mark.soak
def test_a_step_that_always_kills_its_worker_is_an_error(ray_nodes, tmp_path, monkeypatch):
    monkeypatch.setattr("thresher.distributed.ray.executor._DEATHS", 2)
    mode = Toy(trouble={"3:2": "die"})
    with (
        ray_nodes.connect() as cluster,
        pytest.raises(ClusterError, match=r"worker 1 died 2 times in the same step.*from stage 1"),
    ):
        Run(cluster, mode, CheckpointFolder(str(tmp_path)))


def test_an_error_of_a_piece_is_raised_unchanged(ray_nodes, capfd):
    with ray_nodes.connect() as cluster, pytest.raises(DataError) as it:
        Run(cluster, Toy(trouble={"2:2": "DataError"}), None)
    assert (type(it.value), str(it.value)) == (DataError, "part 2: a row is bad")
    assert "_trouble" in it.value.__notes__[0]
    assert "a row is bad" not in "".join(capfd.readouterr())


def length(item):
    if isinstance(item, Exception):
        raise item
    if isinstance(item, Path) and not item.exists():
        item.write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return len(str(item))


def test_map_calls_a_function_for_all_items(ray_nodes, tmp_path):
    once = tmp_path / "once"
    with ray_nodes.connect() as cluster:
        assert cluster.map(length, ["a", once, "ccc"]) == [1, len(str(once)), 3]
        assert cluster.map(length, []) == []
        kinds = DataError, DivergenceError, CacheError, ModelFileError, ParameterError, MemoryError
        for error in kinds:
            with pytest.raises(error) as caught:
                cluster.map(length, ["a", error("a.svm:3: bad"), ValueError("later")])
            assert (type(caught.value), str(caught.value)) == (error, "a.svm:3: bad")


def test_a_folder_that_nodes_do_not_share_is_an_error(ray_nodes, tmp_path, monkeypatch):
    with ray_nodes.connect() as cluster:
        cluster.check(str(tmp_path))
        assert os.listdir(tmp_path) == []
        monkeypatch.setattr("thresher.distributed.ray.cluster._VISIBLE_SECONDS", 0.5)
        hidden = f"/proc/{os.getpid()}/cwd"  # other processes have other folders of this name
        monkeypatch.chdir(tmp_path)
        name = socket.gethostname()
        with pytest.raises(ClusterError, match=f"node {name} does not share the folder"):
            cluster.check("/proc/self/cwd")
        assert os.path.samefile(hidden, tmp_path)
        assert os.listdir(tmp_path) == []


def test_more_workers_than_processors_are_an_error(ray_nodes):
    with pytest.raises(ClusterError, match="3 workers need as many processors; the cluster has 2"):
        ray_nodes.connect(workers=3)
    with ray_nodes.connect(workers=1) as cluster:
        assert len(cluster.worker_slots(9)) == 1
    with ray_nodes.connect(threaded=True) as cluster:
        assert [slot.processors for slot in cluster.worker_slots(9)] == [1, 1]
        with pytest.raises(ClusterError, match=f"connected to the cluster at {ray_nodes.address}"):
            Cluster.connect("local")
        with Cluster.connect() as same:  # it was not started here, so it stays
            assert same.worker_slots(1)
        assert cluster.map(len, ["ab"]) == [2]


DRIVER = """
import sys
from thresher.distributed.ray.cluster import Cluster
from thresher.distributed.engine.loop import run_stages
from thresher.distributed.engine.folder import CheckpointFolder
from thresher.distributed.ray.executor import RayExecutor
from support.toys import Toy

address, *paths = sys.argv[1:]
modes = [Toy(), Toy(trouble={"0:3": "sleep 50"})][-len(paths):]
with Cluster.connect(address or None, 2) as cluster:
    for mode, path in zip(modes, paths):
        folder = CheckpointFolder(path)
        with RayExecutor(mode, folder, cluster) as executor:
            watch = lambda report: print(report.stage, flush=True)
            run = run_stages(mode, executor, folder, 1, watch=watch)
            print(run.learned.facts["bits"], flush=True)
"""


class Driver(subprocess.Popen):
    """A driver in another process. It sleeps in the third stage of its last run."""

    def __init__(self, *arguments):
        pipe = subprocess.PIPE
        given = [sys.executable, "-c", DRIVER, *map(str, arguments)]
        super().__init__(given, stdout=pipe, stderr=pipe, text=True)

    def end(self, how):
        """Wait until it is in the third stage, and end it; return its standard error."""
        assert [self.stdout.readline() for _ in range(2)] == ["1\n", "2\n"]
        time.sleep(0.3)
        began = time.monotonic()
        self.send_signal(how)
        errors = self.stderr.read()
        self.wait()
        assert time.monotonic() - began < 15
        return errors


@pytest.mark.soak  # tests/distributed has resumed runs in one process
def test_a_run_whose_driver_was_killed_can_be_resumed(ray_nodes, tmp_path):
    with Driver(ray_nodes.address, tmp_path) as process:
        assert process.end(signal.SIGKILL) == ""
    folder = CheckpointFolder(str(tmp_path))
    assert folder.committed().stage == 2
    with ray_nodes.connect() as cluster:
        run = Run(cluster, Toy(), folder, committed=folder.committed())
    assert run.bits == in_process(Toy())
    assert [report.stage for report in run.reports] == [3, 4]


@pytest.mark.soak
def test_sigterm_ends_a_driver_without_a_stack(ray_nodes, tmp_path):
    with Driver(ray_nodes.address, tmp_path) as process:
        assert process.end(signal.SIGTERM) == ""
    assert process.returncode != 0
    assert CheckpointFolder(str(tmp_path)).committed().stage == 2


@pytest.mark.soak
@pytest.mark.parametrize("name", ["raylet", "gcs_server"])
def test_the_end_of_a_process_of_ray_is_an_error(ray_home, tmp_path, name):
    """Ray itself would end the driver after 15 s or 60 s, without an error."""
    with Driver("", tmp_path) as process:
        assert [process.stdout.readline() for _ in range(2)] == ["1\n", "2\n"]
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        [helper] = [
            int(child)
            for child in children
            if Path("/proc", child, "cmdline").read_bytes().split(b"\0")[0].endswith(name.encode())
        ]
        os.kill(helper, signal.SIGKILL)
        errors = process.stderr.read()
    assert f"ClusterError: Ray's process {name} has ended on this machine" in errors
    assert "resume=True continues from stage 2" in errors
    folder = CheckpointFolder(str(tmp_path))
    again = run_stages(Toy(), InProcessExecutor(Toy(), folder), folder, 1, folder.committed())
    assert bits(again) == in_process(Toy())


@pytest.mark.soak
def test_a_local_cluster_starts_and_ends_without_output(ray_home, tmp_path):
    with Driver("", tmp_path / "whole", tmp_path / "stopped") as process:
        said = [process.stdout.readline().strip() for _ in range(5)]
        assert said == ["1", "2", "3", "4", in_process(Toy())[0]["bits"]]
        errors = process.end(signal.SIGINT)
    assert errors.startswith("Traceback")  # of Ctrl-C, with nothing before it
    assert errors.endswith("KeyboardInterrupt\n")
    folder = CheckpointFolder(str(tmp_path / "stopped"))
    assert folder.committed().stage == 2
    again = run_stages(Toy(), InProcessExecutor(Toy(), folder), folder, 1, folder.committed())
    assert bits(again) == in_process(Toy())


@pytest.mark.soak
def test_pieces_of_a_lost_node_move_until_no_worker_is_left(ray_nodes, tmp_path):
    moved = []

    def watch(run, report):
        if report.stage in (1, 3):
            ray_nodes.remove(ray_nodes.alive[0])
        if report.stage == 3:
            moved.extend(run.notes)
            assert sorted(map(len, run.executor.assigned["part"])) == [0, 5]

    folder = CheckpointFolder(str(tmp_path))
    with (
        ray_nodes.connect() as cluster,
        pytest.raises(ClusterError, match=r"no worker is left.*resume=True continues from stage 3"),
    ):
        Run(cluster, Toy(), folder, patience=1.0, watch=watch)
    assert "did not come back; its pieces move to other workers" in moved[-1]
    again = run_stages(Toy(), InProcessExecutor(Toy(), folder), folder, 1, folder.committed())
    assert bits(again) == in_process(Toy())


# ---- no cluster ----------------------------------------------------------------------------------


def output_of_connect(address, **environment):
    code = (
        "import sys; from thresher.distributed.ray.cluster import Cluster\n"
        "try: Cluster.connect(sys.argv[1] or None)\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    began = time.monotonic()
    found = subprocess.run(
        [sys.executable, "-c", code, address],
        capture_output=True,
        text=True,
        timeout=50,
        env=os.environ | environment,
    )
    assert time.monotonic() - began < 30
    return found.stdout


@pytest.mark.soak
def test_an_address_without_a_server(ray_home):
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{reserved.getsockname()[1]}"  # bound, but without a listening server
        for given in ((address, {}), ("", {"RAY_ADDRESS": address})):
            said = output_of_connect(given[0], **given[1])
            assert said.startswith(f"ClusterError no Ray cluster can be used at {address}: ")
            assert "`ray start --head` starts one" in said


def test_an_address_of_another_server(monkeypatch):
    monkeypatch.setattr("thresher.distributed.ray.cluster._CONNECT_SECONDS", 0.3)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"no Ray cluster can be used at {address}: timed"):
            _init(imported(), address, None)  # it does not answer

        other.accept()[0].close()

        def answer():
            with other.accept()[0] as connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ClusterError, match="what answers there is not Ray"):
            _init(imported(), address, None)
        thread.join()


@pytest.mark.parametrize("address", ["here", "host:", ":1", "host:x", "ray://host:10001"])
def test_an_invalid_address(ray_home, address):
    with pytest.raises(ClusterError, match=r"address must be|not supported"):
        Cluster.connect(address)


def test_ray_is_missing(ray_home, tmp_path):
    (tmp_path / "ray.py").write_text("raise ImportError('No module named ray')")
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    said = output_of_connect("", PYTHONPATH=path)
    assert said.startswith("ClusterError a cluster needs Ray")
    assert 'pip install "thresher[ray]"' in said
