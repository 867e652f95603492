"""The version is stated in several files, and a release needs the same one everywhere."""

import shutil

import pytest

import thresher
from release import version


def test_all_files_state_the_same_version():
    assert version.problem(version.ROOT) == ""
    assert set(version.versions(version.ROOT).values()) == {thresher.__version__}


@pytest.fixture
def copy(tmp_path):
    for name in version.PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(version.ROOT / name, tmp_path / name)
    return tmp_path


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_what_differs_is_named(copy):
    now = thresher.__version__
    assert version.problem(copy, f"v{now}") == ""
    assert "the tag: 9.9" in version.problem(copy, "v9.9")
    edit(copy / "CITATION.cff", f"version: {now}", "version: 0.0.1")
    assert "CITATION.cff: 0.0.1" in version.problem(copy)


def test_dates_must_agree_and_nothing_may_be_unreleased(copy):
    edit(copy / "CHANGELOG.md", "## [", "## [Unreleased]\n\n## [")
    assert version.problem(copy) == ""
    assert "[Unreleased]" in version.problem(copy, f"v{thresher.__version__}")
    edit(copy / "CITATION.cff", 'date-released: "', 'date-released: "1')
    assert "dates" in version.problem(copy)
