"""Memory does not grow with the size of the input."""

import gzip
import os
import subprocess

import pytest

from support.files import THRESHER, svmlight, thresher, vw
from support.slices import sliced

SIZE = 60 << 20
KIB = 64 << 10  # 64 MiB


def peak(*arguments):
    """Run the command line; return its peak memory in KiB."""
    process = subprocess.Popen([*THRESHER, *map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss


@pytest.fixture(scope="module", params=sliced(["svm", "vw", "svm.gz", "cache", "csv"], 0, 2, 3))
def files(request, tmp_path_factory):
    """Return a file of 60 MB of text (or its converted form), and one of a few rows."""
    folder, kind = tmp_path_factory.mktemp("memory"), request.param
    few = vw(folder / "few.vw", rows=2000) if kind == "vw" else svmlight(folder / "few.svm")
    if kind == "csv":
        thresher("convert", few, folder / "few.csv", "--quiet")
        few = folder / "few.csv"
    text = few.read_bytes()
    head = text[: text.index(b"\n") + 1] if kind == "csv" else b""
    text = text[len(head) :] * 8
    many = folder / f"many.{few.suffix[1:]}{'.gz' * kind.endswith('gz')}"
    size = SIZE // (12 if kind == "csv" else 1)
    with gzip.open(many, "wb", 1) if kind.endswith("gz") else open(many, "wb") as file:
        file.write(head)
        for _ in range(size // len(text) + 1):
            file.write(text)
    if kind == "cache":
        thresher("convert", many, folder / "many.cache", "--quiet")
        thresher("convert", few, folder / "few.cache", "--quiet")
        few, many = folder / "few.cache", folder / "many.cache"
    yield few, many, folder
    for path in folder.iterdir():
        path.unlink()


def test_training(files):
    few, many, folder = files
    model = folder / "m.thresher"
    small, large = (peak("train", data, "-m", model, "--quiet") for data in (few, many))
    assert large - small < KIB


def test_predicting_and_converting(tmp_path):
    few, many = svmlight(tmp_path / "few.svm"), tmp_path / "many.svm"
    many.write_bytes(few.read_bytes() * (SIZE // 2 // few.stat().st_size))
    model, out = tmp_path / "m.thresher", tmp_path / "out"
    thresher("train", few, "-m", model, "--quiet")
    for command in (
        ["predict", model, "DATA", "-o", out],
        ["convert", "DATA", out, "--to", "cache"],
        ["convert", "DATA", out, "--to", "parquet"],
    ):
        small, large = (
            peak(*(data if word == "DATA" else word for word in command), "--quiet")
            for data in (few, many)
        )
        assert large - small < KIB, command
        out.unlink()
