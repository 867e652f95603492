"""The manifest of a checkpoint: other options, other data and other runs are errors."""

import io
import json
import os
import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from support.files import svmlight
from thresher import __version__, scan
from thresher.data import paths
from thresher.data.writing import write
from thresher.distributed.engine.manifest import Manifest, check_same_run, manifest_to_resume
from thresher.distributed.shards import find_shards
from thresher.distributed.survey import map_in_process, survey_shards
from thresher.errors import DataError, ModelFileError, ParameterError
from thresher.training.bits import BITS, RULE_BITS, bits_of

OPTIONS = {"mode": "stages", "rule": "stabilized", "l1": 0.5, "ranges": 4, "seed": 0}


@pytest.fixture
def data(tmp_path):
    for number in range(3):
        svmlight(tmp_path / f"{number}.svm", rows=60, seed=number)
    return str(tmp_path / "*.svm")


@pytest.fixture
def folder(tmp_path, data):
    """A folder with the manifest of a run."""
    folder = tmp_path / "checkpoint"
    start_run(folder, data)
    return folder


def described(data, parts=5, reading=None, **options):
    return Manifest.of({**OPTIONS, **options}, find_shards(data, reading, parts))


def start_run(folder, data, **options):
    now = described(data, **options)
    replace(now, survey=survey_shards(now.shards)).write(folder)


def resumed(folder, data, map_items=map_in_process, **options):
    before = manifest_to_resume(folder, resume=True)
    return check_same_run(before, described(data, **options), folder, map_items)


def nobody(function, items):
    raise AssertionError("files that have not changed are not read again")


def test_a_manifest_is_read_as_it_was_written(folder, data):
    before = manifest_to_resume(folder, resume=True)
    assert before.options == OPTIONS
    assert before.shards == find_shards(data, parts=5)
    assert before.survey == survey_shards(before.shards)
    assert resumed(folder, data, nobody) == before.survey
    assert resumed(folder, data, nobody, reading={"threads": 3, "text": []}) == before.survey
    written = json.loads((folder / "manifest.json").read_text())
    assert written["format"] == 1
    assert [size for size, _ in written["files"].values()] == [
        os.path.getsize(name) for name in before.shards.files
    ]


def test_options_of_all_types_are_compared_as_written(tmp_path, data):
    options = {"class_weight": {-1: 1.0, 1: 2.0}, "steps": (1, 2), "eta": np.float64(0.5)}
    folder = tmp_path / "other"
    start_run(folder, data, parts=3, **options)
    assert resumed(folder, data, nobody, parts=3, **options)
    with pytest.raises(ModelFileError, match=r"class_weight was \{.*2.0\} .* is \{.*3.0\} now"):
        resumed(folder, data, parts=3, **options | {"class_weight": {-1: 1.0, 1: 3.0}})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"l1": 0.25}, "l1 was 0.5 in the run that wrote it, and is 0.25 now"),
        ({"mode": "average"}, "mode was 'stages' in the run that wrote it, and is 'average' now"),
        ({"ranges": 2}, "ranges was 4 in the run"),
        ({"momentum": 1}, "momentum was None in the run"),
        ({"parts": 4}, "parts was 5 in the run that wrote it, and is 4 now"),
        ({"reading": {"bits": 9}}, "bits was None in the run that wrote it, and is 9 now"),
        ({"reading": {"zero_based": True}}, "zero_based was False in the run"),
    ],
)
def test_other_options_are_errors(folder, data, changes, message):
    with pytest.raises(ModelFileError) as error:
        resumed(folder, data, **changes)
    assert str(error.value).startswith(f"{folder}: {message}")
    assert str(error.value).endswith("a resumed run needs the same options")


def test_an_option_that_is_no_longer_given_is_an_error(tmp_path, data):
    start_run(tmp_path / "other", data, reading={"bits": 9})
    with pytest.raises(ModelFileError, match="bits was 9 in the run that wrote it, and is None"):
        resumed(tmp_path / "other", data)


