"""The folder of a checkpoint: what is on the disk before something is removed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from support.files import called, svmlight
from support.syncs import of_folders, watched
from thresher.distributed.engine.folder import CheckpointFolder, CommittedStage, locked_folder
from thresher.distributed.modes.column_pieces import write_rows
from thresher.distributed.removal import remove_checkpoint


def stage(folder: CheckpointFolder, number: int) -> CommittedStage:
    """Write the state of a piece after a stage."""
    folder.write("part", 0, number, {"a": np.full(3, number)})
    return CommittedStage(number, {"part": number, "range": 0}, [], {}, [])


def stages(path: Path) -> list[str]:
    return sorted(found.name for found in path.glob("stage-*"))


def test_a_stage_stays_until_the_next_one_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = CheckpointFolder(str(tmp_path))
    folder.commit(stage(folder, 1))
    second, third = stage(folder, 2), stage(folder, 3)
    old = "stage-00000001"

    def committed_but_not_synced(path: str) -> int:
        found = folder.committed()
        fails = path == str(tmp_path) and found is not None and found.stage == 2
        return errno.EIO if fails else 0

    with monkeypatch.context() as patch:
        watched(patch, committed_but_not_synced)
        folder.commit(second)
    assert old in stages(tmp_path)
    found = watched(monkeypatch)
    folder.commit(third)
    assert stages(tmp_path) == ["stage-00000003"]
    assert found[0] == str(tmp_path / "stage-00000003")
    assert found[1] == found[-1] == str(tmp_path)


def test_a_stage_that_may_not_be_on_the_disk_is_not_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = CheckpointFolder(str(tmp_path))
    folder.commit(stage(folder, 1))
    second = stage(folder, 2)
    watched(monkeypatch, lambda path: errno.EIO * path.endswith("stage-00000002"))
    with pytest.raises(OSError, match="Input/output"):
        folder.commit(second)
    committed = folder.committed()
    assert committed is not None
    assert committed.stage == 1
    assert folder.read("part", 0, 1)["a"].tolist() == [1, 1, 1]


def test_the_name_of_a_new_folder_of_rows_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("keys", "counts", "columns", "values", "reach", "labels", "weights")
    found = watched(monkeypatch)
    write_rows(tmp_path / "new" / "columns", {name: np.zeros(1) for name in names})
    assert found[0] == str(tmp_path)
    assert found[-1] == str(tmp_path / "new")


def test_no_valid_stage_is_left_without_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it cannot be certain that no stage is valid after a power cut, the manifest stays."""
    folder = CheckpointFolder(str(tmp_path))
    folder.commit(stage(folder, 1))
    (tmp_path / "manifest.json").write_text("{}")
    with monkeypatch.context() as patch:
        watched(patch, of_folders(errno.EIO))
        with pytest.raises(OSError, match="Input/output"):
            remove_checkpoint(str(tmp_path))
    assert "manifest.json" in os.listdir(tmp_path)
    remove_checkpoint(str(tmp_path))
    assert not tmp_path.exists()


def test_a_checkpoint_stays_until_the_model_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results").mkdir()
    rows, model, run = svmlight(tmp_path / "rows"), tmp_path / "results" / "model", tmp_path / "run"
    words = ("train", rows, "-m", model, "--workers", "0", "--parts", "2", "--checkpoint", run)
    with monkeypatch.context() as patch:
        watched(patch, lambda path: errno.EIO * (path == str(model.parent)))
        done = called(*words, "--quiet")
    assert f"the checkpoint {run} could not be removed: " in done.stderr
    assert model.exists()
    assert "committed.json" in os.listdir(run)
    called(*words, "--resume", "--quiet")
    assert not run.exists()


def test_a_folder_that_cannot_be_listed_is_unlocked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make faults` found it: the next run said that another one was using the folder."""
    path = str(tmp_path / "run")

    def failing(_: str) -> list[str]:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", failing)
        with locked_folder(path):
            pass
    with locked_folder(path):
        pass
