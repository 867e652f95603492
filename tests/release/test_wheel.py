"""The sdist and the wheels of `make wheel`: their content, the same bytes twice, and a trial."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SMOKE = Path(__file__).with_name("smoke.py")
LARGEST = 300_000  # bytes of a file in the sdist

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not in a repository"),
]


def built(folder, name):
    """Build with temporary files in a folder of its own; return where the results are."""
    (folder / name / "tmp").mkdir(parents=True)
    dist = folder / name / "dist"
    subprocess.run(
        ["make", "wheel", f"DIST={dist}", f"WHEEL_PYTHONS={sys.executable}"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder / name / "tmp")},
        check=True,
    )
    return dist


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    return built(tmp_path_factory.mktemp("first"), "a")


@pytest.fixture(scope="module")
def sdist(dist):
    (found,) = dist.glob("*.tar.gz")
    return found


@pytest.fixture(scope="module")
def wheel(dist):
    (found,) = dist.glob("*.whl")
    return found


def test_two_builds_have_the_same_bytes(dist, tmp_path):
    other = built(tmp_path, "a/longer/path")
    assert sorted(os.listdir(dist)) == sorted(os.listdir(other))
    for path in dist.iterdir():
        assert path.read_bytes() == (other / path.name).read_bytes(), path.name


def test_the_sdist_has_the_sources_and_nothing_else(sdist):
    with tarfile.open(sdist) as archive:
        files = {
            member.name.split("/", 1)[1]: member
            for member in archive.getmembers()
            if member.isfile()
        }
    kept = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    wanted = {name for name in kept if not name.startswith((".ci/", ".github/"))}
    assert set(files) - {"PKG-INFO"} == wanted
    assert {"LICENSE", "CHANGELOG.md", "pyproject.toml"} <= set(files)
    assert [name for name, member in files.items() if member.size > LARGEST] == []


def test_the_wheel_has_no_path_of_this_machine(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (core,) = (name for name in names if "_core." in name and name.endswith(".so"))
        content = archive.read(core)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith("tests") for name in names)
    for folder in (ROOT, Path.home(), wheel.parents[1]):
        assert str(folder).encode() not in content, folder
    assert re.search(rb"/tmp/[\w-]+", content) is None


def test_the_wheel_works_without_a_compiler(wheel):
    subprocess.run([sys.executable, SMOKE, "--wheel", wheel], check=True)


def test_the_sdist_builds_and_passes_its_core_tests(sdist, tmp_path):
    """It is installed in a new environment with build isolation, and its own tests run there."""
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.glob("thresher-*")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    python = str(tmp_path / "env" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    tests = ["pytest", "hypothesis", "pandas", "pyarrow", "zstandard"]
    subprocess.run([*install, str(sdist), *tests], check=True)
    core = ["tests/core", "tests/oracles", "tests/io", "tests/model/test_files.py"]
    subprocess.run([python, "-m", "pytest", "-q", *core], cwd=unpacked, check=True)