def test_kinds_of_columns_are_compared(tmp_path):
    pytest.importorskip("pyarrow", reason="needs the extra arrow")
    (tmp_path / "a.csv").write_text("x,label\n1,1\n2,0\n")
    start_run(tmp_path / "other", tmp_path / "a.csv", parts=None)
    with pytest.raises(ModelFileError, match="kinds was"):
        resumed(
            tmp_path / "other", tmp_path / "a.csv", parts=None, reading={"kinds": {"x": "string"}}
        )


# ---- data ----------------------------------------------------------------------------------------


def test_a_copy_is_read_and_accepted(folder, data, tmp_path):
    file = tmp_path / "1.svm"
    copy = file.read_bytes()
    file.unlink()
    file.write_bytes(copy)
    os.utime(file, ns=(1, 1))
    read = []

    def map_items(function, items):
        read.extend(shard.path for task in items for (shard,) in task.shards.groups)
        return map_in_process(function, items)

    assert resumed(folder, data, map_items)
    assert set(read) == {str(file)}


def test_changed_data_are_an_error(folder, data, tmp_path):
    file = tmp_path / "1.svm"
    text = bytearray(file.read_bytes())
    at = text.rindex(b":1.") + 3
    text[at] = ord("0") + (text[at] - ord("0") + 1) % 10
    file.write_bytes(text)
    os.utime(file, ns=(1, 1))
    with pytest.raises(DataError, match=rf"{file} \(bytes .*\): has changed since the run began"):
        resumed(folder, data)


def test_changed_tables_and_caches_are_errors(tmp_path, data):
    pytest.importorskip("pyarrow", reason="needs the extra arrow")
    for format in ("parquet", "cache"):
        file, place = tmp_path / f"rows.{format}", tmp_path / f"of-{format}"
        source = tmp_path / "source"
        source.write_text("1 1:1 2:2\n-1 3:1\n")
        write(scan(source), str(file), format)
        start_run(place, file, parts=1)
        write(scan(source), str(file), format)
        os.utime(file, ns=(1, 1))
        assert resumed(place, file, parts=1)
        size = file.stat().st_size
        source.write_text("1 1:1 2:3\n-1 3:1\n")
        write(scan(source), str(file), format)
        os.utime(file, ns=(2, 2))
        what = "has changed since" if file.stat().st_size == size else "bytes now, and had"
        with pytest.raises(DataError, match=what):
            resumed(place, file, parts=1)


def test_files_of_another_size_are_errors(folder, data, tmp_path):
    file = tmp_path / "2.svm"
    with file.open("a") as more:
        more.write("1 1:1\n")
    size = file.stat().st_size
    with pytest.raises(DataError, match=rf"{file}: has {size} bytes now, and had {size - 6} when"):
        resumed(folder, data)


def test_missing_and_new_files_are_errors(folder, data, tmp_path):
    svmlight(tmp_path / "3.svm", rows=9)
    with pytest.raises(DataError, match=r"3.svm: was not among the data when the run began"):
        resumed(folder, data)
    with pytest.raises(DataError, match=r"1.svm: is no longer among the data"):
        resumed(folder, [tmp_path / "0.svm", tmp_path / "2.svm"])
    (tmp_path / "3.svm").unlink()
    (tmp_path / "1.svm").unlink()
    with pytest.raises(DataError, match=r"1.svm: is missing; a resumed run needs the same data"):
        resumed(folder, data)


def test_files_in_another_order_are_an_error(folder, tmp_path):
    with pytest.raises(ModelFileError, match="divided the files at other positions"):
        resumed(folder, [tmp_path / f"{number}.svm" for number in (1, 0, 2)])


# ---- bits ----------------------------------------------------------------------------------------


def check_not_resumed(folder, data, name, version, **options):
    """Check that a run which would give other bits is not resumed."""
    message = f"{folder}: written by Thresher {version}, whose results differ from this version's"
    message += f" in {name} "
    with pytest.raises(ModelFileError, match=re.escape(message)):
        resumed(folder, data, nobody, **options)


def test_a_run_that_started_with_other_bits_is_not_resumed(folder, data, monkeypatch):
    for name in ("hashing", "comparison"):  # these features have numbers
        monkeypatch.setitem(BITS, name, 2)
    assert resumed(folder, data, nobody)
    for name, numbers in (("shuffling", BITS), ("summation", BITS), ("stabilized", RULE_BITS)):
        with monkeypatch.context() as later:
            later.setitem(numbers, name, 2)
            check_not_resumed(folder, data, name, __version__)


