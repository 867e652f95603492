"""The checkpoint of a finished run is removed, unless it is to be kept."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import thresher
from support.distributed_rows import FITS, bits_of, rows_of, write_shards
from thresher.distributed import ContinueLater, fit
from thresher.distributed.cluster_fit import ClusterFit
from thresher.distributed.engine.folder import locked_folder
from thresher.distributed.options import ClusterOptions
from thresher.distributed.ray.dataset import dataset_to_files
from thresher.distributed.removal import remove_checkpoint
from thresher.errors import DataError, ParameterError


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("shards"), *rows_of())


def fitted(name, shards, **more):
    make, options = FITS[name]
    return fit(make(), shards, workers=0, **options, **more)


@pytest.mark.parametrize("name", FITS)
def test_the_folder_of_a_finished_run_is_removed(name, shards, tmp_path):
    folder = tmp_path / "c"
    whole = fitted(name, shards, checkpoint=folder)
    assert not folder.exists()
    with pytest.raises(ContinueLater):
        fitted(name, shards, checkpoint=folder, watch=lambda report: True)
    assert (folder / "committed.json").exists()
    assert bits_of(fitted(name, shards, checkpoint=folder, resume=True)) == bits_of(whole)
    assert not folder.exists()


@pytest.mark.parametrize("name", ["average", "robust", "columns"])
def test_folders_of_several_outputs_are_removed(name, tmp_path):
    shards = write_shards(tmp_path / "rows", *rows_of(3, classes=3))
    fitted(name, shards, checkpoint=tmp_path / "c", keep_checkpoint=True)
    assert (tmp_path / "c" / "manifest.json").exists()
    assert (tmp_path / "c" / "output-00002").exists() == (name != "average")
    fitted(name, shards, checkpoint=tmp_path / "c", resume=True)
    assert sorted(os.listdir(tmp_path)) == ["rows"]


def test_a_kept_checkpoint_can_be_resumed(shards, tmp_path):
    stages = []
    for _ in range(2):
        model = fitted(
            "average", shards, checkpoint=tmp_path, resume=True, keep_checkpoint=True,
            watch=lambda report: stages.append(report.stage),
        )  # fmt: skip
        assert model.score(*rows_of()) > 0.8
    assert stages == [1, 2, 3, 4, 5, 6]


def test_only_files_of_the_run_are_removed(shards, tmp_path):
    folder, stage = tmp_path / "c", "stage-00000099"
    others = [
        "notes.txt", "stage-plays/hamlet", f"{stage}/mine", "output-00000/mine", "part-00000",
        "dataset/mine.parquet", "columns-of-a-temple", "committed.json.old",
    ]  # fmt: skip
    with pytest.raises(ContinueLater):
        fitted("columns", shards, checkpoint=folder, watch=lambda report: report.stage == 2)
    leftovers = ["manifest.json.0123456789abcdef.part", "committed.json.0123456789abcdef.part"]
    for name in [*others, *leftovers]:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("mine")
    remove_checkpoint(str(folder))
    left = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    assert left == set(others)


def test_a_failed_run_keeps_its_checkpoint(shards, tmp_path):
    def fail(report):
        if report.stage == 2:
            raise DataError("a row is bad")

    with pytest.raises(DataError):
        fitted("average", shards, checkpoint=tmp_path / "c", watch=fail)
    assert (tmp_path / "c" / "committed.json").exists()


def test_a_failed_removal_is_a_warning(shards, tmp_path, monkeypatch):
    """The estimator is fitted, and the same run can be resumed."""
    folder, unlink = tmp_path / "c", Path.unlink

    def fail(self, missing_ok=False):
        if self.name.startswith("range-"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))
        unlink(self, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", fail)
        with pytest.warns(
            UserWarning, match=rf"checkpoint {folder} could not be removed: .*denied"
        ):
            found = fitted("average", shards, checkpoint=folder)
    assert bits_of(found) == bits_of(fitted("average", shards))
    assert (folder / "manifest.json").exists()
    assert bits_of(fitted("average", shards, checkpoint=folder, resume=True)) == bits_of(found)
    assert not folder.exists()


def test_a_folder_that_another_run_uses_is_not_removed(shards, tmp_path):
    folder = tmp_path / "c"
    estimator = thresher.FTRLClassifier(random_state=0)
    fitting = ClusterFit(estimator, shards, ClusterOptions(workers=0, checkpoint=str(folder)))
    fitting.run()
    with locked_folder(str(folder)), pytest.warns(UserWarning, match="another run is using"):
        fitting.remove_checkpoint()
    assert (folder / "committed.json").exists()
    fitting.remove_checkpoint()
    assert not folder.exists()


def test_a_folder_that_is_gone_is_no_error(tmp_path):
    remove_checkpoint(str(tmp_path / "c"))
    assert not (tmp_path / "c").exists()


def test_a_checkpoint_to_keep_needs_a_folder(shards):
    with pytest.raises(ParameterError, match="keep_checkpoint=True needs checkpoint, the folder"):
        fitted("average", shards, keep_checkpoint=True)


class Dataset:
    """The method of a Ray Dataset that `dataset_to_files` uses."""

    def write_parquet(self, folder):
        import pyarrow as pa
        import pyarrow.parquet as parquet

        for number in range(2):
            table = pa.table({"x": [0.5, 1.0], "label": [0.0, 1.0]})
            parquet.write_table(table, os.path.join(folder, f"x_{number:06}.parquet"))


Dataset.__module__ = "ray.data.dataset"


@pytest.mark.parametrize("other", [False, True])
def test_files_of_a_dataset_are_removed(tmp_path, other):
    pytest.importorskip("pyarrow", reason="needs the extra arrow")
    folder = tmp_path / "c"
    assert len(dataset_to_files(Dataset(), folder)) == 2
    if other:
        (folder / "dataset" / "mine.parquet").touch()
    remove_checkpoint(str(folder), with_dataset=True)
    assert folder.exists() == other
    if other:
        assert os.listdir(folder / "dataset") == ["mine.parquet"]


def test_files_of_a_dataset_of_others_stay(tmp_path):
    """A run on files leaves a folder `dataset`, and a list of files may not name others."""
    folder, mine = tmp_path / "c", tmp_path / "mine.txt"
    (folder / "dataset").mkdir(parents=True)
    for file in (mine, folder / "dataset" / "train.parquet"):
        file.write_text("mine")
    (folder / "dataset" / "whole.json").write_text('{"../../mine.txt": 4, "train.parquet": 4}')
    remove_checkpoint(str(folder))
    assert (folder / "dataset" / "train.parquet").exists()
    remove_checkpoint(str(folder), with_dataset=True)
    assert mine.read_text() == "mine"
    (folder / "dataset").mkdir(parents=True)
    (folder / "dataset" / "whole.json").write_text("3")
    with pytest.raises(ValueError, match="is damaged"):
        remove_checkpoint(str(folder), with_dataset=True)


def test_links_are_not_followed(tmp_path):
    folder, other = tmp_path / "c", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (other / "part-00000").write_text("mine")
    (folder / "stage-00000007").symlink_to(other)
    remove_checkpoint(str(folder))
    assert (other / "part-00000").read_text() == "mine"
