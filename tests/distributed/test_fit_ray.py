"""`thresher.distributed.fit` on a cluster of two nodes: the same bits after any failure."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import thresher
from support import clusters
from support.distributed_rows import FITS, bits_of, rows_of, write_shards
from support.slices import sliced
from thresher.distributed import fit
from thresher.distributed.ray.dataset import dataset_to_files, is_dataset
from thresher.distributed.shards import find_shards
from thresher.errors import DataError

pytestmark = clusters.on_ray

# As FITS, with stages that are long enough to kill a worker in the middle of one.
LONG = {
    "average": (lambda: thresher.FTRLClassifier(passes=60, random_state=1), {}),
    "robust": (
        lambda: thresher.StabilizedClassifier(target_nnz=8, paths=64, passes=20, random_state=1),
        {},
    ),
    "paper": (
        lambda: thresher.StabilizedClassifier(
            variant="paper", burst=4000, paths=16, passes=200, random_state=1
        ),
        {"every": 2},
    ),
    "columns": (
        lambda: thresher.MarginPerceptronClassifier(passes=8, random_state=1),
        {"mode": "columns", "batch": 64, "blocks": 4, "every": 2},
    ),
}


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("shards"), *rows_of())


@pytest.fixture(scope="module")
def long_shards(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("long"), *rows_of(rows=6000))


def workers_of(home: Path) -> list[int]:
    """Return the worker processes of the cluster with this home."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            named = (entry / "cmdline").read_bytes().startswith(b"ray::Worker")
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            if named and os.fsencode(home) in Path("/proc", parent, "cmdline").read_bytes():
                found.append(int(entry.name))
    return sorted(found)


@pytest.mark.parametrize("name", sliced(FITS, 0, len(FITS) - 1))
def test_a_cluster_gives_the_same_bits(name, ray_nodes, shards, tmp_path):
    make, how = FITS[name]
    found = fit(make(), shards, address=ray_nodes.address, checkpoint=tmp_path / "c", **how)
    assert bits_of(found) == bits_of(fit(make(), shards, workers=0, **how))


@pytest.mark.parametrize(
    "name",
    [
        "average",
        *(pytest.param(n, marks=pytest.mark.soak) for n in ("robust", "paper", "columns")),
    ],
)
def test_a_worker_is_killed_in_a_stage(name, ray_nodes, ray_home, long_shards, tmp_path):
    make, how = LONG[name][0], dict(LONG[name][1])
    killed, reports = [], []

    def kill():
        time.sleep(0.05)
        process = workers_of(ray_home)[0]
        os.kill(process, signal.SIGKILL)
        killed.append(process)

    def watch(report):
        reports.append(report)
        if report.stage == 3:
            threading.Thread(target=kill).start()

    address, folder = ray_nodes.address, tmp_path / "c"
    found = fit(make(), long_shards, address=address, checkpoint=folder, watch=watch, **how)
    assert len(killed) == 1
    how.pop("every", None)
    assert bits_of(found) == bits_of(fit(make(), long_shards, workers=0, **how))
    remade = [piece for report in reports for piece in report.remade]
    parts = {number for kind, number in remade if kind == "part"}
    assert parts in ({0, 2}, {1, 3})  # of one worker only
    assert len(remade) == len(set(remade))


@pytest.mark.soak  # tests/distributed/test_engine_ray.py loses a node in every run
def test_a_node_is_lost_and_another_one_added(ray_nodes, long_shards, tmp_path):
    make, how = LONG["robust"]

    def watch(report):
        if report.stage == 2:
            ray_nodes.remove(ray_nodes.alive[0])
            ray_nodes.add()

    address, folder = ray_nodes.address, tmp_path / "c"
    found = fit(make(), long_shards, address=address, checkpoint=folder, watch=watch, **how)
    assert bits_of(found) == bits_of(fit(make(), long_shards, workers=0, **how))


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.soak)]
)
def test_a_killed_command_can_be_resumed(ray_nodes, long_shards, tmp_path, how):
    def train(model, *more):
        command = [sys.executable, "-m", "thresher.cli", "train", long_shards, "-m", str(model)]
        options = ["--rule", "ftrl", "--passes", "15", "--multiclass", "--json", *more]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([*command, *options], **pipes)

    cluster = "--ray", ray_nodes.address, "--checkpoint", str(tmp_path / "c")
    with train(tmp_path / "model", *cluster) as process:
        stage = 0
        while stage < 4:
            event = json.loads(process.stdout.readline())
            stage = event.get("stage", stage)
        process.send_signal(how)
        _, said = process.communicate(timeout=100)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert "--resume continues from it" in said
    assert not (tmp_path / "model").exists()
    for model, more in (("model", (*cluster, "--resume")), ("alone", ("--workers", "0"))):
        with train(tmp_path / model, *more) as process:
            out, said = process.communicate(timeout=100)
        assert process.returncode == 0, said
        stages = [json.loads(line).get("stage") for line in out.splitlines()]
        first = next(stage for stage in stages if stage)
        assert first > 3 if "--resume" in more else first == 1
    resumed, alone = (thresher.load(tmp_path / name) for name in ("model", "alone"))
    assert resumed.weights.tobytes() == alone.weights.tobytes()
    assert resumed.intercept.tobytes() == alone.intercept.tobytes()


def test_a_bad_row_on_a_worker_is_named(ray_nodes, tmp_path):
    shards = write_shards(tmp_path / "rows", *rows_of())
    broken = tmp_path / "rows" / "rows-3.svm"
    broken.write_text(broken.read_text() + "1 7:1 7:\n")
    with pytest.raises(DataError, match=r"rows-3\.svm:101:\d+: "):
        fit(thresher.FTRLClassifier(), shards, address=ray_nodes.address)


def test_rows_of_a_dataset_keep_their_order(ray_nodes, tmp_path):
    import ray

    colors = ["blue", "red", "red"]
    items = [{"x": float(i), "color": colors[i % 3], "label": i % 2} for i in range(60)]
    dataset = ray.data.from_items(items, override_num_blocks=3)
    assert is_dataset(dataset)
    assert is_dataset(dataset.materialize())
    files = dataset_to_files(dataset, tmp_path)
    assert len(files) == 3
    shards = find_shards(files, parts=4)
    labels = [x for part in range(4) for b in shards.source(part).blocks() for x in b.labels]
    assert labels == [i % 2 for i in range(60)]
    assert dataset_to_files(dataset, tmp_path, resume=True) == files


def test_a_fit_on_a_dataset(ray_nodes, tmp_path):
    import numpy as np
    import ray

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    with ray_nodes.connect():
        dataset = ray.data.from_numpy(X).map_batches(
            lambda batch: (
                {f"x{j}": batch["data"][:, j] for j in range(6)}
                | {"label": (batch["data"][:, 1] > 0).astype(int)}
            )
        )
        found = fit(
            thresher.FTRLClassifier(passes=5, store="hashed"), dataset, checkpoint=tmp_path / "c"
        )
    assert found.model_.top(1)[0].name == "x1"