def test_a_manifest_has_the_numbers_of_its_run(tmp_path, data, monkeypatch):
    folder, options = tmp_path / "other", {"mode": "average", "rule": "ftrl", "shuffle": False}
    with monkeypatch.context() as later:
        later.setitem(RULE_BITS, "ftrl", 2)
        start_run(folder, data, **options)
        assert resumed(folder, data, nobody, **options)
    check_not_resumed(folder, data, "ftrl", __version__, **options)
    assert manifest_to_resume(folder, resume=True).bits == bits_of("ftrl", shuffle=False) | {
        "ftrl": 2
    }


def test_a_manifest_without_numbers_has_the_first_ones(folder, data, monkeypatch):
    file = folder / "manifest.json"
    content = json.loads(file.read_text())
    del content["bits"], content["version"]  # as version 0.1.0 wrote it
    file.write_text(json.dumps(content))
    assert resumed(folder, data, nobody)
    monkeypatch.setitem(BITS, "shuffling", 2)
    check_not_resumed(folder, data, "shuffling", "0.1.0 or earlier")


# ---- the folder ----------------------------------------------------------------------------------


def test_another_run_is_never_overwritten(folder, data):
    content = (folder / "manifest.json").read_bytes()
    message = r"holds the checkpoint of another run; resume=True continues it, or"
    with pytest.raises(ModelFileError, match=f"{folder}: {message} choose another folder"):
        manifest_to_resume(folder, resume=False)
    with pytest.raises(ModelFileError, match=message):
        start_run(folder, data, l1=0.25)
    assert (folder / "manifest.json").read_bytes() == content


def test_folders_without_a_run(tmp_path):
    assert manifest_to_resume(tmp_path / "new", resume=True) is None
    assert manifest_to_resume(tmp_path / "new", resume=False) is None
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelFileError, match="a checkpoint is a folder, and this is a file"):
        manifest_to_resume(tmp_path / "file", resume=False)
    (tmp_path / "committed.json").write_text("{}")
    with pytest.raises(ModelFileError, match=r"holds a checkpoint without its manifest.json"):
        manifest_to_resume(tmp_path, resume=True)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b'{"format": 1}', b'{"format": 1, "files": []}', b"\xff\xfe"],
)
def test_damaged_manifests(folder, content):
    (folder / "manifest.json").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"manifest.json: cannot be read, or is damaged"):
        manifest_to_resume(folder, resume=True)


def test_manifests_of_other_versions(folder):
    file = folder / "manifest.json"
    file.write_text(file.read_text().replace('"format": 1', '"format": 2', 1))
    with pytest.raises(ModelFileError, match="in format 2; this is Thresher"):
        manifest_to_resume(folder, resume=True)


def test_a_folder_can_be_moved(folder, data, tmp_path):
    shutil.move(folder, tmp_path / "moved")
    assert resumed(tmp_path / "moved", data, nobody)


def test_remote_files_are_not_divided_and_are_read_again(tmp_path, monkeypatch):
    files = {f"d/{n}.svm": svmlight(tmp_path / "a", rows=9, seed=n).read_bytes() for n in (1, 2)}
    system = SimpleNamespace(
        exists=files.__contains__,
        isdir=lambda path: False,
        size=lambda path: len(files[path]),
        open=lambda path, mode: io.BytesIO(files[path]),
    )
    monkeypatch.setattr(paths, "file_system", lambda url: (system, url.split("//")[1]))
    data = ["s3://d/1.svm", "s3://d/2.svm"]
    folder = tmp_path / "checkpoint"
    start_run(folder, data, parts=None)
    assert resumed(folder, data, parts=None).rows == [9, 9]
    files["d/2.svm"] = files["d/2.svm"].replace(b":0.", b":1.")
    with pytest.raises(DataError, match=r"s3://d/2.svm: has changed since the run began"):
        resumed(folder, data, parts=None)
    with pytest.raises(ParameterError, match="parts must be at most 2"):
        find_shards(data, parts=3)
