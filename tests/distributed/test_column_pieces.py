"""The mode "columns": stopped and lost blocks, and errors."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.column_cases import Data, datasets, run, same, small
from support.distributed_rows import WholeFiles, untimed
from thresher.data.labels import ManyClasses
from thresher.distributed.engine.executor import InProcessExecutor
from thresher.distributed.engine.folder import CheckpointFolder
from thresher.distributed.engine.loop import ContinueLater, StageReport, run_stages
from thresher.distributed.modes import columns
from thresher.distributed.modes.columns import ColumnsMode
from thresher.errors import DataError, DivergenceError, ModelFileError, ParameterError

# ---- stopped and lost pieces ---------------------------------------------------------------------


@settings(max_examples=settings().max_examples // 2)
@given(data=datasets(), batch=st.sampled_from([3, 7]), kept=st.booleans(), draw=st.data())
def test_stopped_and_resumed_anywhere(data: Data, batch: int, kept: bool, draw: Any) -> None:
    """A run that is resumed from the checkpoint of any stage ends with the same bits."""
    with tempfile.TemporaryDirectory() as folder, patch.object(columns, "_MAX_BATCHES", 2):
        job = data.job(folder)
        whole = run(job, batch=batch, blocks=3)
        checkpoint = CheckpointFolder(f"{folder}/checkpoint")
        mode = ColumnsMode(replace(job, folder=checkpoint.path if kept else None), batch, 3)
        stage = draw.draw(st.integers(1, whole.stages))

        def watch(report: StageReport) -> bool:
            return report.stage == stage

        with pytest.raises(ContinueLater):
            run_stages(mode, InProcessExecutor(mode, checkpoint), checkpoint, 3, None, watch)
        committed = checkpoint.committed()
        assert committed is not None
        assert committed.stage == stage
        again = run_stages(
            mode, InProcessExecutor(mode, checkpoint, hosts=2), checkpoint, 3, committed
        )
    assert same(again.learned, whole.learned)
    assert again.stages == whole.stages
    assert untimed(again) == untimed(whole)


@settings(max_examples=settings().max_examples // 2)
@given(
    data=datasets(passes=3, max_density=None),
    batch=st.sampled_from([3, 4]),
    every=st.integers(1, 3),
    hosts=st.integers(1, 3),
    kept=st.booleans(),
    draw=st.data(),
)
def test_a_host_that_loses_its_pieces(
    data: Data, batch: int, every: int, hosts: int, kept: bool, draw: Any
) -> None:
    """Only its pieces are made again, and the result has the same bits."""
    with tempfile.TemporaryDirectory() as folder, patch.object(columns, "_MAX_BATCHES", 2):
        job = data.job(folder)
        whole = run(job, batch=batch, blocks=4)
        assume(whole.stages > 3)
        checkpoint = CheckpointFolder(f"{folder}/checkpoint")
        mode = ColumnsMode(replace(job, folder=checkpoint.path if kept else None), batch, 4)
        executor = InProcessExecutor(mode, checkpoint, hosts)
        lost = draw.draw(st.integers(0, hosts - 1))
        at = draw.draw(st.integers(every, whole.stages - 1))
        remade: list[Any] = []

        def watch(report: StageReport) -> None:
            remade.extend(report.remade)
            if report.stage == at:
                executor.hosts[lost]._held.clear()
                executor.hosts[lost].shared.clear()

        again = run_stages(mode, executor, checkpoint, every, None, watch)
    assert same(again.learned, whole.learned)
    assert {number for kind, number in remade if kind == "range"} == set(
        executor.assigned["range"][lost]
    )
    assert {number for kind, number in remade if kind == "part"} <= set(
        executor.assigned["part"][lost]
    )


def test_without_a_folder_all_starts_again(tmp_path: Path) -> None:
    mode = ColumnsMode(small(tmp_path), batch=2, blocks=3)
    whole = run_stages(mode, InProcessExecutor(mode, None), None, 1)
    executor, forgotten = InProcessExecutor(mode, None, hosts=2), []

    def watch(report: StageReport) -> None:
        if report.stage == 2 and not forgotten:
            forgotten.append(True)
            executor.hosts[1]._held.clear()

    assert same(run_stages(mode, executor, None, 1, None, watch).learned, whole.learned)
    assert forgotten


def test_rows_are_in_files_and_not_in_states(tmp_path: Path) -> None:
    """Parts free their rows when blocks have received them."""
    checkpoint = CheckpointFolder(str(tmp_path / "checkpoint"))
    job = small(tmp_path, folder=checkpoint.path)
    mode = ColumnsMode(job, blocks=2)
    executor = InProcessExecutor(mode, checkpoint)
    run_stages(mode, executor, checkpoint, 1)
    found = sorted(path.name for path in Path(checkpoint.path).glob("columns-*"))
    assert found == ["columns-00000-00000-of-00002", "columns-00000-00001-of-00002"]
    committed = checkpoint.committed()
    assert committed is not None
    assert set(checkpoint.read("range", 0, committed.stage)) == {"state:learner"}
    for (kind, _), held in executor.hosts[0]._held.items():
        if kind == "part":
            assert held.result is not None
            assert not held.result.sent


def test_damaged_rows(tmp_path: Path) -> None:
    checkpoint = CheckpointFolder(str(tmp_path / "checkpoint"))
    mode = ColumnsMode(small(tmp_path, folder=checkpoint.path), blocks=2)
    run_stages(mode, InProcessExecutor(mode, checkpoint), checkpoint, 1)
    file = Path(checkpoint.path, "columns-00000-00001-of-00002")
    content = file.read_bytes()
    other = ColumnsMode(replace(mode.job, counts=[10, 11]), blocks=2)
    with pytest.raises(ModelFileError, match=r"columns-00000-00000.*the 21 rows of this run"):
        InProcessExecutor(other, checkpoint).make_pieces(checkpoint.committed())
    for damaged in (content[:-9], b"", b"x" * 100):
        file.write_bytes(damaged)
        with pytest.raises(ModelFileError, match=r"columns-00000-00001.*damaged"):
            InProcessExecutor(mode, checkpoint).make_pieces(checkpoint.committed())


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rule": "ftrl"}, "margin perceptron, a classifier; got ftrl"),
        ({"task": "regressor"}, "a classifier; got margin-perceptron, a regressor"),
        ({"params": {"levels": (0.5,)}}, "levels cannot be used with mode='columns'"),
        ({"params": {"max_density": 0.5}, "width": 0}, "max_density needs the number of features"),
    ],
)
def test_parameters_that_are_errors(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        ColumnsMode(small(tmp_path, **change))


@pytest.mark.parametrize("name", ["batch", "blocks"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "4", 1 << 31])
def test_numbers_out_of_range(tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be a whole number from 1"):
        ColumnsMode(small(tmp_path), **{name: value})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 | 2:1 6:1", r"rows\.vw:3: feature number 6 is outside 0\.\.5"),
        ("1 | 2:1e30", r"rows\.vw:3: the value of feature 2 is .*finite squares"),
        ("2 | 2:1", r"rows\.vw:3:1: .*label"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "rows.vw"
    file.write_text(f"1 | 1:1\n-1 | 2:1\n{line}\n")
    job = small(tmp_path, counts=[3], rows=WholeFiles([[str(file)]], {"format": "vw"}))
    with pytest.raises(DataError, match=message):
        run(job)


def test_weights_that_diverge(tmp_path: Path) -> None:
    with pytest.raises(DivergenceError, match="values of the rows are too large; scale them"):
        run(small(tmp_path, params={"eta0": 1e30}))


def test_another_number_of_rows_than_counted(tmp_path: Path) -> None:
    job = small(tmp_path, counts=[10, 11])
    with pytest.raises(DataError, match="part 1 has 10 rows, and had 11"):
        run(job)


def test_classes_of_class_weight(tmp_path: Path) -> None:
    job = small(tmp_path, ManyClasses([-1, 1]), params={"class_weight": {7: 2.0}})
    with pytest.raises(ParameterError, match=r"class_weight has weights of \['7'\]"):
        run(job)
