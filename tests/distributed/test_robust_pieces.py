"""The robust variant: stopped and lost pieces, and errors."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from support.distributed_rows import WholeFiles
from support.robust_cases import InMemory, facts_of, mode_of, problem, run
from support.streams import Stream
from thresher import StabilizedClassifier
from thresher.data.labels import ManyClasses
from thresher.distributed.engine.encoding import unpack_keys
from thresher.distributed.engine.executor import InProcessExecutor
from thresher.distributed.engine.folder import CheckpointFolder
from thresher.distributed.engine.loop import ContinueLater, StageReport, run_stages
from thresher.distributed.engine.pieces import ClusterJob
from thresher.distributed.modes.robust_stages import RobustStagesMode
from thresher.errors import DataError, DivergenceError, ParameterError


@pytest.mark.parametrize(
    ("parts", "ranges", "dtype", "size"),
    [(1, 1, "float32", 3), (2, 3, "float32", 3), (3, 2, "float64", 3), (2, 2, "float32", None)],
)
def test_stopped_and_resumed_anywhere(
    parts: int, ranges: int, dtype: str, size: int | None, tmp_path: Path
) -> None:
    """A run is resumed from the checkpoint alone, on any number of hosts."""
    stream = problem(60 if size else 400)
    cuts = [20, 45][: parts - 1]
    mode = mode_of(InMemory(stream, cuts), ranges, dtype=dtype, target_nnz=size)
    expected = facts_of(run(mode))
    stages = run_stages(mode, InProcessExecutor(mode, None), None, 1).stages
    assert stages >= 4
    for hosts in (1, 2, 3):
        folder = CheckpointFolder(str(tmp_path / str(hosts)))
        for _ in range(stages):  # one stage a run
            executor = InProcessExecutor(mode, folder, hosts)
            with pytest.raises(ContinueLater):
                run_stages(mode, executor, folder, 5, folder.committed(), lambda report: True)
        committed = folder.committed()
        assert committed is not None
        executor = InProcessExecutor(mode, folder, 4 - hosts)
        assert facts_of(run_stages(mode, executor, folder, 5, committed).learned) == expected


@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("lost", [0, 1])
def test_only_lost_pieces_are_made_again(every: int, lost: int, tmp_path: Path) -> None:
    mode = mode_of(InMemory(problem(), [20, 45]), 3)
    expected = facts_of(run(mode))
    for when in (1, 3, 5):  # the last while weights are learned
        folder = CheckpointFolder(str(tmp_path / str(when)))
        executor = InProcessExecutor(mode, folder, 2)
        reports: list[StageReport] = []

        def watch(
            report: StageReport, executor: Any = executor, seen: Any = reports, when: int = when
        ) -> None:
            seen.append(report)
            if report.stage == when and len(seen) == when:  # once
                executor.hosts[lost]._held.clear()

        assert facts_of(run_stages(mode, executor, folder, every, None, watch).learned) == expected
        remade = list(itertools.chain.from_iterable(report.remade for report in reports))
        if when >= every:
            homes = {(kind, n) for kind, homes in executor.assigned.items() for n in homes[lost]}
            assert set(remade) == homes


def test_states_are_small(tmp_path: Path) -> None:
    """A part has only the features that are left; a range has no evidence of purged features."""
    stream = problem(200, 400)
    mode = mode_of(InMemory(stream, [100]), target_nnz=10)
    folder = CheckpointFolder(str(tmp_path))
    sizes: list[tuple[int, int]] = []

    def watch(report: StageReport) -> None:
        left = len(unpack_keys(_state(folder.read("part", 0, report.stage))))
        sizes.append((left, _state(folder.read("range", 0, report.stage))["Z"].nbytes))

    run_stages(mode, InProcessExecutor(mode, folder), folder, 1, None, watch)
    # Parts receive the features purged in a stage at the beginning of the next.
    assert [left for left, _ in sizes[1:]] == [bytes_ // 8 for _, bytes_ in sizes[:-1]]
    assert sizes[-1] == (10, 80)


def _state(content: dict[str, Any]) -> dict[str, Any]:
    prefix = "state:"
    return {name.removeprefix(prefix): a for name, a in content.items() if name.startswith(prefix)}


# ---- errors --------------------------------------------------------------------------------------


def test_every_part_needs_a_pair_of_paths() -> None:
    with pytest.raises(ParameterError, match=r"paths must be .* 8; got 6: .* at most 3 parts"):
        mode_of(InMemory(problem(), [10, 20, 30]), paths=6)


def test_balanced_weights_are_an_error() -> None:
    with pytest.raises(
        ParameterError, match=r"class_weight must be a dict or None .*; got 'balanced'"
    ):
        mode_of(InMemory(problem()), class_weight="balanced")


def test_bad_rows_are_named(tmp_path: Path) -> None:
    file = tmp_path / "bad.svm"
    file.write_text("1 1:1\n-1 2:1e300\n")
    params = StabilizedClassifier().get_params()
    for width, message in ((9, "bad.svm:2: the value of feature 1"), (1, "bad.svm:2: feature num")):
        job = ClusterJob(
            "stabilized", "classifier", params, WholeFiles([[str(file)]], {}), ManyClasses([-1, 1]),
            width, [2],
        )  # fmt: skip
        with pytest.raises(DataError, match=message):
            run(RobustStagesMode(job))


def test_divergence_names_the_part() -> None:
    stream = problem()
    stream.X[:30] = 0.0
    mode = mode_of(InMemory(Stream(stream.X, stream.y, None, []), [30]), eta0=1e200)
    mode.job.params["dtype"] = "float32"
    with pytest.raises(DivergenceError, match=r"part 1: .* lower eta0"):
        run(mode)
