"""The published variant: any workers, stopped and lost pieces, and errors."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

from support.distributed_rows import WholeFiles
from support.paper_cases import (
    Matrices,
    assert_same,
    drawn,
    driven,
    job_of,
    parameters,
    some_rows,
)
from thresher.distributed.engine.executor import InProcessExecutor
from thresher.distributed.engine.folder import CheckpointFolder
from thresher.distributed.engine.host import _received
from thresher.distributed.engine.loop import ContinueLater, StageReport, run_stages
from thresher.distributed.engine.messages import Message
from thresher.distributed.engine.pieces import Arrays, Packet, StepResult
from thresher.distributed.modes.paper_messages import JudgePaperStage, RunPaperStage
from thresher.distributed.modes.paper_pieces import PaperRangePiece
from thresher.distributed.modes.paper_stages import PaperStagesMode
from thresher.errors import DataError, DivergenceError, ModelFileError, ParameterError

# ---- workers -------------------------------------------------------------------------------------


def read_only(packets: Sequence[Packet]) -> list[Arrays]:
    """Return what a cluster would give: a read-only copy."""
    received = pickle.loads(pickle.dumps(_received(packets)))
    for arrays in received:
        for array in arrays.values():
            array.flags.writeable = False
    return list(received)


@given(data=st.data(), params=parameters(), parts=st.integers(1, 3), ranges=st.integers(1, 3))
def test_workers_do_not_matter(
    data: st.DataObject, params: dict[str, Any], parts: int, ranges: int
) -> None:
    job = job_of(some_rows(data.draw, parts), ranges, **params)
    try:
        expected = driven(job)
    except DivergenceError:
        assume(False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thresher.distributed.engine.host._received", read_only)
        for hosts, threads in ((2, 2), (3, 1)):
            assert_same(driven(job, hosts, threads=threads), expected)


@given(
    data=st.data(),
    params=parameters(),
    dtype=st.sampled_from(["float32", "float64"]),
    tol=st.sampled_from([None, 0.3]),
    parts=st.integers(1, 3),
    every=st.integers(1, 3),
)
def test_stopping_and_going_on(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    params: dict[str, Any],
    dtype: str,
    tol: float | None,
    parts: int,
    every: int,
) -> None:
    """A run can be stopped after any stage, even the last, and continue on other workers."""
    few = {"bursts": 3, "passes": min(params["passes"], 2)}  # stages: all are written
    job = job_of(some_rows(data.draw, parts), 2, **params | few, dtype=dtype, tol=tol)
    try:
        expected = driven(job, 2)
    except DivergenceError:
        assume(False)
    path = str(tmp_path_factory.mktemp("run"))
    stop = data.draw(st.integers(1, expected.stages))
    with pytest.raises(ContinueLater):
        driven(job, 2, path, every, watch=lambda report: report.stage == stop)
    committed = CheckpointFolder(path).committed()
    assert committed is not None
    assert committed.stage == stop
    assert_same(driven(job, 3, path, every, committed=committed), expected)


@given(
    data=st.data(), params=parameters(), dtype=st.sampled_from(["float32", "float64"]),
    every=st.integers(1, 3), tol=st.sampled_from([None, 0.3]),
)  # fmt: skip
def test_a_worker_that_is_lost(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    params: dict[str, Any],
    dtype: str,
    every: int,
    tol: float | None,
) -> None:
    """Only its own pieces are made again, with the same bits."""
    few = {"bursts": 3, "passes": min(params["passes"], 2)}
    job = job_of(some_rows(data.draw, 3), 3, **params | few, dtype=dtype, tol=tol)
    try:
        expected = driven(job)
    except DivergenceError:
        assume(False)
    mode, folder = PaperStagesMode(job), CheckpointFolder(str(tmp_path_factory.mktemp("run")))
    executor = InProcessExecutor(mode, folder, 2)
    lost = data.draw(st.integers(1, expected.stages))
    remade: list[Any] = []
    losses = 0

    def watch(report: StageReport) -> None:
        nonlocal losses
        remade.extend(report.remade)
        if report.stage == lost and not losses:
            losses += 1
            executor.hosts[1]._held.clear()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = run_stages(mode, executor, folder, every, watch=watch)
    assert_same(run, expected)
    assert losses == 1
    if every <= lost < expected.stages:  # else all started again, or only the result was left
        assert sorted(remade) == [("part", 1), ("range", 1)]


# ---- messages and states -------------------------------------------------------------------------


def test_messages_and_states_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage sends less than 25 bytes for each feature that it sees; states have no rows."""
    rng = np.random.default_rng(0)
    width, n, nnz = 20_000, 500, 40
    starts, content = np.arange(0, n * nnz + 1, nnz), []
    for _ in range(2):
        keys = np.sort((width * rng.random((n, nnz)) ** 2).astype(np.int32)).ravel()
        X = sp.csr_matrix((np.ones(n * nnz), keys, starts), shape=(n, width))
        content.append((X, rng.choice([-1.0, 1.0], n), None))
    touched: list[set[int]] = []
    step = PaperRangePiece.step

    def counted(
        self: PaperRangePiece, message: Message[Any], received: Sequence[Arrays]
    ) -> StepResult:
        if isinstance(message, JudgePaperStage):
            touched.append({self.first + int(j) for arrays in received for j in arrays["at"]})
        return step(self, message, received)

    monkeypatch.setattr(PaperRangePiece, "step", counted)
    for parts in (1, 2):
        job = job_of(Matrices(content[:parts]), 2, paths=16, passes=1, burst=20)
        reports: list[StageReport] = []
        touched.clear()
        folder = tmp_path / str(parts)
        driven(job, parts, str(folder), 1, watch=reports.append)
        of_stage = [len(one | two) for one, two in zip(touched[::2], touched[1::2], strict=True)]
        assert len(reports) == len(of_stage) > 3
        for report, count in zip(reports[1:], of_stage[1:], strict=True):
            ratios = parts * (1 << 14) * 8  # at most, for any number of features
            assert 7 * count <= report.bytes < 25 * count + ratios
        states = list(folder.glob("stage-*/part-*"))
        assert len(states) == parts
        assert all(state.stat().st_size < 16 // parts * width * 4 + 50_000 for state in states)


# ---- errors --------------------------------------------------------------------------------------


def test_invalid_jobs_are_errors() -> None:
    rows = drawn(1, [20, 10], 9, False, 0.5)
    with pytest.raises(ParameterError, match="paths=1 are too few for 2 parts"):
        PaperStagesMode(job_of(rows, paths=1))
    with pytest.raises(ParameterError, match="variant"):
        PaperStagesMode(job_of(rows, variant="robust"))
    for width in (0, 2**31 + 1):
        with pytest.raises(ParameterError, match="bits"):
            PaperStagesMode(replace(job_of(rows), width=width))
    with pytest.raises(ParameterError, match=r"burst=100000000.*2\^32"):
        PaperStagesMode(job_of(rows, burst=10**8, bursts=50))
    with pytest.raises(DataError, match="part 1 of 2 has no rows"):
        PaperStagesMode(job_of(drawn(1, [20, 0], 9, False, 0.5)))
    with pytest.raises(DataError, match="part 1 has 10 rows, and had 11 when"):
        driven(replace(job_of(rows), counts=[20, 11]))
    with pytest.raises(DataError, match=r"feature number \d is outside 0\.\.4"):
        driven(replace(job_of(rows), width=5))
    with pytest.raises(ParameterError, match=r"class_weight.*\['7'\]"):
        driven(job_of(rows, class_weight={7: 1.0}))
    bad = drawn(1, [20, 10], 9, False, 0.9)
    bad.content[1][0].data[-1] = 1e30
    with pytest.raises(DataError, match=r"iterator:10: the value of feature \d is 1e\+30"):
        driven(job_of(bad))
    with pytest.raises(DivergenceError, match=r"part [01]: the weights diverged at row"):
        driven(job_of(rows, loss="squared_hinge", eta0=1e20, dtype="float32", passes=50))


def test_a_mode_is_small_and_has_few_checkpoints() -> None:
    job = replace(job_of(drawn(1, [20], 9, False, 0.5)), rows=WholeFiles([["a"], ["b"]], {}))
    mode = PaperStagesMode(replace(job, counts=[10, 10]))
    assert len(pickle.dumps(mode)) < 5000
    assert mode.every == 50
    long = PaperStagesMode(job_of(drawn(1, [20], 9, False, 0.5), burst=10_000))
    assert long.every == 2**20 // (10_000 * 5 * 4)
    assert [list(mode.paths_of(part)) for part in (0, 1)] == [[0, 1], [2, 3]]


def test_damaged_states_are_errors() -> None:
    job = job_of(drawn(1, [20], 9, False, 0.5))
    mode = PaperStagesMode(job)
    part, piece = mode.part(0, 1, {}), mode.range(0, {})
    for state in ({}, {"paths": np.zeros(5, np.uint8)}, {"paths": part.state()["paths"][:-3]}):
        with pytest.raises(ModelFileError, match="checkpoint of part 0"):
            mode.part(0, 1, {}).restore(state)
    wider = PaperStagesMode(replace(job, width=11)).part(0, 1, {})
    wider.step(RunPaperStage(0, burst=2, gravity=0.0, beta=0.7, low=0.0, high=0.0), [])
    with pytest.raises(ModelFileError, match="damaged"):
        part.restore(wider.state())
    with pytest.raises(ModelFileError, match="checkpoint of range 0"):
        piece.restore({"evidence": np.zeros(3, np.uint8)})
    with pytest.raises(ModelFileError, match="checkpoint of the driver"):
        mode.coordinator().restore({"stage": 3})


def test_a_warning_if_gravity_is_0() -> None:
    """A-36: there is one warning."""
    job = job_of(drawn(3, [60], 12, False, 0.6), loss="hinge", rejection=0.05, eta0=1.0, keep=0.0)
    mode = PaperStagesMode(job)
    with pytest.warns(UserWarning, match="gravity is 0 at stage") as caught:
        run_stages(mode, InProcessExecutor(mode, None), None, 1)
    assert len(caught) == 1
