"""The files in .github name targets of make, files and jobs that exist, and ask for few rights."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
VERSION = re.compile(r"[\w-]+/[\w-]+@v\d+\.\d+\.\d+")

pytestmark = pytest.mark.skipif(not FILES, reason="an sdist has no .github")


def read(path):
    """Return a workflow; YAML takes the key `on` for true."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job.get("steps", ())]


def commands(workflow):
    return "\n".join(step["run"] for step in steps(workflow) if "run" in step)


def test_all_tasks_have_a_workflow():
    assert [path.stem for path in FILES] == ["docs", "nightly", "release", "tests", "wheels"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_targets_and_files_exist(path):
    text = commands(read(path))
    for target in re.findall(r"\bmake ([a-z-]+)", text):
        assert target in TARGETS, target
    for name in re.findall(r"(?<![\w./-])((?:\.ci|tests|docs|src)/[\w./-]+)", text):
        assert (ROOT / name).is_file(), name


def test_the_check_finds_names():
    found = commands(read(ROOT / ".github" / "workflows" / "release.yml"))
    assert "tests/release/version.py" in found
    assert {"quick", "docs", "soak", "wheel-check"} <= TARGETS
    assert "no-such-target" not in TARGETS


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_rights_and_versions(path):
    workflow = read(path)
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        rights = job["permissions"]
        wanted = {"id-token": "write"} if name == "publish" else {"contents": "read"}
        assert rights in ({}, wanted), name
        if "uses" in job:
            assert (ROOT / job["uses"]).is_file()
        else:
            assert job["timeout-minutes"] <= 360
    for step in steps(workflow):
        if "uses" in step:
            assert VERSION.fullmatch(step["uses"]), step["uses"]
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_only_a_tag_publishes():
    publishing = [path.stem for path in FILES if "pypi-publish" in path.read_text(encoding="utf-8")]
    assert publishing == ["release"]
    assert read(ROOT / ".github" / "workflows" / "release.yml")[True] == {"push": {"tags": ["v*"]}}
